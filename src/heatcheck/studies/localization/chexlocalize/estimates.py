"""The CheXlocalize paper's further questions: geometry, confidence, calibration and counts."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd
import pyarrow.parquet as pq

from heatcheck.core.records import HUMAN, Estimate
from heatcheck.core.vocabulary import PLAIN, condition
from heatcheck.estimating.slopes import Slope, corrected_slopes
from heatcheck.runs.tables import TABLES, schema_of
from heatcheck.scoring.rows import IS_EMPTY, REFERENCE_AT_CUTOFF
from heatcheck.studies.localization.answers.calibration import (
    calibration_estimates,
    cutoff_estimates,
    scaled_predictions,
)
from heatcheck.studies.localization.answers.views import views_in
from heatcheck.studies.localization.counts import DRAWN, Counted, count_estimates, empty_map_estimates
from heatcheck.studies.localization.estimates import read_values
from heatcheck.studies.localization.regressions import confidence_estimates, shape_estimates
from heatcheck.studies.localization.score_grid import ScoreGrid, score_grid
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.vocabulary import PAPER_PRESET

BENCHMARK = condition(preset=PAPER_PRESET)
# the paper's confidence concerns overlap on all images, with tuned cutoffs; a run that tuned none has whole regions
FULL_SLICE = (REFERENCE_AT_CUTOFF, BENCHMARK)
FAMILY = "all slopes of this model's scores on geometry and on confidence"
_NAMES = ["case", "patient", "finding", "method", "model", "metric", "condition"]


def paper_estimates(
    folder: Path, settings: LocalizationSettings, validation: pd.DataFrame | None = None
) -> list[Estimate]:
    """These estimates for one model, from the run's joined tables.

    Temperatures are fitted to `validation`, a table of predictions on other cases. Estimates under the paper's rules
    are made where the run holds scores under them.
    """
    predictions, shapes = _table(folder, "predictions", [("model", "==", settings.model)]), _table(folder, "shapes")
    views = views_in(folder, settings)
    answers = views.joined(predictions) if views else predictions
    on_images = views.spread(predictions) if views else predictions
    tables = _ModelTables(folder, settings, on_images, shapes)
    scaling = scaled_predictions(answers, validation, settings)
    slopes = tables.slopes("iou", PLAIN) + tables.slopes("hit", PLAIN)
    rows = corrected_slopes(slopes, FAMILY)  # together, because the report shows them together
    theirs = tables.slopes("iou", BENCHMARK, preset=PAPER_PRESET) + tables.slopes("hit", BENCHMARK, preset=PAPER_PRESET)
    theirs += tables.slopes("iou_full", *FULL_SLICE, preset=PAPER_PRESET) if theirs else []
    rows += [slope.row for slope in theirs]
    full = tables.grid("iou_full", PLAIN)
    scaled = views.on_images(scaling.predictions, predictions) if views else scaling.predictions
    rows += cutoff_estimates(full, shapes, replace(scaling, predictions=scaled), settings) if full else []
    rows += calibration_estimates(scaling, settings)
    rows += empty_map_estimates(read_values(folder, IS_EMPTY, settings), shapes, settings)
    return rows + count_estimates(Counted(_table(folder, "cases"), predictions, shapes, _readers(folder)), settings)


@dataclass(frozen=True, slots=True)
class _ModelTables:
    """A run's tables for one model; scores are read metric by metric, since a large run has millions of each."""

    folder: Path
    settings: LocalizationSettings
    predictions: pd.DataFrame
    shapes: pd.DataFrame

    def slopes(self, metric: str, *conditions: str, preset: str = "") -> list[Slope]:
        """The slopes of one metric, under the first of the conditions that has scores.

        Overlap is fitted on the model's confidence where the finding is present; the paper fits that of all images.
        """
        grid = self.grid(metric, *conditions)
        rows: list[Slope] = []
        if grid and metric != "iou_full":
            rows += shape_estimates(grid, self.shapes, self.settings, preset)
        if grid and metric != ("iou" if preset == PAPER_PRESET else "iou_full"):
            rows += confidence_estimates(grid, self.predictions, self.settings, preset)
        return rows

    def grid(self, metric: str, *conditions: str) -> ScoreGrid | None:
        """The methods' scores under the first of the conditions that has any."""
        for under in conditions:
            wanted = [("metric", "==", metric), ("condition", "==", under), ("model", "in", [self.settings.model, ""])]
            scores = _read(self.folder / "scores.parquet", [*_NAMES[:5], "value"], wanted)
            grid = score_grid(metric, scores, self.settings)
            if any(method in grid.by_method for method in self.settings.methods):
                return grid
        return None


def _readers(folder: Path) -> pd.DataFrame:
    """The readers' pixel counts."""
    wanted = [("metric", "in", list(DRAWN)), ("method", "==", HUMAN)]
    return _read(folder / "scores.parquet", [*_NAMES, "value"], wanted)


def _read(file: Path, columns: list[str], wanted: Sequence[tuple[str, str, object]]) -> pd.DataFrame:
    """The wanted rows, with repeated words as categories: a large run must fit into memory."""
    words = [name for name in columns if name != "value"]
    return pq.read_table(file, columns=columns, filters=wanted, read_dictionary=words).to_pandas()


def _table(folder: Path, name: str, wanted: Sequence[tuple[str, str, object]] | None = None) -> pd.DataFrame:
    file = folder / f"{name}.parquet"
    read = pq.read_table(file, filters=wanted) if file.exists() else schema_of(TABLES[name]).empty_table()
    return read.to_pandas()
