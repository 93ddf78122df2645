"""What an alignment run says of itself: its base models, its arms, and its estimates by model, method and arm."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from heatcheck.core.records import HUMAN, Estimate
from heatcheck.core.vocabulary import condition
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.footnotes import lacks_interval
from heatcheck.report.numbers import count

ARMS = {"base": "base", "control": "control", "align": "aligned", "misalign": "misaligned"}
TUNED = ("align", "misalign")  # the arms that are made for one method
FLOOR = "random"  # the method whose maps are the floor
RANDOM = Entrant(FLOOR, "Random map", "floor", summary="Noise, made without the model: what a map scores by chance.")
ONE_SEED = "one seed: "  # how the note begins that intervals of one training have
BLAME_METRIC = "mass"
GIVEN = "given"  # the initialisation of weights of which nothing was said


@dataclass(frozen=True, slots=True)
class BaseRecord:
    """One base model: an architecture that began in one way."""

    name: str
    label: str
    description: str = ""
    architecture: str = ""  # as the registry calls it
    family: str = ""
    initialisation: str = ""
    pretrained: bool = False
    fine_tuned: bool = True  # else it was trained for its own answers alone

    @property
    def start_known(self) -> bool:
        """Whether the run says how its weights began; of weights that were given it may say nothing."""
        return self.pretrained or self.initialisation not in {"", GIVEN}


@dataclass(frozen=True, slots=True)
class Pipeline:
    """A base model with a method: what a score against masks really grades."""

    base: BaseRecord
    method: Entrant

    @property
    def label(self) -> str:
        """Both in one line."""
        return f"{self.base.label} · {self.method.label}"


def prepared(evidence: Evidence) -> Evidence:
    """The evidence with random maps as a floor, and without the note that each interval of one training has.

    The page says that once, above all.
    """
    told = {str(facts["name"]) for facts in evidence.run.manifest.get("methods") or []}
    if FLOOR not in told:
        methods = tuple(method for method in evidence.methods if method.name != FLOOR)
        evidence = replace(evidence, methods=methods, floors=(*evidence.floors, RANDOM))
    if len(seeds_of(evidence)) != 1:
        return evidence
    slices = {at: {key: _without_note(row) for key, row in rows.items()} for at, rows in evidence.slices.items()}
    return replace(evidence, slices=slices).under()


def _without_note(row: Estimate) -> Estimate:
    if not row.reason.startswith(ONE_SEED) or math.isnan(row.value) or lacks_interval(row):
        return row
    return replace(row, reason="; ".join(row.reason.split("; ")[1:]))


def bases(evidence: Evidence) -> tuple[BaseRecord, ...]:
    """The run's base models in its order."""
    told = {str(facts["name"]): facts for facts in evidence.run.manifest.get("models") or []}
    return tuple(_base(model.name, model.label, told.get(model.name, {})) for model in evidence.models)


def _base(name: str, label: str, facts: Mapping[str, Any]) -> BaseRecord:
    words = {key: str(facts.get(key) or "") for key in ("description", "architecture", "family", "initialisation")}
    pretrained, tuned = bool(facts.get("pretrained")), bool(facts.get("fine_tuned", True))
    return BaseRecord(name, label, **words, pretrained=pretrained, fine_tuned=tuned)


def tuned_bases(evidence: Evidence) -> tuple[BaseRecord, ...]:
    """The base models from which networks were fine-tuned."""
    return tuple(base for base in bases(evidence) if base.fine_tuned)


def methods_of(evidence: Evidence) -> tuple[Entrant, ...]:
    """The methods that were trained through, then those that were only judged."""
    entrants = {entrant.name: entrant for entrant in (*evidence.methods, *evidence.floors)}
    names = [*trained(evidence), *judged(evidence)]
    return tuple(entrants.get(name) or Entrant(name, name, "method") for name in dict.fromkeys(names))


def trained(evidence: Evidence) -> tuple[str, ...]:
    """The methods through whose maps networks were fine-tuned."""
    named = evidence.run.manifest.get("trained")
    return tuple(str(name) for name in named) if named else tuple(method.name for method in evidence.methods)


