"""`heatcheck compare`: how two runs differ."""

from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from heatcheck.cli.layout import decimals, json_text
from heatcheck.cli.options import AsJson, Debug

_WIDEST = 1000  # characters per line of a table


def compare(
    first: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a run.")],
    second: Annotated[Path, typer.Argument(metavar="OTHER", help="The folder of another run of the same study.")],
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """Compare two runs: their specs, and the scores of each method on the cases that both have."""
    from heatcheck.running.compare import compare_runs

    comparison = compare_runs(first, second)
    if as_json:
        typer.echo(json_text(asdict(comparison)))
        return
    from rich.console import Console
    from rich.markup import escape
    from rich.measure import Measurement
    from rich.table import Table

    console = Console()
    for sentence in comparison.sentences:
        console.print(sentence, highlight=False, markup=False)
    if not comparison.rows:
        return
    table = Table(
        "metric", "finding", "method", "first", "second", "second − first", "95 % interval", "cases", box=None
    )
    for row in comparison.rows:
        interval = "–" if row.low is None else f"{row.low:+.3f} … {row.high:+.3f}"
        values = [decimals(value, 3) for value in (row.first, row.second)]
        names = map(escape, (row.metric, row.finding, row.method))  # a name may hold what rich takes for a style
        table.add_row(*names, *values, decimals(row.difference, 3, signed=True), interval, str(row.n_cases))
    needed = Measurement.get(console, console.options.update(width=_WIDEST), table).maximum
    Console(width=max(console.width, needed)).print(table)  # a long line is better than a truncated name
