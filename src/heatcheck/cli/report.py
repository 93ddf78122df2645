"""`heatcheck report`: rebuild the report of a run."""

from pathlib import Path
from typing import Annotated

import typer

from heatcheck.cli.options import Debug, Quiet


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Rebuild the report from the folder of a run: neither data nor model nor torch is needed."""
    from heatcheck.running.reporting import build_report

    path = build_report(run)
    if not quiet:
        typer.echo(f"Report: {path}")
