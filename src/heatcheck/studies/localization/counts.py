"""What a test set holds: images, examinations, patients, positives and outlines, per finding and in all."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

import pandas as pd

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import HUMAN, Estimate
from heatcheck.core.vocabulary import PLAIN, facts_of
from heatcheck.estimating.score_values import Values
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.vocabulary import COUNT, Counts

DRAWN = ("true_positive_pixels", "false_positive_pixels")  # a reader drew an outline if either counts a pixel


@dataclass(frozen=True, slots=True)
class Counted:
    """The tables of a run from which things are counted; `readers` are the readers' pixel counts."""

    cases: pd.DataFrame
    predictions: pd.DataFrame
    shapes: pd.DataFrame
    readers: pd.DataFrame


def count_estimates(tables: Counted, settings: LocalizationSettings) -> list[Estimate]:
    """The counts of each finding, and of all findings together.

    images, patients: those whose label is known, and examinations, if it is known which of them the images are views
    of; positives: images with the finding; annotated: images on which it was
    outlined; segmentations: outlines that were drawn there; segmentations_by_reader: readings with an outline, on
    images that have any truth; readers: those who drew any of these; without_finding, over all findings: images on
    which every known one is absent.
    Over all findings, images, examinations and patients are all that were studied, counted once, and the others are
    sums. Labels come with the model's predictions: maps without probabilities have none, and what cannot be known is
    left out.
    """
    answers = tables.predictions
    answers = answers[(answers["model"] == settings.model) & answers["finding"].isin(settings.findings)]
    outlined = tables.shapes[tables.shapes["finding"].isin(settings.findings)]
    drawn = _drawn(tables.readers[tables.readers["finding"].isin(settings.findings)])
    examinations = dict(zip(tables.cases["case"], tables.cases["examination"], strict=True))
    rows: list[Estimate] = []
    for finding in (*settings.findings, ALL):
        needed = set(settings.findings) if finding == ALL else {finding}
        counts = _labelled(_on_finding(answers, finding), examinations) if needed <= set(answers["finding"]) else {}
        if finding == ALL:
            counts.pop(Counts.EXAMINATIONS, None)  # of the labelled images, where those of all are not known
            counts |= _everything(tables.cases, answers, examinations)
        else:
            counts.pop(Counts.WITHOUT_FINDING, None)
        counts |= _outlined(_on_finding(outlined, finding), _on_finding(drawn, finding))
        rows += [
            Estimate(COUNT, name, finding, "", settings.model, float(count), n_cases=count)
            for name, count in counts.items()
        ]
    return rows


def empty_map_estimates(empty: Values, shapes: pd.DataFrame, settings: LocalizationSettings) -> Iterator[Estimate]:
    """How many maps of each method are empty, of all its maps and of those of outlined findings.

    `empty` is 1 for an empty map and 0 for any other; the number of maps is the estimate's number of cases.
    """
    outlined = {finding: set(rows["case"]) for finding, rows in shapes.groupby("finding", observed=True)}
    for method in settings.methods:
        columns = {finding: table[method].dropna() for finding, table in empty.by_finding.items()}
        rows = {finding: maps for finding, maps in columns.items() if len(maps)}
        marked = {finding: maps[maps.index.isin(outlined.get(finding, ()))] for finding, maps in rows.items()}
        for name, counted in ((Counts.EMPTY_MAPS, rows), (Counts.FAILED_MAPS, marked)) if rows else ():
            every = {finding: (int(maps.sum()), len(maps)) for finding, maps in counted.items()}
            every[ALL] = sum(one for one, _ in every.values()), sum(of for _, of in every.values())
            for finding, (number, of) in every.items():
                yield Estimate(COUNT, name, finding, method, settings.model, float(number), n_cases=of)


def _everything(cases: pd.DataFrame, answers: pd.DataFrame, examinations: Mapping[str, str]) -> dict[str, int]:
    """How many images, examinations and patients were studied, with cases on which only another model failed."""
    names = ["case", "patient"]
    return _size(pd.concat([cases.loc[cases["status"] == "ok", names], answers[names]]), examinations)


def _size(rows: pd.DataFrame, examinations: Mapping[str, str]) -> dict[str, int]:
    cases = set(rows["case"])
    of_cases = {examinations.get(case, "") for case in cases}
    known = {} if "" in of_cases or not of_cases else {Counts.EXAMINATIONS: len(of_cases)}
    return {Counts.IMAGES: len(cases), **known, Counts.PATIENTS: int(rows["patient"].nunique())}


def _on_finding(table: pd.DataFrame, finding: str) -> pd.DataFrame:
    return table if finding == ALL else table[table["finding"] == finding]


def _labelled(answers: pd.DataFrame, examinations: Mapping[str, str]) -> dict[str, int]:
    known = answers[answers["label"].notna()]
    return {
        **_size(known, examinations),
        Counts.POSITIVES: int((known["label"] == 1).sum()),
        Counts.WITHOUT_FINDING: int((known.groupby("case", observed=True)["label"].max() == 0).sum()),
    }


def _outlined(outlined: pd.DataFrame, drawn: pd.DataFrame) -> dict[str, int]:
    return {
        Counts.ANNOTATED: len(outlined),
        Counts.SEGMENTATIONS: int(outlined["instances"].sum()),
        Counts.SEGMENTATIONS_BY_READER: len(drawn),
        **_readers(drawn),
    }


def _readers(drawn: pd.DataFrame) -> dict[str, int]:
    """How many readers drew; nothing where only their mean is known."""
    names = {facts["reader"] for text in drawn["condition"].unique() if "reader" in (facts := facts_of(str(text)))}
    return {Counts.READERS: len(names)} if names else {}


def _drawn(readers: pd.DataFrame) -> pd.DataFrame:
    """One row per reading in which something was outlined: each reader's own, or else the readers' mean."""
    human = readers[(readers["method"] == HUMAN) & readers["metric"].isin(DRAWN) & (readers["value"] > 0)]
    by_reader = [text for text in human["condition"].unique() if "reader" in facts_of(str(text))]
    single = human[human["condition"].isin(by_reader)]
    chosen = single if len(single) else human[human["condition"] == PLAIN]
    return chosen.drop_duplicates(["case", "finding", "condition"])
