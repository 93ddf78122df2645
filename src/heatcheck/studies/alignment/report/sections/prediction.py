"""Whether the model still predicts: AUROC and mutual information of every network, and counts of images."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product
from statistics import fmean

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import AUROC, Condition, Statistic
from heatcheck.report.blocks.block import Block, Prose, Table, Terms, fold, prose, tables
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, Row, cell_of, labelled
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import MISSING, SCORE, interval, number
from heatcheck.report.page import Section
from heatcheck.report.published import figure_cell, with_rows
from heatcheck.studies.alignment.report import literature
from heatcheck.studies.alignment.report.facts import (
    ARM_LABELS,
    PERFECT,
    any_perfect,
    finding_columns,
    interval_words,
    manifest,
    methods_of,
    on_paper_data,
    over_findings,
    trained_once,
)
from heatcheck.studies.alignment.vocabulary import (
    ARMS,
    DIRECTIONS,
    GIVEN,
    INFORMATION,
    MUTUAL_INFORMATION,
    VALIDATION,
    BaseEntry,
    ImageCounts,
)

PREDICTIONS = ((AUROC, AUROC), (MUTUAL_INFORMATION, INFORMATION))  # statistics with their metrics
INITIALISATIONS = {
    "random_1_channel": "random, 1 channel",
    "random_3_channels": "random, 3 channels",
    "imagenet21k": "ImageNet-21k",
    "radimagenet": "RadImageNet",
}
_COUNTED = {
    "finetune": ("Learned from", "outlined"),
    "selection": ("Chose the checkpoint", "outlined"),
    "evaluation": ("Evaluated", "outlined"),
    "evaluation_positives": ("Evaluated", "with the finding"),
    "evaluation_negatives": ("Evaluated", "without it"),
}


WHY = (
    "A network could lower its map loss by giving up the finding. If aligned and misaligned networks predict about as "
    "well as the control, which was tuned on the same images without maps, the score was changed without any sign of "
    "it in the predictions."
)
ALL_MEAN = "\u201cAll findings\u201d is the mean over the findings that have at least ten images with and without them."
VALIDATION_NOTE = (
    "The checkpoint of each base was chosen on these images, so its AUROC here is a little too high. \u201cAll "
    "findings\u201d is the mean over the outputs that have at least ten images with and without them."
)
LEARNED_NOTE = "Uncertain and blank labels are counted as the bases learned them."
SEVERAL = "Mean of {} base models of this kind; below it the lowest and the highest, which are no interval."
OUTLINED = (
    "\u201cOutlined\u201d: images with the finding and a mask of it; only these have maps scored. The parts are those "
    "of the first seed."
)
COUNTS_PUBLISHED = f"The published counts ({literature.SOURCE}) are of labels, whether or not there is a mask."


def prediction(evidence: Evidence) -> Section | None:
    """The section; None when no network's answers were measured."""
    shown = [each for each in PREDICTIONS if evidence.rows(each[0], every_model=True)]
    counts, learned, validation = _counts(evidence), _learned(evidence), _validation(evidence)
    if not shown and counts is None:
        return None
    blocks = (
        *(_shown_networks(evidence, shown) if shown else ()),
        *tables([_initialisations(evidence)]),
        *(fold(validation.caption, (Table(validation, note=VALIDATION_NOTE),)) if validation else ()),
        *(fold(learned.caption, (Table(learned, note=LEARNED_NOTE),)) if learned else ()),
        *_counted(evidence, counts),
    )
    return Section(
        "prediction", "Does the model still predict?", "Prediction", blocks, _summary(evidence), printed=True
    )


def _summary(evidence: Evidence) -> str:
    """The range of AUROCs over all findings, by kind of network."""
    parts = []
    for arm, label in ARM_LABELS.items():
        methods = ("",) if arm not in DIRECTIONS else manifest(evidence).trained
        networks = [(base.name, method) for base in manifest(evidence).tuned for method in methods]
        values = [evidence.under(name, arm=arm).value(AUROC, AUROC, ALL_FINDINGS, method) for name, method in networks]
        known = [value for value in values if not math.isnan(value)]
        parts += [f"{label} {_range(known)}"] if known else []
    return f"AUROC of {over_findings(evidence)}: {', '.join(parts)}." if parts else ""


def _range(values: Sequence[float]) -> str:
    low, high = (number(end, SCORE.rounded(2)) for end in (min(values), max(values)))
    return low if low == high else f"{low}\u2013{high}"


def _shown_networks(evidence: Evidence, shown: Sequence[tuple[Statistic, str]]) -> tuple[Block, ...]:
    """Every network over all findings, what the measures mean, and each finding behind folds."""
    return (
        Prose(WHY),
        Table(_networks(evidence, shown), note=_note(evidence)),
        Terms(tuple((_name(evidence, metric), evidence.metrics[metric].summary) for _, metric in shown)),
        *(
            block
            for table in (_by_finding(evidence, *each) for each in shown if _has_more(evidence))
            for block in fold(table.caption, (Table(table),))
        ),
    )


