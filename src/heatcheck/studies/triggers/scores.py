"""The scores of maps of attacked images: boxes against the trigger, predictions after recovery, maps against maps."""

import time
from collections.abc import Hashable, Iterator, Mapping, Sequence
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
from heatcheck.studies.triggers.attack import said_classes
from heatcheck.studies.triggers.spec import DetectionPart
from heatcheck.studies.triggers.vocabulary import floor_of
from heatcheck.triggers import Stamp

SENSITIVITY = ("trigger_iou", "box_area")  # what is looked at under other rules
NOT_ATTACKED = "the poisoned model calls the clean image the target too, so that nothing can return"


@dataclass(frozen=True)
class Detector:
    """Every way in which a box is looked for in a map."""

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
        """The leading rule with another smoothing, or another threshold than it has."""
        rule = self.main(method)
        for sigma in dict.fromkeys(self.part.other_sigmas):
            if sigma != rule.smooth:
                yield {"sigma": sigma}, replace(rule, smooth=sigma)
        for threshold in dict.fromkeys(self.part.other_thresholds):
            if threshold != rule.threshold:
                yield {"threshold": threshold}, replace(rule, threshold=threshold)


@dataclass(frozen=True)
class AttackedImage:
    """An image with something planted in it, or with a real artefact, which has no clean twin."""

    key: CaseKey
    finding: str  # the class whose maps are looked at
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

    def put_right(self, box: Box | None) -> tuple[tuple[int, int], ...]:
        """The part of the planted box that a box puts right: the recovered image depends on nothing else of it."""
        if box is None:
            return ()
        both = zip(box, self.planted.box, strict=True)
        part = tuple((max(a.start, b.start), min(a.stop, b.stop)) for a, b in both)
        return part if all(start < stop for start, stop in part) else ()


def attacked_subject(key: CaseKey, target: str, clean: Image, stamp: Stamp) -> AttackedImage:
    """A clean image with its trigger, of which the attack's target is asked."""
    image = stamp.on(clean)
    mask = stamp.mask_on(clean.shape[1:])
    return AttackedImage(key, target, image, Planted(stamp.box, mask, (image != clean).any(0)), clean)


