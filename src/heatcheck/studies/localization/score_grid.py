"""The scores of a run as grids with a row per case and a column per finding, and features on the same grid."""

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd
from jaxtyping import Bool, Float, Int

from heatcheck.core.records import HUMAN
from heatcheck.estimating.score_table import positions
from heatcheck.stats.regression import Observations
from heatcheck.studies.localization.settings import LocalizationSettings

Grid = Float[np.ndarray, "cases findings"]


@dataclass(frozen=True, slots=True)
class ScoreGrid:
    """One metric's values for every method (and the readers), NaN where undefined or not scored."""

    metric: str
    findings: tuple[str, ...]
    cases: pd.Index
    patients: Int[np.ndarray, " cases"]  # codes from 0
    is_scored: Bool[np.ndarray, "cases findings"]  # there is a score, be it undefined
    by_method: Mapping[str, Grid]
    own_levels: bool = True  # whether a fit over all findings gives each its own level

    def on_grid(self, table: pd.DataFrame, column: str) -> Grid:
        """One column of a table with a row per case and finding, on this grid."""
        row = self.cases.get_indexer(pd.Index(table["case"]))
        finding = positions(table["finding"], self.findings)
        known = (row >= 0) & (finding >= 0)
        grid = np.full(self.is_scored.shape, np.nan)
        grid[row[known], finding[known]] = table[column].to_numpy(float)[known]
        return grid

    def observations(self, feature: Grid, values: Grid, finding: str | None = None) -> Observations:
        """The scored rows that have the feature: of one finding, or of all with the finding as their group."""
        usable = self.is_scored & ~np.isnan(feature)
        if finding is not None:
            usable &= np.array(self.findings) == finding
        row, group = np.nonzero(usable)
        return Observations(feature[usable], values[usable], group * self.own_levels, self.patients[row])


def score_grid(metric: str, scores: pd.DataFrame, settings: LocalizationSettings) -> ScoreGrid:
    """The grid of one metric's scores under one condition; rows of other models and findings are left out."""
    columns = [*settings.methods, HUMAN]
    method, finding = positions(scores["method"], columns), positions(scores["finding"], settings.findings)
    is_human = method == len(settings.methods)
    kept = (finding >= 0) & (method >= 0) & ((scores["model"] == settings.model).to_numpy() | is_human)
    method, finding, is_human = method[kept], finding[kept], is_human[kept]
    case, cases = _numbered(scores["case"][kept])
    patient, _ = _numbered(scores["patient"][kept])
    values = np.full((len(columns), len(cases), len(settings.findings)), np.nan)
    values[method, case, finding] = scores["value"].to_numpy(float)[kept]
    is_scored = np.zeros(values.shape[1:], bool)
    is_scored[case[~is_human], finding[~is_human]] = True
    patients = np.arange(len(cases))
    if settings.rules.resampling == "patients":
        patients[case] = patient
    by_method = {columns[number]: values[number] for number in np.unique(method)}
    own_levels = settings.rules.pooled_fits == "fixed_effects"
    return ScoreGrid(metric, tuple(settings.findings), cases, patients, is_scored, by_method, own_levels)


def _numbered(names: pd.Series) -> tuple[Int[np.ndarray, " rows"], pd.Index]:
    """The number of each row's name among all names in sorted order, and those names."""
    words = names.astype("category").cat.remove_unused_categories()
    known = pd.Index(words.cat.categories.to_numpy(object))
    order = np.argsort(known.to_numpy(str), kind="stable")
    number = np.empty(len(known), np.intp)
    number[order] = np.arange(len(known))
    return number[words.cat.codes], known[order]


def is_logistic(grid: ScoreGrid, settings: LocalizationSettings) -> bool:
    """Whether the log odds of the score are fitted: of hits, unless the rules want a line."""
    return grid.metric == "hit" and settings.rules.hits_model == "gee"
