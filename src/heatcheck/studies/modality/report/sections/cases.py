"""The table of single cases: true class and answer, their scores by the best method and on average, and what failed."""

import math
from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from heatcheck.core.vocabulary import condition
from heatcheck.report.blocks.case_table import CaseColumn, CaseRow, CaseTable, worst_and_random
from heatcheck.report.blocks.gallery import Gallery
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import SCORE, SPACE, count, number
from heatcheck.report.page import Section
from heatcheck.studies.modality.report.facts import manifest
from heatcheck.studies.modality.report.gallery import ModalityCard
from heatcheck.studies.modality.report.sections.comparison import sorted_by_msfi

FILE = "cases.csv"  # the download that holds all scores
METRICS = ("msfi", "lesion_share", "mi_correlation")
WRONG = "wrong answer"
LOW = 0.1  # the quantile that the summary names
_COLUMNS = ["case", "finding", "method", "metric", "condition", "value", "reason"]


def cases(evidence: Evidence, gallery: Gallery[ModalityCard]) -> Section | None:
    """Every case with its scores, the lowest MSFI first; None while no case has a score or failed."""
    methods = sorted_by_msfi(evidence)
    table = scores_by_case(evidence, methods)
    rows = [*_scored(evidence, table, methods, gallery), *_failed(evidence, len(_columns(methods)))]
    if not rows:
        return None
    over = f"; means are over {len(methods)} methods" if len(methods) > 1 else ""
    caption = f"Every test case, the lowest MSFI first{over}"
    block = CaseTable(caption, "True class → answer", _columns(methods), worst_and_random(rows), len(rows), FILE)
    return Section("cases", "Which cases go wrong?", "Cases", (block,), summary(rows))


def summary(rows: list[CaseRow]) -> str:
    """How many cases there are, how many the network gets wrong, and how low MSFI falls."""
    wrong = sum(row.note.startswith(WRONG) for row in rows)
    known = [1 - row.badness for row in rows if row.badness < 1]
    low = f"; mean MSFI below {number(float(np.quantile(known, LOW)), SCORE.rounded(2))} in 1 of 10" if known else ""
    return f"{count(len(rows), 'case')}, {wrong} misclassified{low}."


def _columns(methods: list[Entrant]) -> tuple[CaseColumn, ...]:
    """The scores of the method with the highest MSFI, and the means over all methods where there are several."""
    if not methods:
        return ()
    best, means = methods[0].label, len(methods) > 1
    return (
        CaseColumn(f"MSFI, {best}", 2),
        *((CaseColumn("MSFI, mean", 2),) if means else ()),
        CaseColumn(f"In the lesion, {best}", 2),
        *((CaseColumn("In the lesion, mean", 2),) if means else ()),
        CaseColumn(f"Modality correlation, {best}", 2),
    )


def scores_by_case(evidence: Evidence, methods: list[Entrant]) -> pd.DataFrame:
    """Per case and true class: each metric of the first method and its mean over all; read block by block.

    `missing` counts methods without MSFI.
    """
    names, conditions = [method.name for method in methods], primary_conditions(evidence)
    parts = []
    for block in evidence.run.row_groups("scores", _COLUMNS):
        wanted = pc.and_(_among(block, "metric", METRICS), _among(block, "condition", conditions))
        ours = pc.and_(wanted, _among(block, "method", names))
        rows = block.filter(ours).select(["case", "finding", "method", "metric", "value"]).to_pandas()
        if len(rows):
            parts.append(_summed(rows, names[0] if names else ""))
    if not parts:
        return pd.DataFrame()
    every = pd.concat(parts).groupby(level=[0, 1], observed=True).sum(min_count=1)
    for metric in METRICS:
        every[f"{metric} mean"] = every[f"{metric} sum"] / every[f"{metric} n"].where(every[f"{metric} n"] > 0)
    return evidence.run.shown(every.reset_index())


def primary_conditions(evidence: Evidence) -> list[str]:
    """Those of the primary scores of every fold."""
    folds, primary = manifest(evidence).fold_numbers, manifest(evidence).primary
    weighted = [condition(fold=fold, importance=primary.importance, weights=primary.weights) for fold in folds]
    return [condition(fold=fold) for fold in folds] + weighted


def _among(block: pa.Table, column: str, names: Sequence[str]) -> pa.ChunkedArray:
    return pc.is_in(block[column].cast(pa.string()), pa.array(names, pa.string()))


def _summed(rows: pd.DataFrame, best: str) -> pd.DataFrame:
    """Sums and numbers of the defined scores by case and true class, which blocks can add up."""
    rows = rows.astype({"case": str, "finding": str, "method": str, "metric": str})
    keys = [rows["case"], rows["finding"]]
    columns = {}
    for metric in METRICS:
        values = rows["value"].where(rows["metric"] == metric)
        of_best = values.where(rows["method"] == best)
        columns[metric] = of_best.groupby(keys).sum(min_count=1)
        columns[f"{metric} sum"] = values.groupby(keys).sum(min_count=1)
        columns[f"{metric} n"] = values.groupby(keys).count()
    undefined = (rows["metric"] == METRICS[0]) & rows["value"].isna()
    columns["missing"] = undefined.groupby(keys).sum()
    return pd.DataFrame(columns)


def _scored(
    evidence: Evidence, table: pd.DataFrame, methods: list[Entrant], gallery: Gallery[ModalityCard]
) -> Iterator[CaseRow]:
    """A row for every case with scores."""
    cards = {card.case: card for card in gallery.cards}
    answers = answers_of(evidence)
    for row in table.to_dict("records"):
        case, finding = str(row["case"]), str(row["finding"])
        first, card = METRICS[:2], cards.get(case)
        values = [row[name] for metric in first for name in ((metric, f"{metric} mean") if len(methods) > 1
                                                             else (metric,))]  # fmt: skip
        mean = float(row[f"{METRICS[0]} mean"])
        said = answers.get(case, "")
        yield CaseRow(
            case=case,
            group=f"{finding}{SPACE}→{SPACE}{said}" if said else finding,
            values=tuple(float(value) for value in (*values, row[METRICS[2]])),
            note=_note(finding, said, int(row["missing"])),
            link=card.anchor if card else "",
            thumbnail=card.thumbnail if card else "",
            badness=1 - (0.0 if math.isnan(mean) else mean),
        )


def answers_of(evidence: Evidence) -> Mapping[str, str]:
    """The network's answer to each case: the class with the highest probability."""
    said = evidence.run.predictions
    if said.empty:
        return {}
    highest = said.loc[said.groupby("case", observed=True)["probability"].idxmax()]
    return dict(zip(highest["case"].astype(str), highest["finding"].astype(str), strict=True))


def _note(finding: str, said: str, missing: int) -> str:
    """That the answer is wrong, and how many methods have no score."""
    gap = f"{count(missing, 'method')} without MSFI" if missing else ""
    return "; ".join(filter(None, (WRONG if said and said != finding else "", gap)))


def _failed(evidence: Evidence, columns: int) -> Iterator[CaseRow]:
    """A row for every case that failed, before all others."""
    failed = evidence.run.cases[evidence.run.cases["status"] == "failed"]
    for case, stage, reason in failed[["case", "stage", "reason"]].itertuples(index=False):
        yield CaseRow(str(case), "", (math.nan,) * columns, f"failed at {stage}: {reason}", badness=2.0)
