"""`heatcheck rate`: what readers think of a run's maps."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heatcheck.cli.options import Debug, Quiet
from heatcheck.core.errors import InputError

if TYPE_CHECKING:
    from heatcheck.studies.modality.rate import Rated

_EXAMPLE = (
    "Example: heatcheck rate my-run --sheet ratings.csv, then fill it in, then: heatcheck rate my-run ratings.csv"
)


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command("rate", epilog=_EXAMPLE)(rate)


def rate(
    run: Annotated[Path, typer.Argument(help="The folder of a finished modality run.")],
    ratings: Annotated[
        Path | None, typer.Argument(help="CSV with the columns reader,case,method,rating,comment; ratings 0 to 100.")
    ] = None,
    sheet: Annotated[
        Path | None, typer.Option(help="Write an empty CSV to fill in, a row for each map of the gallery.")
    ] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Add readers' ratings of maps to a finished run and build its report again, or write a sheet to rate on.

    Ratings that were added earlier are replaced.
    """
    from heatcheck.studies.modality.rate import rate_run, sheet_for

    if (ratings is None) == (sheet is None):
        raise InputError("give either a table of ratings, or --sheet FILE to write an empty one")
    if sheet is not None:
        rows = sheet_for(run, sheet)
        if not quiet:
            typer.echo(f"{rows} maps to rate: {sheet}")
    elif ratings is not None:
        rated = rate_run(run, ratings)
        if not quiet:
            _say(rated)


def _say(rated: "Rated") -> None:
    readers = "1 reader" if rated.readers == 1 else f"{rated.readers} readers"
    typer.echo(f"{rated.rows} ratings of {readers}, {rated.comments} with a comment")
    for statistic, words in (("correlation", "Rating and MSFI (Spearman)"), ("alpha", "Readers' agreement (alpha)")):
        row = next(row for row in rated.estimates if row.statistic == statistic)
        told = f"{row.value:.2f}" if math.isfinite(row.value) else row.reason
        between = f" ({row.low:.2f} to {row.high:.2f})" if math.isfinite(row.low) else ""
        typer.echo(f"{words}: {told}{between}")
    typer.echo(f"Report: {rated.report}")
