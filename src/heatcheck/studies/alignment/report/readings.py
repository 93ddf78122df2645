"""What the run reads of each model, method and finding: whose fault a low map score is, as page and verdict say it."""

import itertools
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import MEAN
from heatcheck.judging.sizes import Sizes
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import few
from heatcheck.studies.alignment.report.facts import Pipeline, manifest, map_estimate, pipelines, trained_once
from heatcheck.studies.alignment.report.scale import scale_of
from heatcheck.studies.alignment.report.sections.blame_labels import (
    BEFORE,
    FLOOR,
    LOW,
    NO_ROOM,
    ONCE,
    UNDER,
    BlameLabel,
)
from heatcheck.studies.alignment.vocabulary import BLAME, RELIANCE, SCALED, SEPARATION


@dataclass(frozen=True, slots=True)
class Blame:
    """A pipeline on one finding, with the readings of the base model and under fine-tuning."""

    pipeline: Pipeline
    finding: str
    before: str
    under: str
    sentence: str
    label: BlameLabel  # of the base model
    under_label: BlameLabel
    n_needed: int = 0  # patients that would decide what is open; 0 where that is not known

    @property
    def is_shown(self) -> bool:
        """Whether the map marks what the model uses, by more than hardly: the one reading that gets a tick."""
        return self.label is BEFORE["shows"]

    @property
    def has_no_room(self) -> bool:
        """Whether nothing can be decided because no map can be shown to be better than the best floor."""
        return self.label is NO_ROOM


class Use(StrEnum):
    """What a base model does with the outlined region."""

    USED = "used"
    UNUSED = "unused"
    OTHER = "other"  # it may use other places as well, or counts the region against the finding
    OPEN = "open"


_USES = {
    "method": Use.USED, "shows": Use.USED, "model": Use.UNUSED, "looks_elsewhere": Use.UNUSED,
    "redundant": Use.OTHER, "against": Use.OTHER,
}  # fmt: skip


def blames(evidence: Evidence) -> tuple[Blame, ...]:
    """The run's blame table, by model, method and finding in the run's order."""
    table = {
        (row.model, row.method, row.finding): (row, facts) for row, facts in evidence.rows(BLAME, every_model=True)
    }
    found = []
    for pipeline, finding in itertools.product(pipelines(evidence, every=True), evidence.findings):
        key = pipeline.base.name, pipeline.method.name, finding
        if key in table:
            row, facts = table[key]
            before, under = known(facts.get("before", ""), BEFORE), known(facts.get("under", ""), UNDER)
            labels = _label(evidence, pipeline, finding, before), _under_label(evidence, under)
            found.append(Blame(pipeline, finding, before, under, row.reason, *labels, row.n_needed or 0))
    return tuple(found)


def _label(evidence: Evidence, pipeline: Pipeline, finding: str, before: str) -> BlameLabel:
    """The words of a reading; a map that hardly scores above random maps gets no tick, whatever else was read."""
    if pipeline.method.kind == "floor":
        return FLOOR[before]
    if before == "undecided" and not scale_of(evidence, finding).has_room:
        return NO_ROOM
    score = map_score(evidence, pipeline, finding)
    is_low = before == "shows" and score < Sizes(**manifest(evidence).sizes).maps
    return LOW if is_low else BEFORE[before]


def _under_label(evidence: Evidence, under: str) -> BlameLabel:
    """The words of a reading under fine-tuning; after one training, that nothing can be known."""
    return ONCE if under == "undecided" and trained_once(evidence) else UNDER[under]


def known(reading: str, labels: Mapping[str, BlameLabel]) -> str:
    """The reading, or that it is undecided where the page has no words for it."""
    return reading if reading in labels else "undecided"


def map_score(evidence: Evidence, pipeline: Pipeline, finding: str, arm: str = "base") -> float:
    """The map score on the common scale: 0 is a random map, 1 the human marks; NaN where it is undefined."""
    row = map_estimate(evidence, pipeline, arm, SCALED, manifest(evidence).blame_metric, finding)
    return row.value if row else math.nan


def named(rows: Sequence[Blame]) -> list[str]:
    """The methods of each network, such as "Gradient and Grad-CAM on ViT"."""
    methods: dict[str, dict[str, None]] = {}
    for row in rows:
        methods.setdefault(row.pipeline.base.label, {})[row.pipeline.method.label] = None
    return [f"{few(list(each))} on {base}" for base, each in methods.items()]


def pooled(evidence: Evidence) -> list[tuple[str, BlameLabel, str]]:
    """The readings over all findings together, each finding with the same weight; none where there is one finding."""
    names = {(each.base.name, each.method.name): each.label for each in pipelines(evidence, every=True)}
    return [
        (names[row.model, row.method], BEFORE[known(facts.get("before", ""), BEFORE)], row.reason)
        for row, facts in evidence.rows(BLAME, every_model=True)
        if row.finding == ALL_FINDINGS and (row.model, row.method) in names
    ]


def without_floors(rows: Sequence[Blame]) -> list[Blame]:
    """The rows of methods that look at the model; floors only test the criterion and are not counted."""
    return [row for row in rows if row.pipeline.method.kind != "floor"]


def of_floors(rows: Sequence[Blame]) -> list[Blame]:
    """The rows of maps that were made without the model."""
    return [row for row in rows if row.pipeline.method.kind == "floor"]


def uses(rows: Sequence[Blame]) -> dict[tuple[str, str], Use]:
    """What each base model does with the region of each finding, as far as any reading of it says so.

    That is a matter of the model alone, so a reading of any method, a floor included, tells it.
    """
    found: dict[tuple[str, str], Use] = {}
    for row in rows:
        key, use = (row.pipeline.base.name, row.finding), _USES.get(row.before, Use.OPEN)
        if found.get(key, Use.OPEN) is Use.OPEN:
            found[key] = use
    return found


def reliance_share(evidence: Evidence, base: str, finding: str) -> float:
    """The reliance on the region as a share of the base model's separation; NaN where there is no scale."""
    under = evidence.under(base, arm="base")
    whole = under.value(SEPARATION, RELIANCE, finding)
    return under.value(MEAN, RELIANCE, finding) / whole if whole > 0 else math.nan
