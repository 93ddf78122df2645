"""`heatcheck score`: score maps that were made elsewhere."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from heatcheck.cli.options import AllowMissing, Debug, Labels, Maps, Out, Preset, Quiet, Truth, Workers
from heatcheck.cli.run import exit_on_failures
from heatcheck.cli.stopping import continuable
from heatcheck.core.errors import InputError

if TYPE_CHECKING:
    from heatcheck.scoring.presets import PresetName
    from heatcheck.studies.localization.from_files.score import ScoreOutcome
    from heatcheck.studies.localization.subgroups.groups import Subgroup


def score(
    maps: Maps,
    truth: Truth,
    out: Out,
    human: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Marks of human readers to compare with, in any format of --truth."),
    ] = None,
    human_points: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="JSON with the readers' most representative points: x and y by image and finding."
        ),
    ] = None,
    labels: Labels = None,
    preset: Preset = "recommended",
    threshold: Annotated[
        str,
        typer.Option(
            metavar="VALUE",
            help="Threshold of a map: otsu, a number between 0 and 1, or tuning_results.csv of `heatcheck tune`.",
        ),
    ] = "otsu",
    probability_cutoffs: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            help="probability_tuning_results.csv of `heatcheck tune`: regions of cases below the cutoff are emptied.",
        ),
    ] = None,
    smooth: Annotated[
        str,
        typer.Option(
            metavar="VALUE",
            help="Smoothing of maps before Otsu: a fraction of the image's side (pixels with chexlocalize), or "
            "smoothing_results.csv of `heatcheck tune`.",
        ),
    ] = "0",
    slice_: Annotated[
        Literal["true-positive", "full"],
        typer.Option(
            "--slice",
            metavar="SLICE",
            help="Compute overlap on images with the finding (true-positive) or on all images (full).",
        ),
    ] = "true-positive",
    subgroup: Annotated[
        list[str] | None,
        typer.Option(
            metavar="COLUMN",
            help="Column of --labels by which results are divided, such as sex, or age=40,65 to say where numbers are "
            "cut; may be repeated.",
        ),
    ] = None,
    switch: Annotated[
        list[str] | None,
        typer.Option(
            metavar="TEXT",
            help="RULE=PRESET takes one rule from the other preset, e.g. ties=chexlocalize; may be repeated.",
        ),
    ] = None,
    allow_missing: AllowMissing = False,
    workers: Workers = 2,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Score maps against the marks of experts, without a model, and write a report."""
    from heatcheck.running.progress import watching
    from heatcheck.scoring.presets import rules_with
    from heatcheck.studies.localization.from_files.inputs import ScoreFiles
    from heatcheck.studies.localization.from_files.score import ScoreOptions, score_maps, summary_lines
    from heatcheck.studies.localization.from_files.settings import region_settings

    switched = switches(switch or [])
    divided = subgroups(subgroup) if subgroup else None
    files = ScoreFiles(folders(maps), truth, human, human_points, labels, preset, allow_missing, switched, divided)
    settings = region_settings(threshold, probability_cutoffs, smooth, slice_, rules_with(preset, switched))
    with continuable(out), watching(quiet=quiet) as watcher:
        scored = score_maps(files, settings, out, ScoreOptions(workers), watcher)
    if not quiet:
        for line in summary_lines(scored, slice_, preset):
            typer.echo(line)
        _print_notes(scored)
    exit_on_failures(scored.n_failed, scored.n_cases)


def folders(maps: list[str]) -> dict[str, Path]:
    """The folders of maps by method, which files of `heatcheck explain` name themselves."""
    from heatcheck.sources.files.map_files import methods_in

    by_method: dict[str, Path] = {}
    for text in maps:
        name, equals, folder = text.partition("=")
        unnamed = not equals or Path(text).is_dir()
        if unnamed:
            name, folder = "maps", text
        if not name or not folder:
            raise InputError(f"--maps must be a folder or NAME=FOLDER, got {text!r}")
        if equals and {"/", "\\"} & set(name):
            raise InputError(f"the name in --maps {text!r} has a slash, but becomes part of file names; choose another")
        for method, path in methods_in("" if unnamed else name, Path(folder)).items():
            if method in by_method:
                raise InputError(f"two --maps are called {method!r}; give each a name: --maps grad_cam=… --maps lrp=…")
            by_method[method] = path
    return by_method


def subgroups(texts: list[str]) -> "tuple[Subgroup, ...]":
    """The columns that results are divided by, with the edges of their groups."""
    from heatcheck.studies.localization.subgroups.groups import Subgroup

    asked = []
    for text in texts:
        column, equals, edges = text.partition("=")
        try:
            asked.append(Subgroup(column=column, edges=tuple(map(float, edges.split(","))) if equals else ()))
        except ValueError as error:
            raise InputError(
                f"--subgroup must be a column, or a column with rising edges such as age=40,65; got {text!r}"
            ) from error
    return tuple(asked)


def switches(texts: list[str]) -> "dict[str, PresetName]":
    """The preset of each rule that is switched."""
    preset_of: dict[str, PresetName] = {}
    for text in texts:
        rule, _, preset = text.partition("=")
        match preset:
            case "recommended" | "chexlocalize":
                preset_of[rule] = preset
            case _:
                raise InputError(f"--switch must be RULE=recommended or RULE=chexlocalize, got {text!r}")
    return preset_of


def _print_notes(scored: "ScoreOutcome") -> None:
    for note in scored.notes:
        typer.echo(f"Note: {note}")
    if scored.files:
        typer.echo(f"{scored.files} files in the format of the benchmark: {scored.report.parent}")
    typer.echo(f"Report: {scored.report}")
