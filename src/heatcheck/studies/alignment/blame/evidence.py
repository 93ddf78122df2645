"""What the blame table is read from: estimates as parts of a whole, of one model, method and finding."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from heatcheck.judging.judgement import Judgement, judge
from heatcheck.judging.sizes import Sizes, has_room
from heatcheck.studies.alignment.vocabulary import RANDOM, Direction


@dataclass(frozen=True, slots=True)
class EstimateWithInterval:
    """An estimate and the ends of its interval, NaN where undefined."""

    value: float = math.nan
    low: float = math.nan
    high: float = math.nan

    @property
    def known(self) -> bool:
        """Whether value and interval are defined."""
        return math.isfinite(self.value) and math.isfinite(self.low) and math.isfinite(self.high)

    @property
    def turned(self) -> "EstimateWithInterval":
        """The same with its sign changed."""
        return EstimateWithInterval(-self.value, -self.high, -self.low)

    def over(self, whole: float) -> "EstimateWithInterval":
        """The same as a share of something above 0."""
        return EstimateWithInterval(self.value / whole, self.low / whole, self.high / whole)


@dataclass(frozen=True, slots=True)
class Part:
    """An estimate with the whole that it is a part of, and the size that matters; both NaN where there is no scale."""

    estimate: EstimateWithInterval = EstimateWithInterval()
    size: float = math.nan
    whole: float = math.nan
    n_needed: int = 0  # patients that would decide; 0 where that is not known

    @property
    def known(self) -> bool:
        """Whether there is an estimate with an interval."""
        return self.estimate.known

    @property
    def share(self) -> EstimateWithInterval:
        """The estimate as a share of its whole."""
        return self.estimate.over(self.whole)

    @property
    def above(self) -> Judgement:
        """Whether it lies above 0 by a size that matters."""
        return judge(self.estimate.value, self.estimate.low, self.estimate.high, self.size)

    @property
    def below(self) -> Judgement:
        """Whether it lies below 0 by that size."""
        turned = self.estimate.turned
        return judge(turned.value, turned.low, turned.high, self.size)

    @property
    def no_matter(self) -> bool:
        """Whether it cannot matter in either direction."""
        return self.above.is_no and self.below.is_no

    def toward(self, direction: Direction) -> "Part":
        """The same with its sign changed for misalignment, so that a change in the arm's direction is positive."""
        return self if direction == "align" else replace(self, estimate=self.estimate.turned)


def reliance_part(estimate: EstimateWithInterval, separation: float, sizes: Sizes, n_needed: int = 0) -> Part:
    """A reliance, or a change of it, as a part of the model's separation."""
    whole = separation if separation > 0 else math.nan
    return Part(estimate, sizes.of_separation(separation), whole, n_needed)


def score_part(estimate: EstimateWithInterval, floor: float, best: float, sizes: Sizes, n_needed: int = 0) -> Part:
    """A map's distance from a floor, or its change, as a part of the room up to the best score.

    Where the best is not above the floor there is no room, and no scale.
    """
    size = sizes.above_floor(floor, best) if has_room(floor, best) else math.nan
    return Part(estimate, size, size / sizes.maps, n_needed)


@dataclass(frozen=True, slots=True)
class Use:
    """What the model does without the outlined area, and with that area where it was not."""

    reliance: Part
    added: Part = Part()  # how far the area raises films without the finding, as a part of the separation
    above_untrained: EstimateWithInterval | None = None  # less what untrained networks rely on it; None without such


@dataclass(frozen=True, slots=True)
class Marks:
    """By how much the map's score lies above those of maps that are made without the model."""

    above: Mapping[str, Part] = field(default_factory=dict)  # by floor
    best: str = ""  # the floor with the highest score

    @property
    def above_best(self) -> Part:
        """The distance from the best floor."""
        return self.above.get(self.best, Part())

    @property
    def above_random(self) -> Part:
        """The distance from random maps."""
        return self.above.get(RANDOM, Part())


@dataclass(frozen=True, slots=True)
class Arm:
    """The changes in one direction of fine-tuning, relative to the control, on patients not used for fine-tuning."""

    direction: Direction
    score: Part  # of the room above random maps
    reliance: Part  # of the control's separation


@dataclass(frozen=True, slots=True)
class BlameEvidence:
    """The evidence on one model, method and finding."""

    use: Use  # of the base
    marks: Marks  # of the base's maps
    arms: tuple[Arm, ...]
    learned: Part = Part()  # score of aligned less control on the fine-tuning images
    judged: bool = False  # the networks were aligned through another method
    one_training: bool = False  # each network was trained with one seed
