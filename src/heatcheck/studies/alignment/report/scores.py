"""The scores of single images: each arm's mean over seeds, and the pairs of aligned and misaligned networks."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from heatcheck.core.vocabulary import facts_of
from heatcheck.report.evidence import Evidence
from heatcheck.studies.alignment.report.facts import Pipeline
from heatcheck.studies.alignment.vocabulary import DIRECTIONS, MAIN_METRICS

SHOWN = ("control", *DIRECTIONS)
_KEY = ["model", "method", "finding", "case"]
_COLUMNS = [*_KEY, "metric", "condition", "value"]


@dataclass(frozen=True, slots=True)
class ImageScores:
    """A table with one row an image, model, method and finding, and one column a metric and arm, as "mass_align".

    Seeds were averaged; a pair of which one is undefined is left out of both, seed by seed.
    """

    table: pd.DataFrame

    def of(self, pipeline: Pipeline) -> pd.DataFrame:
        """The rows of one pipeline."""
        if self.table.empty:
            return self.table
        own = (self.table["model"] == pipeline.base.name) & (self.table["method"] == pipeline.method.name)
        return self.table[own]


def image_scores(evidence: Evidence) -> ImageScores:
    """What the run's own evaluation images scored."""
    scores = _read(evidence)
    if scores.empty:
        return ImageScores(pd.DataFrame({name: [] for name in _KEY}))
    wide = scores.pivot_table(index=[*_KEY, "seed"], columns=["metric", "arm"], values="value", observed=True)
    wide.columns = pd.Index(["_".join(pair) for pair in wide.columns])
    for name in (f"{metric}_{arm}" for metric in MAIN_METRICS for arm in SHOWN):
        if name not in wide:
            wide[name] = math.nan
    for metric in MAIN_METRICS:
        both = [f"{metric}_{arm}" for arm in DIRECTIONS]
        wide.loc[wide[both].isna().any(axis=1), both] = math.nan
    means = wide.groupby(level=_KEY, observed=True).mean().reset_index()
    return ImageScores(means.sort_values(_KEY).reset_index(drop=True))


def _read(evidence: Evidence) -> pd.DataFrame:
    """The scores of mass and rank by arm and seed, on the evaluation images, by the networks' own methods."""
    arms: dict[str, tuple[str, int]] = {}
    parts = []
    for group in evidence.run.row_groups("scores", _COLUMNS):
        wanted = group.filter(pc.is_in(group["metric"].cast(pa.string()), pa.array(MAIN_METRICS)))
        part = wanted.to_pandas().astype({name: str for name in _COLUMNS if name != "value"})
        for under in part["condition"].unique():
            arms.setdefault(under, _arm(facts_of(under)))
        part["arm"] = part["condition"].map(lambda under: arms[under][0])
        part["seed"] = part["condition"].map(lambda under: arms[under][1])
        parts.append(part[part["arm"].isin(SHOWN)].drop(columns="condition"))
    return evidence.run.shown(pd.concat(parts, ignore_index=True)) if parts else pd.DataFrame()


def _arm(facts: Mapping[str, object]) -> tuple[str, int]:
    """The arm and the seed; no arm for images that were learned from, and for networks of another method."""
    if set(facts) - {"arm", "seed"}:
        return "", 0
    return str(facts.get("arm") or ""), int(json.loads(str(facts.get("seed", 0))))
