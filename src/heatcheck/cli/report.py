"""`heatcheck report`: build a run's report again."""

from pathlib import Path
from typing import Annotated

import typer

from heatcheck.cli.options import Debug, Quiet


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command("report", epilog="Example: heatcheck report my-run")(report)


def report(
    run: Annotated[Path, typer.Argument(help="The folder of a run.")], quiet: Quiet = False, debug: Debug = False
) -> None:
    """Build the report from a run's folder alone: neither data nor model nor torch is needed."""
    from heatcheck.running.reporting import build_report

    path = build_report(run)
    if not quiet:
        typer.echo(f"Report: {path}")
