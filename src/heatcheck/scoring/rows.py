"""The rows of scores of one map."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from heatcheck.core.records import Case, Map, Mask, Measured, Score
from heatcheck.core.vocabulary import condition
from heatcheck.maps.prepare import prepare
from heatcheck.metrics import METRICS
from heatcheck.metrics.registry import Metric, Needs
from heatcheck.metrics.thresholds import threshold_counts
from heatcheck.metrics.undefined import is_empty
from heatcheck.regions.points import first_peak, peaks
from heatcheck.regions.rule import RegionRule, region_of
from heatcheck.scoring.empty_maps import EMPTY_MAP, failed, without_marks
from heatcheck.scoring.marks import MapMarks, MarksAndTruth
from heatcheck.scoring.presets import RECOMMENDED, Rules

NO_MASK = "the finding is present but not outlined"
LEFT_OUT = "nothing is marked, and such cases are left out"
CALLED_NEGATIVE = "the model's probability is below the cutoff"
IS_EMPTY = "empty_map"  # the name of a row for every map: 1 if it is empty, else 0
COUNTS = tuple(name for name in METRICS if METRICS[name].is_count)
PLAIN = condition()
REFERENCE = condition(preset="chexlocalize")  # the score under the benchmark's rules; no row if it has none
REFERENCE_AT_CUTOFF = condition(preset="chexlocalize", cutoff="tuned")
PLAINLY_PLACED = condition(placement="plain")  # the score of a coarse map as if its cells tiled the image
AT_TUNED_THRESHOLD = condition(threshold="tuned")
AT_TUNED_CUTOFF = condition(cutoff="tuned")


class Scored(NamedTuple):
    """A metric under a condition with its value."""

    metric: str
    condition: str
    measured: Measured


@dataclass(frozen=True, slots=True)
class TunedSettings:
    """Thresholds and cutoffs tuned on validation data for one model, by method and finding; untuned ones are absent."""

    thresholds: Mapping[tuple[str, str], float] = field(default_factory=dict)
    cutoffs: Mapping[tuple[str, str], float] = field(default_factory=dict)
    reference_cutoffs: Mapping[tuple[str, str], float] = field(default_factory=dict)  # of the benchmark's regions


@dataclass(frozen=True, slots=True)
class ScoringRule:
    """Which scores are computed, and how a map becomes a region."""

    metrics: tuple[str, ...]
    region: RegionRule
    cutoff: float = 0.0  # a probability below it calls the case negative
    thresholds: tuple[float, ...] = ()  # fixed ones at which overlap is computed too
    tuned: TunedSettings = TunedSettings()
    counts: bool = True  # pixels, for precision, recall and specificity
    readers: bool = True  # several models share one set of readers' scores
    reference: bool = True  # also score under the benchmark's rules
    rules: Rules = RECOMMENDED
    regions: Mapping[str, RegionRule] = field(default_factory=dict)  # of methods with another rule
    colours: Mapping[str, float] = field(default_factory=dict)  # by method: the benchmark's box, as in `RegionRule`
    smooths: Mapping[str, tuple[float, ...]] = field(default_factory=dict)  # by method: smoothing that is tried too
    described: tuple[str, ...] = ()  # methods of whose maps the features are stored that need no truth

    def region_for(self, method: str) -> RegionRule:
        """How the method's maps become regions."""
        return self.regions.get(method, self.region)


@dataclass(frozen=True, slots=True)
class MapScores:
    """The rows of one map, and the marks they were measured on; None if nothing was measured."""

    rows: list[Score]
    marks: MapMarks | None


@dataclass(frozen=True, slots=True)
class MapTarget:
    """One finding of one case under one method, with the model's probability."""

    case: Case
    finding: str
    method: str
    probability: float

    @property
    def truth(self) -> Mask | None:
        """The mask of the finding; None if it was not outlined."""
        return self.case.truth.get(self.finding)

    @property
    def label(self) -> float:
        """1 if the finding is present, 0 if absent, NaN if unknown."""
        return self.case.key.labels.get(self.finding, math.nan)


