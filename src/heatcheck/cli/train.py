"""`heatcheck train`: train a classifier."""

from typing import Annotated

import typer

from heatcheck.cli.options import Debug, Device, Out, Quiet, Seed, Workers
from heatcheck.cli.stopping import continuable


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command("train", epilog="Example: heatcheck train phantom-chest --out my-training")(train)


def train(
    spec: Annotated[str, typer.Argument(help="A YAML file, or the name of a shipped training spec.")],
    out: Out,
    seed: Seed = None,
    device: Device = "cpu",
    workers: Workers = 2,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Train a classifier, or continue a training, and test it on unseen cases."""
    from heatcheck.runs.spec import read_spec
    from heatcheck.studies.progress import watching
    from heatcheck.studies.train import train as carry_out

    with continuable(), watching(quiet=quiet) as watcher:
        trained = carry_out(read_spec(spec, seed), out, watcher, workers, device)
    if quiet:
        return
    for result in trained.results:
        typer.echo(f"{result.finding:<28} AUROC {result.auroc:.3f}  ({result.positives} of {result.cases} positive)")
    typer.echo(f"{'Mean over findings':<28} AUROC {trained.macro_auroc:.3f}")
    typer.echo(f"Weights: {trained.weights}")
