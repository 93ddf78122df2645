"""The estimates of a modality run from its tables, among them the ranks of the methods."""

from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import FRIEDMAN
from heatcheck.estimating.ranks import rank_estimates
from heatcheck.metrics.modality.shares import UNINFORMATIVE
from heatcheck.metrics.registry import METRIC_FACTS
from heatcheck.stats.ranks import compare_ranks
from heatcheck.studies.modality.estimating.claims import claim_rows
from heatcheck.studies.modality.estimating.importance import importance_rows
from heatcheck.studies.modality.estimating.means import empty_rows, mean_rows
from heatcheck.studies.modality.estimating.plain import plain_rows
from heatcheck.studies.modality.estimating.quality import quality_rows
from heatcheck.studies.modality.estimating.score_tables import EMPTY_REASONS, of_metric, read_scores, wide
from heatcheck.studies.modality.estimating.subsets import SubsetScores
from heatcheck.studies.modality.estimating.wrong_answers import wrong_answer_rows
from heatcheck.studies.modality.ratings import rating_rows, read_ratings
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.vocabulary import MAP_METRICS, RANKED, RATINGS_FILE, SECONDS

UNINFORMATIVE_REASONS = (UNINFORMATIVE, *EMPTY_REASONS)
_DIGITS = 12  # sums in another order must not break a tie


def rank_rows(scores: pd.DataFrame, settings: ModalitySettings) -> Iterator[Estimate]:
    """The ranks of the methods by each metric, compared over the patients of all folds.

    Cases of one patient are not independent, so their scores are averaged first and patients are the blocks. A score
    that is undefined because of the map itself counts 0: leaving the case out would reward an uninformative map. A case
    with a score that is undefined for another reason is left out.
    """
    for metric in RANKED:
        rows = of_metric(scores, metric, settings)
        if rows.empty:
            continue
        counted = rows["value"].mask(rows["reason"].isin(UNINFORMATIVE_REASONS), 0.0)
        table = wide(rows.assign(value=counted), ["method"]).reindex(columns=list(settings.methods))
        complete = table.dropna()
        patients = complete.groupby(level="patient").mean().round(_DIGITS).to_numpy(float)
        comparison = compare_ranks(patients, higher_is_better=METRIC_FACTS[metric].higher_is_better)
        template = Estimate(
            FRIEDMAN, metric, ALL, model=settings.model, n_cases=len(complete), n_patients=comparison.n_blocks,
            n_undefined=len(table) - len(complete),
        )  # fmt: skip
        yield from rank_estimates(comparison, settings.methods, template)


def modality_estimates(folder: Path, settings: ModalitySettings) -> list[Estimate]:
    """Every estimate of a modality run, from its joined tables and, where there are any, its ratings."""
    scores = read_scores(folder, MAP_METRICS, settings.model)
    subsets = SubsetScores.read(folder, settings)
    importances = list(importance_rows(subsets))
    rows = [
        *importances,
        *plain_rows(folder, subsets),
        *mean_rows(scores, subsets),
        *claim_rows(scores, subsets, importances),
    ]
    rows += [*wrong_answer_rows(folder, scores, settings), *quality_rows(folder, scores, settings)]
    rows += [*empty_rows(scores, settings), *rank_rows(scores, settings), *seconds_rows(folder, settings)]
    if (folder / RATINGS_FILE).exists():
        cases = rated_cases(folder, settings)
        ratings = read_ratings(folder / RATINGS_FILE, cases | known_cases(folder), settings.methods).only(cases)
        rows += rating_rows(folder, ratings, settings) if ratings.rows else []
    return rows


def rated_cases(folder: Path, settings: ModalitySettings) -> frozenset[str]:
    """The cases that can be rated: those with a map."""
    scores = read_scores(folder, ["msfi"], settings.model)
    return frozenset(scores.loc[scores["method"].isin(settings.methods), "case"])


def known_cases(folder: Path) -> frozenset[str]:
    """Every case of the run, also those that failed."""
    path = folder / "cases.parquet"
    return frozenset(pq.read_table(path, columns=["case"])["case"].to_pylist()) if path.exists() else frozenset()


def seconds_rows(folder: Path, settings: ModalitySettings) -> Iterator[Estimate]:
    """Each method's seconds per map."""
    path = folder / "timings.parquet"
    if not path.exists():
        return
    timings: pd.DataFrame = pq.read_table(path).to_pandas()
    for method in settings.methods:
        rows = timings[(timings["step"] == "map") & (timings["method"] == method)]
        maps = int(rows["maps"].sum())
        if maps:
            seconds = float(rows["seconds"].sum()) / maps
            yield Estimate(SECONDS, "seconds", ALL, method, settings.model, seconds, n_cases=maps)
