"""From maps and marks on one case to its rows of scores."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from heatcheck.core.records import HUMAN, Case, Map, Mask, Measured, Reading, Score, condition
from heatcheck.maps.prepare import prepare
from heatcheck.metrics import METRICS
from heatcheck.metrics.human import points_inside
from heatcheck.metrics.registry import Metric, Needs
from heatcheck.regions.points import peaks
from heatcheck.regions.rule import RegionRule, region_of
from heatcheck.studies.explaining import Explained

NOT_OUTLINED = "the reader outlined nothing on this image, not even an empty mask"
NO_MASK = "the finding is present but nobody outlined it"
CALLED_NEGATIVE = "the model's probability is below the cutoff"
COUNTS = tuple(name for name in METRICS if METRICS[name].is_count)


@dataclass(frozen=True, slots=True)
class ScoringRule:
    """Which scores are taken, and how a map becomes a region."""

    metrics: tuple[str, ...]
    region: RegionRule
    cutoff: float = 0.0  # a probability below it calls the case negative


@dataclass(frozen=True, slots=True)
class Marks:
    """What one metric or another compares with the truth: a map, its region and its peaks."""

    map: Map
    region: Mask
    peaks: Mask

    def measure(self, metric: Metric, truth: Mask) -> Measured:
        """The metric's value for these marks."""
        given = {Needs.MAP: self.map, Needs.REGION: self.region, Needs.POINT: self.peaks}[metric.needs]
        return metric.measure(given, truth)


def score_case(explained: Explained, findings: Sequence[str], model: str, rule: ScoringRule) -> list[Score]:
    """Every score of the case: all methods and all readers on all findings."""
    case = explained.case
    rows: list[Score] = []
    for column, finding in enumerate(findings):
        kept = explained.probabilities[column] >= rule.cutoff
        for method in explained.grids:
            values = explained.map_of(method, column)
            given = Measured(math.nan, explained.why_missing(method, column)) if values is None else values
            for name, measured in _method_scores(case, finding, given, rule, kept=kept):
                rows.append(replace(_row(case, finding, method, name, measured), model=model))
        rows += _human_rows(case, finding, rule)
    return rows


def _row(case: Case, finding: str, method: str, metric: str, measured: Measured) -> Score:
    key = case.key
    return Score(key.case, key.patient, finding, method, "", metric, measured.value, reason=measured.reason)


def _method_scores(
    case: Case, finding: str, values: Map | Measured, rule: ScoringRule, *, kept: bool
) -> Iterator[tuple[str, Measured]]:
    """The scores of one map: all of them where the finding was outlined, the full slice's where it is absent.

    In place of a map that is missing stands what each of its scores is then: undefined, with the reason.
    """
    truth = case.truth.get(finding)
    label = case.key.labels.get(finding, math.nan)
    if truth is None and label == 1:
        for name in rule.metrics:
            yield name, Measured(math.nan, NO_MASK)
        return
    if truth is None and label != 0:
        return
    if isinstance(values, Measured):
        for name in rule.metrics if truth is not None else ():
            yield name, values
        return
    marks = _marks(values, rule, kept=kept)
    absent = truth is None
    against = np.zeros(marks.region.shape, bool) if truth is None else truth
    for name in rule.metrics:
        if absent and name != "iou_full":
            continue
        measured = marks.measure(METRICS[name], against)
        # the cutoff speaks of regions: where a map points is asked of every case that has the finding
        out = not kept and METRICS[name].needs is Needs.REGION and name != "iou_full"
        yield name, Measured(math.nan, CALLED_NEGATIVE) if out else measured
    if case.truth:
        for name in COUNTS:
            yield name, marks.measure(METRICS[name], against)


def _marks(values: Map, rule: ScoringRule, *, kept: bool) -> Marks:
    if not kept:
        return Marks(values, np.zeros(values.shape, bool), peaks(values))
    return Marks(values, region_of(prepare(values, rule.region.smooth), rule.region), peaks(values))


def _human_rows(case: Case, finding: str, rule: ScoringRule) -> list[Score]:
    """One row per reader and metric, and the mean over the readers as the human benchmark."""
    rows: list[Score] = []
    by_metric: dict[str, list[Measured]] = {}
    for reading in case.readings:
        for name, measured in _reader_scores(case, finding, reading, rule):
            by_metric.setdefault(name, []).append(measured)
            at = condition(reader=reading.reader)
            rows.append(replace(_row(case, finding, HUMAN, name, measured), condition=at))
    rows += [_row(case, finding, HUMAN, name, _mean(values)) for name, values in by_metric.items()]
    return rows


def _reader_scores(case: Case, finding: str, reading: Reading, rule: ScoringRule) -> Iterator[tuple[str, Measured]]:
    truth = case.truth.get(finding)
    if truth is None and (case.key.labels.get(finding) != 0 or not case.truth):
        return
    shape = case.image.shape[1:]
    drawn = reading.masks.get(finding, np.zeros(shape, bool))
    marks = Marks(drawn.astype(np.float32), drawn, drawn)
    against = np.zeros(shape, bool) if truth is None else truth
    for name in (*rule.metrics, *COUNTS):
        needs = METRICS[name].needs
        if truth is None and not METRICS[name].is_count and name != "iou_full":
            continue
        if needs is not Needs.POINT and not reading.outlined:
            yield name, Measured(math.nan, NOT_OUTLINED)
            continue
        if needs is Needs.POINT:
            if name == "hit":  # a margin around a reader's own point would mean something else
                yield name, points_inside(reading.points.get(finding, ()), against)
            continue
        yield name, marks.measure(METRICS[name], against)


def _mean(values: list[Measured]) -> Measured:
    """The mean over the readers who have a value; undefined when none has, with the first one's reason."""
    defined = [measured.value for measured in values if not math.isnan(measured.value)]
    if not defined:
        return Measured(math.nan, values[0].reason)
    return Measured(sum(defined) / len(defined))
