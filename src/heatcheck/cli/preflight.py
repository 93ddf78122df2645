"""`heatcheck preflight`: which methods run on a model."""

import json
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heatcheck.cli.layout import MISSING, columns, width, wrapped
from heatcheck.cli.options import MODEL_HELP, Contract, Debug, Device, Quiet, TrustCode
from heatcheck.cli.stopping import stoppable
from heatcheck.core.errors import InputError

if TYPE_CHECKING:
    from heatcheck.explaining.preflight import MethodTrial, Preflight


def preflight(
    model: Annotated[str, typer.Argument(metavar="MODEL", help=MODEL_HELP)],
    weights: Annotated[
        Path | None, typer.Option(help="File with the model's weights; if omitted, the weights are random.")
    ] = None,
    contract: Contract = None,
    size: Annotated[int | None, typer.Option(min=1, help="Side of the input image in pixels.")] = None,
    channels: Annotated[int | None, typer.Option(min=1, help="Channels of the input image.")] = None,
    json_file: Annotated[Path | None, typer.Option("--json", help="Also write the results to this .json file.")] = None,
    device: Device = "cpu",
    trust_code: TrustCode = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Try every method on a model with one random image, and show which run, at what cost, and why others do not."""
    from heatcheck.explaining.named_model import NamedModel
    from heatcheck.explaining.preflight import Input
    from heatcheck.explaining.preflight import preflight as try_all
    from heatcheck.running.progress import watching

    if json_file is not None and (json_file.suffix != ".json" or not json_file.absolute().parent.is_dir()):
        raise InputError(f"--json must be a .json file in an existing folder, got {json_file}")
    with stoppable(), watching(quiet=quiet) as watcher:
        results = try_all(NamedModel(model, weights, contract, device, trust_code), Input(size, channels), watcher)
    if json_file is not None:
        _write_json(results, json_file)
    if not quiet:
        _print_table(results)


def _write_json(results: "Preflight", path: Path) -> None:
    from dataclasses import asdict

    from heatcheck.maps.files import write_atomically

    content = asdict(results)
    for row in content["methods"]:
        row |= {key: None for key, value in row.items() if isinstance(value, float) and math.isnan(value)}
    write_atomically(path, f"{json.dumps(content, indent=1, allow_nan=False)}\n".encode())


def _print_table(results: "Preflight") -> None:
    size = "×".join(map(str, results.size))
    channels = "1 channel" if results.channels == 1 else f"{results.channels} channels"
    _say(f"{results.model}: {size}, {channels}, {results.outputs} outputs, {results.weights} weights")
    if results.assumed:
        _say(
            f"Note: no contract was given, so an input of {size} with {channels} was assumed; state others with --size "
            "and --channels, or name your study's spec in place of the model"
        )
    layer = f"use layer {results.layer!r}" if results.layer else "cannot be made: no layer is spatial"
    _say(
        f"{results.parameters:,} parameters; one forward pass (1 F) takes {results.forward_seconds * 1000:.0f} ms on "
        f"this machine; class activation maps {layer}"
    )
    typer.echo("")
    for line in _table(results.methods):
        typer.echo(line)
    typer.echo("")
    running = [row.method for row in results.methods if row.runs]
    _say(
        f"{len(running)} of {len(results.methods)} methods run; each was tried once, on one random image. The cost is "
        "that of one map with the usual settings: its passes through the network, times what one takes here."
    )
    _say("differentiable: a network can be trained through the map, as the alignment study does to tune it")
    _print_line(results, running)


def _say(text: str) -> None:
    typer.echo("\n".join(wrapped(text, width())))


def _table(rows: Sequence["MethodTrial"]) -> Iterator[str]:
    """A line for each method, with its reason or note below it."""
    cells = []
    for row in rows:
        cost = (f"{row.seconds_per_map:.2f}", f"{row.passes:.0f}") if row.runs else (MISSING, MISSING)
        differentiable = "yes" if row.differentiable and row.runs else "no"
        cells.append((row.method, "yes" if row.runs else "NO", *cost, differentiable))
    heading, *lines = columns([("method", "runs", "s per map", "passes", "differentiable"), *cells])
    yield heading
    for line, row in zip(lines, rows, strict=True):
        yield line
        yield from wrapped(row.reason, width(), first=" " * 4, other=" " * 4)


def _print_line(results: "Preflight", running: list[str]) -> None:
    """Print what to write into a spec, as the last line."""
    from heatcheck.report.numbers import duration

    best, every = (duration(results.seconds_of(names)) for names in (results.recommended, running))
    _say(
        f"Paste into a spec: one method of each family that runs, and the floors ({best} per image and finding; "
        f"`methods: all` takes {every}):"
    )
    typer.echo(f"methods: [{', '.join(results.recommended)}]")
