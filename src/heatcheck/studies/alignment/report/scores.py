"""The scores of single images, averaged over seeds, by arm."""

import math
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from heatcheck.core.vocabulary import Condition, facts_of
from heatcheck.report.evidence import Evidence
from heatcheck.studies.alignment.report.facts import Pipeline
from heatcheck.studies.alignment.vocabulary import ARMS, DIRECTIONS, MAIN_METRICS

SHOWN = ("control", *DIRECTIONS)
_KEY = ["model", "method", "finding", "case"]
_COLUMNS = [*_KEY, "metric", "condition", "value"]


@dataclass(frozen=True, slots=True)
class ImageScores:
    """A table with one row per image, model, method and finding and one column per metric and arm ("mass_align").

    In each seed, aligned and misaligned scores are both left out where one is undefined.
    """

    table: pd.DataFrame

    def rows_of(self, pipeline: Pipeline) -> pd.DataFrame:
        """The rows of one pipeline."""
        if self.table.empty:
            return self.table
        wanted = (self.table["model"] == pipeline.base.name) & (self.table["method"] == pipeline.method.name)
        return self.table[wanted]


def image_scores(evidence: Evidence) -> ImageScores:
    """The scores of the run's evaluation images."""
    scores = _read(evidence)
    if scores.empty:
        return ImageScores(pd.DataFrame({name: [] for name in _KEY}))
    wide = scores.pivot_table(index=[*_KEY, "seed"], columns=["metric", "arm"], values="value", observed=True)
    wide.columns = pd.Index(["_".join(pair) for pair in wide.columns])
    for name in (f"{metric}_{arm}" for metric in MAIN_METRICS for arm in ARMS):
        if name not in wide:
            wide[name] = math.nan
    for metric in MAIN_METRICS:
        both = [f"{metric}_{arm}" for arm in DIRECTIONS]
        wide.loc[wide[both].isna().any(axis=1), both] = math.nan
    means = wide.groupby(level=_KEY, observed=True).mean().reset_index()
    return ImageScores(means.sort_values(_KEY).reset_index(drop=True))


def _read(evidence: Evidence) -> pd.DataFrame:
    """Mass and rank by arm and seed on the evaluation images, of the methods that networks were tuned through."""
    arms: dict[str, tuple[str, int]] = {}
    parts = []
    for group in evidence.run.row_groups("scores", _COLUMNS):
        wanted = group.filter(pc.is_in(group["metric"].cast(pa.string()), pa.array(MAIN_METRICS)))
        part = wanted.to_pandas().astype({name: str for name in _COLUMNS if name != "value"})
        for under in part["condition"].unique():
            arms.setdefault(under, _arm(facts_of(under)))
        part["arm"] = part["condition"].map(lambda under: arms[under][0])
        part["seed"] = part["condition"].map(lambda under: arms[under][1])
        parts.append(part[part["arm"].isin(ARMS)].drop(columns="condition"))
    return evidence.run.shown(pd.concat(parts, ignore_index=True)) if parts else pd.DataFrame()


def _arm(facts: Condition) -> tuple[str, int]:
    """The arm and the seed; no arm for images that were learned from, and for networks of another method."""
    return ("", 0) if set(facts) - {"arm", "seed"} else (facts.get("arm", ""), facts.get("seed", 0))
