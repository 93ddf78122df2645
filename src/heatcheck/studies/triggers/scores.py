"""The scores of maps of attacked images: boxes against the trigger, predictions after recovery, maps against maps."""

import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Unpack

import numpy as np

from heatcheck.core.boxes import Box
from heatcheck.core.records import CaseKey, Image, Map, Measured, Score
from heatcheck.core.seeds import generator_for
from heatcheck.core.vocabulary import Condition, condition
from heatcheck.metrics.recovery import Classes, recovered
from heatcheck.metrics.similarity import similarities
from heatcheck.metrics.trigger_boxes import Planted, box_floors, box_scores, random_boxes
from heatcheck.models import NetworkClassifier
from heatcheck.regions.detect import PRESETS, DetectionRule, detected_box, preset_rule
from heatcheck.studies.triggers.attack import predicted_classes
from heatcheck.studies.triggers.spec import DetectionPart
from heatcheck.studies.triggers.vocabulary import CONTROL, floor_of
from heatcheck.triggers import Stamp

SENSITIVITY = ("trigger_iou", "box_area")  # the metrics under other rules
Boxes = dict[tuple[str, str], Box | None]  # by method and preset, whose name is empty for the leading one


@dataclass(frozen=True)
class Detector:
    """Every rule by which a box is detected in a map."""

    part: DetectionPart

    def main(self, method: str) -> DetectionRule:
        """The rule whose results lead."""
        rule, sigma, threshold = preset_rule(self.part.preset, method), self.part.sigma, self.part.threshold
        return replace(
            rule,
            smooth=rule.smooth if sigma is None else sigma,
            threshold=rule.threshold if threshold is None else threshold,
        )

    def presets(self, method: str) -> dict[str, DetectionRule]:
        """Each preset's rule by its name, which is empty for the leading one."""
        others = {name: preset_rule(name, method) for name in PRESETS if name != self.part.preset}
        return {"": self.main(method), **others}

    def variations(self, method: str) -> Iterator[tuple[Condition, DetectionRule]]:
        """The leading rule with another smoothing or another threshold."""
        rule = self.main(method)
        for sigma in dict.fromkeys(self.part.other_sigmas):
            if sigma != rule.smooth:
                yield {"sigma": sigma}, replace(rule, smooth=sigma)
        for threshold in dict.fromkeys(self.part.other_thresholds):
            if threshold != rule.threshold:
                yield {"threshold": threshold}, replace(rule, threshold=threshold)


@dataclass(frozen=True)
class AttackedImage:
    """An image with a planted trigger, or with a real artefact, which has no clean twin."""

    key: CaseKey
    finding: str  # the class whose maps are scored
    image: Image
    planted: Planted
    clean: Image | None = None

    def recovered(self, box: Box | None) -> Image:
        """The image with the clean pixels inside the box."""
        if self.clean is None:
            raise ValueError(f"{self.key.case} has no clean twin")
        image = self.image.copy()
        if box is not None:
            image[:, *box] = self.clean[:, *box]
        return image

    def restored_part(self, box: Box | None) -> tuple[tuple[int, int], ...]:
        """The part of the planted box inside a box: the recovered image depends on nothing else of it."""
        if box is None:
            return ()
        both = zip(box, self.planted.box, strict=True)
        part = tuple((max(a.start, b.start), min(a.stop, b.stop)) for a, b in both)
        return part if all(start < stop for start, stop in part) else ()


def attacked_image(key: CaseKey, target: str, clean: Image, stamp: Stamp) -> AttackedImage:
    """A clean image with its trigger; its maps are those of the attack's target."""
    image = stamp.on(clean)
    mask = stamp.mask_on(clean.shape[1:])
    return AttackedImage(key, target, image, Planted(stamp.box, mask, (image != clean).any(0)), clean)


