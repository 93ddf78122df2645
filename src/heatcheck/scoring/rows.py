"""From maps and marks on one case to its rows of scores."""

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from heatcheck.core.records import HUMAN, Case, Map, Mask, Measured, Reading, Score
from heatcheck.core.vocabulary import condition
from heatcheck.maps.prepare import prepare
from heatcheck.metrics import METRICS
from heatcheck.metrics.counting import Overlap, overlap
from heatcheck.metrics.grids import require_masks
from heatcheck.metrics.human import any_point_inside, points_inside
from heatcheck.metrics.registry import Metric, Needs
from heatcheck.metrics.thresholds import threshold_counts
from heatcheck.regions.points import first_peak, peaks
from heatcheck.regions.rule import RegionRule, region_of
from heatcheck.scoring.presets import RECOMMENDED, Rules

NOT_OUTLINED = "the reader outlined nothing on this image, not even an empty mask"
NO_MASK = "the finding is present but nobody outlined it"
LEFT_OUT = "nothing is marked, and such cases are left out"
CALLED_NEGATIVE = "the model's probability is below the cutoff"
COUNTS = tuple(name for name in METRICS if METRICS[name].is_count)
PLAIN = condition()
REFERENCE = condition(preset="chexlocalize")  # the score under the benchmark's rules; no row where it has none
TUNED_THRESHOLD = condition(threshold="tuned")
TUNED_CUTOFF = condition(cutoff="tuned")
Scored = tuple[str, str, Measured]  # metric, condition, value