def score_map(target: MapTarget, values: Map | Measured, model: str, rule: ScoringRule) -> MapScores:
    """The rows of one map: all metrics if the finding was outlined, `iou_full` if it is absent.

    `values` is a map, or for a missing map the undefined value of its scores, with the reason.
    """
    truth = target.truth
    marks = None if isinstance(values, Measured) or not _is_scored(target) else marks_of(target, values, rule)
    if truth is None and target.label == 1:
        scored: Iterable[Scored] = [Scored(name, PLAIN, Measured(math.nan, NO_MASK)) for name in rule.metrics]
    elif marks is not None:
        scored = _measured(target, marks, rule)
    elif truth is not None and isinstance(values, Measured):
        scored = [Scored(name, PLAIN, values) for name in rule.metrics]
    else:
        scored = ()
    if rule.counts and not isinstance(values, Measured):
        empty = marks.empty if marks is not None else is_empty(values)
        scored = [*scored, Scored(IS_EMPTY, PLAIN, Measured(float(empty)))]
    rows = [row_of(target.case, target.finding, target.method, one) for one in scored]
    return MapScores([replace(row, model=model) for row in rows], marks)


def _is_scored(target: MapTarget) -> bool:
    """Whether a map can be compared with the truth: the finding is outlined or known to be absent."""
    return target.truth is not None or target.label == 0


def row_of(case: Case, finding: str, method: str, scored: Scored) -> Score:
    """One score as a row, without its model."""
    key = case.key
    value, reason = scored.measured.value, scored.measured.reason
    return Score(key.case, key.patient, finding, method, "", scored.metric, value, scored.condition, reason=reason)


def _measured(target: MapTarget, marks: MapMarks, rule: ScoringRule) -> Iterator[Scored]:
    truth, kept = target.truth, _is_kept(target, rule)
    compared = marks.against(truth)
    yield from _smoothed(target, marks, rule)
    judged = _without_empty_map(compared, rule)
    for name in rule.metrics if truth is not None else [name for name in rule.metrics if name == "iou_full"]:
        measured = score_of(METRICS[name], judged, rule)
        # the cutoff concerns regions: where a map points is scored on every case with the finding
        of_positives = METRICS[name].needs is Needs.REGION and name != "iou_full"
        if of_positives and not kept:
            measured = Measured(math.nan, CALLED_NEGATIVE)
        elif of_positives:
            measured = unless_left_out(measured, judged, rule)
        yield Scored(name, PLAIN, measured)
        if name == "iou_full":
            yield from _with_tuned_cutoff(target, measured, rule.tuned.cutoffs, AT_TUNED_CUTOFF)
    if rule.counts and target.case.truth:
        for name in COUNTS:
            yield Scored(name, PLAIN, judged.measure(METRICS[name]))
    if truth is not None and compared.shared.truth:
        yield from _at_thresholds(judged, truth, _thresholds(target, rule), rule)
    if rule.reference:
        yield from _by_reference(target, compared, rule)


def _is_failure(marks: MapMarks, rule: ScoringRule) -> bool:
    """Whether the map is empty and the rules call that a failure."""
    return marks.empty and rule.rules.empty_map == "failure"


def _without_empty_map(compared: MarksAndTruth, rule: ScoringRule) -> MarksAndTruth:
    """The marks, without a region where the map failed: smoothed colours would make one of the whole image."""
    if not _is_failure(compared.marks, rule):
        return compared
    marks = replace(compared.marks, region=without_marks(compared.marks.map))
    return marks.against(compared.truth)


def score_of(metric: Metric, compared: MarksAndTruth, rule: ScoringRule) -> Measured:
    """The metric's value; where the finding is outlined, 0 for a map that failed or has no heat at all."""
    if compared.shared.truth and _is_failure(compared.marks, rule):
        return Measured(0.0, EMPTY_MAP)
    measured = compared.measure(metric)
    return failed(measured) if rule.rules.empty_map == "failure" else measured


def unless_left_out(measured: Measured, compared: MarksAndTruth, rule: ScoringRule) -> Measured:
    """The score of a positive case; undefined if nothing is marked and the rules leave such cases out."""
    left_out = rule.rules.empty_region == "left_out" and not compared.shared.region
    return Measured(math.nan, LEFT_OUT) if left_out else measured


def marks_of(target: MapTarget, values: Map, rule: ScoringRule) -> MapMarks:
    """The map's region and peaks; the region is empty if the probability is below the cutoff."""
    top = np.broadcast_to(np.False_, values.shape)  # peaks are not scored if the finding is absent
    if target.truth is not None:
        top = peaks(values) if rule.rules.ties == "share" else first_peak(values)
    empty = is_empty(values)
    if not _is_kept(target, rule):
        return MapMarks(values, without_marks(values), top, empty)
    region = rule.region_for(target.method)
    return MapMarks(values, region_of(prepare(values, region.smooth), region), top, empty)


def _is_kept(target: MapTarget, rule: ScoringRule) -> bool:
    return not target.probability < rule.cutoff  # an unknown probability (NaN) is kept


