"""Score maps from files: regions and peaks → scores → estimates → report."""

import hashlib
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from heatcheck.core.errors import InputError, RunFolderError
from heatcheck.core.records import ALL_FINDINGS, HUMAN, CaseKey, Estimate
from heatcheck.core.vocabulary import MEAN, PLAIN
from heatcheck.running.cost import Cost
from heatcheck.running.execute import execute
from heatcheck.running.facts import metric_facts, stored_method_facts
from heatcheck.running.identity import DataIdentity, run_identity
from heatcheck.running.progress import Silent, Watcher
from heatcheck.running.study import Stage
from heatcheck.runs.manifest import ModelEntry, SourceEntry
from heatcheck.runs.store import RunFolder, require_usable
from heatcheck.scoring.presets import PresetName, switch_facts
from heatcheck.scoring.rows import REFERENCE as UNDER_REFERENCE
from heatcheck.studies.localization.chexlocalize.estimates import paper_estimates
from heatcheck.studies.localization.chexlocalize.files import ReferenceWriter, SizedMarks
from heatcheck.studies.localization.conditions import conditional_estimates
from heatcheck.studies.localization.estimates import localization_estimates
from heatcheck.studies.localization.from_files.inputs import ScoreFiles, ScoreInputs, read_inputs
from heatcheck.studies.localization.from_files.maps import read_stored
from heatcheck.studies.localization.from_files.settings import RegionSettings, Slice
from heatcheck.studies.localization.from_files.stage import MODEL, ScoreStage
from heatcheck.studies.localization.gallery import CaseWithMaps, GalleryRule, make_gallery
from heatcheck.studies.localization.rule_notes import rule_notes
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.study import STUDY
from heatcheck.studies.localization.subgroups.estimates import subgroup_estimates
from heatcheck.studies.localization.vocabulary import (
    ADDED,
    BOXES,
    COUNT,
    PAPER_PRESET,
    STORED_MAPS,
    Counts,
    LocalizationManifest,
)
from heatcheck.studies.localization.wrong_answers.estimates import wrong_answer_estimates

METRICS = ("iou", "hit", "iou_full", "mass", "rank", "dice", "hit_margin")
GALLERY = 12  # cases to look at
DRAWS = 2000


@dataclass(frozen=True, slots=True)
class ScoreOptions:
    """Options that change no score."""

    workers: int = 2
    seed: int = 0


@dataclass(frozen=True, slots=True)
class ScoreOutcome:
    """The outcome of one call: its report and estimates, and notes for the terminal."""

    report: Path
    estimates: pd.DataFrame
    notes: tuple[str, ...]
    files: int  # of the benchmark, where its preset was asked for
    n_cases: int = 0
    n_failed: int = 0


@dataclass(frozen=True)
class ScorePlan:
    """Maps, truth and rules, checked."""

    inputs: ScoreInputs
    settings: RegionSettings
    options: ScoreOptions
    notes: tuple[str, ...]

    @cached_property
    def keys(self) -> Sequence[CaseKey]:
        """Every image."""
        return self.inputs.keys()

    @property
    def metrics(self) -> tuple[str, ...]:
        """The metrics; boxes are compared as boxes too."""
        boxes = ("box_iou",) if self.inputs.truth.kind == BOXES else ()
        return (METRICS[0], *boxes, *METRICS[1:])

    @property
    def identity(self) -> Mapping[str, Any]:
        """The flags and the files."""
        given = self.inputs.given
        spec = {
            "score": {key: _plain(value) for key, value in asdict(given).items() if value is not None},
            "regions": {key: _plain(value) for key, value in asdict(self.settings).items()},
        }
        return run_identity(spec, self.options.seed, "", DataIdentity(self.keys, _stamp(self.inputs)))

    @property
    def facts(self) -> Mapping[str, Any]:
        """Names and explanations for the report."""
        given = self.inputs.given
        words = "A model known by its maps and probabilities alone"
        model = ModelEntry(name=MODEL, description=words, outputs=self.inputs.findings, primary=True)
        return LocalizationManifest(
            preset=given.preset,
            slice=self.settings.slice,
            switches=switch_facts(given.preset, given.switches),
            findings=self.inputs.findings,
            methods=[stored_method_facts(name) for name in self.inputs.maps],
            metrics=[metric_facts(metric) for metric in dict.fromkeys((*self.metrics, *ADDED))],
            source=SourceEntry(name=STORED_MAPS, description=f"Maps and marks on {len(self.keys)} images, from files"),
            truth_kind=self.inputs.truth.kind,
            models=(model,),
            model=model,
            notes=(*self.notes, *rule_notes(self.inputs.scoring_rules)),
        ).facts()

    def cost(self, folder: RunFolder) -> Cost:  # noqa: ARG002 - as in every plan
        """Nothing worth saying: no network is asked, and the bar of the only stage soon shows how long it takes."""
        return Cost(())

    def stages(self, folder: RunFolder, watcher: Watcher) -> Iterator[Stage]:  # noqa: ARG002 - nothing to prepare
        """One pass over the maps."""
        yield ScoreStage(self.inputs, self.settings, self.keys, self.metrics, self.options.workers)

    def estimates(self, folder: RunFolder) -> list[Estimate]:
        """Means, differences from human, the benchmark's own, geometry, confidence, calibration and counts."""
        settings = LocalizationSettings(
            findings=self.inputs.findings,
            methods=tuple(self.inputs.maps),
            floors=(),
            metrics=self.metrics,
            model=MODEL,
            draws=DRAWS,
            seed=self.options.seed,
            rules=self.inputs.scoring_rules,
        )
        return [
            *localization_estimates(folder.path, settings),
            *conditional_estimates(folder.path, settings, tuned=False),
            *paper_estimates(folder.path, settings),
            *subgroup_estimates(folder.path, settings, self.inputs.divided(self.keys)),
            *wrong_answer_estimates(folder.path, settings),
        ]

    def illustrate(self, folder: RunFolder, watcher: Watcher) -> None:
        """Choose cases for the gallery and draw them; write the benchmark's files under its preset."""
        keys = {key.case: key for key in self.keys}

        def case_with_maps(case: str, finding: str) -> CaseWithMaps:
            stored = read_stored(self.inputs, keys[case], [finding], with_picture=True)
            maps = {name: stored.on_image(name, finding) for name in self.inputs.maps}
            stored_maps = {name: values for name, values in maps.items() if values is not None}
            return CaseWithMaps(stored.case, stored_maps, stored.probabilities[finding])

        rule = GalleryRule(
            case=case_with_maps,
            methods=tuple(self.inputs.maps),
            model=MODEL,
            region=lambda finding, _: self.settings.rule(finding),
            most=GALLERY,
            keep_maps=False,
            workers=self.options.workers,
        )
        make_gallery(folder, rule, watcher)
        if self.inputs.given.preset == PAPER_PRESET:
            regions = folder.read_table("regions")
            rows = zip(regions["case"], regions["height"].tolist(), regions["width"].tolist(), strict=True)
            marks = SizedMarks(self.inputs, {case: (height, width) for case, height, width in rows})
            ReferenceWriter(folder.path, marks, regions, self.settings.slice, self.settings.label).write()


