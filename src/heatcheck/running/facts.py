"""What a run says in run.json of its methods, metrics and source, for the report."""

from dataclasses import asdict
from typing import Any

from heatcheck.core.contracts import Method
from heatcheck.methods import METHODS, changed_settings
from heatcheck.metrics import METRIC_FACTS
from heatcheck.sources import SOURCES

RESIZED = "A map is resized once, straight from the method's own grid to the image: each further resize would blur it."


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
    facts = METRIC_FACTS[name]
    return {
        "name": name,
        "label": facts.label,
        "higher_is_better": facts.higher_is_better,
        "summary": facts.summary,
    }


def source_facts(name: str) -> dict[str, Any]:
    """A source's name and meaning."""
    return {"name": name, "description": SOURCES[name].summary}
