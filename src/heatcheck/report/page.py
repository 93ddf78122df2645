"""The page all studies share: what a study hands over, and the facts that stand in the header and the footer."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import yaml

from heatcheck.report.downloads import Download
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import count, duration, few, moment
from heatcheck.report.verdict import Verdict


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the page: its anchor, its names, the template that draws it and what that template is given.

    A template of the study's own is called "study/NAME.html", one that all studies share "NAME.html".
    """

    anchor: str
    title: str
    short: str
    template: str
    content: Mapping[str, object]


@dataclass(frozen=True, slots=True)
class StudyPage:
    """What a study's module makes of the evidence."""

    kicker: str
    verdict: Verdict
    caveats: tuple[str, ...]
    speaks_of: str  # the model behind the verdict, where there are several
    sections: tuple[Section, ...]
    downloads: tuple[Download, ...]
    templates: str = ""  # the package whose folder `templates` has the study's own
    models: tuple[str, ...] = ()  # labels of those the page is about, where the run has others too
    size: str = ""  # what the numbers rest on, where the count of all cases would mislead


@dataclass(frozen=True, slots=True)
class Record:
    """How the run was made, as pairs of a name and a value, and the full spec as YAML."""

    facts: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    hashes: tuple[tuple[str, str], ...]
    spec: str
    notes: tuple[str, ...]


def record_of(evidence: Evidence) -> Record:
    """The run's own account of itself."""
    manifest = evidence.run.manifest
    spec = manifest.get("spec") or {}
    return Record(
        facts=_facts(manifest),
        versions=tuple((str(k), str(v)) for k, v in sorted((manifest.get("versions") or {}).items())),
        hashes=_named(manifest, {"spec_hash": "spec", "weights_hash": "weights", "cases_hash": "list of cases"}),
        spec=yaml.safe_dump(spec, sort_keys=False, allow_unicode=True) if spec else "",
        notes=tuple(str(note) for note in manifest.get("notes") or []),
    )


def description(evidence: Evidence, part: str) -> str:
    """What the run says of its "source" or its "model"; nothing when it says nothing."""
    told = evidence.run.manifest.get(part) or {}
    return str(told.get("description") or told.get("name") or "")


def heading(evidence: Evidence, page: StudyPage, otherwise: str) -> str:
    """The run's title; the study's question where its spec has none, and the run is called by a file's name."""
    manifest = evidence.run.manifest
    if (manifest.get("spec") or {}).get("title") == "":
        return page.kicker
    return str(manifest.get("title") or otherwise)


def subtitle(evidence: Evidence, page: StudyPage) -> str:
    """Data, model and size of the run in one line; of several models the one of which the page speaks, or all."""
    cases = evidence.run.manifest.get("n_cases")
    model = f"Model: {page.speaks_of}" if page.speaks_of else description(evidence, "model")
    models = page.models or tuple(each.label for each in evidence.models)
    if len(evidence.models) > 1 and not page.speaks_of:
        model = f"Model{'s' if len(models) > 1 else ''}: {few(models)}"
    size = page.size or (count(cases, "case") if cases else "")
    parts = [description(evidence, "source"), model, size]
    return " · ".join(part for part in parts if part)


def signature(evidence: Evidence) -> str:
    """Study, preset, seed and version for the last line of the page."""
    manifest = evidence.run.manifest
    version = (manifest.get("versions") or {}).get("heatcheck", "")
    told = _named(manifest, {"study": "study", "preset": "preset", "seed": "seed"})
    return f"heatcheck {version}".strip() + "".join(f" · {name} {value}" for name, value in told)


def _facts(manifest: Mapping[str, Any]) -> tuple[tuple[str, str], ...]:
    names = {
        "study": "study", "preset": "preset", "seed": "seed", "device": "device", "threads": "threads",
        "batch_size": "batch size", "shard_size": "shard size", "n_cases": "cases", "n_failed": "failed cases",
        "pseudonymised": "case ids replaced", "trusted_code": "own code trusted",
    }  # fmt: skip
    started, finished = str(manifest.get("started") or ""), str(manifest.get("finished") or "")
    times = [("started", moment(started)), ("finished", moment(finished)), ("took", _took(started, finished))]
    return _named(manifest, names) + tuple(pair for pair in times if pair[1])


def _named(manifest: Mapping[str, Any], names: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    told = ((label, manifest[key]) for key, label in names.items() if manifest.get(key) not in (None, ""))
    return tuple((label, {True: "yes", False: "no"}[v] if isinstance(v, bool) else str(v)) for label, v in told)


def _took(started: str, finished: str) -> str:
    try:
        return duration((datetime.fromisoformat(finished) - datetime.fromisoformat(started)).total_seconds())
    except (ValueError, TypeError):
        return ""
