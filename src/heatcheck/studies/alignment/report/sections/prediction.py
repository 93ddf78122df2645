"""Does the model still predict? AUROC and mutual information of every network, and how many images they rest on."""

from collections.abc import Mapping, Sequence
from typing import Any

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.report.evidence import Evidence
from heatcheck.report.footnotes import Footnotes
from heatcheck.report.matrix import Cell, Column, Matrix, Row, cell_of, labelled
from heatcheck.report.numbers import MISSING, SCORE
from heatcheck.report.published import figure_cell, with_rows
from heatcheck.studies.alignment.report import literature
from heatcheck.studies.alignment.report.facts import ARMS, TUNED, BaseRecord, bases, methods_of, trained, tuned_bases

Statistic = tuple[str, str]  # with its metric
AUROC = ("auroc", "auroc")
INFORMATION = "mutual_information"
INITIALISATIONS = {
    "random_1_channel": "random, 1 channel",
    "random_3_channels": "random, 3 channels",
    "imagenet21k": "ImageNet-21k",
    "radimagenet": "RadImageNet",
}
_COUNTED = {
    "finetune": ("Learned from", "outlined"),
    "selection": ("Picked the checkpoint", "outlined"),
    "evaluation": ("Evaluated", "outlined"),
    "evaluation_positives": ("Evaluated", "with the finding"),
    "evaluation_negatives": ("Evaluated", "without it"),
}


def prediction(evidence: Evidence) -> Mapping[str, object] | None:
    """What the section shows; None when no network's answers were measured."""
    made = [statistic for statistic in (AUROC, information(evidence)) if _has(evidence, statistic)]
    counts = _counts(evidence)
    if not made and counts is None:
        return None
    return {
        "table": _networks(evidence, made) if made else None,
        "by_finding": [_by_finding(evidence, statistic) for statistic in made],
        "initialisations": _initialisations(evidence),
        "counts": counts,
        "source": literature.SOURCE,
        "terms": [(_name(evidence, metric), evidence.measures[metric].summary) for _, metric in made],
    }


def information(evidence: Evidence) -> Statistic:
    """The statistic and the metric under which the run has mutual information."""
    for row, _ in evidence.rows(INFORMATION, every_model=True):
        return row.statistic, row.metric
    return INFORMATION, INFORMATION


def _name(evidence: Evidence, metric: str) -> str:
    return evidence.measures[metric].label


def _has(evidence: Evidence, statistic: Statistic) -> bool:
    return any(row.metric == statistic[1] for row, _ in evidence.rows(statistic[0], every_model=True))


def _rows_of(evidence: Evidence) -> list[tuple[str, str, str]]:
    """Every network that a base has: its name, its arm and the method it was tuned through."""
    labels = {method.name: method.label for method in methods_of(evidence)}
    shared = [(ARMS[arm].capitalize(), arm, "") for arm in ARMS if arm not in TUNED]
    return shared + [(f"{labels[name]}, {ARMS[arm]}", arm, name) for name in trained(evidence) for arm in TUNED]


def _of(evidence: Evidence, base: BaseRecord, row: tuple[str, str, str], what: tuple[str, str, str]) -> Estimate | None:
    _, arm, method = row
    return evidence.under(base.name, arm=arm).find(*what, method)


def _networks(evidence: Evidence, statistics: Sequence[Statistic]) -> Matrix:
    """Every network over all findings."""
    notes = Footnotes()
    groups = []
    for base in tuned_bases(evidence):
        rows = [
            labelled(row[0], [cell_of(_of(evidence, base, row, (*each, ALL_FINDINGS)), SCORE, notes)
                              for each in statistics])
            for row in _rows_of(evidence)
        ]  # fmt: skip
        groups.append((base.label, tuple(rows)))
    columns = tuple(Column(_name(evidence, metric), "all findings") for _, metric in statistics)
    return Matrix("Prediction before and after fine-tuning", columns, tuple(groups), tuple(notes.reasons), "Network")


