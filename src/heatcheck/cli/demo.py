"""`heatcheck demo`: all studies on built-in images, without data or a model of your own."""

from typing import Annotated

import typer

from heatcheck.cli.answer import print_answer
from heatcheck.cli.options import Debug, Device, Limit, Out, Quiet
from heatcheck.cli.run import exit_on_failures
from heatcheck.cli.stopping import continuable

Only = Annotated[
    list[str] | None,
    typer.Option(metavar="STUDY", help="Run only the demo of this study (heatcheck list studies); may be repeated."),
]


def demo(
    out: Out,
    only: Only = None,
    limit: Limit = None,
    device: Device = "cpu",
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run a small version of every study on built-in chest films and brain slices: about three minutes on two cores."""
    from heatcheck.running.demo import run_demo
    from heatcheck.running.progress import watching
    from heatcheck.running.study import RunOptions

    with continuable(out), watching(quiet=quiet) as watcher:
        results = run_demo(out, only or [], RunOptions(device=device, limit=limit), watcher)
    if not quiet:
        for outcome in results.outcomes:
            print_answer(outcome.brief, outcome.report)
            typer.echo()
        typer.echo(f"All reports: {results.page}")
    exit_on_failures(sum(run.n_failed for run in results.outcomes), sum(run.n_cases for run in results.outcomes))
