"""The score tables of a modality run: which rows count, and one row per case."""

from collections.abc import Sequence
from pathlib import Path

import pandas as pd

from heatcheck.core.vocabulary import condition
from heatcheck.estimating import score_table
from heatcheck.estimating.score_table import pivoted
from heatcheck.metrics.modality.shares import SAME_SUMS
from heatcheck.metrics.undefined import NO_RELEVANCE
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.vocabulary import COUNTED

KEYS = ["fold", "case", "patient"]
COLUMNS = ["metric", "condition", "method"]
EMPTY_REASONS = (NO_RELEVANCE, SAME_SUMS)  # why a map is empty, though its method could have marked something
_WORDS = ["case", "patient", "finding", "method", "metric", "reason"]


def read_scores(folder: Path, metrics: Sequence[str], model: str) -> pd.DataFrame:
    """The rows of these metrics; the fold is a column of its own, not part of the condition."""
    wanted = [("metric", "in", list(metrics)), ("model", "==", model)]
    return score_table.read_scores(folder, _WORDS, wanted, "fold", absent=1)


def wide(table: pd.DataFrame, columns: Sequence[str]) -> pd.DataFrame:
    """One row per case of a fold, and one column per combination of the named columns that was scored."""
    return pivoted(table, KEYS, columns)


def counted(scores: pd.DataFrame) -> pd.DataFrame:
    """The scores with 0 where a map is empty: leaving these cases out would reward empty maps."""
    return scores.assign(value=scores["value"].mask(is_empty(scores), 0.0))


def is_empty(scores: pd.DataFrame) -> pd.Series:
    """Which scores are undefined because the map is empty, and count 0."""
    return scores["value"].isna() & scores["reason"].isin(EMPTY_REASONS) & scores["metric"].isin(COUNTED)


def of_metric(scores: pd.DataFrame, metric: str, settings: ModalitySettings) -> pd.DataFrame:
    """The rows of one metric under the condition in which methods are compared."""
    return scores[(scores["metric"] == metric) & (scores["condition"] == condition(**settings.primary(metric)))]
