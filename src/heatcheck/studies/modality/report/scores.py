"""The scores of single cases, by method and fold."""

from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from heatcheck.core.vocabulary import condition
from heatcheck.report.evidence import Evidence
from heatcheck.studies.modality.report.facts import Facts, folds_of

_COLUMNS = ["method", "metric", "condition", "value"]


@dataclass(frozen=True, slots=True)
class CaseScores:
    """Defined scores of one metric by method, each with its fold."""

    by_method: Mapping[str, tuple[tuple[int, float], ...]]

    def of(self, method: str) -> tuple[tuple[int, float], ...]:
        """Fold and value of every case; nothing for a method without scores."""
        return self.by_method.get(method, ())


def case_scores(evidence: Evidence, metric: str, facts: Facts) -> CaseScores:
    """What the cases scored under these facts, in every fold."""
    folds = {condition(**{**facts, "fold": fold}): fold for fold in folds_of(evidence)}
    parts = []
    for group in evidence.run.row_groups("scores", _COLUMNS):
        own = group.filter(pc.equal(group["metric"].cast(pa.string()), metric))
        part = own.filter(pc.is_in(own["condition"].cast(pa.string()), pa.array(list(folds))))
        parts.append(part.to_pandas().astype({"method": str, "condition": str}))
    table = pd.concat(parts, ignore_index=True).dropna(subset=["value"]) if parts else pd.DataFrame(columns=_COLUMNS)
    table = table.assign(fold=table["condition"].map(folds))
    return CaseScores(
        {
            str(method): tuple(
                zip(rows["fold"].astype(int).tolist(), rows["value"].astype(float).tolist(), strict=True)
            )
            for method, rows in table.groupby("method")
        }
    )
