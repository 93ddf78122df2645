"""One pass over maps from files, image by image: scores, predictions, regions and the truth's geometry."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from heatcheck.core.errors import CaseError, InputError
from heatcheck.core.records import (
    CaseKey,
    CaseRecord,
    Map,
    Mask,
    Measured,
    Prediction,
    RegionRecord,
    Score,
    ShardTables,
)
from heatcheck.metrics import METRICS
from heatcheck.metrics.counting import pixels_in
from heatcheck.metrics.features import small_copy
from heatcheck.metrics.registry import Needs
from heatcheck.running.case_stage import CaseStage, Part, ShardRows, by_case, cut
from heatcheck.running.cases import results_in_order, success
from heatcheck.running.failed_cases import failure
from heatcheck.scoring.features import feature_rows
from heatcheck.scoring.marks import MapMarks, MarksAndTruth
from heatcheck.scoring.reader_rows import human_rows
from heatcheck.scoring.rows import MapTarget, ScoringRule, marks_of, score_map
from heatcheck.scoring.shapes import shapes_of
from heatcheck.sources.files.rle import encode
from heatcheck.studies.localization.from_files.inputs import ScoreInputs
from heatcheck.studies.localization.from_files.maps import StoredMaps, is_sized, read_stored
from heatcheck.studies.localization.from_files.settings import RegionSettings
from heatcheck.studies.localization.vocabulary import PAPER_PRESET

MODEL = "model"  # behind the maps, known only by its probabilities
NO_MAP = "no map was given"


@dataclass(frozen=True)
class ScoreStage(CaseStage[str, CaseKey]):
    """The images, cut into shards."""

    SIZE: ClassVar[int] = 16  # images in a shard

    inputs: ScoreInputs
    settings: RegionSettings
    keys: Sequence[CaseKey]
    metrics: tuple[str, ...]
    workers: int
    name: str = ""
    what: str = "scores"

    @property
    def parts(self) -> list[Part[str, CaseKey]]:
        """The images of each shard."""
        return cut([(MODEL, self.keys)], self.SIZE)

    def work(self, shard: int) -> ShardTables:
        """The tables of one shard, images in parallel; findings keep the order in which they were given."""
        rows = ShardRows()
        for tables in results_in_order(self._image, self.parts[shard].cases, self.workers):
            rows.add(tables)
        return rows.tables()

    def _image(self, key: CaseKey) -> ShardTables:
        if why := self.inputs.failing(key.case):
            return ShardTables(cases=(failure(key, CaseError(why)),))
        if not is_sized(self.inputs, key.case):
            return self._without_size(key)
        stored = read_stored(self.inputs, key)
        scores: list[Score] = []
        regions: list[RegionRecord] = []
        for finding in self.inputs.findings:
            region, cutoff = self.settings.rule(finding), self.settings.cutoff(finding)
            rule = ScoringRule(self.metrics, region, cutoff, rules=self.inputs.scoring_rules)
            self._require_probability(stored, finding)
            small_maps: dict[str, Map] = {}
            for method in self.inputs.maps:
                values = stored.on_image(method, finding)
                if values is not None:
                    small_maps[method] = small_copy(values)
                target = MapTarget(stored.case, finding, method, stored.probabilities[finding])
                map_scores, map_regions = self._score(values, target, rule)
                scores += map_scores
                regions += map_regions
            scores += feature_rows(stored.case, finding, small_maps, MODEL)
            scores += human_rows(stored.case, finding, rule)
        labels = stored.case.key.labels
        predictions = tuple(
            Prediction(key.case, key.patient, finding, MODEL, labels[finding], _logit(probability), probability)
            for finding, probability in stored.probabilities.items()
            if not math.isnan(probability)
        )
        return ShardTables(
            scores=tuple(sorted(scores, key=by_case)),
            predictions=predictions,
            cases=(success(stored.case, annotated=key.case in self.inputs.truth.marks),),
            shapes=tuple(shapes_of(stored.case)),
            regions=tuple(regions),
        )

    def _without_size(self, key: CaseKey) -> ShardTables:
        """The rows of an image without a map and of unknown size: undefined, and counted."""
        marked = [f for f in self.inputs.findings if not self.inputs.truth.is_empty(key.case, f)]
        scores = [
            Score(key.case, key.patient, finding, method, MODEL, metric, math.nan, reason=NO_MAP)
            for finding in marked
            for method in self.inputs.maps
            for metric in self.metrics
        ]
        record = CaseRecord(key.case, key.patient, "ok", annotated=1, examination=key.examination)
        return ShardTables(scores=tuple(sorted(scores, key=by_case)), cases=(record,))

    def _score(
        self, values: Map | None, target: MapTarget, rule: ScoringRule
    ) -> tuple[list[Score], list[RegionRecord]]:
        if values is None:
            return self._missing(target, rule), []
        scored = score_map(target, values, MODEL, rule)
        if self.inputs.given.preset != PAPER_PRESET:
            return scored.rows, []
        # the benchmark ignores labels: every map has its region
        return scored.rows, [region_record(target, scored.marks or marks_of(target, values, rule))]

    def _missing(self, target: MapTarget, rule: ScoringRule) -> list[Score]:
        """The rows of a map that was not given: undefined, or with the benchmark's rule an empty region."""
        rows = score_map(target, Measured(math.nan, NO_MAP), MODEL, rule).rows
        if self.inputs.rules.missing_map == "error" or target.truth is None:
            return rows
        compared = MapMarks(target.truth, np.zeros(target.truth.shape, bool), target.truth).against(target.truth)
        return [self._of_empty_region(row, compared, rule) for row in rows]

    @staticmethod
    def _of_empty_region(row: Score, compared: MarksAndTruth, rule: ScoringRule) -> Score:
        metric = METRICS[row.metric]
        left_out = rule.rules.empty_region == "left_out" and row.metric != "iou_full"
        if metric.needs is not Needs.REGION or left_out:
            return row
        return replace(row, value=compared.measure(metric).value, reason="")

    def _require_probability(self, stored: StoredMaps, finding: str) -> None:
        known = not math.isnan(stored.probabilities[finding])
        if known or not self.settings.cutoffs or self.inputs.given.allow_missing:
            return
        if any(finding in by_finding for by_finding in stored.maps.values()):
            raise InputError(
                f"the maps of {finding} on {stored.case.key.case} hold no probability, which --probability-cutoffs "
                "needs; store it with the maps, or keep their regions without a cutoff with --allow-missing"
            )


def region_record(target: MapTarget, marks: MapMarks) -> RegionRecord:
    """The region run-length encoded, and its overlap with the truth."""
    region: Mask = marks.region
    truth = target.truth
    height, width = region.shape
    return RegionRecord(
        target.case.key.case,
        target.finding,
        target.method,
        height,
        width,
        encode(region),
        pixels_in(region),
        0 if truth is None else pixels_in(region & truth),
        0 if truth is None else pixels_in(truth),
        0 if truth is None else int(truth.flat[int(marks.peaks.argmax())]),
        target.probability,
    )


def _logit(probability: float) -> float:
    """Log odds, kept finite: a stored probability of 0 or 1 is a rounded one."""
    kept = min(max(probability, 1e-7), 1 - 1e-7)
    return math.log(kept / (1 - kept))
