"""`heatcheck run`: carry out a study."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heatcheck.cli.answer import print_answer
from heatcheck.cli.options import Debug, Device, Limit, Out, Pseudonymise, Quiet, RetryFailed, Seed, TrustCode, Workers
from heatcheck.cli.stopping import again, continuable

if TYPE_CHECKING:
    from heatcheck.running.study import RunOptions


def run(
    spec: Annotated[
        str, typer.Argument(metavar="SPEC", help="A YAML file, or the name of a shipped spec (heatcheck list specs).")
    ],
    out: Out,
    device: Device = "cpu",
    limit: Limit = None,
    workers: Workers = 2,
    seed: Seed = None,
    trust_code: TrustCode = False,
    pseudonymise: Pseudonymise = False,
    retry_failed: RetryFailed = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Carry out a study and write its report, or continue a study that was interrupted."""
    from heatcheck.running.study import RunOptions

    run_and_report(
        spec, out, RunOptions(device, limit, workers, seed, trust_code, pseudonymise, retry_failed), quiet=quiet
    )


def run_and_report(spec: str, out: Path, options: "RunOptions", *, quiet: bool) -> None:
    """Run the study and print its answer; exit code 3 if cases failed."""
    from heatcheck.running.progress import watching
    from heatcheck.running.run import run_study

    with continuable(out), watching(quiet=quiet) as watcher:
        outcome = run_study(spec, out, options, watcher)
    if not quiet:
        print_answer(outcome.brief, outcome.report)
    exit_on_failures(outcome.n_failed, outcome.n_cases, again("--retry-failed") if outcome.can_retry else "")


def exit_on_failures(n_failed: int, n_cases: int, retry: str = "") -> None:
    """If cases failed, print how many and the command that runs them again, if there is one; exit with code 3."""
    if n_failed:
        remedy = f"Repair them, then run them again with:\n  {retry}" if retry else "Repair them and use a new --out"
        typer.echo(
            f"heatcheck: {n_failed} of {n_cases} cases failed; the report lists them with their reasons. {remedy}",
            err=True,
        )
        raise typer.Exit(3)
