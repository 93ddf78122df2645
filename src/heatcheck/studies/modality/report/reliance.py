"""What the networks rely on: the modalities by importance, which come first, and which clearly help."""

import math
from collections.abc import Mapping
from dataclasses import dataclass

from heatcheck.core.records import Estimate
from heatcheck.judging.judgement import judgement_of
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import POINTS, Unit, interval, number
from heatcheck.studies.modality.report.facts import MEASURES, first_of, importances_of, manifest, phi, primary_game
from heatcheck.studies.modality.vocabulary import PHI_MODALITY

WHOLE_POINTS = Unit(POINTS.factor, 0)


@dataclass(frozen=True, slots=True)
class Reliance:
    """The modalities by importance, over all networks."""

    importances: Mapping[str, Estimate]  # the highest first
    first: tuple[str, ...]  # those that share the first place
    measure: str  # of the performance that importances are a share of

    @property
    def top(self) -> str:
        """The modality with the highest importance."""
        return next(iter(self.importances))

    @property
    def helping(self) -> tuple[str, ...]:
        """Those that clearly help, the highest first."""
        return tuple(name for name, row in self.importances.items() if judgement_of(row).is_yes)

    @property
    def named(self) -> tuple[str, ...]:
        """Those that the networks are said to rely on: they clearly help, and no other is clearly above them."""
        return tuple(name for name in self.helping if name in self.first) or self.helping

    @property
    def is_clear(self) -> bool:
        """Whether one modality clearly helps and is clearly above all others."""
        return len(self.first) == 1 and self.first[0] in self.helping

    @property
    def is_idle(self) -> bool:
        """Whether every modality is known to add nothing that matters."""
        return all(judgement_of(row).is_no for row in self.importances.values())

    @property
    def total(self) -> float:
        """What all modalities together contribute."""
        return sum(row.value for row in self.importances.values())

    def points(self, name: str) -> str:
        """The importance of a modality in words, with its interval."""
        row = self.importances[name]
        between = interval(row.low, row.high, WHOLE_POINTS)
        value = number(row.value, WHOLE_POINTS)
        noun = "percentage point" if value == "1" else "percentage points"
        return f"{value} {noun}" + (f" (95 % interval {between})" if between else "")

    def why_open(self, name: str) -> str:
        """Why a modality's importance has no interval, in brackets; empty where it has one."""
        row = self.importances[name]
        return f" ({row.reason})" if row.reason and math.isnan(row.low) else ""


def reliance_of(evidence: Evidence) -> Reliance | None:
    """What the networks rely on; None where no importance is known."""
    known = importances_of(evidence)
    if not known:
        return None
    ordered = {name: known[name] for name in sorted(known, key=lambda name: -known[name].value)}
    first = first_of(evidence, primary_game(evidence, PHI_MODALITY))
    return Reliance(ordered, first, MEASURES[manifest(evidence).primary.measure])


def why_unknown(evidence: Evidence) -> str:
    """Why no modality has an importance, where the estimates give a reason."""
    game = primary_game(evidence, PHI_MODALITY)
    rows = [phi(evidence, game, name) for name in manifest(evidence).modalities]
    return next((row.reason for row in rows if row and row.reason), "")
