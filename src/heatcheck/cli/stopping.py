"""What Ctrl-C says."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import typer


@contextmanager
def continuable() -> Iterator[None]:
    """A block whose work is kept when it is interrupted; the command that continues it is printed."""
    try:
        yield
    except KeyboardInterrupt:
        again = shlex.join(["heatcheck", *sys.argv[1:]])
        typer.echo(f"\nStopped. What is finished is kept; continue with:\n  {again}", err=True)
        raise typer.Exit(130) from None
