"""What the modalities are worth to the network of one fold, as the scores of its maps need it: without intervals."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from heatcheck.metrics.modality.msfi import ByModality
from heatcheck.stats.balanced import balanced_values
from heatcheck.stats.shapley import shapley
from heatcheck.studies.modality_rule import ModalityRule
from heatcheck.studies.modality_worth import Told, Worths

DIGITS = 9  # far finer than one case of many; sums in another order must not break a tie


@dataclass(frozen=True)
class Importances:
    """The worth of each modality of one fold, in the order of the modalities; NaN where no case tells.

    So, too, where a class has no case and classes count the same.
    """

    modality: ByModality  # what is lost without it
    lesion: ByModality  # what is lost without its lesion
    known: ByModality | None = None  # how often it alone leads to the right class, where that was tried

    @property
    def of_features(self) -> Mapping[str, ByModality]:
        """Each worth that may weigh the modalities of a map."""
        return {"lesion": self.lesion} | ({} if self.known is None else {"known": self.known})


def importances(folder: Path, fold: int, rule: ModalityRule) -> Importances:
    """The worths of one fold under the measure and the fill that count, from the rows in the run's folder."""
    worths = Worths.read(folder, rule)
    return Importances(_shapley(worths, "modality", fold), _shapley(worths, "lesion", fold), _known(worths, fold))


def _shapley(worths: Worths, kind: str, fold: int) -> ByModality:
    rule = worths.rule
    told = _of_fold(worths.told(kind, rule.fills[0]), fold)
    if not len(told.right):
        return np.full(len(rule.modalities), np.nan)
    found = shapley(balanced_values(told.right, told.strata(rule.measure, rule.classes)), rule.coalitions)
    return np.round(found.values, DIGITS)


def _known(worths: Worths, fold: int) -> ByModality | None:
    """The accuracy on the cases of each modality that was tried, and 0 for the others."""
    rule = worths.rule
    if not rule.known:
        return None
    found = {name: _of_fold(worths.known(name), fold).right for name in rule.known}
    shares = {name: float(right.mean()) if right.size else float("nan") for name, right in found.items()}
    return np.array([shares.get(name, 0.0) for name in rule.modalities])


def _of_fold(told: Told, fold: int) -> Told:
    return told.only(told.folds == fold)
