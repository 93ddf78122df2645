"""From a modality run's tables to the numbers of its report, the ranks of the methods among them."""

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
from heatcheck.studies.modality.importance import worth_rows
from heatcheck.studies.modality.means import EMPTY, difference_rows, empty_rows, mean_rows, of_metric, read_scores, wide
from heatcheck.studies.modality.ratings import FILE, opinion_rows, read_ratings
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.vocabulary import MAP_METRICS, RANKED

SAYS_NOTHING = (UNINFORMATIVE, *EMPTY)
_DIGITS = 12  # sums in another order must not break a tie


def rank_rows(scores: pd.DataFrame, settings: ModalitySettings) -> Iterator[Estimate]:
    """The ranks of the methods by each metric, compared over the patients of all folds.

    Cases of one patient are not independent, so their scores are averaged first and patients are the blocks.

    What is undefined because of the map itself counts 0: leaving those cases out would reward a map that says nothing.
    A case with another undefined score is left out.
    """
    for metric in RANKED:
        rows = of_metric(scores, metric, settings)
        if rows.empty:
            continue
        counted = rows["value"].mask(rows["reason"].isin(SAYS_NOTHING), 0.0)
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
    """Every estimate of a modality run, from its joined tables, and from the ratings where they lie beside them."""
    scores = read_scores(folder, MAP_METRICS, settings.model)
    rows = [*worth_rows(folder, settings), *mean_rows(scores, settings), *difference_rows(scores, settings)]
    rows += [*empty_rows(scores, settings), *rank_rows(scores, settings), *seconds_rows(folder, settings)]
    if (folder / FILE).exists():
        rows += rating_estimates(folder, settings)
    return rows


def rating_estimates(folder: Path, settings: ModalitySettings) -> list[Estimate]:
    """Those that rest on the ratings in the run's folder."""
    cases = rated_cases(folder, settings)
    ratings = read_ratings(folder / FILE, cases | known_cases(folder), settings.methods).only(cases)
    return list(opinion_rows(folder, ratings, settings)) if ratings.rows else []


def rated_cases(folder: Path, settings: ModalitySettings) -> frozenset[str]:
    """The cases that readers may speak of: those with a map."""
    scores = read_scores(folder, ["msfi"], settings.model)
    return frozenset(scores.loc[scores["method"].isin(settings.methods), "case"])


def known_cases(folder: Path) -> frozenset[str]:
    """The cases that the run has met, be it that they failed."""
    path = folder / "cases.parquet"
    return frozenset(pq.read_table(path, columns=["case"])["case"].to_pylist()) if path.exists() else frozenset()


def seconds_rows(folder: Path, settings: ModalitySettings) -> Iterator[Estimate]:
    """How long each method takes for a map."""
    path = folder / "timings.parquet"
    if not path.exists():
        return
    timings: pd.DataFrame = pq.read_table(path).to_pandas()
    for method in settings.methods:
        own = timings[(timings["step"] == "map") & (timings["method"] == method)]
        maps = int(own["maps"].sum())
        if maps:
            seconds = float(own["seconds"].sum()) / maps
            yield Estimate("seconds", "seconds", ALL, method, settings.model, seconds, n_cases=maps)
