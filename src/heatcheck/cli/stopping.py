"""What happens on Ctrl-C."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

_DESCRIPTION = ("run.json", "preview.png")  # written before any work


@contextmanager
def stoppable(message: str = "") -> Iterator[None]:
    """A block that Ctrl-C ends with a message and exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"\nStopped. {message}".rstrip(), err=True)
        raise typer.Exit(130) from None


@contextmanager
def continuable(out: Path) -> Iterator[None]:
    """A block whose finished work in `out` is kept on Ctrl-C; the message shows the command that continues it."""
    try:
        yield
    except KeyboardInterrupt:
        kept = (
            "Finished work is kept; continue with" if _has_work(out) else "Nothing was finished yet; begin again with"
        )
        with stoppable(f"{kept}:\n  {again()}"):
            raise


def _has_work(out: Path) -> bool:
    """Whether the folder holds more than the description of a run."""
    files = (path for path in out.rglob("*") if path.is_file() and not path.name.startswith("."))
    return any(path.name not in _DESCRIPTION and ".tmp-" not in path.name for path in files)


def again(option: str = "") -> str:
    """The command that was given, with another option."""
    more = [option] if option and option not in sys.argv else []
    return shlex.join(["heatcheck", *sys.argv[1:], *more])
