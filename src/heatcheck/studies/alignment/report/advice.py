"""What to do after an alignment run, in plain words: which maps to show, which not, what to do next."""

from collections.abc import Sequence

from heatcheck.judging.judgement import judgement_of
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import count, few
from heatcheck.report.verdict import would_decide
from heatcheck.studies.alignment.report.facts import trained_once
from heatcheck.studies.alignment.report.readings import Blame
from heatcheck.studies.alignment.report.sections.robustness import Pushed

MOST = 4  # sentences


def advice(evidence: Evidence, rows: Sequence[Blame], ranked: Sequence[Pushed]) -> tuple[str, ...]:
    """At most four sentences, from the readings of methods and the distances that scores were pushed."""
    sentences = (
        _show(rows),
        _do_not_show(rows),
        _look_at_the_model(rows),
        _foolable(rows),
        _compare(evidence, ranked),
        _next(evidence, rows, ranked),
    )
    written = [sentence for sentence in sentences if sentence]
    last = sentences[-1]
    if last and len(written) > MOST:
        written = [*written[: MOST - 1], last]
    return tuple(written[:MOST])


def _where(rows: Sequence[Blame]) -> str:
    """Methods, each with its models; findings where the rows are not of one."""
    return few(list(dict.fromkeys(f"{row.pipeline.method.label} on {row.pipeline.base.label}" for row in rows)))


def _findings(rows: Sequence[Blame]) -> str:
    return few(list(dict.fromkeys(row.finding for row in rows)))


def _show(rows: Sequence[Blame]) -> str:
    """The maps that may be shown, or that none may."""
    shown = [row for row in rows if row.is_shown]
    if shown:
        return f"For {_findings(shown)}, the maps of {_where(shown)} may be shown: they mark what the network uses."
    if not rows:
        return ""
    return (
        f"Show no map of these networks as an explanation of {_findings(rows)}: none is shown to mark what the network "
        "uses better than a map made without it."
    )


def _do_not_show(rows: Sequence[Blame]) -> str:
    poor = [row for row in rows if row.before == "method"]
    if not poor:
        return ""
    return (
        f"Use another method instead of {_where(poor)}: the network uses the outlined region of {_findings(poor)}, and "
        "the map hardly marks it."
    )


def _look_at_the_model(rows: Sequence[Blame]) -> str:
    poor = [row for row in rows if row.before in {"model", "looks_elsewhere"}]
    if not poor:
        return ""
    models = few(list(dict.fromkeys(row.pipeline.base.label for row in poor)))
    return (
        f"Examine {models} before any map: for {_findings(poor)} it hardly uses the outlined region, and no method can "
        "change that."
    )


def _foolable(rows: Sequence[Blame]) -> str:
    fooled = [row for row in rows if row.under == "foolable"]
    if not fooled:
        return ""
    methods = few(list(dict.fromkeys(row.pipeline.method.label for row in fooled)))
    return f"Do not take maps of {methods} as evidence of what a model learned: they moved while the model did not."


def _compare(evidence: Evidence, ranked: Sequence[Pushed]) -> str:
    """Where scores were clearly pushed, scores of different models do not compare methods."""
    if trained_once(evidence) or not any(judgement_of(each.row).is_yes for each in ranked):
        return ""
    return "Compare methods by their scores on one and the same network only: tuning the model alone moves the score."


def _next(evidence: Evidence, rows: Sequence[Blame], ranked: Sequence[Pushed]) -> str:
    """More trainings where there was one; else the patients that would decide what is open."""
    if trained_once(evidence):
        return "Next: fine-tune every network with at least three seeds; one training says nothing of a method."
    for each in ranked:
        decided = would_decide(each.row)
        if decided:
            about = decided.removesuffix(" would decide it")
            pair = f"{each.pipeline.method.label} on {each.pipeline.base.label}"
            return f"Next: {about} would decide whether the score of {pair} can be pushed."
    needed = [row for row in rows if row.before == "undecided" and row.n_needed]
    if needed:
        row = min(needed, key=lambda each: each.n_needed)
        about = f"about {count(row.n_needed, 'patient')}"
        return f"Next: {about} would decide what {_where([row])} shows of {row.finding}."
    return ""
