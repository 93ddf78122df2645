"""`heatcheck tune`: thresholds and cutoffs from validation data."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from heatcheck.cli.layout import MISSING, decimals, json_text
from heatcheck.cli.options import AllowMissing, AsJson, Debug, Labels, Maps, Preset, Quiet, Truth, Workers

if TYPE_CHECKING:
    from heatcheck.studies.localization.from_files.tune import Tuning


def tune(
    maps: Maps,
    truth: Truth,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder for the tables.")],
    labels: Labels = None,
    preset: Preset = "recommended",
    smooth: Annotated[
        list[float] | None,
        typer.Option(
            metavar="FRACTION", help="Also try this smoothing, as a fraction of the image's side; may be repeated."
        ),
    ] = None,
    allow_missing: AllowMissing = False,
    workers: Workers = 2,
    as_json: AsJson = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Find the best map threshold and probability cutoff of each finding on validation maps.

    Use the tables to score maps of OTHER patients: heatcheck score --threshold tuning_results.csv
    --probability-cutoffs probability_tuning_results.csv.
    """
    from dataclasses import asdict

    from heatcheck.cli.score import folders
    from heatcheck.running.progress import watching
    from heatcheck.studies.localization.from_files.inputs import ScoreFiles
    from heatcheck.studies.localization.from_files.tune import tune as tune_maps

    files = ScoreFiles(folders(maps), truth, labels=labels, preset=preset, allow_missing=allow_missing)
    with watching(quiet=quiet or as_json) as watcher:
        tuned = tune_maps(files, out, tuple(smooth or ()), watcher, workers)
    if as_json:
        typer.echo(json_text([asdict(tuning) for tuning in tuned.findings]))
    elif not quiet:
        for tuning in tuned.findings:
            typer.echo(_line(tuning, with_smoothing=bool(smooth)))
        for note in tuned.notes:
            typer.echo(f"Note: {note}")
        typer.echo(f"Tables: {', '.join(str(file) for file in tuned.files)}")


def _line(tuning: "Tuning", *, with_smoothing: bool) -> str:
    """What was found for one finding; a dash where nothing could be tuned, of which the notes give the reason."""
    values = f"threshold {decimals(tuning.threshold, 1)}  cutoff {decimals(tuning.cutoff, 1)}"
    smooth = MISSING if math.isnan(tuning.smooth) else f"{tuning.smooth:g}"
    extra = f"; with Otsu instead: smooth {smooth}" if with_smoothing else ""
    return f"{tuning.finding:<28} {values}  ({tuning.cases} cases{extra})"
