"""What happens on Ctrl-C."""

import shlex
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager

import typer


@contextmanager
def stoppable(message: str = "") -> Iterator[None]:
    """A block that Ctrl-C ends with a message and exit code 130."""
    try:
        yield
    except KeyboardInterrupt:
        typer.echo(f"\nStopped. {message}".rstrip(), err=True)
        raise typer.Exit(130) from None


def continuable() -> AbstractContextManager[None]:
    """A block whose finished work is kept on Ctrl-C; the message shows the command that continues it."""
    return stoppable(f"Finished work is kept; continue with:\n  {again()}")


def again(option: str = "") -> str:
    """The command that was given, with another option."""
    more = [option] if option and option not in sys.argv else []
    return shlex.join(["heatcheck", *sys.argv[1:], *more])
