"""How good the model's own answers are, finding by finding."""

from dataclasses import dataclass

from heatcheck.report.evidence import ALL, Evidence
from heatcheck.report.numbers import MISSING, SCORE, interval, number


@dataclass(frozen=True, slots=True)
class Answers:
    """The model's discrimination and calibration on one finding, as text."""

    finding: str
    auroc: str
    auroc_interval: str
    ece: str
    ece_interval: str
    positives: str
    cases: str
    reason: str


def answers(evidence: Evidence) -> list[Answers]:
    """One row per finding the model was scored on, all findings first."""
    made = {key[2] for key in evidence.estimates if key[0] in {"auroc", "calibration"}}
    return [_answers(evidence, finding) for finding in (ALL, *evidence.findings) if finding in made]


def _answers(evidence: Evidence, finding: str) -> Answers:
    auroc = evidence.find("auroc", "auroc", finding)
    ece = evidence.find("calibration", "ece", finding)
    counted = auroc or ece
    reasons = [row.reason for row in (auroc, ece) if row and row.reason]
    return Answers(
        finding=finding,
        auroc=number(auroc.value) if auroc else MISSING,
        auroc_interval=interval(auroc.low, auroc.high) if auroc else "",
        ece=number(ece.value, SCORE) if ece else MISSING,
        ece_interval=interval(ece.low, ece.high) if ece else "",
        positives=_positives(evidence, finding),
        cases=f"{counted.n_cases:,}" if counted and counted.n_cases else MISSING,
        reason="; ".join(dict.fromkeys(reasons)),
    )


def _positives(evidence: Evidence, finding: str) -> str:
    predictions = evidence.run.predictions
    asked = predictions[predictions["finding"] == finding]
    if asked.empty:
        return MISSING
    return f"{asked[asked['label'] == 1]['case'].nunique():,}"
