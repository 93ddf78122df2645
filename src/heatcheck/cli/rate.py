"""`heatcheck rate`: readers' ratings of the maps of a run."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heatcheck.cli.options import Debug, Quiet
from heatcheck.core.errors import InputError

if TYPE_CHECKING:
    from heatcheck.studies.modality.rate import Rated


def rate(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="The folder of a finished modality run.")],
    ratings: Annotated[
        Path | None,
        typer.Argument(
            metavar="RATINGS", help="CSV with the columns reader, case, method, rating (0 to 100) and comment."
        ),
    ] = None,
    sheet: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write an empty CSV to fill in, with one row per map of the gallery."),
    ] = None,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Add readers' ratings of maps to a finished run and rebuild its report, or write an empty sheet for ratings.

    Ratings that were added before are replaced.
    """
    from heatcheck.studies.modality.rate import rate_run, sheet_for

    if (ratings is None) == (sheet is None):
        raise InputError("give either a table of ratings, or --sheet FILE to write an empty table")
    if sheet is not None:
        rows = sheet_for(run, sheet)
        if not quiet:
            typer.echo(f"{rows} maps to rate: {sheet}")
    elif ratings is not None:
        rated = rate_run(run, ratings)
        if not quiet:
            _print_summary(rated)


def _print_summary(rated: "Rated") -> None:
    readers = "1 reader" if rated.readers == 1 else f"{rated.readers} readers"
    typer.echo(f"{rated.rows} ratings of {readers}, {rated.comments} with a comment")
    labels = {"correlation": "Rating and MSFI (Spearman)", "alpha": "Readers' agreement (alpha)"}
    for statistic, label in labels.items():
        row = next(row for row in rated.estimates if row.statistic == statistic)
        value = f"{row.value:.2f}" if math.isfinite(row.value) else row.reason
        interval = f" ({row.low:.2f} to {row.high:.2f})" if math.isfinite(row.low) else ""
        typer.echo(f"{label}: {value}{interval}")
    typer.echo(f"Report: {rated.report}")