def judged(evidence: Evidence) -> tuple[str, ...]:
    """The methods that cannot be trained, and are scored on networks that were aligned through another."""
    return tuple(str(name) for name in evidence.run.manifest.get("judged") or [])


def pipelines(evidence: Evidence, *, every: bool = False) -> tuple[Pipeline, ...]:
    """Each fine-tuned base with each method that was trained through it; with `every`, with the judged ones too."""
    names = {*trained(evidence), *(judged(evidence) if every else ())}
    return tuple(Pipeline(base, method) for base in tuned_bases(evidence) for method in methods_of(evidence)
                 if method.name in names)  # fmt: skip


def seeds_of(evidence: Evidence) -> tuple[int, ...]:
    """The seeds of the fine-tunings."""
    return tuple(int(seed) for seed in evidence.run.manifest.get("seeds") or [])


def seeds_in_words(evidence: Evidence) -> str:
    """How many seeds there were."""
    return count(len(seeds_of(evidence)), "seed")


def blame_metric(evidence: Evidence) -> str:
    """The score on which the readings rest."""
    return str(evidence.run.manifest.get("blame_metric") or BLAME_METRIC)


def against_truth(evidence: Evidence) -> bool:
    """Whether the upper end of the common scale is the mask itself, because nobody read the images again."""
    return str(evidence.run.manifest.get("human") or "truth") != "readers"


def of_arm(evidence: Evidence, pipeline: Pipeline, arm: str, what: tuple[str, str, str]) -> Estimate | None:
    """One arm's statistic, metric and finding; of a judged method, on the network aligned through another."""
    seen = evidence.under(pipeline.base.name, arm=arm)
    other = evidence.under(pipeline.base.name, arm=arm, through=_through(evidence))
    return seen.find(*what, pipeline.method.name) or other.find(*what, pipeline.method.name)


def of_network(evidence: Evidence, pipeline: Pipeline, arm: str, what: tuple[str, str, str]) -> Estimate | None:
    """What is the network's alone, such as reliance or AUROC: base and control are no method's."""
    owner = _owner(evidence, pipeline.method.name) if arm in TUNED else ""
    return evidence.under(pipeline.base.name, arm=arm).find(*what, owner)


def floor_of(evidence: Evidence, metric: str, finding: str) -> Estimate | None:
    """The mean of random maps."""
    return evidence.under(arm="floor").find("mean", metric, finding, FLOOR)


def human_of(evidence: Evidence, metric: str, finding: str) -> Estimate | None:
    """The readers' mean, where there are readers."""
    return evidence.under(arm="human").find("mean", metric, finding, HUMAN)


def images_behind(evidence: Evidence) -> dict[str, int]:
    """How many images the map scores of each finding rest on: the fewest of any base and method."""
    found: dict[str, int] = {}
    for finding in evidence.findings:
        what = ("mean", blame_metric(evidence), finding)
        rows = [of_arm(evidence, pipeline, "base", what) for pipeline in pipelines(evidence)]
        told = [row.n_cases for row in rows if row]
        if told:
            found[finding] = min(told)
    return found


def limit_of(evidence: Evidence) -> int:
    """How many images of a finding were explained at most; 0 when all were."""
    return int(evidence.run.manifest.get("limit") or 0)


def conditions(evidence: Evidence) -> list[str]:
    """The conditions of all scores on evaluation images."""
    through = _through(evidence)
    made = [condition(arm=arm) for arm in ("base", "floor", "human")]
    for seed in seeds_of(evidence):
        made += [condition(arm=arm, seed=seed) for arm in ("control", *TUNED)]
        made += [condition(arm=arm, seed=seed, through=through) for arm in TUNED]
    return made


def _through(evidence: Evidence) -> str:
    return str(evidence.run.manifest.get("through") or (trained(evidence) or ("",))[0])


def _owner(evidence: Evidence, method: str) -> str:
    """The method through which the network was tuned whose maps by `method` are scored."""
    return method if method in trained(evidence) else _through(evidence)
