"""`heatcheck compare`: how several runs of a study differ."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from heatcheck.cli.layout import json_text
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
        typer.echo(json_text(asdict(side.compared)))
        return
    for sentence in side.compared.sentences:
        typer.echo(sentence)
    for status in statuses(side):
        typer.echo(f"{status.light.sign} {status.question} {status.word}. {status.sentence}")
    for sentence in recommendation(side):
        typer.echo(sentence)
    typer.echo(f"Page: {out}" if out else "All methods, findings and metrics: add --out compare.html.")