def score_maps(
    given: ScoreFiles,
    settings: RegionSettings,
    out: Path,
    options: ScoreOptions,
    watcher: Watcher | None = None,
) -> ScoreOutcome:
    """Score the maps into the folder `out`, with a report, or continue an earlier call there.

    Raises:
        InputError: files that are wrong or do not belong together; the message names them.
    """
    require_usable(out)
    if given.preset == PAPER_PRESET and len(given.maps) > 1:
        raise InputError("the benchmark's files are for one method; give one --maps, or use --preset recommended")
    if given.preset == PAPER_PRESET and given.switches:
        raise InputError(
            "--switch changes single rules, but --preset chexlocalize sets them all; leave one of the two out"
        )
    inputs = read_inputs(given)
    notes = (*inputs.notes, *_tuning_notes(inputs, settings), *_slice_notes(given, settings))
    for finding in inputs.findings:
        settings.rule(finding), settings.cutoff(finding)  # raises where a tuned table lacks the finding
    plan = ScorePlan(inputs, settings, options, notes)
    inputs.divided(plan.keys)  # raises where the labels have no such column
    circumstances = {
        "study": "localization",
        "title": "Do these heat maps point where the experts do?",
        "paper": STUDY.paper,
        "threads": 1,  # of one worker: the maps are shared out among the workers
        "batch_size": 1,
        "shard_size": ScoreStage.SIZE,
        "trusted_code": False,
    }
    with _removed_on_error(out):
        outcome = execute(plan, circumstances, out, watcher or Silent())
    estimates = pd.read_parquet(out / "estimates.parquet")
    notes = (*notes, *_empty_maps(inputs, estimates), *_unknown(inputs, settings, out))
    written = _n_written(out, given)
    return ScoreOutcome(outcome.report, estimates, notes, written, outcome.n_cases, outcome.n_failed)


def _empty_maps(inputs: ScoreInputs, estimates: pd.DataFrame) -> Iterator[str]:
    """How many maps of each method show nothing, where any does."""
    rows = estimates[(estimates["statistic"] == COUNT) & (estimates["finding"] == ALL_FINDINGS)]
    columns = (rows[name].tolist() for name in ("metric", "method", "value", "n_cases"))
    counts = {(metric, method): (round(value), of) for metric, method, value, of in zip(*columns, strict=True)}
    for method in inputs.maps:
        empty, of = counts.get((Counts.EMPTY_MAPS, method), (0, 0))
        failures, marked = counts.get((Counts.FAILED_MAPS, method), (0, 0))
        if empty:
            scored = "which score 0" if inputs.scoring_rules.empty_map == "failure" else "scored like any other"
            yield (
                f"{method}: {empty} of {of} maps are empty (the same value everywhere), {failures} of them among the "
                f"{marked} of marked findings, {scored}."
            )


