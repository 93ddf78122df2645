"""What a localization run says of itself in run.json, for the report."""

from collections.abc import Sequence
from dataclasses import asdict
from typing import Any

from heatcheck.core.contracts import Method, Source
from heatcheck.methods import METHODS, changed_settings
from heatcheck.metrics import METRICS
from heatcheck.sources import SOURCES
from heatcheck.studies.explainers import ModelFacts

NOTES = (
    "A map is resized once, straight from the method's own grid to the image: each further resize would blur it.",
    "A map that marks nothing on a positive case scores 0, because leaving it out would reward a method for failing.",
    "When several pixels share the highest value, they share the hit; taking the first would favour the top left.",
    "Patients, not images, are drawn again for the intervals, because two images of one patient are not independent.",
    "Differences from the human readers use only the cases that method, readers and truth have in common.",
)


def method_facts(name: str, method: Method) -> dict[str, Any]:
    """A method's names, kind and changed settings."""
    facts = METHODS[name]
    note = "the same map for every finding" if facts.same_for_all_targets else ""
    kind = "floor" if facts.is_floor else "method"
    return {
        "name": name,
        "label": facts.label,
        "family": facts.family,
        "kind": kind,
        "note": note,
        "summary": facts.summary,
        "changed": [asdict(setting) for setting in changed_settings(name, method)],
    }


def stored_method_facts(name: str) -> dict[str, Any]:
    """What can be said of a method whose maps were made elsewhere; a known name tells more."""
    known = METHODS[name] if name in METHODS else None  # noqa: SIM401 - a registry raises with a suggestion
    return {
        "name": name,
        "label": known.label if known else name,
        "family": known.family if known else "",
        "kind": "method",
        "note": "",
        "summary": known.summary if known else "Maps made elsewhere",
        "changed": [],
    }


def metric_facts(name: str) -> dict[str, Any]:
    """A metric's names and meaning."""
    facts = METRICS[name]
    return {
        "name": name,
        "label": facts.label,
        "higher_is_better": facts.higher_is_better,
        "summary": facts.summary,
    }


def source_facts(name: str) -> dict[str, Any]:
    """A source's name and meaning."""
    return {"name": name, "description": SOURCES[name].summary}


def truth_kind(source: Source) -> str:
    """How the truth was marked: "outlines", "masks" or "boxes"; a source that does not say so has masks."""
    return str(getattr(source, "truth_kind", "masks"))


def models_facts(models: Sequence[ModelFacts], primary: str) -> dict[str, Any]:
    """Every model, and the one whose results come first."""
    shown = ("name", "label", "description", "kind", "members", "weights_hash")
    first = next(model for model in models if model.name == primary)
    return {
        "models": [{**_chosen(model, shown), "primary": model.name == primary} for model in models],
        "model": {"name": first.name, "description": first.description, "outputs": list(first.outputs)},
    }


def _chosen(model: ModelFacts, names: Sequence[str]) -> dict[str, Any]:
    return {name: getattr(model, name) for name in names}
