"""What is measured on one network: its answers, its maps beside the masks, and what it relies on."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from heatcheck.core.contracts import Method
from heatcheck.core.records import Case, Map, Measured, Prediction, Score, Timing
from heatcheck.core.seeds import seed_for
from heatcheck.explaining.batch import MapRequest, answers_of
from heatcheck.maps.resize import to_image
from heatcheck.metrics.reliance import Drops, reliance, reliance_placebo
from heatcheck.models import NetworkClassifier
from heatcheck.regions.rule import RegionRule
from heatcheck.running.case_stage import ShardRows
from heatcheck.running.cases import batches, failure, one_by_one_if_needed
from heatcheck.scoring.rows import MapTarget, ScoringRule, score_map
from heatcheck.studies.alignment.cells import NetworkCell
from heatcheck.studies.alignment.gallery import for_gallery
from heatcheck.studies.alignment.images import Images
from heatcheck.studies.alignment.reliance import RelianceSettings, drops
from heatcheck.studies.alignment.vocabulary import PLACEBO, RELIANCE

AT_ONCE = 32  # images of one forward pass
FLAT = np.zeros((1, 1, 1), np.float32)  # scores need no pixels


@dataclass(frozen=True)
class Measuring:
    """What is measured, and how."""

    metrics: tuple[str, ...]
    methods: Mapping[str, Method]
    batch_size: int  # images whose maps are made together
    seed: int
    reliance: RelianceSettings
    limit: int | None = None  # outlined images of a finding that are explained

    @property
    def rule(self) -> ScoringRule:
        """How a map is scored."""
        return ScoringRule(self.metrics, RegionRule(), counts=False, readers=False, reference=False)


@dataclass(frozen=True)
class NetworkEvaluation:
    """One network with the images it is asked about; what is measured is added to the rows of its shard."""

    cell: NetworkCell
    classifier: NetworkClassifier
    images: Images
    measuring: Measuring
    shard: int
    collected: ShardRows

    def predict(self) -> dict[str, float]:
        """Add the answers on all images; returned is the spread of each finding's logit."""
        begun = time.perf_counter()
        contract = self.classifier.preprocessing
        logits, probabilities = [], []
        for rows in batches(range(len(self.images.keys)), AT_ONCE):
            inputs = self.images.prepared(rows, contract).to(self.classifier.device)
            answers = answers_of(self.classifier, inputs)
            logits.append(answers[0].cpu())
            probabilities.append(answers[1].cpu())
        logit, probability = torch.cat(logits), torch.cat(probabilities)
        for finding in self.cell.findings:
            column = self.classifier.outputs.index(finding)
            self.collected.predictions += self._predictions(finding, logit[:, column], probability[:, column])
        self._timed("predict", "", len(self.images.keys), begun)
        return {
            finding: float(logit[:, self.classifier.outputs.index(finding)].double().std(correction=0))
            for finding in self.cell.findings
        }

    def _predictions(self, finding: str, logits: Tensor, probabilities: Tensor) -> Iterator[Prediction]:
        for row, key in enumerate(self.images.keys):
            yield Prediction(
                key.case,
                key.patient,
                finding,
                self.cell.key,
                self.images.label(row, finding),
                float(logits[row]),
                float(probabilities[row]),
            )

    def score_maps(self, finding: str, method: str, rows: Sequence[int], at: str, keep: Mapping[str, str]) -> None:
        """Add the scores of a method's maps of the finding; of the cases in `keep`, the maps under those names."""
        begun = time.perf_counter()
        for some in batches(rows, self.measuring.batch_size):
            self._score_batch(finding, method, some, at, keep)
        self._timed("map", method, len(rows), begun)

    def _score_batch(self, finding: str, method: str, rows: Sequence[int], at: str, keep: Mapping[str, str]) -> None:
        maps: dict[int, Map | Measured] = {}
        one_by_one_if_needed(
            rows,
            lambda some: maps.update(self._maps(finding, method, some)),
            lambda row, error: self.collected.cases.append(failure(self.images.keys[row], error)),
        )
        for row, values in maps.items():  # here an error ends the run: a map that exists can be scored
            self.collected.scores += self._score_rows(row, finding, method, values, at)
            case = self.images.keys[row].case
            if case in keep and not isinstance(values, Measured):
                self.collected.maps[keep[case]] = for_gallery(values)

    def _maps(self, finding: str, method: str, rows: Sequence[int]) -> dict[int, Map | Measured]:
        """The relevance on each image's own grid: resized, then without what speaks against, summed over channels."""
        contract = self.classifier.preprocessing
        inputs = self.images.prepared(rows, contract).to(self.classifier.device)
        column = self.classifier.outputs.index(finding)
        targets = torch.full((len(rows), 1), column, device=inputs.device)
        names = [self.images.keys[row].case for row in rows]
        request = MapRequest(self.classifier, names, inputs, targets, self.measuring.seed)
        # unlike in localization and triggers, channels are joined after the resizing: see `relevance`
        made = request.maps(method, self.measuring.methods[method], channels=None)[:, 0]
        return {
            row: relevance(values, self, row)
            if bool(values.isfinite().all())
            else Measured(math.nan, f"the map of {method} is not finite")
            for row, values in zip(rows, made, strict=True)
        }

    def _score_rows(self, row: int, finding: str, method: str, values: Map | Measured, at: str) -> list[Score]:
        mask = self.images.mask(row, finding)
        case = Case(self.images.keys[row], FLAT, {} if mask is None else {finding: mask})
        place = MapTarget(case, finding, method, math.nan)
        return [
            replace(score, condition=at) for score in score_map(place, values, self.cell.base, self.measuring.rule).rows
        ]

    def probe(self, finding: str, rows: Sequence[int], spread: float) -> None:
        """Add how much the network relies on the outlined area of each image."""
        begun = time.perf_counter()
        contract, column = self.classifier.preprocessing, self.classifier.outputs.index(finding)
        for some in batches(rows, self.measuring.reliance.at_once):
            inputs = self.images.prepared(some, contract).to(self.classifier.device)
            masks = [self.images.mask_on(row, finding, contract) for row in some]
            kept = [mask for mask in masks if mask is not None]
            seeds = [seed_for(self.measuring.seed, self.images.keys[row].case, finding) for row in some]
            asked = drops(self.classifier, column, inputs, kept, seeds, self.measuring.reliance)
            for row, one in zip(some, asked, strict=True):
                self.collected.scores += self._reliance_rows(row, finding, one, spread)
        self._timed("reliance", "", len(rows), begun)

    def _reliance_rows(self, row: int, finding: str, asked: Drops, spread: float) -> Iterator[Score]:
        key = self.images.keys[row]
        cell = self.cell
        blank = Score(key.case, key.patient, finding, cell.method, cell.base, "", math.nan, cell.condition())
        for metric, measured in (
            (RELIANCE, reliance(asked, spread)),
            (PLACEBO, reliance_placebo(asked, spread)),
        ):
            yield replace(blank, metric=metric, value=measured.value, reason=measured.reason)

    def _timed(self, step: str, method: str, number: int, begun: float) -> None:
        spent = time.perf_counter() - begun
        self.collected.timings.append(Timing(self.shard, step, method, number, spent, self.cell.base))


def relevance(values: Tensor, evaluation: NetworkEvaluation, row: int) -> Map:
    """A map of channels on the image's grid."""
    placement = evaluation.images.placement(row, evaluation.classifier.preprocessing)
    resized: Map = np.maximum(to_image(values, placement), 0).sum(0, dtype=np.float32)
    return resized
