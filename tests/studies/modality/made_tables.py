"""The tables of a made-up modality run, from values in a row, and its estimates by their fields."""

import json
from dataclasses import dataclass

import numpy as np

from heatcheck.core.records import ALL_FINDINGS, Score, Timing
from heatcheck.core.vocabulary import condition
from heatcheck.runs.tables import write_table
from heatcheck.stats.shapley import coalitions
from heatcheck.studies.modality.estimates import modality_estimates
from heatcheck.studies.modality.settings import ModalitySettings

MODEL = "net"
MODALITIES = ("T1", "T1C", "T2", "FLAIR")


def rule_of(**changed):
    """Two modalities, three methods and one fold, unless changed."""
    usual = {
        "modalities": ("T1C", "FLAIR"), "classes": ("LGG", "HGG"), "methods": ("gradient", "lime", "grad_cam"),
        "folds": (1,), "fills": ("zero",), "measure": "balanced",
        "weights": "positive", "importance": "lesion", "known": (), "model": MODEL, "draws": 200, "seed": 5,
    }  # fmt: skip
    named = {**usual, **changed}
    return ModalitySettings(**{"coalitions": coalitions(len(named["modalities"]), 8), **named})


def class_of(number):
    """Every third case is an LGG."""
    return "LGG" if number % 3 == 0 else "HGG"


def subset_name(members, modalities):
    return "+".join(name for name, there in zip(modalities, members, strict=True) if there)


def subsets(right, rule, *, ablated="modality", filled="zero", fold=1, first=0):
    """Whether each case was told right: right[case, subset]."""
    names = [subset_name(row, rule.modalities) for row in rule.coalitions.members]
    return [
        Score(f"c{n}", f"p{n}", class_of(n), "", MODEL, "right", float(value),
              condition(ablated=ablated, filled=filled, fold=fold, shown=name))
        for n, row in enumerate(right, start=first)
        for name, value in zip(names, row, strict=True)
    ]  # fmt: skip


def known(right, modality, *, fold=1):
    """Whether each case on which a modality alone tells the class was told right."""
    at = condition(fold=fold, known=modality)
    return [Score(f"k{n}", f"q{n}", class_of(n), "", MODEL, "right", float(v), at) for n, v in enumerate(right)]


def scored(values, metric, method, *, fold=1, first=0, reason="no positive relevance", **more):
    """One metric of one method, a case of a patient each; `reason` is that of undefined values."""
    at = condition(fold=fold, **more)
    return [
        Score(f"c{n}", f"p{n}", class_of(n), method, MODEL, metric, float(value), at,
              reason=reason if np.isnan(value) else "")
        for n, value in enumerate(values, start=first)
    ]  # fmt: skip


def msfi_of(values, method, **more):
    """MSFI under the condition under which methods are compared."""
    return scored(values, "msfi", method, **{"importance": "lesion", "weights": "positive", **more})


@dataclass
class Found:
    """Estimates that are asked for by their fields."""

    every: list

    def all(self, **wanted):
        return [one for one in self.every if all(getattr(one, name) == value for name, value in wanted.items())]

    def one(self, statistic, metric, method="", other_method="", **facts):
        (found,) = [
            one
            for one in self.all(statistic=statistic, metric=metric, method=method, other_method=other_method)
            if json.loads(one.condition) == facts
        ]
        assert found.finding == ALL_FINDINGS
        assert found.model == MODEL
        return found


def write_run(folder, *scores, worth=(), timings=()):
    """The tables of a run."""
    (folder / "shapley").mkdir(exist_ok=True, parents=True)
    write_table(folder / "scores.parquet", Score, [row for part in scores for row in part])
    write_table(folder / "shapley" / "scores.parquet", Score, [row for part in worth for row in part])
    rows = [Timing(0, "map", method, maps, seconds, MODEL) for method, maps, seconds in timings]
    write_table(folder / "timings.parquet", Timing, rows)


def estimated(folder, rule, *scores, worth=(), timings=()):
    """The estimates of a run with these tables."""
    write_run(folder, *scores, worth=worth, timings=timings)
    return Found(modality_estimates(folder, rule))
