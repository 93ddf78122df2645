"""`heatcheck tune`: thresholds and cutoffs from validation data."""

from pathlib import Path
from typing import Annotated

import typer

from heatcheck.cli.options import AllowMissing, AsJson, Debug, Labels, Maps, Preset, Quiet, Truth, Workers


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
    import json
    from dataclasses import asdict

    from heatcheck.cli.score import folders
    from heatcheck.running.progress import watching
    from heatcheck.studies.localization.from_files.inputs import ScoreFiles
    from heatcheck.studies.localization.from_files.tune import tune as tune_maps

    files = ScoreFiles(folders(maps), truth, labels=labels, preset=preset, allow_missing=allow_missing)
    with watching(quiet=quiet or as_json) as watcher:
        tuned = tune_maps(files, out, tuple(smooth or ()), watcher, workers)
    if as_json:
        typer.echo(json.dumps([asdict(tuning) for tuning in tuned.findings], indent=1))
    elif not quiet:
        for tuning in tuned.findings:
            line = f"{tuning.finding:<28} threshold {tuning.threshold:.1f}  cutoff {tuning.cutoff:.1f}"
            extra = f"; with Otsu instead: smooth {tuning.smooth:g}" if smooth else ""
            typer.echo(f"{line}  ({tuning.cases} cases{extra})")
        for note in tuned.notes:
            typer.echo(f"Note: {note}")
        typer.echo(f"Tables: {', '.join(str(file) for file in tuned.files)}")