def _unknown(inputs: ScoreInputs, settings: RegionSettings, out: Path) -> Iterator[str]:
    """How many regions no cutoff applies to, because their map has no probability."""
    if settings.cutoffs and inputs.given.allow_missing:
        known = pd.read_parquet(out / "predictions.parquet", columns=["case", "finding"])
        pairs = {(i, f) for maps in inputs.maps.values() for i, files in maps.items() for f in files}
        unknown = len({pair for pair in pairs if pair[1] in inputs.findings}) - len(known)
        if unknown:
            yield f"{unknown} findings have maps without a probability: their regions were kept, whatever the cutoff."


@contextmanager
def _removed_on_error(out: Path) -> Iterator[None]:
    """Remove the folder of this call when a file turns out to be wrong, so that the corrected call may use it."""
    was_there = out.exists()
    is_new = not (out / "run.json").exists()
    try:
        yield
    except RunFolderError:
        raise  # the folder belongs to another run
    except InputError:
        if is_new and (out / "run.json").exists():
            for path in out.iterdir():
                shutil.rmtree(path) if path.is_dir() and not path.is_symlink() else path.unlink()
            if not was_there:
                out.rmdir()
        raise


def _n_written(out: Path, given: ScoreFiles) -> int:
    if given.preset != PAPER_PRESET:
        return 0
    return len([*out.glob("*.csv"), *out.glob("*_segmentations.json")])


def _slice_notes(given: ScoreFiles, settings: RegionSettings) -> Iterator[str]:
    if settings.slice == "full" and given.preset == "recommended":
        yield "Overlap on all images was asked for: in the report it is the measure “IoU, all cases”."


def _tuning_notes(inputs: ScoreInputs, settings: RegionSettings) -> Iterator[str]:
    """A warning, or an InputError, where thresholds were tuned on the patients that are scored."""
    for table in settings.tables:
        if not table.patients:
            name = table.path.name
            yield f"{name} does not record the patients it was tuned on; make sure that none of them is scored here."
    common = settings.tuned_on & {inputs.patient(image) for image in inputs.images}
    if not common:
        return
    what = f"{len(common)} of the patients are those the thresholds or cutoffs were tuned on, e.g. {min(common)}"
    if inputs.rules.tuning_on_scored_data == "refuse":
        raise InputError(f"{what}; tune on other patients, or use --preset chexlocalize to be warned only")
    yield f"Thresholds or cutoffs were tuned on {len(common)} of the patients: they look better here than they are."


def _stamp(inputs: ScoreInputs) -> str:
    """A hash of the names, sizes and dates of all files, which changes with any of them."""
    given = inputs.given
    paths = [given.truth, given.human, given.human_points, given.labels]
    paths += [file.path for maps in inputs.maps.values() for files in maps.values() for file in files.values()]
    digest = hashlib.sha256()
    files = (file for path in filter(None, paths) for file in (sorted(path.rglob("*")) if path.is_dir() else [path]))
    for path in files:
        facts = path.stat()
        digest.update(f"{path.name}\0{facts.st_size}\0{facts.st_mtime_ns}\n".encode())
    return digest.hexdigest()


def _plain(value: object) -> object:
    """A setting as JSON can hold it."""
    if isinstance(value, Mapping):
        return {str(key): _plain(part) for key, part in value.items()}
    if isinstance(value, frozenset):  # of patients, whose names must not leave their file
        return len(value)
    return value if isinstance(value, str | int | float | None) else str(value)


def summary_lines(scored: ScoreOutcome, kind: Slice, preset: PresetName) -> Iterator[str]:
    """The means of each method and the readers for the terminal, under the preset's rules."""
    table = scored.estimates
    overlap, name = ("iou", "IoU") if kind == "true-positive" else ("iou_full", "IoU, all images")
    plain = table["condition"] == PLAIN
    if preset == PAPER_PRESET:  # the full slice differs in its intervals only
        plain = (table["condition"] == UNDER_REFERENCE) | (plain & (table["metric"] == "iou_full"))
    means = table[(table["statistic"] == MEAN) & plain]
    for finding in dict.fromkeys(means["finding"]):
        rows = means[(means["finding"] == finding) & means["metric"].isin([overlap, "hit"])]
        for method in dict.fromkeys(rows["method"]):
            cells = [
                _cell(rows[(rows["method"] == method) & (rows["metric"] == metric)]) for metric in (overlap, "hit")
            ]
            who = "readers" if method == HUMAN else method
            where = "All findings" if finding == ALL_FINDINGS else finding
            yield f"{where:<28} {who:<12} {name} {cells[0]:<22} hit {cells[1]}"


def _cell(rows: pd.DataFrame) -> str:
    if rows.empty or np.isnan(rows["value"].iloc[0]):
        return "–"
    value, low, high = rows[["value", "low", "high"]].iloc[0]
    return f"{value:.3f}" if np.isnan(low) else f"{value:.3f} ({low:.3f}–{high:.3f})"