def _with_tuned_cutoff(
    target: MapTarget, measured: Measured, cutoffs: Mapping[tuple[str, str], float], under: str
) -> Iterator[Scored]:
    """`iou_full` with an empty region below the tuned cutoff; no row if region and truth are both empty."""
    cutoff = cutoffs.get((target.method, target.finding))
    if cutoff is None:
        return
    if target.probability >= cutoff:
        if not math.isnan(measured.value):
            yield Scored("iou_full", under, measured)
    elif target.truth is not None and target.truth.any():
        yield Scored("iou_full", under, Measured(0.0))


def _thresholds(target: MapTarget, rule: ScoringRule) -> dict[str, float]:
    """The fixed and tuned thresholds at which overlap is computed, by condition."""
    tuned = rule.tuned.thresholds.get((target.method, target.finding))
    fixed = {condition(threshold=threshold): threshold for threshold in rule.thresholds}
    return fixed if tuned is None else {**fixed, AT_TUNED_THRESHOLD: tuned}


def _smoothed(target: MapTarget, marks: MapMarks, rule: ScoringRule) -> Iterator[Scored]:
    """The overlap of the region with each smoothing that is tried."""
    for smooth in rule.smooths.get(target.method, ()):
        region = region_of(prepare(marks.map, smooth), RegionRule(smooth=smooth))
        compared = _without_empty_map(replace(marks, region=region).against(target.truth), rule)
        for name in ("iou", "iou_full") if target.truth is not None else ("iou_full",):
            yield Scored(name, condition(smooth=smooth), score_of(METRICS[name], compared, rule))


def _at_thresholds(
    compared: MarksAndTruth, truth: Mask, thresholds: Mapping[str, float], rule: ScoringRule
) -> Iterator[Scored]:
    """The overlap at these thresholds, without smoothing, which belongs to Otsu's threshold."""
    if _is_failure(compared.marks, rule):
        yield from (Scored("iou", under, Measured(0.0, EMPTY_MAP)) for under in thresholds)
    elif thresholds:
        ious = threshold_counts(prepare(compared.marks.map), truth, tuple(thresholds.values())).ious.tolist()
        for under, value in zip(thresholds, ious, strict=True):
            yield Scored("iou", under, Measured(value))


def _in_their_region(target: MapTarget, compared: MarksAndTruth, box: float, rule: ScoringRule) -> MarksAndTruth | None:
    """The marks with the benchmark's region, which smooths a map's colours; None of a volume, which has no such."""
    marks = compared.marks
    if not box or not _is_kept(target, rule):
        return compared
    if marks.map.ndim != 2:
        return None
    return replace(marks, region=region_of(prepare(marks.map), RegionRule(colours=box))).against(compared.truth)


def _by_reference(target: MapTarget, compared: MarksAndTruth, rule: ScoringRule) -> Iterator[Scored]:
    """The scores under the benchmark's rules, if they have a value: an empty region has none on a positive case.

    The overlap on all images is that of the same regions; with smoothing that is tried, of colours by the same box.
    """
    method, outlined = target.method, bool(compared.shared.truth)
    theirs = _in_their_region(target, compared, rule.colours.get(method, rule.region_for(method).smooth), rule)
    if "iou" in rule.metrics and outlined and theirs is not None and theirs.shared.region:
        yield Scored("iou", REFERENCE, theirs.measure(METRICS["iou"]))
    if "hit" in rule.metrics and outlined and compared.truth is not None:
        # the first of the peaks in row order, as in the benchmark
        yield Scored("hit", REFERENCE, Measured(float(compared.truth.flat[int(compared.marks.peaks.argmax())])))
    if "iou_full" not in rule.metrics:
        return
    yield from _full_by_reference(target, theirs, REFERENCE, rule.tuned.reference_cutoffs)
    for smooth in rule.smooths.get(method, ()) if method not in rule.colours else ():
        tried = _in_their_region(target, compared, smooth, rule)
        yield from _full_by_reference(target, tried, condition(preset="chexlocalize", smooth=smooth), {})


def _full_by_reference(
    target: MapTarget, theirs: MarksAndTruth | None, under: str, cutoffs: Mapping[tuple[str, str], float]
) -> Iterator[Scored]:
    """The overlap on all images, without and with the cutoff that was tuned for these regions."""
    if theirs is None:
        return
    measured = theirs.measure(METRICS["iou_full"])
    if not math.isnan(measured.value):
        yield Scored("iou_full", under, measured)
    yield from _with_tuned_cutoff(target, measured, cutoffs, REFERENCE_AT_CUTOFF)
