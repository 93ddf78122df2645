"""The table of all cases: what every image with a finding scored, the worst first."""

import math
from collections.abc import Iterator

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from heatcheck.core.records import HUMAN
from heatcheck.core.vocabulary import PLAIN
from heatcheck.report.blocks.case_table import CaseColumn, CaseRow, CaseTable, worst_and_random
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import count
from heatcheck.report.page import Section
from heatcheck.studies.localization.report.facts import best_first
from heatcheck.studies.localization.report.gallery import LocalizationGallery, case_cards

COLUMNS = ["case", "finding", "method", "metric", "condition", "model", "value"]


def cases(evidence: Evidence, gallery: LocalizationGallery) -> Section | None:
    """The section with the table; None where no case has a score or failed."""
    rows = [*_scored(evidence, gallery), *_failed(evidence)]
    if not rows:
        return None
    readers = (CaseColumn("Readers\u2019 overlap", 2),) if evidence.has_readers else ()
    leader = best_first(evidence)[0].label
    columns = (
        CaseColumn(f"Overlap of {leader}", 2),
        CaseColumn("Mean overlap of all methods", 2),
        CaseColumn("Share of methods that hit", 2),
        *readers,
    )
    caption = "Every image with an outlined finding, the lowest overlap first"
    table = CaseTable(caption, "Finding", columns, worst_and_random(rows), len(rows), "cases.csv")
    summary = f"{count(len(rows), 'row')}: one per image and finding, with its scores."
    return Section("cases", "Case by case", "Cases", (table,), summary)


def _scored(evidence: Evidence, gallery: LocalizationGallery) -> Iterator[CaseRow]:
    """A row for every case and finding with a truth."""
    methods = [entrant.name for entrant in best_first(evidence)]
    wide = _wide(evidence)
    links = {(card.case, each.finding): each.strip.anchor for card in case_cards(gallery) for each in card.findings}
    for key, row in wide.iterrows():
        case, finding = (str(part) for part in key)  # type: ignore[attr-defined]  # the index has two levels
        overlaps = np.array([row.get(("iou", name), math.nan) for name in methods], dtype=float)
        hits = np.array([row.get(("hit", name), math.nan) for name in methods], dtype=float)
        values = [overlaps[0], _mean(overlaps), _mean(hits)]
        values += [float(row.get(("iou", HUMAN), math.nan))] if evidence.has_readers else []
        missing = int(np.isnan(overlaps).sum())
        yield CaseRow(
            case=case,
            group=finding,
            values=tuple(float(value) for value in values),
            note=f"{count(missing, 'method')} without a score" if missing else "",
            link=links.get((case, finding), ""),
            badness=1 - (0.0 if math.isnan(values[0]) else float(values[0])),
        )


def _mean(values: np.ndarray) -> float:
    known = values[~np.isnan(values)]
    return float(known.mean()) if len(known) else math.nan


def _wide(evidence: Evidence) -> pd.DataFrame:
    """Overlap and hit of the primary model's maps and of the readers, by case and finding; read block by block."""
    kept = []
    for block in evidence.run.row_groups("scores", COLUMNS):
        plain = pc.and_(pc.equal(block["condition"], PLAIN), pc.is_in(block["metric"], pa.array(["iou", "hit"])))
        ours = pc.is_in(block["model"], pa.array([evidence.primary, ""]))
        kept.append(block.filter(pc.and_(plain, ours)).to_pandas())
    table = evidence.run.shown(pd.concat(kept)) if kept else pd.DataFrame(columns=COLUMNS)
    if table.empty:
        return table
    return table.pivot_table(index=["case", "finding"], columns=["metric", "method"], values="value", observed=True)


def _failed(evidence: Evidence) -> Iterator[CaseRow]:
    """A row for every case that failed."""
    columns = 4 if evidence.has_readers else 3
    failed = evidence.run.cases[evidence.run.cases["status"] == "failed"]
    for case, stage, reason in failed[["case", "stage", "reason"]].itertuples(index=False):
        yield CaseRow(str(case), "–", (math.nan,) * columns, f"failed at {stage}: {reason}", badness=2.0)