@dataclass
class Scorer:
    """Scores subjects of one trigger under one network; keeps the seconds that each kind of score took."""

    finding: str
    model: str
    facts: Condition  # of every row
    detector: Detector
    seed: int
    victim: NetworkClassifier | None = None  # who was attacked; none where nothing can be recovered
    baseline: NetworkClassifier | None = None
    target: int = -1
    pairs: tuple[tuple[str, ...], ...] = ()  # metrics of two maps; those that share their work stand together
    seconds: dict[str, float] = field(default_factory=dict)

    def scores(self, subjects: Sequence[AttackedImage], maps: Sequence[Mapping[str, Map]]) -> list[Score]:
        """Every score of the subjects, each with its maps by method."""
        rows: list[Score] = []
        boxes: list[dict[tuple[str, str], Box | None]] = []
        for subject, own in zip(subjects, maps, strict=True):
            with self._timed("trigger_iou"):
                found = self._boxes(own)
                rows += self._box_rows(subject, found)
                rows += self._sensitivity_rows(subject, own)
            rows += self._pair_rows(subject, own)
            boxes.append(found)
        if self.victim is not None:
            with self._timed("recovered"):
                rows += self._recovery_rows(subjects, boxes)
        return rows

    def _timed(self, step: str) -> "_Timer":
        return _Timer(self.seconds, step)

    def _row(
        self, subject: AttackedImage, method: str, metric: str, value: Measured, **facts: Unpack[Condition]
    ) -> Score:
        every: Condition = {**self.facts, **facts}
        at, key = condition(**every), subject.key
        return Score(
            key.case, key.patient, self.finding, method, self.model, metric, value.value, at, reason=value.reason
        )

    def _boxes(self, maps: Mapping[str, Map]) -> dict[tuple[str, str], Box | None]:
        """By method and preset; the leading preset's name is empty."""
        return {
            (method, preset): detected_box(values, rule)
            for method, values in maps.items()
            for preset, rule in self.detector.presets(method).items()
        }

    def _box_rows(self, subject: AttackedImage, boxes: Mapping[tuple[str, str], Box | None]) -> Iterator[Score]:
        for (method, preset), box in boxes.items():
            values = {**box_scores(box, subject.planted), **box_floors(box, subject.planted)}
            if subject.clean is None:
                values = {name: value for name, value in values.items() if not name.startswith("overlap_difference")}
            for metric, value in values.items():
                yield self._row(subject, method, metric, value, **_under(preset))

    def _sensitivity_rows(self, subject: AttackedImage, maps: Mapping[str, Map]) -> Iterator[Score]:
        for method, values in maps.items():
            for facts, rule in self.detector.variations(method):
                scores = box_scores(detected_box(values, rule), subject.planted)
                for metric in SENSITIVITY:
                    yield self._row(subject, method, metric, scores[metric], **facts)

    def _pair_rows(self, subject: AttackedImage, maps: Mapping[str, Map]) -> list[Score]:
        """What every two methods' maps have in common."""
        names, stacked = list(maps), np.stack(list(maps.values()))
        rows = []
        for metrics in self.pairs:
            with self._timed(metrics[0]):
                found = similarities(stacked, metrics)
            rows += [
                replace(self._row(subject, one, metric, found.of(metric, i, j)), other_method=names[j])
                for metric in metrics
                for i, one in enumerate(names)
                for j in range(i + 1, len(names))
            ]
        return rows

    def _recovery_rows(
        self, subjects: Sequence[AttackedImage], boxes: Sequence[Mapping[tuple[str, str], Box | None]]
    ) -> Iterator[Score]:
        """Whether predictions return once the clean pixels are pasted into the box, and into boxes drawn at random."""
        if self.victim is None or self.baseline is None:
            return
        clean = [subject.clean for subject in subjects if subject.clean is not None]
        asked = [(subject, pair) for subject, own in zip(subjects, boxes, strict=True) for pair in own.items()]
        for metric, network in (("recovered", self.victim), ("recovered_by_baseline", self.baseline)):
            before = dict(zip((s.key.case for s in subjects), said_classes(network, clean), strict=True))
            after = _said_when_recovered(network, [(subject, box) for subject, (_, box) in asked])
            expected = np.array([before[subject.key.case] for subject, _ in asked])
            for (subject, ((method, preset), _)), value in zip(asked, recovered(after, expected), strict=True):
                measured = self._returned(metric, int(before[subject.key.case]), float(value))
                yield self._row(subject, method, metric, measured, **_under(preset))
            if metric == "recovered":
                leading = [(subject, method, box) for subject, ((method, preset), box) in asked if not preset]
                yield from self._floor_rows(leading, before)

    def _returned(self, metric: str, before: int, value: float) -> Measured:
        if metric != "recovered_by_baseline" and before == self.target:
            return Measured(float("nan"), NOT_ATTACKED)
        return Measured(value)

    def _floor_rows(
        self, leading: Sequence[tuple[AttackedImage, str, Box | None]], before: Mapping[str, int]
    ) -> Iterator[Score]:
        """The same for boxes of the same size drawn at random; where nothing was detected nothing returns."""
        if self.victim is None:
            return
        n = self.detector.part.random_boxes
        drawn = [
            (subject, other)
            for subject, method, box in leading
            if box is not None
            for other in self._random_boxes(subject, method, box, n)
        ]
        said = _said_when_recovered(self.victim, drawn)
        to_come = iter(said.reshape(-1, n))
        for subject, method, box in leading:
            expected = before[subject.key.case]
            share = float((next(to_come) == expected).mean()) if box is not None else 0.0
            yield self._row(subject, method, floor_of("recovered"), self._returned("recovered", expected, share))

    def _random_boxes(self, subject: AttackedImage, method: str, box: Box, n: int) -> list[Box]:
        sides = tuple(line.stop - line.start for line in box)
        generator = generator_for(self.seed, subject.key.case, method, "random boxes")
        return random_boxes(sides, subject.planted.shape, generator, n)


def _under(preset: str) -> Condition:
    return {"preset": preset} if preset else {}


def _said_when_recovered(network: NetworkClassifier, asked: Sequence[tuple[AttackedImage, Box | None]]) -> Classes:
    """The class of each recovered image; boxes that leave the same image are asked about once."""
    images: dict[Hashable, int] = {}
    which = [images.setdefault((subject.key.case, subject.put_right(box)), len(images)) for subject, box in asked]
    firsts = [asked[place] for place in np.unique(which, return_index=True)[1]]
    return said_classes(network, (subject.recovered(box) for subject, box in firsts))[which]


@dataclass
class _Timer:
    """Adds the seconds of a block to a step."""

    seconds: dict[str, float]
    step: str
    begun: float = 0.0

    def __enter__(self) -> None:
        self.begun = time.perf_counter()

    def __exit__(self, *_: object) -> None:
        self.seconds[self.step] = self.seconds.get(self.step, 0.0) + time.perf_counter() - self.begun