@dataclass
class Scorer:
    """Scores images of one trigger under one network; keeps the seconds that each kind of score took."""

    finding: str
    model: str
    facts: Condition  # of every row
    detector: Detector
    seed: int
    poisoned_model: NetworkClassifier | None = None  # None where nothing can be recovered
    baseline: NetworkClassifier | None = None
    pairs: tuple[tuple[str, ...], ...] = ()  # metrics of two maps, grouped where they share their computation
    seconds: dict[str, float] = field(default_factory=dict)

    def scores(self, images: Sequence[AttackedImage], maps: Sequence[Mapping[str, Map]]) -> list[Score]:
        """Every score of the images, each with its maps by method."""
        rows: list[Score] = []
        boxes: list[Boxes] = []
        for image, by_method in zip(images, maps, strict=True):
            with self._timed("trigger_iou"):
                boxes.append(self._boxes(by_method))
                rows += self._box_rows(image, boxes[-1])
                rows += self._sensitivity_rows(image, by_method)
            rows += self._pair_rows(image, by_method)
        if self.poisoned_model is not None:
            with self._timed("recovered"):
                rows += self._recovery_rows(images, boxes)
        return rows

    def control_scores(self, images: Sequence[AttackedImage], maps: Sequence[Mapping[str, Map]]) -> list[Score]:
        """How much the boxes in the baseline's maps of the same images overlap the trigger, which it ignores."""
        return [
            self._row(image, method, CONTROL, box_scores(box, image.planted)["trigger_iou"], **_under(preset))
            for image, by_method in zip(images, maps, strict=True)
            for (method, preset), box in self._boxes(by_method).items()
        ]

    @contextmanager
    def _timed(self, step: str) -> Iterator[None]:
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[step] = self.seconds.get(step, 0.0) + time.perf_counter() - start

    def _row(
        self, image: AttackedImage, method: str, metric: str, value: Measured, **facts: Unpack[Condition]
    ) -> Score:
        every: Condition = {**self.facts, **facts}
        words = image.key.case, image.key.patient, self.finding, method, self.model, metric
        return Score(*words, value.value, condition(**every), reason=value.reason)

    def _boxes(self, maps: Mapping[str, Map]) -> Boxes:
        return {
            (method, preset): detected_box(values, rule)
            for method, values in maps.items()
            for preset, rule in self.detector.presets(method).items()
        }

    def _box_rows(self, image: AttackedImage, boxes: Boxes) -> Iterator[Score]:
        for (method, preset), box in boxes.items():
            values = {**box_scores(box, image.planted), **box_floors(box, image.planted)}
            if image.clean is None:
                values = {name: value for name, value in values.items() if not name.startswith("overlap_difference")}
            for metric, value in values.items():
                yield self._row(image, method, metric, value, **_under(preset))

    def _sensitivity_rows(self, image: AttackedImage, maps: Mapping[str, Map]) -> Iterator[Score]:
        for method, values in maps.items():
            for facts, rule in self.detector.variations(method):
                scores = box_scores(detected_box(values, rule), image.planted)
                for metric in SENSITIVITY:
                    yield self._row(image, method, metric, scores[metric], **facts)

    def _pair_rows(self, image: AttackedImage, maps: Mapping[str, Map]) -> list[Score]:
        """How alike every two methods' maps are."""
        names, stacked = list(maps), np.stack(list(maps.values()))
        rows = []
        for metrics in self.pairs:
            with self._timed(metrics[0]):
                alike = similarities(stacked, metrics)
            rows += [
                replace(self._row(image, one, metric, alike.of(metric, i, j)), other_method=names[j])
                for metric in metrics
                for i, one in enumerate(names)
                for j in range(i + 1, len(names))
            ]
        return rows

    def _recovery_rows(self, images: Sequence[AttackedImage], boxes: Sequence[Boxes]) -> Iterator[Score]:
        """Whether predictions return once the clean pixels are pasted into the box, and into boxes drawn at random."""
        if self.poisoned_model is None or self.baseline is None:
            return
        clean = [image.clean for image in images if image.clean is not None]
        trials = [
            (image, method, preset, box)
            for image, by_rule in zip(images, boxes, strict=True)
            for (method, preset), box in by_rule.items()
        ]
        for metric, network in (("recovered", self.poisoned_model), ("recovered_by_baseline", self.baseline)):
            before = dict(zip((image.key.case for image in images), predicted_classes(network, clean), strict=True))
            after = _classes_when_recovered(network, [(image, box) for image, _, _, box in trials])
            expected = np.array([before[image.key.case] for image, *_ in trials])
            for (image, method, preset, _), value in zip(trials, recovered(after, expected), strict=True):
                yield self._row(image, method, metric, Measured(float(value)), **_under(preset))
            if metric == "recovered":
                leading = [(image, method, box) for image, method, preset, box in trials if not preset]
                yield from self._floor_rows(leading, before)

    def _floor_rows(
        self, leading: Sequence[tuple[AttackedImage, str, Box | None]], before: Mapping[str, int]
    ) -> Iterator[Score]:
        """The same for boxes of the same size drawn at random; where nothing was detected nothing returns."""
        if self.poisoned_model is None:
            return
        n = self.detector.part.random_boxes
        drawn = [
            (image, other)
            for image, method, box in leading
            if box is not None
            for other in self._random_boxes(image, method, box, n)
        ]
        remaining = iter(_classes_when_recovered(self.poisoned_model, drawn).reshape(-1, n))
        for image, method, box in leading:
            expected = before[image.key.case]
            share = float((next(remaining) == expected).mean()) if box is not None else 0.0
            yield self._row(image, method, floor_of("recovered"), Measured(share))

    def _random_boxes(self, image: AttackedImage, method: str, box: Box, n: int) -> list[Box]:
        sides = tuple(line.stop - line.start for line in box)
        generator = generator_for(self.seed, image.key.case, method, "random boxes")
        return random_boxes(sides, image.planted.shape, generator, n)


def _under(preset: str) -> Condition:
    return {"preset": preset} if preset else {}


def _classes_when_recovered(network: NetworkClassifier, trials: Sequence[tuple[AttackedImage, Box | None]]) -> Classes:
    """The predicted class of each recovered image; boxes that leave the same image share one prediction."""
    distinct: dict[Hashable, int] = {}
    which = [distinct.setdefault((image.key.case, image.restored_part(box)), len(distinct)) for image, box in trials]
    firsts = [trials[index] for index in np.unique(which, return_index=True)[1]]
    return predicted_classes(network, (image.recovered(box) for image, box in firsts))[which]
