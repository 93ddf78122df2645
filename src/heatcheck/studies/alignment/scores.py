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
from heatcheck.core.vocabulary import condition
from heatcheck.explaining.batch import GridMaps, MapRequest, answers_of
from heatcheck.maps.channels import MapOrder
from heatcheck.maps.resize import to_image
from heatcheck.metrics.reliance import Drops, reliance, reliance_added, reliance_placebo, separation
from heatcheck.models import NetworkClassifier
from heatcheck.regions.rule import RegionRule
from heatcheck.running.case_stage import ShardRows
from heatcheck.running.cases import batches
from heatcheck.running.failed_cases import failure, one_by_one_if_needed
from heatcheck.scoring.rows import MapTarget, ScoringRule, score_map
from heatcheck.studies.alignment.gallery import for_gallery
from heatcheck.studies.alignment.images import Images
from heatcheck.studies.alignment.networks import NetworkCell
from heatcheck.studies.alignment.reliance import Probe, RelianceSettings, drops, partners
from heatcheck.studies.alignment.vocabulary import ADDED, PLACEBO, RELIANCE, UNTRAINED

AT_ONCE = 32  # images per forward pass
RELIANCES = {RELIANCE: reliance, PLACEBO: reliance_placebo, ADDED: reliance_added}  # what a network is probed for
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
        logit, probability = self.logits()
        for finding in self.cell.findings:
            column = self.classifier.outputs.index(finding)
            self.collected.predictions += self._predictions(finding, logit[:, column], probability[:, column])
        self._timed("predict", "", len(self.images.keys), begun)
        return {
            finding: float(logit[:, self.classifier.outputs.index(finding)].double().std(correction=0))
            for finding in self.cell.findings
        }

    def logits(self) -> tuple[Tensor, Tensor]:
        """The logits and the probabilities of all images."""
        contract = self.classifier.preprocessing
        logits, probabilities = [], []
        for rows in batches(range(len(self.images.keys)), AT_ONCE):
            inputs = self.images.prepared(rows, contract).to(self.classifier.device)
            batch_logits, batch_probabilities = answers_of(self.classifier, inputs)
            logits.append(batch_logits.cpu())
            probabilities.append(batch_probabilities.cpu())
        return torch.cat(logits), torch.cat(probabilities)

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

    def score_maps(self, finding: str, method: str, rows: Sequence[int], under: str, keep: Mapping[str, str]) -> None:
        """Add the scores of a method's maps of the finding, and the maps of the cases in `keep` under those names."""
        begun = time.perf_counter()
        for batch in batches(rows, self.measuring.batch_size):
            for row, values in self._batch_maps(finding, method, batch).items():
                # here an error ends the run: a map that exists can be scored
                self.collected.scores += self._score_rows(row, finding, method, values, under)
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

    def _score_rows(self, row: int, finding: str, method: str, values: Map | Measured, under: str) -> list[Score]:
        mask = self.images.mask(row, finding)
        case = Case(self.images.keys[row], NO_PIXELS, {} if mask is None else {finding: mask})
        target = MapTarget(case, finding, method, math.nan)
        rows = score_map(target, values, self.cell.base, self.measuring.rule).rows
        return [replace(score, condition=under) for score in rows]

    def probe(self, finding: str, rows: Sequence[int], spread: float) -> None:
        """Add how much the network relies on the outlined area of each image."""
        begun = time.perf_counter()
        for row, logits in self.drops(finding, rows):
            measured = {name: metric(logits, spread) for name, metric in RELIANCES.items()}
            self.collected.scores += self.reliance_rows(row, finding, measured, self.cell.condition())
        self._timed("reliance", "", len(rows), begun)

    def probe_untrained(self, finding: str, rows: Sequence[int], networks: Sequence[NetworkClassifier]) -> None:
        """Add how much untrained networks rely on it, on average.

        Chance decides what such a network scores high, so each is turned to score images with the finding higher.
        """
        begun = time.perf_counter()
        by_network = [replace(self, classifier=network).untrained_reliance(finding, rows) for network in networks]
        for row, *each in zip(rows, *by_network, strict=True) if by_network else ():
            values = [one.value for one in each if not one.reason]
            mean = Measured(float(np.mean(values))) if values else each[0]
            self.collected.scores += self.reliance_rows(row, finding, {RELIANCE: mean}, condition(arm=UNTRAINED))
        self._timed("untrained", "", len(rows), begun)

    def untrained_reliance(self, finding: str, rows: Sequence[int]) -> list[Measured]:
        """The reliance of a network in the direction in which it separates images with the finding from others."""
        labels = np.array([self.images.label(row, finding) for row in range(len(self.images.keys))])
        logits = self.logits()[0][:, self.classifier.outputs.index(finding)].double().numpy()
        direction = -1.0 if separation(labels, logits).value < 0 else 1.0
        found = [reliance(of_image, float(logits.std())) for _, of_image in self.drops(finding, rows)]
        return [replace(each, value=direction * each.value) for each in found]

    def drops(self, finding: str, rows: Sequence[int]) -> Iterator[tuple[int, Drops]]:
        """The logits with the outlined area and others replaced, row by row."""
        column, settings = self.classifier.outputs.index(finding), self.measuring.reliance
        absent = [row for row in range(len(self.images.keys)) if self.images.label(row, finding) == 0]
        of_row = partners(
            [self.images.keys[row] for row in rows], [self.images.keys[row] for row in absent], settings.films,
            seed_for(self.measuring.seed, finding),
        )  # fmt: skip
        for batch in batches(list(zip(rows, of_row, strict=True)), AT_ONCE):
            probes = [self._probe(finding, row, [absent[place] for place in places]) for row, places in batch]
            (found,) = drops(self.classifier, [column], probes, settings)
            yield from zip((row for row, _ in batch), found, strict=True)

    def _probe(self, finding: str, row: int, absent: Sequence[int]) -> Probe:
        contract = self.classifier.preprocessing
        images = self.images.prepared([row, *absent], contract).to(self.classifier.device)
        mask = self.images.mask_on(row, finding, contract)
        if mask is None:
            raise ValueError(f"{self.images.keys[row].case} has no mask of {finding}; probe outlined images only")
        return Probe(
            images[0], mask, list(images[1:]), seed_for(self.measuring.seed, self.images.keys[row].case, finding)
        )

    def reliance_rows(self, row: int, finding: str, measured: Mapping[str, Measured], under: str) -> Iterator[Score]:
        """The scores of one image."""
        key, cell = self.images.keys[row], self.cell
        for metric, each in measured.items():
            yield Score(
                key.case, key.patient, finding, cell.method, cell.base, metric, each.value, under,
                reason=each.reason,
            )  # fmt: skip

    def _timed(self, step: str, method: str, number: int, begun: float) -> None:
        seconds = time.perf_counter() - begun
        self.collected.timings.append(Timing(self.shard, step, method, number, seconds, self.cell.base))
