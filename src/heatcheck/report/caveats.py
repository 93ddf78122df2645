"""Caveats that apply to every study's verdict, one plain sentence each."""

from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import count, few


def of_every_study(evidence: Evidence) -> tuple[str, ...]:
    """The caveats of any run, which come before those of its study."""
    return evidence.manifest.cautions


def failed(evidence: Evidence) -> str:
    """How many cases failed."""
    lost = int((evidence.run.cases["status"] == "failed").sum())
    if not lost:
        return ""
    total = len(evidence.run.cases)
    return f"{lost:,} of {count(total, 'case')} failed and took no part; the section on gaps lists them with reasons."


def smaller_settings(evidence: Evidence) -> str:
    """How many methods ran with smaller settings than usual and might do better otherwise."""
    cut = [method.label for method in evidence.methods if method.saves_time]
    if not cut:
        return ""
    were, they = ("was", "it") if len(cut) == 1 else ("were", "they")
    return (
        f"{few(cut)} {were} run with smaller settings than usual to save time, and {they} might do better with those."
    )
