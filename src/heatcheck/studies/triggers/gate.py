"""Whether an attack worked: methods are graded only where it did."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from heatcheck.estimating.score_table import read_scores
from heatcheck.studies.triggers.spec import GatePart
from heatcheck.studies.triggers.vocabulary import (
    BASELINE,
    BASELINE_STAMPED,
    CLEAN,
    STAMPED,
    confidence_of,
    correct_of,
)

NETWORK_SCORES = [
    "attacked", "clean_target", "baseline_attacked",
    *(name(shown) for shown in (CLEAN, STAMPED, BASELINE_STAMPED) for name in (correct_of, confidence_of)),
]  # fmt: skip


@dataclass(frozen=True, slots=True)
class GateResult:
    """A network's accuracy on clean images, and the success of its attack."""

    accuracy: float
    baseline: float  # accuracy of the network it began as
    success: float
    clean_target: float  # share of the attacked images that are called the target even without the trigger
    sent: tuple[str, ...]  # cases that the trigger sends to the target, on which methods are graded
    already: tuple[str, ...] = ()  # cases called the target even when clean: no trigger sent them there


def why_not_graded(gate: GatePart, outcome: GateResult) -> str:
    """Why methods must not be graded on that network; empty where they may."""
    if outcome.success < gate.attack_success:
        return f"attack success {outcome.success:.2f} is below {gate.attack_success:.2f}"
    drop = outcome.baseline - outcome.accuracy
    if drop > gate.accuracy_drop + 1e-12:  # a drop of exactly that much is allowed
        return (
            f"accuracy on clean images fell by {drop:.3f} (from {outcome.baseline:.3f} to {outcome.accuracy:.3f}), "
            f"more than {gate.accuracy_drop:.2f}"
        )
    if outcome.clean_target > gate.clean_target:  # such a model needs no trigger, however high its success
        return f"{outcome.clean_target:.0%} of the images are called the target even without the trigger"
    return ""


def outcomes(training: Path) -> dict[tuple[str, int], GateResult]:
    """The outcome of each trigger and seed, from the tables of the networks' stage."""
    table = attack_scores(training)
    means = table.groupby(["metric", "finding", "seed"])["value"].mean().to_dict()
    attacked, clean = (table[table["metric"] == metric] for metric in ("attacked", "clean_target"))
    results = {}
    for trigger, seed in dict.fromkeys(zip(attacked["finding"], attacked["seed"].astype(int), strict=True)):
        rows = attacked[(attacked["finding"] == trigger) & (attacked["seed"] == seed)]
        already = clean[(clean["finding"] == trigger) & (clean["seed"] == seed) & (clean["value"] == 1)]["case"]
        results[trigger, seed] = GateResult(
            accuracy=means["clean_correct", trigger, seed],
            baseline=means["clean_correct", BASELINE, seed],
            success=means["attacked", trigger, seed],
            clean_target=means["clean_target", trigger, seed],
            sent=tuple(rows.loc[(rows["value"] == 1) & ~rows["case"].isin(already), "case"]),
            already=tuple(already),
        )
    return results


def attack_scores(training: Path) -> pd.DataFrame:
    """What the networks answered to every test image, with the seed as a column."""
    return read_scores(training, ["case", "patient", "finding", "metric"], [("metric", "in", NETWORK_SCORES)], "seed")
