"""The page that all studies share: its sections, and the facts in its header and footer."""

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

import yaml

from heatcheck.report.blocks.block import Block
from heatcheck.report.downloads import Download
from heatcheck.report.evidence import Evidence
from heatcheck.report.first_screen import FirstScreen
from heatcheck.report.numbers import count, duration, few, moment
from heatcheck.report.verdict import Verdict
from heatcheck.runs.manifest import Manifest, RetryEntry, SkippedEntry


@dataclass(frozen=True, slots=True)
class Section:
    """One part of the page: its anchor, its names, one line that says what it holds, and its blocks.

    Sections are folded behind their line but for those that are `opened`; print shows those that are `printed`.
    """

    anchor: str
    title: str
    short: str
    blocks: tuple[Block, ...]
    summary: str = ""
    opened: bool = False
    printed: bool = False


@dataclass(frozen=True, slots=True)
class StudyPage:
    """Everything on a study's page."""

    kicker: str
    verdict: Verdict
    caveats: tuple[str, ...]  # those of the first look come first
    speaks_of: str  # the model behind the verdict, where there are several
    sections: tuple[Section, ...]
    downloads: tuple[Download, ...]
    answer: FirstScreen | None = None
    templates: str = ""  # the package whose folder `templates` has the study's own
    models: tuple[str, ...] = ()  # labels of those the page is about, where the run has others too
    best: tuple[str, ...] = ()  # lines with the methods that come first and their intervals, for a terminal
    size: str = ""  # what the numbers rest on, where the count of all cases would mislead
    doubts: int = 0  # how many caveats put the run itself in doubt, so that they are not folded away
    looked_for: str = ""  # a sentence on what maps were to show, where that is no finding


@dataclass(frozen=True, slots=True)
class Record:
    """How the run was made, as pairs of a name and a value, and the full spec as YAML."""

    facts: tuple[tuple[str, str], ...]
    versions: tuple[tuple[str, str], ...]
    hashes: tuple[tuple[str, str], ...]
    spec: str
    notes: tuple[str, ...]
    skipped: tuple[SkippedEntry, ...]


def record_of(evidence: Evidence) -> Record:
    """How the run was made."""
    manifest = evidence.manifest
    return Record(
        facts=_facts(manifest),
        versions=tuple(sorted(manifest.versions.items())),
        hashes=_named(manifest, {"spec_hash": "spec", "weights_hash": "weights", "cases_hash": "list of cases"}),
        spec=yaml.safe_dump(manifest.spec, sort_keys=False, allow_unicode=True) if manifest.spec else "",
        notes=manifest.notes,
        skipped=manifest.skipped,
    )


def heading(evidence: Evidence, page: StudyPage, otherwise: str) -> str:
    """The run's title; the study's question where the spec has no title and the run is named after a file."""
    manifest = evidence.manifest
    return page.kicker if manifest.spec.get("title") == "" else manifest.title or otherwise


def subtitle(evidence: Evidence, page: StudyPage) -> str:
    """Data, model and size of the run in one line; of several models the one that the page describes, or all."""
    manifest = evidence.manifest
    model = f"Model: {page.speaks_of}" if page.speaks_of else manifest.model_description
    models = page.models or tuple(each.label for each in evidence.models)
    if len(evidence.models) > 1 and not page.speaks_of:
        model = f"Model{'s' if len(models) > 1 else ''}: {few(models)}"
    size = page.size or (count(manifest.n_cases, "case") if manifest.n_cases else "")
    return " · ".join(filter(None, (manifest.source_description, model, size)))


def signature(evidence: Evidence) -> str:
    """Study, preset, seed and version for the last line of the page."""
    manifest = evidence.manifest
    pairs = _named(manifest, {"study": "study", "preset": "preset", "seed": "seed"})
    version = manifest.versions.get("heatcheck", "")
    return f"heatcheck {version}".strip() + "".join(f" · {name} {value}" for name, value in pairs)


def _facts(manifest: Manifest) -> tuple[tuple[str, str], ...]:
    names = {
        "study": "study", "preset": "preset", "seed": "seed", "device": "device", "threads": "threads",
        "batch_size": "batch size", "shard_size": "shard size", "n_cases": "cases", "n_failed": "failed cases",
        "pseudonymised": "case ids replaced", "trusted_code": "own code trusted",
    }  # fmt: skip
    times = (
        ("started", moment(manifest.started)),
        ("finished", moment(manifest.finished)),
        ("took", _took(manifest.started, manifest.finished)),
    )
    again = tuple(("failed cases run again", _again(retry)) for retry in manifest.retries)
    return _named(manifest, names) + tuple(pair for pair in times if pair[1]) + again


def _again(retry: RetryEntry) -> str:
    when = f" on {moment(retry.started)}" if retry.started else ""
    return f"{retry.cases:,}{when}, after they were repaired; the scores of all others were kept"


def _named(manifest: Manifest, names: Mapping[str, str]) -> tuple[tuple[str, str], ...]:
    """What the manifest states of these fields, with their names on the page."""
    pairs = ((label, getattr(manifest, key)) for key, label in names.items() if key in manifest.model_fields_set)
    return tuple(
        (label, ("no", "yes")[value] if isinstance(value, bool) else str(value))
        for label, value in pairs
        if value != ""
    )


def _took(started: str, finished: str) -> str:
    try:
        return duration((datetime.fromisoformat(finished) - datetime.fromisoformat(started)).total_seconds())
    except (ValueError, TypeError):
        return ""
