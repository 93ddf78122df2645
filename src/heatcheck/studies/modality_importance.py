"""What the modalities are worth to the network of each fold, from the rows that the subsets left behind."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Float

from heatcheck.core.records import condition
from heatcheck.metrics.msfi import ByModality
from heatcheck.stats.shapley import Coalitions, shapley
from heatcheck.studies.modality_shapley import shown_name


@dataclass(frozen=True)
class Importances:
    """The worth of each modality of one fold, in the order of the modalities."""

    modality: ByModality  # what is lost without it
    lesion: ByModality  # what is lost without its lesion
    known: ByModality | None = None  # how often it alone leads to the right class, where that was tried

    @property
    def of_features(self) -> Mapping[str, ByModality]:
        """Each worth that may weigh the modalities of a map."""
        return {"lesion": self.lesion} | ({} if self.known is None else {"known": self.known})


@dataclass(frozen=True)
class ImportanceRule:
    """Which worth counts."""

    modalities: tuple[str, ...]
    coalitions: Coalitions
    measure: str  # accuracy, or balanced
    filled: str
    known: tuple[str, ...]  # modalities that were tried alone


def importances(scores: pd.DataFrame, fold: int, rule: ImportanceRule) -> Importances:
    """The worths of one fold, from the rows of the subsets."""
    return Importances(
        modality=_shapley(scores, "modality", fold, rule),
        lesion=_shapley(scores, "lesion", fold, rule),
        known=_known(scores, fold, rule),
    )


def _shapley(scores: pd.DataFrame, kind: str, fold: int, rule: ImportanceRule) -> ByModality:
    worth = [
        told_right(_rows(scores, condition(ablated=kind, filled=rule.filled, fold=fold, shown=name)), rule.measure)
        for name in (shown_name(row, rule.modalities) for row in rule.coalitions.members)
    ]
    found = shapley(np.array(worth), rule.coalitions)
    return found.values  # noqa: PD011 - no data frame


def _known(scores: pd.DataFrame, fold: int, rule: ImportanceRule) -> ByModality | None:
    if not rule.known:
        return None
    found = {name: told_right(_rows(scores, condition(fold=fold, known=name)), "accuracy") for name in rule.known}
    return np.array([found.get(name, 0.0) for name in rule.modalities])


def _rows(scores: pd.DataFrame, at: str) -> pd.DataFrame:
    return scores[scores["condition"] == at]


def told_right(rows: pd.DataFrame, measure: str) -> float:
    """The share of cases told right; balanced: the mean over the classes. NaN without cases."""
    if rows.empty:
        return float("nan")
    values: Float[np.ndarray, " rows"] = rows["value"].to_numpy(float)
    if measure == "accuracy":
        return float(values.mean())
    shares: Sequence[float] = [values[(rows["finding"] == name).to_numpy()].mean() for name in rows["finding"].unique()]
    return float(np.mean(shares))
