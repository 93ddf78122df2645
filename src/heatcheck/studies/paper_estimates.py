"""What the CheXlocalize paper asks beyond the scores themselves: geometry, confidence, calibration, counts."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pandas as pd
import pyarrow.parquet as pq

from heatcheck.core.records import HUMAN, Estimate, condition
from heatcheck.runs.tables import TABLES, schema_of
from heatcheck.stats.corrections import holm
from heatcheck.studies.calibration_estimates import calibration_estimates, cutoff_estimates
from heatcheck.studies.confidence_estimates import confidence_estimates
from heatcheck.studies.count_estimates import DRAWN, count_estimates
from heatcheck.studies.scaled_predictions import scaled_predictions
from heatcheck.studies.score_grid import PaperRule, ScoreGrid, score_grid
from heatcheck.studies.shape_estimates import REFERENCE, shape_estimates

CONDITIONS = {"": "{}", REFERENCE: condition(preset=REFERENCE)}  # of the scores, by preset
FAMILY = "all slopes of this model's scores on geometry and on confidence"
_NAMES = ["case", "patient", "finding", "method", "model", "metric", "condition"]


def paper_estimates(folder: Path, rule: PaperRule, validation: pd.DataFrame | None = None) -> list[Estimate]:
    """Every such estimate of one model of a run, from the run's joined tables.

    `validation` are predictions on other cases, in the columns of the run's own: temperatures are fitted to them. The
    paper's own numbers are made where the run holds scores under its rules.
    """
    predictions, shapes = (_table(folder, name) for name in ("predictions", "shapes"))
    scaling = scaled_predictions(predictions, validation, rule)
    slopes: list[Estimate] = []
    rows: list[Estimate] = []
    for preset, at in CONDITIONS.items():
        made = rows if preset else slopes
        for metric in ("iou", "hit", "iou_full"):  # one at a time: a large run has millions of rows of each
            grid = _grid(folder, metric, at, rule)
            if not grid.by_method:
                continue
            if metric != "iou_full":
                made += shape_estimates(grid, shapes, rule, preset)
            if metric != "iou":
                made += confidence_estimates(grid, predictions, rule, preset)
            if metric == "iou_full" and not preset:
                rows += cutoff_estimates(grid, shapes, scaling, rule)
    rows += calibration_estimates(scaling, rule)
    rows += count_estimates(predictions, shapes, _readers(folder), rule)
    return [*_corrected(slopes), *rows]


def _corrected(slopes: list[Estimate]) -> list[Estimate]:
    """The slopes with p-values corrected for all of them at once, for the report shows all of them at once."""
    adjusted = holm(np.array([slope.p_value for slope in slopes], float))
    return [replace(slope, p_adjusted=float(p), family=FAMILY) for slope, p in zip(slopes, adjusted, strict=True)]


def _grid(folder: Path, metric: str, at: str, rule: PaperRule) -> ScoreGrid:
    wanted = [("metric", "==", metric), ("condition", "==", at), ("model", "in", [rule.model, ""])]
    return score_grid(metric, _read(folder / "scores.parquet", [*_NAMES[:5], "value"], wanted), rule)


def _readers(folder: Path) -> pd.DataFrame:
    """The readers' pixel counts."""
    wanted = [("metric", "in", list(DRAWN)), ("method", "==", HUMAN)]
    return _read(folder / "scores.parquet", [*_NAMES, "value"], wanted)


def _read(file: Path, columns: list[str], wanted: Sequence[tuple[str, str, object]]) -> pd.DataFrame:
    """Some rows, with names as categories: they repeat, and numbers in their place keep a large run in memory."""
    words = [name for name in columns if name != "value"]
    return pq.read_table(file, columns=columns, filters=wanted, read_dictionary=words).to_pandas()


def _table(folder: Path, name: str) -> pd.DataFrame:
    file = folder / f"{name}.parquet"
    return pq.read_table(file).to_pandas() if file.exists() else schema_of(TABLES[name]).empty_table().to_pandas()
