"""What is missing from the numbers: undefined scores by reason, and the cases that failed."""

import pandas as pd

from heatcheck.runs.store import Run


def undefined_scores(run: Run) -> pd.DataFrame:
    """How many scores are undefined, by metric, method and reason, most first; `of` is all scores of that pair."""
    scores = run.scores
    columns = ["metric", "method", "reason", "undefined", "of"]
    missing = scores[scores["value"].isna()]
    if missing.empty:
        return pd.DataFrame({name: [] for name in columns})
    counts = missing.groupby(["metric", "method", "reason"], as_index=False).size()
    totals = scores.groupby(["metric", "method"], as_index=False).size()
    table = counts.merge(totals, on=["metric", "method"], suffixes=("", "_all"))
    table = table.rename(columns={"size": "undefined", "size_all": "of"})
    return table.sort_values(["undefined", "metric", "method", "reason"], ascending=[False, True, True, True])[columns]


def failed_cases(run: Run) -> pd.DataFrame:
    """The cases that failed, with the stage and the reason."""
    columns = ["case", "patient", "stage", "reason"]
    failed = run.cases[run.cases["status"] == "failed"]
    return failed[columns].sort_values("case")


def seconds_per_map(run: Run) -> pd.DataFrame:
    """How long each method took for one map, slowest first."""
    steps = run.timings[run.timings["step"] == "map"]
    if steps.empty:
        return pd.DataFrame({name: [] for name in ("method", "maps", "seconds", "seconds_per_map")})
    table = steps.groupby("method", as_index=False)[["maps", "seconds"]].sum()
    table["seconds_per_map"] = table["seconds"] / table["maps"].where(table["maps"] > 0)
    return table.sort_values("seconds_per_map", ascending=False)
