"""From a modality run's tables to the numbers of its report."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from heatcheck.core.records import Estimate
from heatcheck.studies.modality_means import difference_rows, empty_rows, mean_rows
from heatcheck.studies.modality_opinions import opinion_rows
from heatcheck.studies.modality_ranks import rank_rows
from heatcheck.studies.modality_ratings import FILE, read_ratings
from heatcheck.studies.modality_reading import read_scores
from heatcheck.studies.modality_rule import MAP_METRICS, ModalityRule
from heatcheck.studies.modality_worth import worth_rows


def modality_estimates(folder: Path, rule: ModalityRule) -> list[Estimate]:
    """Every estimate of a modality run, from its joined tables, and from the ratings where they lie beside them."""
    scores = read_scores(folder, MAP_METRICS, rule.model)
    rows = [*worth_rows(folder, rule), *mean_rows(scores, rule), *difference_rows(scores, rule)]
    rows += [*empty_rows(scores, rule), *rank_rows(scores, rule), *seconds_rows(folder, rule)]
    if (folder / FILE).exists():
        rows += rating_estimates(folder, rule)
    return rows


def rating_estimates(folder: Path, rule: ModalityRule) -> list[Estimate]:
    """Those that rest on the ratings in the run's folder."""
    cases = rated_cases(folder, rule)
    ratings = read_ratings(folder / FILE, cases | known_cases(folder), rule.methods).only(cases)
    return list(opinion_rows(folder, ratings, rule)) if ratings.rows else []


def rated_cases(folder: Path, rule: ModalityRule) -> frozenset[str]:
    """The cases that readers may speak of: those with a map."""
    scores = read_scores(folder, ["msfi"], rule.model)
    return frozenset(scores.loc[scores["method"].isin(rule.methods), "case"])


def known_cases(folder: Path) -> frozenset[str]:
    """The cases that the run has met, be it that they failed."""
    path = folder / "cases.parquet"
    return frozenset(pq.read_table(path, columns=["case"])["case"].to_pylist()) if path.exists() else frozenset()


def seconds_rows(folder: Path, rule: ModalityRule) -> Iterator[Estimate]:
    """How long each method takes for a map."""
    path = folder / "timings.parquet"
    if not path.exists():
        return
    timings: pd.DataFrame = pq.read_table(path).to_pandas()
    for method in rule.methods:
        own = timings[(timings["step"] == "map") & (timings["method"] == method)]
        maps = int(own["maps"].sum())
        if maps:
            blank = rule.blank("seconds", "seconds", method)
            yield replace(blank, value=float(own["seconds"].sum()) / maps, n_cases=maps)
