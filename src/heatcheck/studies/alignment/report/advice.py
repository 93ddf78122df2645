"""What to do after an alignment run, in plain words: which maps to show, which not, what to do next."""

from collections.abc import Sequence

from heatcheck.judging.judgement import judgement_of
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import count, few
from heatcheck.report.verdict import would_decide
from heatcheck.studies.alignment.report.facts import trained_once
from heatcheck.studies.alignment.report.readings import Blame, named
from heatcheck.studies.alignment.report.scale import scale_of
from heatcheck.studies.alignment.report.sections.robustness import Pushed

MOST = 4  # sentences
ENGINEER = "Next, for the engineer: "


def advice(evidence: Evidence, rows: Sequence[Blame], ranked: Sequence[Pushed]) -> tuple[str, ...]:
    """At most four sentences: first what to show, for the clinician, then what to try and to run, for the engineer."""
    to_show = [_show(rows), _do_not_show(rows), _foolable(rows)]
    to_try = [_other_methods(rows), _look_at_the_model(rows), _another_score(evidence, rows)]
    to_try.append(_compare(evidence, ranked))
    last = _next(evidence, rows, ranked)
    clinician, engineer = ([sentence for sentence in each if sentence] for each in (to_show, to_try))
    room = MOST - len(clinician) - bool(last)
    engineer = [*engineer[: max(room, 0)], *([last] if last else [])]
    first = [f"{ENGINEER}{sentence[:1].lower()}{sentence[1:]}" for sentence in engineer[:1]]
    return (*clinician, *first, *engineer[1:])


def _where(rows: Sequence[Blame]) -> str:
    """The methods of each model."""
    return few(named(rows))


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
        f"Show no heat map of these networks to explain {_findings(rows)}: no method is shown to mark what the network "
        "uses better than a map made without it."
    )


def _do_not_show(rows: Sequence[Blame]) -> str:
    """The maps that hardly mark what the network uses, where others may be shown."""
    poor = [row for row in rows if row.before == "method"]
    if not poor or not any(row.is_shown for row in rows):
        return ""
    return (
        f"Do not show the maps of {_where(poor)}: the network uses the outlined region of {_findings(poor)}, and they "
        "hardly mark it."
    )


def _other_methods(rows: Sequence[Blame]) -> str:
    """Where another method may do better, as long as no map may be shown."""
    poor = [row for row in rows if row.before == "method"]
    if not poor or any(row.is_shown for row in rows):
        return ""
    return (
        f"Test other methods than {_where(poor)}: their maps hardly mark the outlined region of {_findings(poor)}, "
        "which the network uses."
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


def _another_score(evidence: Evidence, rows: Sequence[Blame]) -> str:
    """What would let maps be judged where not even the human marks score above the best floor."""
    open_rows = [row for row in rows if row.has_no_room]
    if not open_rows:
        return ""
    scale = scale_of(evidence, open_rows[0].finding)
    return (
        f"Judge maps of {_findings(open_rows)} by another score (blame_by) or on images where its place varies more: "
        f"here the {scale.best_label} alone scores as high as {scale.top_label}."
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
        return (
            "Fine-tune every network with at least three seeds: one training cannot tell how a method behaves under "
            "fine-tuning."
        )
    for each in ranked:
        decided = would_decide(each.row)
        if decided:
            about = decided.removesuffix(" would decide it")
            pair = f"{each.pipeline.method.label} on {each.pipeline.base.label}"
            return f"{about[:1].upper()}{about[1:]} would decide whether the score of {pair} can be pushed."
    needed = [row for row in rows if row.before == "undecided" and row.n_needed]
    if needed:
        row = min(needed, key=lambda each: each.n_needed)
        about = f"about {count(row.n_needed, 'patient')}"
        return f"{about[:1].upper()}{about[1:]} would decide what {_where([row])} shows of {row.finding}."
    return ""
