"""What a test set holds: images, patients, positives and outlines, per finding and in all."""

import pandas as pd

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import HUMAN, Estimate
from heatcheck.studies.score_grid import PaperRule

DRAWN = ("true_positive_pixels", "false_positive_pixels")  # a reader drew an outline if either counts a pixel


def count_estimates(
    predictions: pd.DataFrame, shapes: pd.DataFrame, readers: pd.DataFrame, rule: PaperRule
) -> list[Estimate]:
    """The counts of each finding, and of all findings together.

    images, patients: those whose label is known; positives: images with the finding; annotated: images on which it was
    outlined; segmentations: outlines that were drawn there; segmentations_by_reader: readings with an outline, on
    images that have any truth; without_finding, over all findings: images on which every known one is absent.
    `readers` are the readers' pixel counts. Over all findings, images and patients are counted once and the others are
    sums.
    """
    mine = predictions[(predictions["model"] == rule.model) & predictions["finding"].isin(rule.findings)]
    known = mine[mine["label"].notna()]
    outlined = shapes[shapes["finding"].isin(rule.findings)]
    drawn = _drawn(readers[readers["finding"].isin(rule.findings)])
    rows: list[Estimate] = []
    for finding in (*rule.findings, ALL):
        counts = _counts(*(_of(table, finding) for table in (known, outlined, drawn)))
        if finding == ALL:
            counts |= {"images": mine["case"].nunique(), "patients": mine["patient"].nunique()}
            counts["without_finding"] = int((mine.groupby("case", observed=True)["label"].max() == 0).sum())
        rows += [
            Estimate("count", name, finding, "", rule.model, float(count), n_cases=count)
            for name, count in counts.items()
        ]
    return rows


def _of(table: pd.DataFrame, finding: str) -> pd.DataFrame:
    return table if finding == ALL else table[table["finding"] == finding]


def _counts(known: pd.DataFrame, outlined: pd.DataFrame, drawn: pd.DataFrame) -> dict[str, int]:
    return {
        "images": int(known["case"].nunique()),
        "patients": int(known["patient"].nunique()),
        "positives": int((known["label"] == 1).sum()),
        "annotated": len(outlined),
        "segmentations": int(outlined["instances"].sum()),
        "segmentations_by_reader": len(drawn),
    }


def _drawn(readers: pd.DataFrame) -> pd.DataFrame:
    """One row per reading in which something was outlined: each reader's own, or else the readers' mean."""
    human = readers[(readers["method"] == HUMAN) & readers["metric"].isin(DRAWN) & (readers["value"] > 0)]
    single = human[human["condition"].str.contains('"reader"')]
    chosen = single if len(single) else human[human["condition"] == "{}"]
    return chosen.drop_duplicates(["case", "finding", "condition"])
