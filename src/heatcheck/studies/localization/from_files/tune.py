"""Tune map thresholds and probability cutoffs on validation data; every map is read once."""

import json
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import pandas as pd

from heatcheck.core.atomic_files import replaced
from heatcheck.core.errors import InputError, RunFolderError
from heatcheck.core.records import CaseKey, Map, Mask
from heatcheck.maps.prepare import prepare
from heatcheck.metrics.counting import pixels_in
from heatcheck.metrics.thresholds import THRESHOLDS, threshold_counts
from heatcheck.metrics.undefined import is_empty
from heatcheck.regions.otsu import has_otsu_region
from heatcheck.regions.rule import RegionRule, region_of
from heatcheck.running.cases import results_in_order
from heatcheck.running.determinism import use_threads
from heatcheck.running.progress import Silent, Watcher
from heatcheck.scoring.presets import Rules, rules_with
from heatcheck.stats.tuning import FullSlice, first_best, mean_curve
from heatcheck.studies.localization.from_files.inputs import ScoreFiles, ScoreInputs, read_inputs
from heatcheck.studies.localization.from_files.maps import StoredMaps, is_sized, read_stored
from heatcheck.studies.localization.from_files.settings import TUNING_RECORD, smoothing
from heatcheck.studies.localization.tuning import cutoff_tuning

THRESHOLD_TABLE, CUTOFF_TABLE = "tuning_results.csv", "probability_tuning_results.csv"
CURVE_TABLE, SMOOTHING_TABLE = "threshold_curves.csv", "smoothing_results.csv"


@dataclass(frozen=True, slots=True)
class Overlaps:
    """The overlap of one map with the truth of one finding, at every setting that is tried."""

    probability: float
    marked: bool  # whether there is a truth
    full: float  # of Otsu's region; NaN where it and the truth are empty
    by_threshold: tuple[float, ...]
    by_smoothing: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Tuning:
    """The curves of one finding and the best settings on them; NaN where nothing could be tuned."""

    finding: str
    cases: int  # with a truth
    threshold_curve: tuple[float, ...]
    threshold: float
    cutoffs: tuple[float, ...]
    cutoff_curve: tuple[float, ...]
    cutoff: float
    smoothing_curve: tuple[float, ...] = ()
    smooth: float = math.nan


@dataclass(frozen=True, slots=True)
class TuningResult:
    """The tuned settings of every finding, and the tables that were written."""

    findings: tuple[Tuning, ...]
    files: tuple[Path, ...]
    notes: tuple[str, ...] = field(default=())


def tune(
    given: ScoreFiles, out: Path, smooths: Sequence[float] = (), watcher: Watcher | None = None, workers: int = 2
) -> TuningResult:
    """The best threshold and cutoff of each finding, written as tables into the folder `out`."""
    watcher = watcher or Silent()
    smooths = (0.0, *(smooth for smooth in smooths if smooth)) if smooths else ()  # does smoothing help at all?
    if len(given.maps) > 1:
        raise InputError("thresholds are tuned for one method at a time; give one --maps")
    rules = [RegionRule("otsu", *smoothing(smooth, rules_with(given.preset, given.switches))) for smooth in smooths]
    if out.exists() and not out.is_dir():
        raise RunFolderError(f"{out} is a file; give --out a folder")
    inputs = read_inputs(given)
    keys = inputs.keys()
    use_threads(1)  # the images are shared out among the workers
    watcher.start("tuning", len(keys))
    overlaps: dict[str, list[Overlaps]] = {finding: [] for finding in inputs.findings}
    for by_finding in results_in_order(lambda key: overlaps_of(inputs, key, rules), keys, workers):
        for finding, overlap in by_finding.items():
            overlaps[finding].append(overlap)
        watcher.advance()
    tunings = tuple(_tuned(finding, rows, inputs.rules, smooths) for finding, rows in overlaps.items())
    return TuningResult(tunings, _write(out, tunings, inputs, smooths), (*inputs.notes, *_remarks(tunings)))


def overlaps_of(inputs: ScoreInputs, key: CaseKey, smoothings: Sequence[RegionRule]) -> dict[str, Overlaps]:
    """The overlaps of one image by finding.

    A missing map is an empty region for the benchmark and is left out otherwise, as are images on which it is unknown
    whether the finding is present, or where, and those whose label contradicts the truth.
    """
    (method,) = inputs.maps
    benchmark = inputs.rules.missing_map == "empty"
    has_map = benchmark or key.case in inputs.maps[method]
    if not is_sized(inputs, key.case) or not has_map or inputs.failing(key.case):
        return {}
    stored = read_stored(inputs, key)
    labels = stored.case.key.labels
    overlaps = {}
    for finding in inputs.findings:
        values = stored.on_image(method, finding)
        unknown = finding not in stored.case.truth and labels.get(finding) != 0
        if not benchmark and (values is None or unknown):
            continue
        overlaps[finding] = _overlaps(stored, finding, values, inputs.rules, smoothings)
    return overlaps