def _note(evidence: Evidence) -> str:
    """What the means are of, and what their intervals allow for."""
    means = "" if trained_once(evidence) else "Means over seeds."
    every = ALL_MEAN if len(evidence.findings) > 1 else ""
    perfect = PERFECT if any_perfect(evidence) else ""
    between = f"Beside each number is its 95 % interval. {interval_words(evidence)}"
    return " ".join(filter(None, (means, between, every, perfect)))


def _has_more(evidence: Evidence) -> bool:
    """Whether single findings, or bases that were not fine-tuned, add something to the means."""
    return len(evidence.findings) > 1 or any(not base.fine_tuned for base in manifest(evidence).models)


def _counted(evidence: Evidence, counts: Matrix | None) -> tuple[Block, ...]:
    if counts is None:
        return ()
    published = COUNTS_PUBLISHED if on_paper_data(evidence) else ""
    return (Table(counts), *prose(OUTLINED, published, small=True))


def _name(evidence: Evidence, metric: str) -> str:
    return evidence.metrics[metric].label


@dataclass(frozen=True, slots=True)
class NetworkRow:
    """A kind of network that every base has."""

    label: str
    arm: str
    method: str  # through which it was fine-tuned


def _network_rows(evidence: Evidence) -> list[NetworkRow]:
    labels = {method.name: method.label for method in methods_of(evidence)}
    shared = [NetworkRow(ARM_LABELS[arm].capitalize(), arm, "") for arm in ARMS if arm not in DIRECTIONS]
    return shared + [
        NetworkRow(f"{labels[name]}, {ARM_LABELS[arm]}", arm, name)
        for name in manifest(evidence).trained
        for arm in DIRECTIONS
    ]


def _networks(evidence: Evidence, statistics: Sequence[tuple[Statistic, str]]) -> Matrix:
    """Every network over all findings."""
    notes = Footnotes()
    groups = []
    for base in manifest(evidence).tuned:
        rows = []
        for row in _network_rows(evidence):
            under = evidence.under(base.name, arm=row.arm)
            estimates = [under.find(*each, ALL_FINDINGS, row.method) for each in statistics]
            rows.append(labelled(row.label, [cell_of(each, SCORE, notes) for each in estimates]))
        groups.append((base.label, tuple(rows)))
    columns = tuple(Column(_name(evidence, metric), over_findings(evidence)) for _, metric in statistics)
    return Matrix("Prediction before and after fine-tuning", columns, tuple(groups), tuple(notes.reasons), "Network")


def _by_finding(evidence: Evidence, statistic: Statistic, metric: str) -> Matrix:
    """Every network on every finding; bases that were not fine-tuned appear in the table of AUROC only."""
    notes = Footnotes()
    facts = manifest(evidence)
    names = finding_columns(evidence)
    networks = _network_rows(evidence)
    groups = []
    for base in facts.models if statistic == AUROC else facts.tuned:
        rows = []
        for row in networks if base.fine_tuned else networks[:1]:
            under = evidence.under(base.name, arm=row.arm)
            estimates = [under.find(statistic, metric, name, row.method) for name in names]
            rows.append(labelled(row.label, [cell_of(each, SCORE, notes) for each in estimates]))
        groups.append((base.label, tuple(rows)))
    columns = tuple(Column(name, _positives(facts.positives.get(name)), main=name == names[0]) for name in names)
    name = f"{_name(evidence, metric)} by finding"
    return Matrix(name, columns, tuple(groups), tuple(notes.reasons), "Network")


def _positives(counts: ImageCounts | None) -> str:
    if counts is None or counts.evaluation_positives is None:
        return ""
    return f"{counts.evaluation_positives:,} positive"


def _initialisations(evidence: Evidence) -> Matrix | None:
    """AUROC of the base models, by initialisation and architecture.

    That of the validation images of their training is what was published; that of the evaluation images is what
    fine-tuned networks are compared with.
    """
    every = manifest(evidence).models
    across = list(dict.fromkeys(base.architecture for base in every if base.architecture))
    down = list(dict.fromkeys(base.initialisation for base in every if base.architecture))
    notes = Footnotes()
    published = [
        labelled(label, [figure_cell(literature.initialisation(name, key), SCORE, notes) for name in across],
                 kind="published")
        for key, label in INITIALISATIONS.items()
    ]  # fmt: skip
    has_published = on_paper_data(evidence) and any(name in literature.ARCHITECTURES for name in across)
    can_compare = len(every) > 1 and any(base.start_known for base in every)
    if not can_compare and not has_published:
        return None
    by_kind: dict[tuple[str, str], list[BaseEntry]] = {kind: [] for kind in product(down, across)}
    for base in every:
        by_kind.setdefault((base.initialisation, base.architecture), []).append(base)
    splits: dict[str, Condition] = {"This run, evaluation images": {"arm": "base"}}
    if manifest(evidence).learned:
        splits = {"This run, validation images of the training data": {"arm": "base", "split": VALIDATION}, **splits}
    groups = []
    for title, split in splits.items():
        rows = []
        for start in down:
            cells = [_base_auroc(evidence, by_kind[start, name], split, notes) for name in across]
            rows.append(labelled(INITIALISATIONS.get(start, start or GIVEN), cells))
        groups.append((title, tuple(rows)))
    table = Matrix("AUROC of the base models, by initialisation", tuple(Column(name) for name in across),
                   tuple(groups), tuple(notes.reasons), "Initialisation")  # fmt: skip
    return with_rows(table, published if has_published else [], notes, literature.SOURCE)


