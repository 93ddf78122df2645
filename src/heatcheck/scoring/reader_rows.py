"""The rows of scores of the readers of one case: their marks beside the truth."""

import math
from collections.abc import Iterator

import numpy as np

from heatcheck.core.records import HUMAN, Case, Mask, Measured, Reading, Score
from heatcheck.core.vocabulary import condition
from heatcheck.metrics import METRICS
from heatcheck.metrics.human import any_point_inside, points_inside
from heatcheck.metrics.registry import Needs
from heatcheck.scoring.marks import MapMarks, MarksAndTruth
from heatcheck.scoring.rows import COUNTS, PLAIN, REFERENCE, Scored, ScoringRule, row_of, score_of, unless_left_out

NOT_OUTLINED = "the reader outlined nothing on this image, not even an empty mask"


def human_rows(case: Case, finding: str, rule: ScoringRule) -> list[Score]:
    """One row per reader and metric, and the mean over the readers, under each set of rules."""
    rows: list[Score] = []
    by_metric: dict[tuple[str, str], list[Measured]] = {}
    for reading in case.readings:
        for scored in _reader_scores(case, finding, reading, rule):
            by_metric.setdefault((scored.metric, scored.condition), []).append(scored.measured)
            if scored.condition == PLAIN:
                of_reader = scored._replace(condition=condition(reader=reading.reader))
                rows.append(row_of(case, finding, HUMAN, of_reader))
    rows += [row_of(case, finding, HUMAN, Scored(*key, _mean(values))) for key, values in by_metric.items()]
    return rows


def _reader_scores(case: Case, finding: str, reading: Reading, rule: ScoringRule) -> Iterator[Scored]:
    truth = case.truth.get(finding)
    if truth is None and (case.key.labels.get(finding) != 0 or not case.truth):
        return
    drawn = reading.masks.get(finding)
    if drawn is None:
        drawn = np.broadcast_to(np.False_, case.image.shape[1:])  # needs no memory
    compared = MapMarks(drawn, drawn, drawn).against(truth)
    for name in (*rule.metrics, *(COUNTS if rule.counts else ())):
        needs = METRICS[name].needs
        if truth is None and not METRICS[name].is_count and name != "iou_full":
            continue
        if needs is not Needs.POINT and not reading.outlined:
            yield Scored(name, PLAIN, Measured(math.nan, NOT_OUTLINED))
            continue
        if needs is Needs.POINT:
            if name == "hit" and truth is not None:  # a margin around a reader's point would mean something else
                yield Scored(name, PLAIN, _points(reading, finding, truth, rule))
            continue
        measured = score_of(METRICS[name], compared, rule)
        of_positives = needs is Needs.REGION and name != "iou_full" and not METRICS[name].is_count
        yield Scored(name, PLAIN, unless_left_out(measured, compared, rule) if of_positives else measured)
    if rule.reference and truth is not None and compared.shared.truth:
        by_reference = _reader_by_reference(finding, reading, compared, truth)
        yield from (scored for scored in by_reference if scored.metric in rule.metrics)


def _points(reading: Reading, finding: str, truth: Mask, rule: ScoringRule) -> Measured:
    points = reading.points.get(finding, ())
    if rule.rules.human_points == "any" and reading.pointed:
        return any_point_inside(points, truth)
    return points_inside(points, truth)


def _reader_by_reference(finding: str, reading: Reading, compared: MarksAndTruth, truth: Mask) -> Iterator[Scored]:
    """A reader's scores under the benchmark's rules: no point is a miss if the reader was asked for points."""
    if reading.outlined and compared.shared.region:
        yield Scored("iou", REFERENCE, compared.measure(METRICS["iou"]))
    if reading.pointed:
        yield Scored("hit", REFERENCE, any_point_inside(reading.points.get(finding, ()), truth))


def _mean(values: list[Measured]) -> Measured:
    """The mean over the readers with a value; if there is none, undefined with the reason of the first reader."""
    defined = [measured.value for measured in values if not math.isnan(measured.value)]
    if not defined:
        return Measured(math.nan, values[0].reason)
    return Measured(sum(defined) / len(defined))
