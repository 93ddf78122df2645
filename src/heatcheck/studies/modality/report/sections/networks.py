"""The networks behind the maps: folds, cases, epochs, and how well they tell the classes apart."""

import math

from heatcheck.core.vocabulary import MEAN
from heatcheck.report.blocks.block import Block, Table, Terms, prose
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, cell_of, labelled
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SHARE, SPACE, count, interval, listed, number
from heatcheck.report.page import Section
from heatcheck.studies.modality.report import literature
from heatcheck.studies.modality.report.facts import estimate, manifest
from heatcheck.studies.modality.vocabulary import EVERY_FOLD

_PERCENT = SHARE.rounded(0)
COLUMNS = {"accuracy": "Accuracy", "balanced_accuracy": "Balanced accuracy"}
BALANCED = (
    "The mean over classes of the share of their cases that are classified correctly: always guessing the larger class "
    "scores no better than 50 % with two classes, however rare the other one is."
)


def _row_name(fold: int | str, folds: int) -> str:
    """The name of a row; a single network has no fold."""
    if folds == 1:
        return "The network"
    return "All folds" if fold == EVERY_FOLD else f"Fold {fold}"


def networks(evidence: Evidence) -> Section | None:
    """The networks, their cases and how often they are right; None when nothing is known of them."""
    table = _table(evidence)
    if table is None:
        return None
    blocks: tuple[Block, ...] = (
        *prose(_origin(evidence)),
        Table(table),
        *prose(_published(evidence), small=True),
        Terms((("Balanced accuracy", BALANCED),)),
    )
    return Section("networks", "How good are the networks?", "Networks", blocks, summary(evidence))


def summary(evidence: Evidence) -> str:
    """How often the networks are right."""
    folds = manifest(evidence).folds
    row = estimate(evidence, MEAN, "balanced_accuracy", {"fold": EVERY_FOLD if folds > 1 else 1})
    if row is None or math.isnan(row.value):
        return count(folds, "network") + "."
    between = interval(row.low, row.high, _PERCENT)
    value = number(row.value, _PERCENT) + (f" ({between})" if between else "")
    return f"{count(folds, 'network')}; balanced accuracy {value}."


def _table(evidence: Evidence) -> Matrix | None:
    """One row per network with its cases and how often it is right."""
    run = manifest(evidence)
    shown: list[int | str] = [*run.fold_numbers, EVERY_FOLD] if run.folds > 1 else [*run.fold_numbers]
    means = {(fold, metric): estimate(evidence, MEAN, metric, {"fold": fold}) for fold in shown for metric in COLUMNS}
    entries = {entry.fold: entry for entry in run.per_fold}
    if not any(means.values()) and not entries:
        return None
    notes, rows = Footnotes(), []
    for fold in shown:
        entry = entries.get(fold) if isinstance(fold, int) else None
        sizes = [f"{entry.training:,}", f"{entry.validation:,}", f"{entry.test:,}"] if entry else [""] * 3
        classes = [f"{entry.classes[name]:,}" if entry and name in entry.classes else "" for name in run.classes]
        epoch = [str(entry.epoch) if entry and entry.epoch is not None else ""] if run.trained else []
        texts = (*(sizes if run.trained else sizes[2:]), *classes, *epoch)
        cells = [Cell(text) for text in texts] + [cell_of(means[fold, metric], SHARE, notes) for metric in COLUMNS]
        rows.append(labelled(_row_name(fold, run.folds), cells))
    parts = ("Training", "Validation", "Test") if run.trained else ("Test",)
    heads = [Column(name, "cases") for name in parts] + [Column(name, "of test") for name in run.classes]
    heads += [Column("Epoch", "chosen")] if run.trained else []
    heads += [Column(name, main=name != "Accuracy") for name in COLUMNS.values()]
    caption = "The networks and their test cases"
    return Matrix(caption, tuple(heads), (("", tuple(rows)),), tuple(notes.reasons), "Network")


def _origin(evidence: Evidence) -> str:
    run = manifest(evidence)
    model, classes = run.model_description, listed([*run.classes], "or")
    begins = f"{model}. " if model else ""
    if run.trained:
        return (
            f"{begins}Each case is in the test set of one of {count(run.folds, 'fold')}, and a network that never saw "
            f"it classifies it as {classes}; the epoch was chosen on validation cases."
        )
    return f"{begins}The network was given with its weights; it classifies a case as {classes}."


def _published(evidence: Evidence) -> str:
    """The paper's accuracy, beside runs on its data."""
    figure = literature.scalar("accuracy", "five folds") if literature.is_data_of(manifest(evidence)) else None
    if figure is None:
        return ""
    accuracy = f"{number(figure.value, SHARE.rounded(2))} ± {100 * (figure.high - figure.value):.2f}{SPACE}%"
    return f"Published accuracy on BraTS 2020, five folds: {accuracy} ({literature.SOURCE})."