def _base_auroc(evidence: Evidence, bases: Sequence[BaseEntry], split: Condition, notes: Footnotes) -> Cell:
    """The AUROC of the only base of its kind with its interval, or the mean of several with the lowest and highest."""
    if not bases:
        return Cell(MISSING, title="not part of this run")
    estimates = [evidence.under(base.name, **split).find(AUROC, AUROC, ALL_FINDINGS) for base in bases]
    values = [estimate.value for estimate in estimates if estimate and not math.isnan(estimate.value)]
    if len(bases) == 1 or not values:
        return cell_of(estimates[0], SCORE, notes)
    reason = SEVERAL.format(len(values))
    if undefined := len(bases) - len(values):
        reason += f" {undefined} more {'has' if undefined == 1 else 'have'} no AUROC."
    return Cell(number(fmean(values)), interval(min(values), max(values)), title=reason, note=notes.mark(reason))


def _validation(evidence: Evidence) -> Matrix | None:
    """AUROC of every base that was trained here on its validation images, by output."""
    facts, notes = manifest(evidence), Footnotes()
    names = (ALL_FINDINGS, *facts.learned)
    rows = []
    for base in facts.models:
        under = evidence.under(base.name, arm="base", split=VALIDATION)
        estimates = [under.find(AUROC, AUROC, name) for name in names]
        if any(estimates):
            rows.append(labelled(base.label, [cell_of(each, SCORE, notes) for each in estimates]))
    if not rows:
        return None
    columns = tuple(
        Column(name, f"{facts.learned[name].validation_positives:,} positive" if name in facts.learned else "")
        for name in names
    )
    name = "AUROC of the base models on the validation images of their training data"
    return Matrix(name, columns, (("Bases", tuple(rows)),), tuple(notes.reasons), "Base")


def _learned(evidence: Evidence) -> Matrix | None:
    """Labels of the data that bases were trained on, with the published counts where the data are the same."""
    facts = manifest(evidence)
    if not facts.learned:
        return None
    published = on_paper_data(evidence)
    splits = ("training", VALIDATION)
    rows = []
    for finding, labels in facts.learned.items():
        printed = literature.counted(finding) if published else {}
        numbers = [getattr(labels, f"{split}_{sign}") for split in splits for sign in ("positives", "negatives")]
        cells = [Cell(f"{n:,}") for n in numbers]
        for split in splits if published else ():
            cells += _printed_pair(printed.get(split))
        rows.append(labelled(finding, cells))
    heads = [split.capitalize() for split in splits]
    heads += [f"Published: {split}" for split in splits if published]
    columns = tuple(Column(head, sign) for head in heads for sign in ("with it", "without it"))
    return Matrix("Labels that the bases learned from", columns, (("Outputs", tuple(rows)),), (), "Finding")


def _printed_pair(pair: tuple[int, int] | None) -> list[Cell]:
    """Published numbers of images with a finding and without it."""
    return [Cell(f"{n:,}") for n in pair] if pair else [Cell(MISSING, title="not published")] * 2


def _counts(evidence: Evidence) -> Matrix | None:
    """Images by finding and part, with the published counts where the data are the same."""
    facts = manifest(evidence)
    if not facts.positives:
        return None
    published = on_paper_data(evidence)
    rows = [
        _count_row(finding, facts.positives.get(finding, ImageCounts()), published=published)
        for finding in evidence.findings
    ]
    columns = [Column(*head) for head in _COUNTED.values()]
    if published:
        columns += [Column(f"Published: {part}", sign) for part in ("fine-tuning", "evaluation") for sign in ("+", "−")]
    return Matrix("Images by finding", tuple(columns), (("Findings", tuple(rows)),), (), "Finding")


def _count_row(finding: str, counts: ImageCounts, *, published: bool) -> Row:
    numbers = [getattr(counts, key) for key in _COUNTED]
    cells = [Cell(MISSING, title="not counted") if n is None else Cell(f"{n:,}") for n in numbers]
    if published:
        printed = literature.counted(finding)
        for part in ("finetune", "evaluation"):
            cells += _printed_pair(printed.get(part))
    return labelled(finding, cells)
