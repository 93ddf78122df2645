"""`heatcheck score`: grade maps that were made elsewhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from heatcheck.cli.options import AllowMissing, Debug, Labels, Maps, Out, Preset, Quiet, Truth, Workers
from heatcheck.cli.stopping import continuable
from heatcheck.core.errors import InputError

if TYPE_CHECKING:
    from heatcheck.scoring.presets import PresetName
    from heatcheck.studies.localization.from_files.score import Scored


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    example = (
        "Example: heatcheck score --maps maps --truth gt_annotations.json --human hb_annotations.json --out scores"
    )
    app.command("score", epilog=example)(score)


def score(  # each flag is one thing a user may give
    maps: Maps,
    truth: Truth,
    out: Out,
    human: Annotated[Path | None, typer.Option(help="What readers marked, in any form that --truth may have.")] = None,
    human_points: Annotated[
        Path | None,
        typer.Option(help="JSON with the points readers found most telling, as x and y by image and finding."),
    ] = None,
    labels: Labels = None,
    preset: Preset = "recommended",
    threshold: Annotated[
        str, typer.Option(help="otsu, a number between 0 and 1, or tuning_results.csv of `heatcheck tune`.")
    ] = "otsu",
    probability_cutoffs: Annotated[
        Path | None,
        typer.Option(help="probability_tuning_results.csv of `heatcheck tune`: below its cutoff a region is empty."),
    ] = None,
    smooth: Annotated[
        str,
        typer.Option(
            help="Smooth maps before Otsu: a fraction of the image's side (pixels with chexlocalize), or "
            "smoothing_results.csv of `heatcheck tune`."
        ),
    ] = "0",
    slice_: Annotated[
        Literal["true-positive", "full"],
        typer.Option("--slice", help="Overlap on images with the finding, or on all images."),
    ] = "true-positive",
    switch: Annotated[
        list[str] | None,
        typer.Option(help="One rule as the other preset has it, e.g. ties=chexlocalize; may be repeated."),
    ] = None,
    allow_missing: AllowMissing = False,
    workers: Workers = 2,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Score maps against what experts marked, without a model, and write a report."""
    from heatcheck.running.progress import watching
    from heatcheck.scoring.presets import rules_with
    from heatcheck.studies.localization.from_files.inputs import ScoreFiles
    from heatcheck.studies.localization.from_files.score import ScoreOptions, score_maps, summary_lines
    from heatcheck.studies.localization.from_files.settings import region_settings

    set_to = switches(switch or [])
    given = ScoreFiles(folders(maps), truth, human, human_points, labels, preset, allow_missing, set_to)
    settings = region_settings(threshold, probability_cutoffs, smooth, slice_, rules_with(preset, set_to))
    with continuable(), watching(quiet=quiet) as watcher:
        scored = score_maps(given, settings, out, ScoreOptions(workers), watcher)
    if not quiet:
        for line in summary_lines(scored, slice_, preset):
            typer.echo(line)
        _say(scored)


def folders(maps: list[str]) -> dict[str, Path]:
    """The folders of maps by the name of their method."""
    named: dict[str, Path] = {}
    for text in maps:
        name, equals, folder = text.partition("=")
        if not equals or Path(text).is_dir():
            name, folder = "maps", text
        if not name or not folder:
            raise InputError(f"--maps is a folder or NAME=FOLDER, got {text!r}")
        if name in named:
            raise InputError(f"two --maps are called {name!r}; name each: --maps grad_cam=… --maps lrp=…")
        named[name] = Path(folder)
    return named


def switches(given: list[str]) -> "dict[str, PresetName]":
    """The rules that are set to one preset's or the other's."""
    found: dict[str, PresetName] = {}
    for text in given:
        name, _, to = text.partition("=")
        match to:
            case "recommended" | "chexlocalize":
                found[name] = to
            case _:
                raise InputError(f"--switch is NAME=recommended or NAME=chexlocalize, got {text!r}")
    return found


def _say(scored: "Scored") -> None:
    for note in scored.notes:
        typer.echo(f"Note: {note}")
    if scored.files:
        typer.echo(f"The benchmark's {scored.files} files lie in {scored.report.parent}")
    typer.echo(f"Report: {scored.report}")
