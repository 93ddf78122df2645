"""The same maps under other conditions: with tuned thresholds and cutoffs, and under the benchmark's rules."""

import math
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
from jaxtyping import Float

from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import HUMAN, Estimate
from heatcheck.core.vocabulary import DIFFERENCE, MEAN, PERCENT_DECREASE
from heatcheck.estimating.score_values import Values
from heatcheck.scoring.rows import AT_TUNED_CUTOFF, AT_TUNED_THRESHOLD, PLAINLY_PLACED, REFERENCE
from heatcheck.stats.resampling.reference_bootstrap import average_decrease, decreases, replicates, summaries
from heatcheck.studies.localization.estimates import distances_from_human, families, mean_rows, read_values
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.vocabulary import PLACEMENT, TESTED

_TUNED = {"iou": AT_TUNED_THRESHOLD, "iou_full": AT_TUNED_CUTOFF}


def conditional_estimates(folder: Path, settings: LocalizationSettings, *, tuned: bool) -> list[Estimate]:
    """One model's results with tuned thresholds and cutoffs, and under the benchmark's rules, where there are any."""
    rows: list[Estimate] = []
    for metric, under in _TUNED.items() if tuned else ():
        values = read_values(folder, metric, settings, under)
        if metric in settings.metrics and _has_methods(values, settings):
            rows += [row for row in mean_rows(values, settings, under) if row.method != HUMAN]
            rows += distances_from_human(values, settings, under, [DIFFERENCE])
    for metric in TESTED:
        if metric in settings.metrics:
            rows += _placement_rows(read_values(folder, metric, settings), folder, settings)
    cases = _truth_cases(folder)
    for metric in TESTED:
        values = read_values(folder, metric, settings, REFERENCE, REFERENCE)
        if metric in settings.metrics and _has_methods(values, settings):
            rows += _reference_rows(values, settings, cases)
    return rows


def _has_methods(values: Values, settings: LocalizationSettings) -> bool:
    return any(table[list(settings.methods)].notna().any(axis=None) for table in values.by_finding.values())


def _placement_rows(placed: Values, folder: Path, settings: LocalizationSettings) -> Iterator[Estimate]:
    """Each coarse method's mean less that of the same maps as plain resizing places them."""
    plain = read_values(folder, placed.metric, settings, PLAINLY_PLACED)
    both, moved = {}, set[str]()
    for finding, table in placed.by_finding.items():
        if finding in plain.by_finding:
            other = plain.by_finding[finding][list(settings.methods)].dropna(axis=1, how="all")
            moved |= set(other.columns)
            both[finding] = table.join(other.rename(columns=_plainly))
    names = [name for name in settings.methods if name in moved]
    columns = [*names, *map(_plainly, names)]
    tables = {finding: table.reindex(columns=["patient", *columns]) for finding, table in both.items()}
    values = Values(placed.metric, tuple(columns), tables)
    template = Estimate(PLACEMENT, placed.metric, model=settings.model)
    compared = [(_plainly(name), name) for name in names]
    for row in families(values, settings, template, compared, "maps where their cells look against plain resizing"):
        yield replace(row, other_method="", condition=PLAINLY_PLACED)


def _plainly(method: str) -> str:
    return f"{method} placed plainly"


def _truth_cases(folder: Path) -> np.ndarray:
    """Every case with an entry in the truth, sorted: the images that the benchmark draws from."""
    cases = pq.read_table(folder / "cases.parquet", columns=["case", "annotated"]).to_pandas()
    return np.array(sorted(cases["case"][cases["annotated"] == 1].unique()), object)


def _reference_rows(values: Values, settings: LocalizationSettings, cases: np.ndarray) -> Iterator[Estimate]:
    """The benchmark's mean of each method and of the readers, and its percentage decrease from the readers.

    The average over findings is the benchmark's as well: of the findings' means, draw by draw.
    """
    findings = [finding for finding in settings.findings if finding in values.by_finding]
    drawn = {name: replicates(_matrix(values, name, findings, cases)) for name in values.columns}
    for method, replicated in drawn.items():
        averages = np.column_stack([replicated, _row_means(replicated)])
        for finding, summary in zip([*findings, ALL], summaries(averages), strict=True):
            yield Estimate(
                MEAN, values.metric, finding, method, settings.model, summary.mean, summary.lower, summary.upper,
                condition=REFERENCE, n_cases=_n_cases(values, method, finding),
            )  # fmt: skip
    if HUMAN in drawn:
        for method in settings.methods:
            yield from _decreases(values, settings, method, (drawn[HUMAN], drawn[method]))


def _decreases(
    values: Values, settings: LocalizationSettings, method: str, drawn: tuple[np.ndarray, np.ndarray]
) -> Iterator[Estimate]:
    findings = [finding for finding in settings.findings if finding in values.by_finding]
    rows = decreases(*drawn)
    defined = [not math.isnan(row.human) and not math.isnan(row.saliency) for row in rows]
    by_finding = dict(zip(findings, rows, strict=True))
    if any(defined):
        chosen = tuple(row for row, known in zip(rows, defined, strict=True) if known)
        by_finding[ALL] = average_decrease(chosen, *(each[:, defined] for each in drawn))
    for finding, row in by_finding.items():
        # a draw on which the readers score 0 has no percentage; the benchmark calls it infinite
        low, high = (bound if math.isfinite(bound) else math.nan for bound in (row.lower, row.upper))
        yield Estimate(
            PERCENT_DECREASE, values.metric, finding, method, settings.model, row.percent, low, high,
            other_method=HUMAN, condition=REFERENCE, n_cases=_n_cases(values, method, finding),
        )  # fmt: skip


def _matrix(values: Values, column: str, findings: list[str], cases: np.ndarray) -> Float[np.ndarray, "cases findings"]:
    return np.column_stack([values.by_finding[f][column].reindex(cases).to_numpy(float) for f in findings])


def _row_means(drawn: Float[np.ndarray, "draws findings"]) -> Float[np.ndarray, " draws"]:
    counts = (~np.isnan(drawn)).sum(1)
    return np.divide(np.nansum(drawn, 1), counts, out=np.full(len(drawn), np.nan), where=counts > 0)


def _n_cases(values: Values, method: str, finding: str) -> int:
    tables = values.by_finding.values() if finding == ALL else [values.by_finding[finding]]
    return int(sum(table[method].notna().sum() for table in tables))
