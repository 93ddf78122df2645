"""The scores of a run as grids, a row a case and a column a finding, beside which features are laid."""

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
    own_levels: bool = True  # whether each finding has its own level in a fit over all

    def laid_beside(self, table: pd.DataFrame, column: str) -> Grid:
        """A column of a table with a row per case and finding, where this grid has its cases and findings."""
        row = self.cases.get_indexer(pd.Index(table["case"]))
        place = positions(table["finding"], self.findings)
        here = (row >= 0) & (place >= 0)
        grid = np.full(self.is_scored.shape, np.nan)
        grid[row[here], place[here]] = table[column].to_numpy(float)[here]
        return grid

    def observations(self, feature: Grid, values: Grid, finding: str | None = None) -> Observations:
        """The scored rows that have the feature: of one finding, or of all with the finding as their group."""
        usable = self.is_scored & ~np.isnan(feature)
        if finding is not None:
            usable &= np.array(self.findings) == finding
        row, group = np.nonzero(usable)
        return Observations(feature[usable], values[usable], group * self.own_levels, self.patients[row])


def score_grid(metric: str, scores: pd.DataFrame, settings: LocalizationSettings) -> ScoreGrid:
    """The grid of one metric's scores under one condition; other models' and other findings' rows take no part."""
    columns = [*settings.methods, HUMAN]
    layer, place = positions(scores["method"], columns), positions(scores["finding"], settings.findings)
    is_human = layer == len(settings.methods)
    mine = (place >= 0) & (layer >= 0) & ((scores["model"] == settings.model).to_numpy() | is_human)
    layer, place, is_human = layer[mine], place[mine], is_human[mine]
    case, cases = _numbered(scores["case"][mine])
    patient, _ = _numbered(scores["patient"][mine])
    values = np.full((len(columns), len(cases), len(settings.findings)), np.nan)
    values[layer, case, place] = scores["value"].to_numpy(float)[mine]
    is_scored = np.zeros(values.shape[1:], bool)
    is_scored[case[~is_human], place[~is_human]] = True
    patients = np.arange(len(cases))
    if settings.rules.resampling == "patients":
        patients[case] = patient
    used = {columns[number]: values[number] for number in np.unique(layer)}
    own_levels = settings.rules.pooled_fits == "fixed_effects"
    return ScoreGrid(metric, tuple(settings.findings), cases, patients, is_scored, used, own_levels)


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
