"""What is measured on one network: its predictions, the scores of its maps, and its reliance."""

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
from heatcheck.explaining.batch import GridMaps, MapRequest, answers_of
from heatcheck.maps.channels import MapOrder
from heatcheck.maps.resize import to_image
from heatcheck.metrics.reliance import Drops, reliance, reliance_placebo
from heatcheck.models import NetworkClassifier
from heatcheck.regions.rule import RegionRule
from heatcheck.running.case_stage import ShardRows
from heatcheck.running.cases import batches
from heatcheck.running.failed_cases import failure, one_by_one_if_needed
from heatcheck.scoring.rows import MapTarget, ScoringRule, score_map
from heatcheck.studies.alignment.gallery import for_gallery
from heatcheck.studies.alignment.images import Images
from heatcheck.studies.alignment.networks import NetworkCell
from heatcheck.studies.alignment.reliance import RelianceSettings, drops
from heatcheck.studies.alignment.vocabulary import PLACEBO, RELIANCE

AT_ONCE = 32  # images per forward pass
NO_PIXELS = np.zeros((1, 1, 1), np.float32)  # an image is not needed to score a map


@dataclass(frozen=True)
class Measuring:
    """What is measured, and how."""

    metrics: tuple[str, ...]
    methods: Mapping[str, Method]
    batch_size: int  # images per batch of maps
    seed: int
    reliance: RelianceSettings
    limit: int | None = None  # outlined images per finding that are explained
    map_order: MapOrder = "reduce_first"

    @property
    def rule(self) -> ScoringRule:
        """How a map is scored."""
        return ScoringRule(self.metrics, RegionRule(), counts=False, readers=False, reference=False)


@dataclass(frozen=True)
class NetworkEvaluation:
    """One network and the images it is evaluated on; results are added to the rows of its shard."""

    cell: NetworkCell
    classifier: NetworkClassifier
    images: Images
    measuring: Measuring
    shard: int
    collected: ShardRows

    def predict(self) -> dict[str, float]:
        """Add the predictions on all images; returns the standard deviation of each finding's logit."""
        begun = time.perf_counter()
        contract = self.classifier.preprocessing
        logits, probabilities = [], []
        for rows in batches(range(len(self.images.keys)), AT_ONCE):
            inputs = self.images.prepared(rows, contract).to(self.classifier.device)
            batch_logits, batch_probabilities = answers_of(self.classifier, inputs)
            logits.append(batch_logits.cpu())
            probabilities.append(batch_probabilities.cpu())
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

    def score_maps(
        self, finding: str, method: str, rows: Sequence[int], condition: str, keep: Mapping[str, str]
    ) -> None:
        """Add the scores of a method's maps of the finding, and the maps of the cases in `keep` under those names."""
        begun = time.perf_counter()
        for batch in batches(rows, self.measuring.batch_size):
            for row, values in self._batch_maps(finding, method, batch).items():
                # here an error ends the run: a map that exists can be scored
                self.collected.scores += self._score_rows(row, finding, method, values, condition)
                case = self.images.keys[row].case
                if case in keep and not isinstance(values, Measured):
                    self.collected.maps[keep[case]] = for_gallery(values)
        self._timed("map", method, len(rows), begun)

    def _batch_maps(self, finding: str, method: str, rows: Sequence[int]) -> dict[int, Map | Measured]:
        """The maps by row; rows of which none can be made are recorded as failures."""
        maps: dict[int, Map | Measured] = {}
        one_by_one_if_needed(
            rows,
            lambda part: maps.update(self._maps(finding, method, part)),
            lambda row, error: self.collected.cases.append(failure(self.images.keys[row], error)),
        )
        return maps

    def _maps(self, finding: str, method: str, rows: Sequence[int]) -> dict[int, Map | Measured]:
        """Each image's map on its own grid, or why it is undefined."""
        contract = self.classifier.preprocessing
        inputs = self.images.prepared(rows, contract).to(self.classifier.device)
        column = self.classifier.outputs.index(finding)
        targets = torch.full((len(rows), 1), column, device=inputs.device)
        names = [self.images.keys[row].case for row in rows]
        request = MapRequest(self.classifier, names, inputs, targets, self.measuring.seed)
        made = request.made_by(method, self.measuring.methods[method])
        return {
            row: self._relevance(GridMaps(values, made.cells), row)
            if bool(values.isfinite().all())
            else Measured(math.nan, f"the map of {method} is not finite")
            for row, values in zip(rows, made.values[:, 0], strict=True)
        }

    def _relevance(self, maps: GridMaps, row: int) -> Map:
        """The map on the image's grid: the sum over channels, without negative relevance."""
        placement = self.images.placement(row, self.classifier.preprocessing)
        if self.measuring.map_order == "resize_first":
            on_image: Map = np.maximum(to_image(maps.values, placement, maps.cells), 0).sum(0, dtype=np.float32)
        else:
            on_image = to_image(maps.values.clamp(min=0).sum(0, keepdim=True), placement, maps.cells)[0]
        return on_image

    def _score_rows(self, row: int, finding: str, method: str, values: Map | Measured, condition: str) -> list[Score]:
        mask = self.images.mask(row, finding)
        case = Case(self.images.keys[row], NO_PIXELS, {} if mask is None else {finding: mask})
        target = MapTarget(case, finding, method, math.nan)
        rows = score_map(target, values, self.cell.base, self.measuring.rule).rows
        return [replace(score, condition=condition) for score in rows]

    def probe(self, finding: str, rows: Sequence[int], spread: float) -> None:
        """Add how much the network relies on the outlined area of each image."""
        begun = time.perf_counter()
        contract, column = self.classifier.preprocessing, self.classifier.outputs.index(finding)
        for batch in batches(rows, self.measuring.reliance.at_once):
            inputs = self.images.prepared(batch, contract).to(self.classifier.device)
            masks = [self.images.mask_on(row, finding, contract) for row in batch]
            outlined = [mask for mask in masks if mask is not None]
            seeds = [seed_for(self.measuring.seed, self.images.keys[row].case, finding) for row in batch]
            logits = drops(self.classifier, column, inputs, outlined, seeds, self.measuring.reliance)
            for row, of_image in zip(batch, logits, strict=True):
                self.collected.scores += self._reliance_rows(row, finding, of_image, spread)
        self._timed("reliance", "", len(rows), begun)

    def _reliance_rows(self, row: int, finding: str, logits: Drops, spread: float) -> Iterator[Score]:
        key, cell = self.images.keys[row], self.cell
        for metric, measured in ((RELIANCE, reliance(logits, spread)), (PLACEBO, reliance_placebo(logits, spread))):
            yield Score(
                key.case, key.patient, finding, cell.method, cell.base, metric, measured.value, cell.condition(),
                reason=measured.reason,
            )  # fmt: skip

    def _timed(self, step: str, method: str, number: int, begun: float) -> None:
        seconds = time.perf_counter() - begun
        self.collected.timings.append(Timing(self.shard, step, method, number, seconds, self.cell.base))