@dataclass(frozen=True, slots=True)
class TunedSettings:
    """What validation data chose for one model, by method and finding; what they could not choose is absent."""

    thresholds: Mapping[tuple[str, str], float] = field(default_factory=dict)
    cutoffs: Mapping[tuple[str, str], float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ScoringRule:
    """Which scores are taken, and how a map becomes a region."""

    metrics: tuple[str, ...]
    region: RegionRule
    cutoff: float = 0.0  # a probability below it calls the case negative
    thresholds: tuple[float, ...] = ()  # fixed ones at which overlap is taken too
    tuned: TunedSettings = TunedSettings()
    counts: bool = True  # pixels, for precision, recall and specificity
    readers: bool = True  # several models share one set of readers' scores
    reference: bool = True  # the benchmark's rules too, beside the study's own
    rules: Rules = RECOMMENDED
    regions: Mapping[str, RegionRule] = field(default_factory=dict)  # of methods that have their own

    def region_for(self, method: str) -> RegionRule:
        """How the method's maps become regions."""
        return self.regions.get(method, self.region)


@dataclass(frozen=True, slots=True)
class MapMarks:
    """What one metric or another compares with the truth: a map, its region and its peaks."""

    map: Map
    region: Mask
    peaks: Mask

    def against(self, truth: Mask | None) -> "MarksAndTruth":
        """These marks beside the truth; None is the knowledge that the finding is absent."""
        if truth is not None:
            require_masks(self.region, truth)
        return MarksAndTruth(self, truth, overlap(self.region, truth))


@dataclass(frozen=True, slots=True)
class MarksAndTruth:
    """Marks beside the truth; the pixels they share are counted once for all metrics that need no more."""

    marks: MapMarks
    truth: Mask | None
    shared: Overlap

    def measure(self, metric: Metric) -> Measured:
        """The metric's value for these marks."""
        if metric.of_overlap is not None:
            return metric.of_overlap(self.shared)
        marks = self.marks
        given = {Needs.MAP: marks.map, Needs.REGION: marks.region, Needs.POINT: marks.peaks}[metric.needs]
        return metric.measure(given, np.zeros(given.shape, bool) if self.truth is None else self.truth)


@dataclass(frozen=True, slots=True)
class MapScores:
    """The rows of one map, and what they were measured on; None where there was nothing to measure."""

    rows: list[Score]
    marks: MapMarks | None


@dataclass(frozen=True, slots=True)
class MapTarget:
    """One finding of one case under one method, and what the model thinks of it."""

    case: Case
    finding: str
    method: str
    probability: float

    @property
    def truth(self) -> Mask | None:
        """Where the finding is, if it was outlined."""
        return self.case.truth.get(self.finding)

    @property
    def label(self) -> float:
        """Whether the finding is there."""
        return self.case.key.labels.get(self.finding, math.nan)


def score_map(place: MapTarget, values: Map | Measured, model: str, rule: ScoringRule) -> MapScores:
    """The rows of one map: all metrics where the finding was outlined, the full slice's where it is absent.

    In place of a map that is missing stands what each of its scores is then: undefined, with the reason.
    """
    truth = place.truth
    marks = None if isinstance(values, Measured) or not _is_scored(place) else marks_of(place, values, rule)
    if truth is None and place.label == 1:
        scored: Iterable[Scored] = [(name, PLAIN, Measured(math.nan, NO_MASK)) for name in rule.metrics]
    elif marks is not None:
        scored = _measured(place, marks, rule)
    elif truth is not None and isinstance(values, Measured):
        scored = [(name, PLAIN, values) for name in rule.metrics]
    else:
        scored = ()
    rows = [_row(place.case, place.finding, place.method, one) for one in scored]
    return MapScores([replace(row, model=model) for row in rows], marks)


def _is_scored(place: MapTarget) -> bool:
    """Whether there is something to compare a map with: an outline, or the knowledge that there is none."""
    return place.truth is not None or place.label == 0


def _row(case: Case, finding: str, method: str, scored: Scored) -> Score:
    key = case.key
    metric, at, measured = scored
    return Score(key.case, key.patient, finding, method, "", metric, measured.value, at, reason=measured.reason)


def _measured(place: MapTarget, marks: MapMarks, rule: ScoringRule) -> Iterator[Scored]:
    truth, kept = place.truth, _is_kept(place, rule)
    compared = marks.against(truth)
    for name in rule.metrics if truth is not None else [name for name in rule.metrics if name == "iou_full"]:
        measured = compared.measure(METRICS[name])
        # the cutoff speaks of regions: where a map points is asked of every case that has the finding
        of_positives = METRICS[name].needs is Needs.REGION and name != "iou_full"
        if of_positives and not kept:
            measured = Measured(math.nan, CALLED_NEGATIVE)
        elif of_positives:
            measured = _unless_left_out(measured, compared, rule)
        yield name, PLAIN, measured
        if name == "iou_full":
            yield from _with_tuned_cutoff(place, measured, rule.tuned)
    if rule.counts and place.case.truth:
        for name in COUNTS:
            yield name, PLAIN, compared.measure(METRICS[name])
    if truth is not None and compared.shared.truth:
        yield from _at_thresholds(marks.map, truth, _thresholds(place, rule))
        yield from _by_reference(place, compared, truth, rule)


def _unless_left_out(measured: Measured, compared: MarksAndTruth, rule: ScoringRule) -> Measured:
    """The score of a positive case, or none where nothing is marked and the rules leave such cases out."""
    left_out = rule.rules.empty_region == "left_out" and not compared.shared.region
    return Measured(math.nan, LEFT_OUT) if left_out else measured


def marks_of(place: MapTarget, values: Map, rule: ScoringRule) -> MapMarks:
    """The map's region and peaks; the region is empty where the model's probability calls the case negative."""
    top = np.broadcast_to(np.False_, values.shape)  # where the finding is absent, nobody asks where a map peaks
    if place.truth is not None:
        top = peaks(values) if rule.rules.ties == "share" else first_peak(values)
    if not _is_kept(place, rule):
        return MapMarks(values, np.zeros(values.shape, bool), top)
    region = rule.region_for(place.method)
    return MapMarks(values, region_of(prepare(values, region.smooth), region), top)


def _is_kept(place: MapTarget, rule: ScoringRule) -> bool:
    return not place.probability < rule.cutoff  # a probability that is not known calls nothing negative


def _with_tuned_cutoff(place: MapTarget, measured: Measured, tuned: TunedSettings) -> Iterator[Scored]:
    """The full slice's overlap where the region is empty below the tuned cutoff; no row where nothing is marked."""
    cutoff = tuned.cutoffs.get((place.method, place.finding))
    if cutoff is None:
        return
    if place.probability >= cutoff:
        if not math.isnan(measured.value):
            yield "iou_full", TUNED_CUTOFF, measured
    elif place.truth is not None and place.truth.any():
        yield "iou_full", TUNED_CUTOFF, Measured(0.0)


def _thresholds(place: MapTarget, rule: ScoringRule) -> dict[str, float]:
    """The fixed thresholds at which overlap is taken, by condition."""
    tuned = rule.tuned.thresholds.get((place.method, place.finding))
    asked = {condition(threshold=threshold): threshold for threshold in rule.thresholds}
    return asked if tuned is None else {**asked, TUNED_THRESHOLD: tuned}


def _at_thresholds(values: Map, truth: Mask, thresholds: Mapping[str, float]) -> Iterator[Scored]:
    """The overlap at fixed thresholds, of the map as it is: smoothing goes with Otsu's."""
    if thresholds:
        ious = threshold_counts(prepare(values), truth, tuple(thresholds.values())).ious.tolist()
        for at, value in zip(thresholds, ious, strict=True):
            yield "iou", at, Measured(value)


def _by_reference(place: MapTarget, compared: MarksAndTruth, truth: Mask, rule: ScoringRule) -> Iterator[Scored]:
    """The scores under the benchmark's rules, where they have a value: an empty region has none."""
    if not rule.reference:
        return
    # its smoothing works on the colours of a map: one that smooths the map itself has no equal there
    if "iou" in rule.metrics and not rule.region_for(place.method).smooth and compared.shared.region:
        yield "iou", REFERENCE, compared.measure(METRICS["iou"])
    if "hit" in rule.metrics:
        # the first of the peaks in the order of rows, as in the benchmark
        yield "hit", REFERENCE, Measured(float(truth.flat[int(compared.marks.peaks.argmax())]))


def human_rows(case: Case, finding: str, rule: ScoringRule) -> list[Score]:
    """One row per reader and metric, and the mean over the readers as the human benchmark, under each set of rules."""
    rows: list[Score] = []
    found: dict[tuple[str, str], list[Measured]] = {}
    for reading in case.readings:
        for name, at, measured in _reader_scores(case, finding, reading, rule):
            found.setdefault((name, at), []).append(measured)
            if at == PLAIN:
                by_reader = condition(reader=reading.reader)
                rows.append(_row(case, finding, HUMAN, (name, by_reader, measured)))
    rows += [_row(case, finding, HUMAN, (name, at, _mean(values))) for (name, at), values in found.items()]
    return rows


def _reader_scores(case: Case, finding: str, reading: Reading, rule: ScoringRule) -> Iterator[Scored]:
    truth = case.truth.get(finding)
    if truth is None and (case.key.labels.get(finding) != 0 or not case.truth):
        return
    drawn = reading.masks.get(finding)
    if drawn is None:
        drawn = np.broadcast_to(np.False_, case.image.shape[1:])  # no memory for nothing
    compared = MapMarks(drawn, drawn, drawn).against(truth)
    for name in (*rule.metrics, *(COUNTS if rule.counts else ())):
        needs = METRICS[name].needs
        if truth is None and not METRICS[name].is_count and name != "iou_full":
            continue
        if needs is not Needs.POINT and not reading.outlined:
            yield name, PLAIN, Measured(math.nan, NOT_OUTLINED)
            continue
        if needs is Needs.POINT:
            if name == "hit" and truth is not None:  # a margin around a reader's own point would mean something else
                yield name, PLAIN, _points(reading, finding, truth, rule)
            continue
        measured = compared.measure(METRICS[name])
        of_positives = needs is Needs.REGION and name != "iou_full" and not METRICS[name].is_count
        yield name, PLAIN, _unless_left_out(measured, compared, rule) if of_positives else measured
    if rule.reference and truth is not None and compared.shared.truth:
        found = _reader_by_reference(finding, reading, compared, truth)
        yield from (scored for scored in found if scored[0] in rule.metrics)


def _points(reading: Reading, finding: str, truth: Mask, rule: ScoringRule) -> Measured:
    points = reading.points.get(finding, ())
    if rule.rules.human_points == "any" and reading.pointed:
        return any_point_inside(points, truth)
    return points_inside(points, truth)


def _reader_by_reference(finding: str, reading: Reading, compared: MarksAndTruth, truth: Mask) -> Iterator[Scored]:
    """A reader's scores under the benchmark's rules: no point is a miss, unless nobody asked the reader for points."""
    if reading.outlined and compared.shared.region:
        yield "iou", REFERENCE, compared.measure(METRICS["iou"])
    if reading.pointed:
        yield "hit", REFERENCE, any_point_inside(reading.points.get(finding, ()), truth)


def _mean(values: list[Measured]) -> Measured:
    """The mean over the readers who have a value; undefined when none has, with the first one's reason."""
    defined = [measured.value for measured in values if not math.isnan(measured.value)]
    if not defined:
        return Measured(math.nan, values[0].reason)
    return Measured(sum(defined) / len(defined))
