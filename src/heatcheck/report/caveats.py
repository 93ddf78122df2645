"""Caveats that apply to every study's verdict, one plain sentence each."""

from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import count, few


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


def skipped(evidence: Evidence) -> str:
    """Which methods the run did without, since they cannot explain its model."""
    left_out = evidence.manifest.skipped
    if not left_out:
        return ""
    names = [entry.label for entry in left_out]
    they = "it" if len(names) == 1 else "they"
    return f"{few(names)} took no part, because {they} cannot explain this model; the record gives the reasons."