def _by_finding(evidence: Evidence, statistic: Statistic) -> Matrix:
    """Every network on every finding; of bases that were only trained, their own AUROC."""
    notes = Footnotes()
    positives = evidence.run.manifest.get("positives") or {}
    names = (ALL_FINDINGS, *evidence.findings)
    groups = []
    for base in bases(evidence) if statistic == AUROC else tuned_bases(evidence):
        rows = []
        for row in _rows_of(evidence) if base.fine_tuned else _rows_of(evidence)[:1]:
            found = [_of(evidence, base, row, (*statistic, name)) for name in names]
            rows.append(labelled(row[0], [cell_of(each, SCORE, notes) for each in found]))
        groups.append((base.label, tuple(rows)))
    columns = tuple(Column(name, _positives(positives.get(name)), main=name == ALL_FINDINGS) for name in names)
    name = f"{_name(evidence, statistic[1])} by finding"
    return Matrix(name, columns, tuple(groups), tuple(notes.reasons), "Network")


def _positives(facts: Mapping[str, Any] | None) -> str:
    found = (facts or {}).get("evaluation_positives", (facts or {}).get("evaluation"))
    return "" if found is None else f"{int(found):,} positive"


def _initialisations(evidence: Evidence) -> Matrix | None:
    """AUROC of the base models: how they began down, architectures across."""
    every = bases(evidence)
    across = list(dict.fromkeys(base.architecture for base in every if base.architecture))
    down = list(dict.fromkeys(base.initialisation for base in every if base.architecture))
    notes = Footnotes()
    published = [
        labelled(label, [figure_cell(literature.initialisation(name, key), SCORE, notes) for name in across],
                 kind="published")
        for key, label in INITIALISATIONS.items()
    ]  # fmt: skip
    has_published = any(name in literature.ARCHITECTURES for name in across)
    if len(every) < 2 and not has_published:
        return None
    own = {(base.initialisation, base.architecture): base for base in every}
    rows = []
    for start in down:
        cells = [_base_auroc(evidence, own.get((start, name)), notes) for name in across]
        rows.append(labelled(INITIALISATIONS.get(start, start or "given"), cells))
    table = Matrix("AUROC of the base models, by how they began", tuple(Column(name) for name in across),
                   (("This run", tuple(rows)),), tuple(notes.reasons), "Initialisation")  # fmt: skip
    return with_rows(table, published if has_published else [], notes, literature.SOURCE)


def _base_auroc(evidence: Evidence, base: BaseRecord | None, notes: Footnotes) -> Cell:
    if base is None:
        return Cell(MISSING, title="not part of this run")
    return cell_of(evidence.under(base.name, arm="base").find(*AUROC, ALL_FINDINGS), SCORE, notes)


def _counts(evidence: Evidence) -> Matrix | None:
    """Images by finding and part; published counts beside them where the data are the same."""
    told: Mapping[str, Mapping[str, Any]] = evidence.run.manifest.get("positives") or {}
    if not told:
        return None
    shown = {key: head for key, head in _COUNTED.items() if any(key in facts for facts in told.values())}
    same = str((evidence.run.manifest.get("source") or {}).get("name") or "") == "chexlocalize"
    rows = [_count_row(finding, told.get(finding, {}), list(shown), published=same) for finding in evidence.findings]
    columns = [Column(*head) for head in shown.values()]
    if same:
        columns += [Column(f"Published: {part}", sign) for part in ("fine-tuning", "evaluation") for sign in ("+", "−")]
    return Matrix("Images by finding", tuple(columns), (("Findings", tuple(rows)),), (), "Finding")


def _count_row(finding: str, facts: Mapping[str, Any], keys: Sequence[str], *, published: bool) -> Row:
    cells = [Cell(f"{int(facts[key]):,}") if key in facts else Cell(MISSING, title="not counted") for key in keys]
    if published:
        printed = literature.counted(finding)
        for part in ("finetune", "evaluation"):
            pair = printed.get(part)
            cells += [Cell(f"{n:,}") for n in pair] if pair else [Cell(MISSING, title="not published")] * 2
    return labelled(finding, cells)
