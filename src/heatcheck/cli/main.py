"""The `heatcheck` command."""

import os
import sys
import traceback
import warnings
from typing import Annotated

import typer

from heatcheck import __version__
from heatcheck.cli import compare, demo, explain, init, list_parts, preflight, rate, report, run, score, train, tune
from heatcheck.core.errors import HeatcheckError, HeatcheckWarning
from heatcheck.core.waiting import wait_briefly

_PYTHONS_OWN = warnings.formatwarning
app = typer.Typer(
    help="Tests whether the heat maps of a medical-image classifier deserve trust.",
    epilog="Start with: heatcheck demo --out my-demo",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for verb in (demo, explain, preflight, run, score, tune, report, rate, compare, init, list_parts, train):
    verb.add_to(app)


def _version(value: bool) -> None:
    if value:
        typer.echo(f"heatcheck {__version__}")
        raise typer.Exit


@app.callback()
def _top(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print it and leave.")
    ] = False,
) -> None:
    """Tests whether the heat maps of a medical-image classifier deserve trust."""


def _one_line(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """A warning of ours as the user reads it; any other as Python writes it."""
    if issubclass(category, HeatcheckWarning):
        return f"heatcheck: {message}\n"
    return _PYTHONS_OWN(message, category, filename, lineno, line)


def main() -> None:
    """Run the command; whatever the user can mend is one line on stderr and exit code 2."""
    debug = "--debug" in sys.argv
    wait_briefly()
    warnings.formatwarning = _one_line
    try:
        app()
    except HeatcheckError as error:
        if debug:
            traceback.print_exc()
        typer.echo(f"heatcheck: {' '.join(str(error).split())}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
