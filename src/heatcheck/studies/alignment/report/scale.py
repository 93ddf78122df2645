"""The common scale of map scores: 0 is a random map, 1 the human marks; and the best map made without the network."""

import math
from dataclasses import dataclass

from heatcheck.core.records import HUMAN
from heatcheck.core.vocabulary import MEAN
from heatcheck.judging.sizes import has_room
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, number
from heatcheck.studies.alignment.report.facts import FLOOR_ENTRANTS, manifest
from heatcheck.studies.alignment.vocabulary import FLOOR, FLOORS, HUMAN_ARM, RANDOM

SHORT = {"mass": "share of heat inside the outline"}
ELSEWHERE = {"usual place": " of the finding in other patients"}
MASK = "the mask"
_UNIT = SCORE.rounded(2)


@dataclass(frozen=True, slots=True)
class Scale:
    """The scores of a finding that the scale is made of; NaN where one is not known."""

    random: float
    best: float  # the highest score of a map made without the network
    best_label: str
    top: float
    top_label: str  # whose marks are 1: "the human readers", "the mask"
    top_mark: str  # the same on an axis
    score: str  # what it is a scale of

    @property
    def has_room(self) -> bool:
        """Whether a map can be shown to be better than every map made without the network."""
        return has_room(self.best, self.top) or math.isnan(self.best) or math.isnan(self.top)

    def at(self, score: float) -> float:
        """Where a score lies on the scale."""
        return (score - self.random) / (self.top - self.random)

    @property
    def marks(self) -> dict[float, str]:
        """The random map, the human marks and, where it scores higher than a random map, the best floor."""
        marks = {0.0: "random map"}
        if self.best > self.random and self.top > self.random:
            marks[self.at(self.best)] = self.best_label
        return marks | {1.0: self.top_mark}

    @property
    def no_room_in_short(self) -> str:
        """The scores of the human marks and of the best floor, which is no lower."""
        top, best = (number(score, _UNIT) for score in (self.top, self.best))
        return f"{top}, {self.best_label} {best}"

    @property
    def no_room(self) -> str:
        """Why no map can be shown to be better; empty where one can."""
        if self.has_room:
            return ""
        top, best = (number(score, _UNIT) for score in (self.top, self.best))
        marks = self.top_label if self.top_label == MASK else f"{self.top_label}\u2019 marks"
        more = f"a higher {self.score}" if self.score in SHORT.values() else f"more {self.score}"
        place = f"the {self.best_label}{ELSEWHERE.get(self.best_label, '')}"
        return f"not even {marks} have {more} than {place} ({top} against {best})"


def against_truth(evidence: Evidence) -> bool:
    """Whether the upper end of the common scale is the mask itself, because there are no readers."""
    return manifest(evidence).human == "truth"


def scale_of(evidence: Evidence, finding: str) -> Scale:
    """The scale of a finding."""
    metric, under = manifest(evidence).blame_metric, evidence.under(arm=FLOOR)
    found = {name: under.value(MEAN, metric, finding, name) for name in FLOORS}
    known = {name: score for name, score in found.items() if not math.isnan(score)}
    best = max(known, key=lambda name: known[name], default=RANDOM)
    labels = {each.name: each.label.lower() for each in FLOOR_ENTRANTS}
    truth = against_truth(evidence)
    top = 1.0 if truth else evidence.under(arm=HUMAN_ARM).value(MEAN, metric, finding, HUMAN)
    readers = evidence.readers.label.lower()
    label, mark = (MASK, MASK) if truth else (f"the {readers}", readers.removeprefix("human "))
    return Scale(found[RANDOM], known.get(best, math.nan), labels[best], top, label, mark, score_name(evidence))


def score_name(evidence: Evidence) -> str:
    """What the map score is, in the middle of a sentence."""
    metric = manifest(evidence).blame_metric
    return SHORT.get(metric, evidence.label_of(metric).lower())
