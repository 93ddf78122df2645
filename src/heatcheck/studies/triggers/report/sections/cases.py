"""Case by case: what every image scored with each trigger or artefact, the worst first."""

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.compute as pc

from heatcheck.core.vocabulary import condition, condition_of
from heatcheck.report.appendix import is_network
from heatcheck.report.blocks.case_table import CaseColumn, CaseRow, CaseTable, worst_and_random
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import count
from heatcheck.report.page import Section
from heatcheck.studies.triggers.report.facts import manifest, triggers_of
from heatcheck.studies.triggers.report.gallery import TriggerGallery
from heatcheck.studies.triggers.report.sections.artefacts import MAIN as OF_ARTEFACTS
from heatcheck.studies.triggers.vocabulary import ARTEFACT, CRITERION_METRICS

FILE = "cases.csv"  # the download that holds all scores
MISSED = 0.1  # an overlap below it shows nobody where the trigger is
_KEYS = ["case", "finding"]
_READ = [*_KEYS, "metric", "method", "condition", "value", "reason"]


@dataclass(frozen=True, slots=True)
class Graded:
    """What is listed: planted triggers, or artefacts where nothing was planted, with the scores to show."""

    noun: str
    metrics: tuple[str, ...]  # the overlap first
    conditions: tuple[str, ...]  # of the scores under the main rule
    columns: tuple[CaseColumn, ...]


@dataclass(frozen=True, slots=True)
class CaseScores:
    """The scores of every method on one image with one trigger, means over seeds; NaN where none is defined."""

    case: str
    trigger: str
    by_metric: tuple[np.ndarray, ...]
    reasons: tuple[str, ...]  # why scores are undefined

    @property
    def highest(self) -> float:
        """The highest overlap of a method."""
        known = _known(self.by_metric[0])
        return float(known.max()) if len(known) else math.nan

    @property
    def means(self) -> tuple[float, ...]:
        """The mean of each metric over the methods that have it."""
        return tuple(float(known.mean()) if len(known := _known(values)) else math.nan for values in self.by_metric)

    @property
    def n_missing(self) -> int:
        """How many methods lack a score."""
        return int(np.isnan(self.by_metric).any(axis=0).sum())


def cases(evidence: Evidence, gallery: TriggerGallery) -> Section | None:
    """The table of all images that were graded or failed; None where none was graded."""
    graded = graded_in(evidence)
    scored = case_scores(evidence, graded)
    if not scored:
        return None
    labels = {trigger.name: trigger.label for trigger in triggers_of(evidence)}
    links = {(card.case, card.trigger): card.strip.anchor for card in gallery.cards}
    rows = [*(_row(each, labels, links) for each in scored), *_failed(evidence, len(graded.columns))]
    over_seeds = "; means over seeds" if len(manifest(evidence).seeds) > 1 else ""
    caption = f"Every image with each {graded.noun}, the lowest mean overlap first{over_seeds}"
    table = CaseTable(caption, graded.noun.capitalize(), graded.columns, worst_and_random(rows), len(rows), FILE)
    return Section("cases", "Case by case", "Cases", (table,), _summary(scored, graded.noun))


def graded_in(evidence: Evidence) -> Graded:
    """What the run graded case by case."""
    overlap = CaseColumn("Highest IoU", 2), CaseColumn("Mean IoU", 2)
    if not triggers_of(evidence):
        return Graded("artefact", (OF_ARTEFACTS,), (condition_of(ARTEFACT),), overlap)
    seeds = (condition(), *(condition(seed=seed) for seed in manifest(evidence).seeds))
    return Graded("trigger", CRITERION_METRICS, seeds, (*overlap, CaseColumn("Recovered by (share)", 2)))


def _summary(scored: Sequence[CaseScores], noun: str) -> str:
    missed = sum(each.highest < MISSED for each in scored)
    images = count(len(scored), "image")
    if missed:
        return f"{images}; on {missed:,} of them no method\u2019s box overlaps the {noun} by {MISSED:g} (IoU)."
    return f"{images}; on each, some method\u2019s box overlaps the {noun} by at least {MISSED:g} (IoU)."


def case_scores(evidence: Evidence, graded: Graded) -> list[CaseScores]:
    """The scores of every method, image by image; read block by block."""
    names = [method.name for method in evidence.methods]
    table = _scores(evidence, graded, names)
    if table.empty:
        return []
    wide = table.pivot_table(index=_KEYS, columns=["metric", "method"], values="value", aggfunc="mean", dropna=False)
    every = pd.MultiIndex.from_frame(table[_KEYS].drop_duplicates())
    wide = wide.reindex(index=every, columns=pd.MultiIndex.from_product([graded.metrics, names])).sort_index()
    reasons = table[table["reason"] != ""].groupby(_KEYS)["reason"].unique()
    parts = len(graded.metrics)
    return [
        CaseScores(str(key[0]), str(key[1]), tuple(np.split(row, parts)), tuple(reasons.get(key, ())))
        for key, row in zip(wide.index, wide.to_numpy(float), strict=True)
    ]


def _scores(evidence: Evidence, graded: Graded, methods: Sequence[str]) -> pd.DataFrame:
    wanted = (("metric", graded.metrics), ("condition", graded.conditions), ("method", methods))
    kept = []
    for block in evidence.run.row_groups("scores", _READ):
        among = block
        for column, names in wanted:
            among = among.filter(pc.is_in(among[column].cast(pa.string()), pa.array(names, pa.string())))
        kept.append(among.to_pandas().astype({name: str for name in _READ if name != "value"}))
    return evidence.run.shown(pd.concat(kept)) if kept else pd.DataFrame(columns=_READ)


def _row(scores: CaseScores, labels: Mapping[str, str], links: Mapping[tuple[str, str], str]) -> CaseRow:
    overlap = scores.means[0]
    return CaseRow(
        case=scores.case,
        group=labels.get(scores.trigger, scores.trigger),
        values=(scores.highest, *scores.means),
        note=_gaps(scores),
        link=links.get((scores.case, scores.trigger), ""),
        badness=1 - (0.0 if math.isnan(overlap) else overlap),
    )


def _known(values: np.ndarray) -> np.ndarray:
    return values[~np.isnan(values)]


def _gaps(scores: CaseScores) -> str:
    """How many methods lack a score, and why."""
    if not scores.n_missing:
        return ""
    why = f": {'; '.join(scores.reasons)}" if scores.reasons else ""
    return f"{count(scores.n_missing, 'method')} without a score{why}"


def _failed(evidence: Evidence, columns: int) -> Iterator[CaseRow]:
    """A row for every image that failed, before all others."""
    table = evidence.run.cases
    failed = table[(table["status"] == "failed") & ~is_network(table)]
    for case, stage, reason in failed[["case", "stage", "reason"]].itertuples(index=False):
        yield CaseRow(str(case), "", (math.nan,) * columns, f"failed at {stage}: {reason}", badness=2.0)
