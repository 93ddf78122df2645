"""`heatcheck train`: train classifiers."""

import math
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from heatcheck.cli.options import Debug, Device, Out, Quiet, Seed, Workers
from heatcheck.cli.stopping import continuable

if TYPE_CHECKING:
    from heatcheck.fitting.train import Trained


class Precision(StrEnum):
    """The arithmetic of a training."""

    FULL = "32-true"
    HALF = "16-mixed"
    BFLOAT = "bf16-mixed"


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command("train", epilog="Example: heatcheck train phantom-chest --out my-training")(train)


def train(
    spec: Annotated[str, typer.Argument(help="A YAML file, or the name of a shipped training spec.")],
    out: Out,
    seed: Seed = None,
    device: Device = "cpu",
    devices: Annotated[int, typer.Option(min=1, help="How many of them share each batch.")] = 1,
    precision: Annotated[Precision, typer.Option(help="Mixed precision is faster on GPUs.")] = Precision.FULL,
    workers: Workers = 2,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train classifiers, or continue a training, and test the best and their ensemble on unseen cases."""
    from heatcheck.fitting.train import train as train_networks
    from heatcheck.running.progress import watching
    from heatcheck.runs.spec import read_spec
    from heatcheck.training import Machine

    machine = Machine(device, devices, precision.value, workers)
    with continuable(), watching(quiet=quiet) as watcher:
        trained = train_networks(read_spec(spec, seed), out, watcher, machine)
    if not quiet:
        _print(trained)


def _print(trained: "Trained") -> None:
    together = {result.finding: result.auroc for result in trained.ensemble_results}
    for result in trained.results:
        more = f"  ensemble {together[result.finding]:.3f}" if together else ""
        typer.echo(
            f"{result.finding:<28} AUROC {result.auroc:.3f}{more}  ({result.positives} of {result.cases} positive)"
        )
    more = f"  ensemble {trained.macro_ensemble_auroc:.3f}" if together else ""
    typer.echo(f"{'Mean over findings':<28} AUROC {trained.macro_auroc:.3f}{more}")
    if not math.isnan(trained.accuracy):
        typer.echo(f"{'Accuracy':<28}       {trained.accuracy:.3f}")
    typer.echo(f"Weights: {trained.weights}")
    if trained.ensemble:
        typer.echo(f"Ensemble: {trained.ensemble}")
