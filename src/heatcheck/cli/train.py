"""`heatcheck train`: train classifiers."""

import math
from enum import StrEnum
from typing import TYPE_CHECKING, Annotated

import typer

from heatcheck.cli.layout import decimals
from heatcheck.cli.options import Debug, Device, Out, Quiet, Seed, Workers
from heatcheck.cli.stopping import continuable

if TYPE_CHECKING:
    from heatcheck.fitting.train import Trained


class Precision(StrEnum):
    """Number format of a training."""

    FULL = "32-true"
    HALF = "16-mixed"
    BFLOAT = "bf16-mixed"


def train(
    spec: Annotated[
        str,
        typer.Argument(
            metavar="SPEC", help="A YAML file, or the name of a shipped training spec (heatcheck list specs)."
        ),
    ],
    out: Out,
    seed: Seed = None,
    device: Device = "cpu",
    devices: Annotated[int, typer.Option(min=1, metavar="N", help="Number of devices that share each batch.")] = 1,
    precision: Annotated[
        Precision,
        typer.Option(
            metavar="FORMAT", help=f"Number format: {', '.join(Precision)}; mixed precision is faster on GPUs."
        ),
    ] = Precision.FULL,
    workers: Workers = 2,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train classifiers, or continue a training, and test the best one and the ensemble on new cases."""
    from heatcheck.fitting.train import train as train_networks
    from heatcheck.running.progress import watching
    from heatcheck.runs.spec import read_spec
    from heatcheck.training import Machine

    machine = Machine(device, devices, precision.value, workers)
    with continuable(out), watching(quiet=quiet) as watcher:
        trained = train_networks(read_spec(spec, seed), out, watcher, machine)
    if not quiet:
        _print_summary(trained)


def _print_summary(trained: "Trained") -> None:
    ensemble_auroc = {result.finding: result.auroc for result in trained.ensemble_results}
    for result in trained.results:
        ensemble = f"  ensemble {decimals(ensemble_auroc[result.finding], 3)}" if ensemble_auroc else ""
        needs = "; an AUROC needs cases with and without it" if math.isnan(result.auroc) else ""
        cases = f"({result.positives} of {result.cases} positive{needs})"
        typer.echo(f"{result.finding:<28} AUROC {decimals(result.auroc, 3)}{ensemble}  {cases}")
    ensemble = f"  ensemble {decimals(trained.macro_ensemble_auroc, 3)}" if ensemble_auroc else ""
    typer.echo(f"{'Mean over findings':<28} AUROC {decimals(trained.macro_auroc, 3)}{ensemble}")
    if not math.isnan(trained.accuracy):
        typer.echo(f"{'Accuracy':<28}       {trained.accuracy:.3f}")
    typer.echo(f"Weights: {trained.weights}")
    if trained.ensemble:
        typer.echo(f"Ensemble: {trained.ensemble}")
