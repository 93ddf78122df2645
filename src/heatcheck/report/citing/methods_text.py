"""The methods paragraph of a paper that reports a run: data, model, maps, metrics, statistics and versions."""

from heatcheck.judging.sizes import stored_sizes
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import POINTS, SHARE, count, listed, number

_NAMED = ("torch", "monai", "numpy", "scipy", "python")  # of the versions, those that results depend on most


def methods_text(evidence: Evidence, looked_for: str = "") -> str:
    """The paragraphs, with an empty line between two; `looked_for` is said instead of the findings."""
    parts = (
        data(evidence, looked_for),
        model(evidence),
        maps(evidence),
        scores(evidence),
        statistics(evidence),
        made(evidence),
    )
    return "\n\n".join(" ".join(filter(None, sentences)) for sentences in parts if any(sentences))


def data(evidence: Evidence, looked_for: str = "") -> tuple[str, ...]:
    """What was looked at."""
    manifest, cases = evidence.manifest, evidence.run.cases
    patients = cases.loc[cases["patient"] != "", "patient"].nunique()
    n_failed = int((cases["status"] == "failed").sum())
    source = f"The data were: {_ended(_lower(manifest.source_description))}" if manifest.source_description else ""
    size = f"The run comprised {count(len(cases), 'case')} of {count(patients, 'patient')}" if len(cases) else ""
    left_out = f"; {count(n_failed, 'case')} could not be processed and took no part" if n_failed else ""
    findings = f"Findings: {listed(evidence.findings)}." if evidence.findings else ""
    return source, f"{size}{left_out}." if size else "", looked_for or findings


def model(evidence: Evidence) -> tuple[str, ...]:
    """The networks whose maps were graded."""
    named = [each.description or each.label for each in evidence.models if each.description or each.label]
    if not named:
        return ()
    text = (
        f"The {'model was' if len(named) == 1 else 'models were'}: {_ended(listed([_lower(each) for each in named]))}"
    )
    seeds = evidence.manifest.seeds
    return (text, f"Networks were trained with {count(len(seeds), 'seed')}." if seeds else "")


def maps(evidence: Evidence) -> tuple[str, ...]:
    """The methods with the settings in force, and the floors."""
    known = {entry.name for entry in evidence.manifest.methods}
    methods, floors = (
        [_with_settings(each) for each in entrants if each.name in known]
        for entrants in (evidence.methods, evidence.floors)
    )
    return (
        f"Heat maps were made with {listed(methods)}." if methods else "",
        f"They were compared with floors, which are pictures made without the model: {listed(floors)}."
        if floors
        else "",
    )


def scores(evidence: Evidence) -> tuple[str, ...]:
    """What each metric measures."""
    measured = _measured(evidence)
    named = [f"{each.label} ({_lower(each.summary).rstrip('.')})" for name, each in evidence.metrics.items()
             if name in measured and each.summary]  # fmt: skip
    preset = evidence.manifest.preset
    rules = f"Rules of scoring: preset \u201c{preset}\u201d." if preset else ""
    return (f"Metrics: {'; '.join(named)}." if named else "", rules)


def statistics(evidence: Evidence) -> tuple[str, ...]:
    """Intervals, corrections, and the sizes that matter."""
    rows = [row for rows in evidence.slices.values() for row in rows.values()]
    if not rows:
        return ()
    draws = evidence.manifest.spec.get("bootstrap_draws")
    drawn = f" ({draws:,} draws where patients are resampled)" if isinstance(draws, int) else ""
    seeds = ", and so are trainings where there are several" if len(evidence.manifest.seeds) > 1 else ""
    families = {row.family for row in rows if row.family}
    corrected = (
        f"Comparisons made together ({count(len(families), 'family', 'families')}) have simultaneous intervals, and "
        "their p-values are corrected for one another, so that an interval excludes 0 exactly where p is below 0.05."
        if families
        else ""
    )
    intervals = f"Intervals are 95 % intervals in which patients vary{drawn}{seeds}"
    return (
        f"{intervals}; cases of one patient are never treated as independent.",
        corrected,
        _sizes(evidence) if any(row.size == row.size for row in rows) else "",
    )


def made(evidence: Evidence) -> tuple[str, ...]:
    """The software and the seed."""
    manifest = evidence.manifest
    versions = [f"{name} {manifest.versions[name]}" for name in _NAMED if name in manifest.versions]
    study = f", study \u201c{manifest.study}\u201d" if manifest.study else ""
    protocol = f", after the protocol of {manifest.paper}" if manifest.paper else ""
    seed = f" The seed of the run was {manifest.seed}." if manifest.seed is not None else ""
    version = manifest.versions.get("heatcheck", "")
    others = f" ({', '.join(versions)})" if versions else ""
    return (f"The analysis was carried out with heatcheck {version}{others}{study}{protocol}.{seed}",)


def _sizes(evidence: Evidence) -> str:
    sizes, measured = stored_sizes(evidence.manifest.sizes, "run.json"), _measured(evidence)
    rate = number(sizes.methods.hit, POINTS.rounded(0))
    words = (
        f"{_share(sizes.maps)} of the room between the best floor and the readers or the best score",
        f"{sizes.methods.iou:g} of overlap or {rate} of a rate between two methods",
        *([f"{_share(sizes.reliance)} of the model's separation"] if "reliance" in measured else []),
        *([f"{_share(sizes.importance)} of what all modalities contribute"] if "phi_modality" in measured else []),
    )
    return (
        "A difference was called clear only if its interval excluded 0 and it was at least as large as the size that "
        f"matters: {'; '.join(words)}."
    )


def _share(value: float) -> str:
    return number(value, SHARE.rounded(0))


def _measured(evidence: Evidence) -> set[str]:
    """The metrics that have estimates."""
    return {key[1] for rows in evidence.slices.values() for key in rows}


def _with_settings(entrant: Entrant) -> str:
    settings = entrant.changed if entrant.settings is None else entrant.settings
    inside = [*([entrant.paper] if entrant.paper else []), *settings]
    return entrant.label + (f" ({'; '.join(inside)})" if inside else "")


def _ended(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


def _lower(text: str) -> str:
    """The text to follow within a sentence: a name such as DenseNet or MRI keeps its capitals."""
    first = text.split(" ", 1)[0]
    return text[:1].lower() + text[1:] if first[1:].islower() or len(first) == 1 else text
