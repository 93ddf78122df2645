"""An alignment run's manifest, its pairs of base model and method, and its estimates by pair and arm."""

import math
from dataclasses import dataclass, replace

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import AUROC, MEAN, Statistic, condition
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.studies.alignment.report.literature import DATA_SET
from heatcheck.studies.alignment.vocabulary import (
    ARMS,
    DIRECTIONS,
    FLOOR,
    HUMAN_ARM,
    RANDOM,
    UNTRAINED,
    AlignmentManifest,
    BaseEntry,
)

ARM_LABELS = {"base": "base", "control": "control", "align": "aligned", "misalign": "misaligned"}
FLOOR_ENTRANTS = (
    Entrant(RANDOM, "Random map", "floor", summary="Noise, made without the model: what a map scores by chance"),
    Entrant("center_prior", "Centre", "floor", summary="A blob in the middle of the image, whatever it shows"),
    Entrant("edge", "Edges", "floor", summary="Where the image has strong edges, whatever the model computes"),
    Entrant("location_prior", "Usual place", "floor", summary="Where the finding lies in the fine-tuning patients"),
)

PERFECT = (
    "An AUROC of 1.000 says that on these images every one with the finding was given a higher probability than every "
    "one without it; its interval reaches lower, because other patients may be harder."
)


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A base model with a method: a score against masks grades both together."""

    base: BaseEntry
    method: Entrant

    @property
    def label(self) -> str:
        """Both in one line."""
        return f"{self.base.label} · {self.method.label}"


def manifest(evidence: Evidence) -> AlignmentManifest:
    """What run.json says of the run."""
    return evidence.run.manifest_as(AlignmentManifest)


def prepared(evidence: Evidence) -> Evidence:
    """The evidence with the floors of every run; they are no methods of the run unless they were judged."""
    named = {method.name for method in manifest(evidence).methods}
    added = tuple(floor for floor in FLOOR_ENTRANTS if floor.name not in named)
    names = {floor.name for floor in added}
    methods = tuple(method for method in evidence.methods if method.name not in names)
    return replace(evidence, methods=methods, floors=(*evidence.floors, *added))


def methods_of(evidence: Evidence) -> tuple[Entrant, ...]:
    """The methods that networks were trained through, then those that were only judged."""
    entrants = {entrant.name: entrant for entrant in (*evidence.methods, *evidence.floors)}
    names = (*manifest(evidence).trained, *manifest(evidence).judged)
    return tuple(entrants.get(name) or Entrant(name, name, "method") for name in dict.fromkeys(names))


def pipelines(evidence: Evidence, *, every: bool = False) -> tuple[Pipeline, ...]:
    """Each fine-tuned base with each method that was trained through it; with `every`, with the judged ones too."""
    names = manifest(evidence).trained
    return tuple(
        Pipeline(base, method)
        for base in manifest(evidence).tuned
        for method in methods_of(evidence)
        if every or method.name in names
    )


def map_estimate(
    evidence: Evidence, pipeline: Pipeline, arm: str, statistic: Statistic, metric: str, finding: str
) -> Estimate | None:
    """An estimate of one arm's maps; of a judged method, on the network aligned through another."""
    model, method = pipeline.base.name, pipeline.method.name
    row = evidence.under(model, arm=arm).find(statistic, metric, finding, method)
    through = manifest(evidence).through
    return row or evidence.under(model, arm=arm, through=through).find(statistic, metric, finding, method)


def network_estimate(
    evidence: Evidence, pipeline: Pipeline, arm: str, statistic: Statistic, metric: str, finding: str
) -> Estimate | None:
    """An estimate of the network itself, such as reliance or AUROC; base and control belong to no method."""
    method = manifest(evidence).tuned_through(pipeline.method.name) if arm in DIRECTIONS else ""
    return evidence.under(pipeline.base.name, arm=arm).find(statistic, metric, finding, method)


def images_behind(evidence: Evidence) -> dict[str, int]:
    """How many images the map scores of each finding rest on: the fewest of any base and method that has a score."""
    counts: dict[str, int] = {}
    for finding in evidence.findings:
        metric = manifest(evidence).blame_metric
        rows = [map_estimate(evidence, each, "base", MEAN, metric, finding) for each in pipelines(evidence)]
        if any(rows):
            counts[finding] = min((row.n_cases for row in rows if row and row.n_cases), default=0)
    return counts


def leading(evidence: Evidence) -> Pipeline | None:
    """The model and method whose maps score highest before any fine-tuning; None where none has a score."""
    metric = manifest(evidence).blame_metric
    scored = []
    for each in pipelines(evidence):
        row = map_estimate(evidence, each, "base", MEAN, metric, ALL_FINDINGS)
        if row and not math.isnan(row.value):
            scored.append((row.value, each))
    return max(scored, key=lambda pair: pair[0])[1] if scored else None


def on_paper_data(evidence: Evidence) -> bool:
    """Whether the images are those of the paper: only then may its figures stand beside ours."""
    return manifest(evidence).source.published_as == DATA_SET


def trained_once(evidence: Evidence) -> bool:
    """Whether every network was fine-tuned with one seed: then the run speaks of these networks only."""
    return len(manifest(evidence).seeds) == 1


def any_perfect(evidence: Evidence) -> bool:
    """Whether the AUROC of a network is 1."""
    return any(row.value == 1 for row, _ in evidence.rows(AUROC, every_model=True))


def interval_words(evidence: Evidence) -> str:
    """What the intervals of this run allow for."""
    if trained_once(evidence):
        return "All intervals allow for other patients, but not for another training of the networks."
    return (
        "The intervals of a base network allow for other patients; those under fine-tuning also allow for other "
        "trainings from the same base."
    )


def over_findings(evidence: Evidence) -> str:
    """What pooled numbers are of: all findings, or the one that was studied."""
    return evidence.findings[0] if len(evidence.findings) == 1 else "all findings"


def finding_columns(evidence: Evidence) -> tuple[str, ...]:
    """The findings of a table with a column for each: all together come first, where there are several."""
    return tuple(evidence.findings) if len(evidence.findings) == 1 else (ALL_FINDINGS, *evidence.findings)


def conditions(evidence: Evidence) -> list[str]:
    """The conditions of all scores on evaluation images."""
    through = manifest(evidence).through
    every = [condition(arm=arm) for arm in ("base", UNTRAINED, FLOOR, HUMAN_ARM)]
    for seed in manifest(evidence).seeds:
        every += [condition(arm=arm, seed=seed) for arm in ARMS[1:]]
        every += [condition(arm=arm, seed=seed, through=through) for arm in DIRECTIONS]
    return every
