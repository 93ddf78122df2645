"""`heatcheck compare`: how several runs of a study differ."""

import json
import math
from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer

from heatcheck.cli.options import AsJson, Debug


def compare(
    runs: Annotated[list[Path], typer.Argument(metavar="RUN RUN...", help="Folders of runs of one study.")],
    out: Annotated[
        Path | None, typer.Option("--out", "-o", help="Write the comparison as a page, such as a.html.")
    ] = None,
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Compare runs with the first one: models, versions, before and after, on the cases that all have."""
    from heatcheck.running.compare.answer import recommendation, statuses
    from heatcheck.running.compare.page import write_page
    from heatcheck.running.compare.side_by_side import side_by_side

    side = side_by_side(runs)
    if out:
        write_page(side, out)
    if as_json:
        typer.echo(json.dumps(_without_nan(asdict(side.compared)), indent=1, allow_nan=False))
        return
    for sentence in side.compared.sentences:
        typer.echo(sentence)
    for status in statuses(side):
        typer.echo(f"{status.light.sign} {status.question} {status.word}. {status.sentence}")
    for sentence in recommendation(side):
        typer.echo(sentence)
    typer.echo(f"Page: {out}" if out else "All methods, findings and metrics: add --out compare.html.")


def _without_nan(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """The value without undefined numbers, for which JSON has no word."""
    if isinstance(value, dict):
        return {name: _without_nan(inner) for name, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_without_nan(inner) for inner in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value
