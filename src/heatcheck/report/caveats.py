"""Caveats that apply to every study's verdict, one plain sentence each."""

import math
from collections.abc import Iterator, Sequence

import pandas as pd

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import AUROC, PLAIN
from heatcheck.judging.guessing import GUESS, below_chance, may_be_a_guess, misplaced_outputs
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import count, few, listed
from heatcheck.runs.manifest import SkippedEntry

MOST_NAMED = 3  # answers that a sentence names
_LOOKS_INSIDE = "looks inside the model"  # the reason of methods that need more than predictions
_ANSWERS = 300_000  # rows of the table of predictions that are read: enough to know the order of the outputs


def of_every_study(evidence: Evidence) -> tuple[str, ...]:
    """The caveats of any run, which come before those of its study."""
    return tuple(filter(None, (*evidence.manifest.cautions, *of_models(evidence), _drawn(evidence))))


def of_models(evidence: Evidence) -> tuple[str, ...]:
    """What makes a model look like another than the one that was meant."""
    return tuple(filter(None, (doubt_about_answers(evidence), *_without_weights(evidence))))


def _without_weights(evidence: Evidence) -> Iterator[str]:
    """Where no weights were given and the model may be guessing; weights drawn by chance were named before."""
    rows = [row for slices in evidence.slices.values() for row in slices.values()]
    over_all = [row for row in rows if (row.statistic, row.finding, row.condition) == (AUROC, ALL_FINDINGS, PLAIN)]
    for model in evidence.models:
        row = next((row for row in over_all if row.model == model.name), None)
        if model.weights_from != "function" or row is None or not may_be_a_guess(row):
            continue
        interval = "" if math.isnan(row.low) else f", 95 % interval {row.low:.2f} to {row.high:.2f}"
        yield (
            f"Model {model.label}: no weights were given: is this the trained network? Its AUROC over all findings is "
            f"not shown to be above guessing ({row.value:.2f}{interval}, by guessing "
            f"{GUESS:.2f}). Name the trained weights under `weights:`, unless its function loads them."
        )


def doubt_about_answers(evidence: Evidence) -> str:
    """That the outputs seem to be in another order, or else that a model is clearly worse than a guess."""
    return outputs_in_another_order(evidence) or worse_than_guessing(evidence)


def outputs_in_another_order(evidence: Evidence) -> str:
    """Which outputs fit the labels of other findings clearly better than their own; empty where none does."""
    found = []
    for model, table in _answers(evidence):
        findings = [finding for finding in evidence.findings if finding in set(table["finding"])]
        if len(findings) < 2:
            continue
        answers, labels = (
            table.pivot_table(name, "case", "finding", dropna=False).reindex(columns=findings).to_numpy(float)
            for name in ("probability", "label")
        )
        of = f" of {model}" if len(evidence.models) > 1 else ""
        for each in misplaced_outputs(answers, labels):
            name = _output(evidence, model, findings[each.output])
            found.append(f"{name}{of} fits the labels of {findings[each.fits]} (AUROC {each.auroc:.2f})")
    if not found:
        return ""
    shown = [*found[:MOST_NAMED], *([f"{len(found) - MOST_NAMED} more"] if len(found) > MOST_NAMED else [])]
    return (
        f"{listed(shown)[0].upper()}{listed(shown)[1:]}: are the outputs in the right order? Compare `outputs` of the "
        "contract with the order of the training: until then nothing here can be relied on."
    )


def _answers(evidence: Evidence) -> Iterator[tuple[str, pd.DataFrame]]:
    """The model's answers by model; without models that answer a case more than once."""
    if len(evidence.findings) < 2:
        return
    read, rows = [], 0
    for group in evidence.run.row_groups("predictions", ["case", "finding", "model", "label", "probability"]):
        read.append(group.to_pandas())
        rows += len(read[-1])
        if rows >= _ANSWERS:
            break
    for model in evidence.models:
        tables = [table[table["model"] == model.name] for table in read]
        table = pd.concat(tables).astype({"case": str, "finding": str}) if tables else pd.DataFrame()
        if len(table) and not table.duplicated(["case", "finding"]).any():
            yield model.name, table


def _output(evidence: Evidence, model: str, finding: str) -> str:
    """An output by its number and name, where the run says the order of the outputs."""
    entry = evidence.manifest.model
    if entry is None or entry.name != model or finding not in entry.outputs:
        return f"the output called {finding}"
    return f"output {entry.outputs.index(finding) + 1} (called {finding})"


def worse_than_guessing(evidence: Evidence) -> str:
    """Where a model is wrong so often that the contract, not the model, is the likely reason."""
    rows = [row for slices in evidence.slices.values() for row in slices.values()]
    labels = {model.name: model.label for model in evidence.models}
    outputs = evidence.manifest.model.outputs if evidence.manifest.model else ()
    names = []
    for each in below_chance(rows, len(outputs)):
        of = [labels.get(each.row.model, each.row.model)] if len(labels) > 1 else []
        of += [each.row.finding] if each.row.finding in evidence.findings else []
        names.append(f"{' on '.join(of)}: {each.words}" if of else each.words)
    if not names:
        return ""
    shown = [*names[:MOST_NAMED], *([f"{len(names) - MOST_NAMED} more"] if len(names) > MOST_NAMED else [])]
    return (
        f"The model answers clearly worse than by guessing ({'; '.join(shown)}): its outputs may be in another "
        "order than in the contract, the labels turned round, or the images shown by another window or normalisation "
        "than in training. Compare the contract with preview.png in the run's folder first: until then nothing here "
        "can be relied on."
    )


def _drawn(evidence: Evidence) -> str:
    """That no patient's images were looked at."""
    if not evidence.manifest.source.drawn:
        return ""
    return "The images are drawn, not taken from patients: what holds here need not hold for patients' images."


def failed(evidence: Evidence) -> str:
    """How many cases failed."""
    lost = int((evidence.run.cases["status"] == "failed").sum())
    if not lost:
        return ""
    total = len(evidence.run.cases)
    return f"{lost:,} of {count(total, 'case')} failed and took no part; the section on gaps lists them with reasons."


def smaller_settings(evidence: Evidence) -> str:
    """How many methods ran with smaller settings than usual and might do better otherwise."""
    cut = [method.label for method in evidence.methods if method.saves_time]
    if not cut:
        return ""
    were, they = ("was", "it") if len(cut) == 1 else ("were", "they")
    return (
        f"{few(cut)} {were} run with smaller settings than usual to save time, and {they} might do better with those."
    )


def skipped_in_words(entries: Sequence[SkippedEntry]) -> list[str]:
    """What a run does without, and why: methods that share a reason in one sentence."""
    groups: dict[tuple[str, str], list[SkippedEntry]] = {}
    for entry in entries:
        groups.setdefault((entry.model, entry.reason), []).append(entry)
    said = []
    for (model, reason), alike in groups.items():
        labels = listed([entry.label for entry in alike])
        if len(alike) > 1 and reason.startswith(_LOOKS_INSIDE):
            why = reason.removeprefix(_LOOKS_INSIDE).removeprefix(", but ")
            said.append(f"{len(alike)} methods look inside the model and are left out: {labels}; {why}.")
        else:
            said.append(f"{labels} on {model}: {reason}.")
    return said


def skipped(evidence: Evidence) -> str:
    """Which methods the run did without, since they cannot explain its model."""
    left_out = evidence.manifest.skipped
    if not left_out:
        return ""
    names = [entry.label for entry in left_out]
    they = "it" if len(names) == 1 else "they"
    return f"{few(names)} took no part, because {they} cannot explain this model; the record gives the reasons."
