"""The networks behind the maps: folds, cases, epochs, and how well they tell the classes apart."""

from collections.abc import Mapping

from heatcheck.report.evidence import Evidence
from heatcheck.report.footnotes import Footnotes
from heatcheck.report.matrix import Cell, Column, Matrix, cell_of, labelled
from heatcheck.report.numbers import SHARE, SPACE, count, listed, number
from heatcheck.studies.modality.report import literature
from heatcheck.studies.modality.report.facts import (
    EVERY,
    classes_of,
    each_fold,
    estimate,
    folds_of,
    is_drawn,
    of_brats,
    trained_here,
)

COLUMNS = {"accuracy": "Accuracy", "balanced_accuracy": "Balanced accuracy"}
BALANCED = (
    "The mean over classes of the share of their cases that are told right: guessing the larger class all the time "
    "scores no better than 50 % with two classes, however rare the other one is."
)


def _row_name(fold: int | str, folds: int) -> str:
    """What a row is called: where there is one network, there are no folds."""
    if folds == 1:
        return "The network"
    return "All folds" if fold == EVERY else f"Fold {fold}"


def networks(evidence: Evidence) -> Mapping[str, object] | None:
    """What the section on the networks shows; None when nothing is known of them."""
    folds = folds_of(evidence)
    rows_of: list[int | str] = [*folds, EVERY] if len(folds) > 1 else [*folds]
    found = {
        (fold, metric): estimate(evidence, ("mean", metric), {"fold": fold}) for fold in rows_of for metric in COLUMNS
    }
    known = {fold.number: fold for fold in each_fold(evidence)}
    if not any(found.values()) and not known:
        return None
    notes, rows = Footnotes(), []
    for fold in rows_of:
        told = known.get(fold) if isinstance(fold, int) else None
        sizes = [f"{told.training:,}", f"{told.validation:,}", f"{told.test:,}"] if told else [""] * 3
        classes = [f"{told.classes[name]:,}" if told and name in told.classes else "" for name in classes_of(evidence)]
        epoch = [str(told.epoch) if told and told.epoch is not None else ""] if trained_here(evidence) else []
        sizes = sizes if trained_here(evidence) else sizes[2:]
        cells = [Cell(text) for text in (*sizes, *classes, *epoch)]
        cells += [cell_of(found[fold, metric], SHARE, notes) for metric in COLUMNS]
        rows.append(labelled(_row_name(fold, len(folds)), cells))
    parts = ("Training", "Validation", "Test") if trained_here(evidence) else ("Test",)
    heads = [Column(name, "cases") for name in parts] + [Column(name, "of test") for name in classes_of(evidence)]
    heads += [Column("Epoch", "chosen")] if trained_here(evidence) else []
    heads += [Column(name, main=name != "Accuracy") for name in COLUMNS.values()]
    table = Matrix(
        "The networks and their test cases", tuple(heads), (("", tuple(rows)),), tuple(notes.reasons), "Network"
    )
    return {
        "sentences": [_made(evidence)],
        "table": table,
        "terms": [("Balanced accuracy", BALANCED)],
        "published": _published(evidence),
    }


def _made(evidence: Evidence) -> str:
    folds = len(folds_of(evidence))
    model, classes = evidence.manifest.model_description, listed([*classes_of(evidence)], "or")
    begins = f"{model}. " if model else ""
    if trained_here(evidence):
        return (
            f"{begins}Each case is in the test set of one of {count(folds, 'fold')}, and a network that never saw it "
            f"tells whether it is {classes}; the epoch was chosen on validation cases."
        )
    return f"{begins}The network was given with its weights; it tells whether a case is {classes}."


def _published(evidence: Evidence) -> str:
    subject = "five folds" if of_brats(evidence) else "synthetic" if is_drawn(evidence) else ""
    figure = literature.scalar("accuracy", subject)
    if figure is None:
        return ""
    told = f"{number(figure.value, SHARE.rounded(2))} ± {100 * (figure.high - figure.value):.2f}{SPACE}%"
    data = "BraTS 2020, five folds" if subject == "five folds" else "its own synthetic tumours"
    return f"Published accuracy on {data}: {told} ({literature.SOURCE})."
