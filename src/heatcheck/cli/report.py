"""`heatcheck report`: rebuild the report of a run."""

from pathlib import Path
from typing import Annotated

import typer

from heatcheck.cli.answer import print_answer
from heatcheck.cli.options import Debug, Quiet


def report(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Rebuild the report from the folder of a run: neither data nor model nor torch is needed."""
    from heatcheck.running.reporting import written_report

    written = written_report(run)
    if not quiet:
        print_answer(written.brief, written.path)
