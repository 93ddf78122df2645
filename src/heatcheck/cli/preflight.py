"""`heatcheck preflight`: which methods run on a model."""

import json
import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heatcheck.cli.options import Debug, Device, Quiet, TrustCode

if TYPE_CHECKING:
    from heatcheck.explaining.preflight import Preflight

_EXAMPLE = (
    "Example: heatcheck preflight phantom_chest_densenet. "
    "Your own: heatcheck preflight python:my_model:make_model --trust-code --size 224 --channels 3"
)


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command("preflight", epilog=_EXAMPLE)(preflight)


def preflight(
    model: Annotated[str, typer.Argument(help="A name (heatcheck list models), or python:package.module:factory.")],
    weights: Annotated[Path | None, typer.Option(help="The model's weights; random without them.")] = None,
    contract: Annotated[
        Path | None, typer.Option(help="YAML: outputs, size, channels, mean, std, activation of the model.")
    ] = None,
    size: Annotated[int | None, typer.Option(min=1, help="The image's side in pixels.")] = None,
    channels: Annotated[int | None, typer.Option(min=1, help="The image's channels.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Write the same to a .json file.")] = None,
    device: Device = "cpu",
    trust_code: TrustCode = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Try every method on a model with one random image, and say which run, which do not, and why."""
    from heatcheck.core.errors import InputError
    from heatcheck.explaining.named_model import NamedModel
    from heatcheck.explaining.preflight import Input
    from heatcheck.explaining.preflight import preflight as try_all
    from heatcheck.running.progress import watching

    if json_file is not None and (json_file.suffix != ".json" or not json_file.absolute().parent.is_dir()):
        raise InputError(f"--json {json_file} must be a .json file in a folder that exists")
    try:
        with watching(quiet=quiet) as watcher:
            known = try_all(NamedModel(model, weights, contract, device, trust_code), Input(size, channels), watcher)
    except KeyboardInterrupt:
        typer.echo("\nStopped.", err=True)
        raise typer.Exit(130) from None
    if json_file is not None:
        _write(known, json_file)
    if not quiet:
        _show(known)


def _write(known: "Preflight", path: Path) -> None:
    from dataclasses import asdict

    from heatcheck.maps.files import write_whole

    facts = asdict(known)
    for row in facts["methods"]:
        row |= {key: None for key, value in row.items() if isinstance(value, float) and math.isnan(value)}
    write_whole(path, f"{json.dumps(facts, indent=1, allow_nan=False)}\n".encode())


def _show(known: "Preflight") -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    size = "×".join(map(str, known.size))
    channels = "1 channel" if known.channels == 1 else f"{known.channels} channels"
    console.print(f"{known.model}: {size}, {channels}, {known.outputs} outputs, {known.weights} weights", markup=False)
    console.print(
        f"{known.parameters:,} parameters; one forward pass takes {known.forward_seconds * 1000:.0f} ms here (1 F); "
        f"class activation maps use {f'layer {known.layer!r}' if known.layer else 'no layer: none is spatial'}",
        markup=False,
    )
    table = Table(box=None)
    for heading in ("method", "runs", "seconds", "F", "differentiable"):
        table.add_column(heading, no_wrap=True)
    table.add_column("reason")
    for row in known.methods:
        measured = [f"{row.seconds:.2f}", f"{row.forwards:.1f}"] if row.runs else ["–", "–"]
        differentiable = "yes" if row.differentiable and row.runs else "no"
        answer = "yes" if row.runs else "NO"
        table.add_row(row.method, answer, *measured, differentiable, row.reason)
    console.print(table)
    count = sum(row.runs for row in known.methods)
    console.print(f"{count} of {len(known.methods)} methods run, each tried once at its cheapest on a random image.")
