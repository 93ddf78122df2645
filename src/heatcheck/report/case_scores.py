"""The scores of every single case as a table to save: a row per map, a column per metric, written piece by piece."""

from collections.abc import Iterator
from typing import Any

import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from heatcheck.report.downloads import Download, piecewise
from heatcheck.runs.manifest import Manifest
from heatcheck.runs.store import Run

FILE = "cases.csv"
LARGEST = 2_000_000  # bytes inside the page; a larger table lies in the run folder
_MAP = ["case", "patient", "finding", "method", "model", "condition"]


def case_scores(run: Run) -> Iterator[pd.DataFrame]:
    """The run's scores, a row per case, finding, method, model and condition, with a column per metric.

    One table per row group, in the order of the run. Scores of two methods, such as how alike their maps are, are left
    out, and so are counts that the run does not list as metrics.
    """
    metrics = metrics_of(run)
    waiting = None  # scores of the last case, of which the next group may have more
    for group in run.row_groups("scores", [*_MAP, "metric", "value", "reason", "other_method"]):
        scores = _listed(group, metrics)
        scores = pa.concat_tables([waiting, scores]).unify_dictionaries() if waiting else scores
        if not scores.num_rows:
            continue
        last = pc.equal(scores["case"].cast(pa.string()), scores["case"][-1].as_py())
        waiting, complete = scores.filter(last), scores.filter(pc.invert(last))
        if complete.num_rows:
            yield run.shown(_wide(complete.to_pandas(), metrics))
    if waiting:
        yield run.shown(_wide(waiting.to_pandas(), metrics))


def metrics_of(run: Run) -> list[str]:
    """The metrics of single cases, in the order in which the run lists them; all, if it lists none."""
    groups = run.row_groups("scores", ["metric"])
    found = dict.fromkeys(name for group in groups for name in group["metric"].unique().to_pylist())
    listed = [entry.name for entry in run.manifest_as(Manifest).metrics]
    return [name for name in listed or found if name in found]


def _listed(group: Any, metrics: list[str]) -> Any:  # noqa: ANN401 - pyarrow ships no types
    """The scores of single maps by these metrics."""
    wanted = pc.is_in(group["metric"].cast(pa.string()), pa.array(metrics, pa.string()))
    alone = pc.equal(group["other_method"].cast(pa.string()), "")
    return group.filter(pc.and_(wanted, alone)).drop(["other_method"])


def _wide(scores: pd.DataFrame, metrics: list[str]) -> pd.DataFrame:
    """A row per map in the order of the scores; the reasons say why scores are undefined."""
    place = scores.groupby(_MAP, sort=False, observed=True).ngroup()
    scores = scores.assign(place=place, metric=scores["metric"].astype(str), reason=scores["reason"].astype(str))
    maps = scores.drop_duplicates("place").set_index("place")[_MAP].astype(str)
    values = scores.drop_duplicates(["place", "metric"]).set_index(["place", "metric"])["value"].unstack()  # noqa: PD010
    given = scores.loc[scores["reason"] != "", ["place", "reason"]].drop_duplicates()
    reasons = given.groupby("place")["reason"].agg("; ".join)
    return maps.join(values.reindex(columns=metrics)).assign(reason=reasons).fillna({"reason": ""})


def download(run: Run) -> Download | None:
    """The scores of all cases to save; None where the run has none yet."""

    def pieces() -> Iterator[str]:
        for number, table in enumerate(case_scores(run)):
            yield table.to_csv(index=False, header=number == 0, float_format="%.6g")

    about = "the scores of every map: a row per case, finding, method and condition"
    file = piecewise(FILE, about, pieces, LARGEST)
    return file if file.rows else None
