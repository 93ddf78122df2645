"""What is measured on one network: its answers, its maps beside the masks, and what it relies on."""

import math
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from torch import Tensor

from heatcheck.core.contracts import Method
from heatcheck.core.errors import InputError
from heatcheck.core.records import Case, CaseRecord, Map, Measured, Prediction, Score, Timing
from heatcheck.core.seeds import seed_for
from heatcheck.explaining.batch import answers_of
from heatcheck.maps.resize import to_image
from heatcheck.metrics.reliance import Drops, reliance, reliance_placebo
from heatcheck.models import NetworkClassifier, explained
from heatcheck.regions.rule import RegionRule
from heatcheck.running.cases import failure
from heatcheck.scoring.rows import Place, ScoringRule, score_map
from heatcheck.studies.alignment.cells import Cell
from heatcheck.studies.alignment.gallery import for_gallery
from heatcheck.studies.alignment.images import Images, batches
from heatcheck.studies.alignment.reliance import RelianceSettings, drops

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


@dataclass
class Findings:
    """What one network gave; kept until its shard is written."""

    shard: int
    scores: list[Score] = field(default_factory=list)
    predictions: list[Prediction] = field(default_factory=list)
    failed: list[CaseRecord] = field(default_factory=list)
    timings: list[Timing] = field(default_factory=list)
    maps: dict[str, Map] = field(default_factory=dict)


@dataclass(frozen=True)
class Examination:
    """One network with the images it is asked about."""

    cell: Cell
    classifier: NetworkClassifier
    images: Images
    measuring: Measuring
    found: Findings

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
            self.found.predictions += self._predictions(finding, logit[:, column], probability[:, column])
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
        try:
            maps = self._maps(finding, method, rows)
        except InputError:
            raise  # what the user must mend concerns every case
        except Exception as error:  # noqa: BLE001 - one bad case must not stop the others
            if len(rows) == 1:
                self.found.failed.append(failure(self.images.keys[rows[0]], error))
                return
            for row in rows:
                self._score_batch(finding, method, [row], at, keep)
            return
        for row, values in zip(rows, maps, strict=True):
            self.found.scores += self._rows(row, finding, method, values, at)
            case = self.images.keys[row].case
            if case in keep and not isinstance(values, Measured):
                self.found.maps[keep[case]] = for_gallery(values)

    def _maps(self, finding: str, method: str, rows: Sequence[int]) -> list[Map | Measured]:
        """The relevance on each image's own grid: resized, then without what speaks against, summed over channels."""
        contract = self.classifier.preprocessing
        inputs = self.images.prepared(rows, contract).to(self.classifier.device)
        column = self.classifier.outputs.index(finding)
        targets = torch.full((len(rows), 1), column, device=inputs.device)
        seeds = [seed_for(self.measuring.seed, self.images.keys[row].case, method) for row in rows]
        made = self.measuring.methods[method](explained(self.classifier), inputs, targets, seeds).values[:, 0]
        return [
            relevance(values, self, row)
            if bool(values.isfinite().all())
            else Measured(math.nan, f"the map of {method} is not finite")
            for row, values in zip(rows, made, strict=True)
        ]

    def _rows(self, row: int, finding: str, method: str, values: Map | Measured, at: str) -> list[Score]:
        mask = self.images.mask(row, finding)
        case = Case(self.images.keys[row], FLAT, {} if mask is None else {finding: mask})
        place = Place(case, finding, method, math.nan)
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
                self.found.scores += self._reliance_rows(row, finding, one, spread)
        self._timed("reliance", "", len(rows), begun)

    def _reliance_rows(self, row: int, finding: str, asked: Drops, spread: float) -> Iterator[Score]:
        key = self.images.keys[row]
        cell = self.cell
        blank = Score(key.case, key.patient, finding, cell.method, cell.base, "", math.nan, cell.condition())
        for metric, measured in (
            ("reliance", reliance(asked, spread)),
            ("reliance_placebo", reliance_placebo(asked, spread)),
        ):
            yield replace(blank, metric=metric, value=measured.value, reason=measured.reason)

    def _timed(self, step: str, method: str, number: int, begun: float) -> None:
        spent = time.perf_counter() - begun
        self.found.timings.append(Timing(self.found.shard, step, method, number, spent, self.cell.base))


def relevance(values: Tensor, examination: Examination, row: int) -> Map:
    """A map of channels on the image's grid."""
    placement = examination.images.placement(row, examination.classifier.preprocessing)
    resized: Map = np.maximum(to_image(values, placement), 0).sum(0, dtype=np.float32)
    return resized
