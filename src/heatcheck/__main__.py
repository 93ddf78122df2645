"""`python -m heatcheck` is the command `heatcheck`."""

from heatcheck.cli.main import main

if __name__ == "__main__":
    main()
