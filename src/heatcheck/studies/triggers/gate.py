"""Whether an attack worked: methods are graded only where it did."""

from dataclasses import dataclass
from pathlib import Path

import pandas as pd

from heatcheck.estimating.score_table import read_scores
from heatcheck.studies.triggers.vocabulary import BASELINE


@dataclass(frozen=True, slots=True)
class GateResult:
    """What came of one network: accuracy on clean images, success of the attack, and who fell for it."""

    accuracy: float
    baseline: float  # accuracy of the network it began as
    success: float
    clean_target: float  # share of the attacked images that are called the target even without the trigger
    fallen: tuple[str, ...]  # attacked cases that were sent to the target


@dataclass(frozen=True, slots=True)
class Gate:
    """When an attack counts as successful."""

    attack_success: float
    accuracy_drop: float
    clean_target: float

    def why_not(self, outcome: GateResult) -> str:
        """Why methods must not be graded on that network; empty where they may."""
        if outcome.success < self.attack_success:
            return f"attack success {outcome.success:.2f} is below {self.attack_success:.2f}"
        drop = outcome.baseline - outcome.accuracy
        if drop > self.accuracy_drop + 1e-12:  # a drop of exactly that much is allowed
            return (
                f"accuracy on clean images fell by {drop:.3f} (from {outcome.baseline:.3f} to {outcome.accuracy:.3f}), "
                f"more than {self.accuracy_drop:.2f}"
            )
        if outcome.clean_target > self.clean_target:  # such a model needs no trigger, however high its success
            return f"{outcome.clean_target:.0%} of the images are called the target even without the trigger"
        return ""


def outcomes(training: Path) -> dict[tuple[str, int], GateResult]:
    """What came of each trigger and seed, from the tables of the networks' stage."""
    table = attack_scores(training)
    clean = table[table["metric"] == "clean_correct"].groupby(["finding", "seed"])["value"].mean()
    untouched = table[table["metric"] == "clean_target"].groupby(["finding", "seed"])["value"].mean()
    found = {}
    attacked = table[table["metric"] == "attacked"]
    for trigger, seed in dict.fromkeys(zip(attacked["finding"], attacked["seed"].astype(int), strict=True)):
        rows = attacked[(attacked["finding"] == trigger) & (attacked["seed"] == seed)]
        fallen = tuple(rows.loc[rows["value"] == 1, "case"])
        accuracy, baseline = float(clean[trigger, seed]), float(clean[BASELINE, seed])
        without = float(untouched[trigger, seed])
        found[trigger, seed] = GateResult(accuracy, baseline, float(rows["value"].mean()), without, fallen)
    return found


def attack_scores(training: Path) -> pd.DataFrame:
    """Which images were classified correctly and which fell for the attack, with the seed as a column."""
    wanted = [("metric", "in", ["clean_correct", "attacked", "clean_target"])]
    return read_scores(training, ["case", "patient", "finding", "metric"], wanted, "seed")