def _overlaps(
    stored: StoredMaps, finding: str, values: Map | None, rules: Rules, smoothings: Sequence[RegionRule]
) -> Overlaps:
    truth = stored.case.truth.get(finding)
    probability = stored.probabilities[finding]
    empty = math.nan if rules.empty_region == "left_out" or truth is None else 0.0  # the overlap of an empty region
    if values is None or (rules.empty_map == "failure" and is_empty(values)):
        return Overlaps(
            probability, truth is not None, math.nan if truth is None else 0.0,
            (empty,) * len(THRESHOLDS), (empty,) * len(smoothings),
        )  # fmt: skip
    prepared = prepare(values)
    if truth is None:
        undefined = (math.nan,)
        full = 0.0 if has_otsu_region(prepared) else math.nan
        return Overlaps(probability, False, full, undefined * len(THRESHOLDS), undefined * len(smoothings))
    full = _iou(region_of(prepared, RegionRule()), truth)
    counts = threshold_counts(prepared, truth)
    by_threshold = np.where(counts.region > 0, counts.ious, empty)
    regions = (region_of(prepare(values, rule.smooth), rule) for rule in smoothings)
    by_smoothing = tuple(_iou(region, truth) if region.any() else empty for region in regions)
    return Overlaps(probability, True, full, tuple(by_threshold.tolist()), by_smoothing)


def _iou(region: Mask, truth: Mask) -> float:
    union = pixels_in(region | truth)
    return pixels_in(region & truth) / union if union else math.nan


def _tuned(finding: str, rows: list[Overlaps], rules: Rules, smooths: Sequence[float]) -> Tuning:
    by_threshold = mean_curve(np.array([row.by_threshold for row in rows]).reshape(len(rows), len(THRESHOLDS)))
    by_smoothing = mean_curve(np.array([row.by_smoothing for row in rows]).reshape(len(rows), len(smooths)))
    known = [row for row in rows if not math.isnan(row.probability)]
    ious, probabilities, marked = ([getattr(row, name) for row in known] for name in ("full", "probability", "marked"))
    cases = FullSlice(np.array(ious, float), np.array(probabilities, float), np.array(marked, bool))
    cutoffs, by_cutoff = cutoff_tuning(cases, finding, rules)
    return Tuning(
        finding,
        sum(row.marked for row in rows),
        tuple(by_threshold.tolist()),
        first_best(THRESHOLDS, by_threshold),
        cutoffs,
        tuple(by_cutoff.tolist()),
        first_best(cutoffs, by_cutoff),
        tuple(by_smoothing.tolist()),
        first_best(smooths, by_smoothing),
    )


def _remarks(tunings: tuple[Tuning, ...]) -> Iterator[str]:
    reasons = {"threshold": "no case has it", "cutoff": "no map holds a probability, or no case has it"}
    for name, why in reasons.items():
        if without := [tuning.finding for tuning in tunings if math.isnan(getattr(tuning, name))]:
            yield f"No {name} for {', '.join(without)}: {why}."


def _write(out: Path, tunings: tuple[Tuning, ...], inputs: ScoreInputs, smooths: Sequence[float]) -> tuple[Path, ...]:
    """The benchmark's two tables, the curves behind the first, and a record of whose images were used."""
    chosen = [{"threshold": t.threshold, "task": t.finding} for t in tunings if not math.isnan(t.threshold)]
    tables: dict[str, pd.DataFrame] = {
        THRESHOLD_TABLE: pd.DataFrame(chosen, columns=["threshold", "task"]),
        CUTOFF_TABLE: _curves(tunings, "prob_threshold", lambda t: zip(t.cutoffs, t.cutoff_curve, strict=True)),
        CURVE_TABLE: _curves(tunings, "threshold", lambda t: zip(THRESHOLDS, t.threshold_curve, strict=True)),
    }
    if smooths:
        tables[SMOOTHING_TABLE] = _curves(tunings, "smooth", lambda t: zip(smooths, t.smoothing_curve, strict=True))
    (method,) = inputs.maps
    images = tuple(inputs.maps[method])  # an image without a map chooses nothing
    record = {
        "preset": inputs.given.preset,
        "images": len(images),
        "patients": sorted({inputs.patient(image) for image in images}),
        "cases_with_the_finding": {tuning.finding: tuning.cases for tuning in tunings},
        "notes": list(inputs.notes),
    }
    try:
        out.mkdir(parents=True, exist_ok=True)
        (out / SMOOTHING_TABLE).unlink(missing_ok=True)  # of an earlier call
        for name, table in tables.items():
            with replaced(out / name) as temporary:
                table.to_csv(temporary, index=False)
        with replaced(out / TUNING_RECORD) as temporary:
            temporary.write_text(json.dumps(record, indent=1) + "\n")
    except OSError as error:
        raise RunFolderError(f"{out} cannot be written ({error.strerror}); choose another --out") from error
    return tuple(out / name for name in tables)


def _curves(
    tunings: tuple[Tuning, ...], name: str, curve: Callable[[Tuning], Iterator[tuple[float, float]]]
) -> pd.DataFrame:
    rows: list[Mapping[str, object]] = [
        {name: setting, "mIoU": overlap, "task": tuning.finding}
        for tuning in tunings
        for setting, overlap in curve(tuning)
    ]
    return pd.DataFrame(rows, columns=[name, "mIoU", "task"])
