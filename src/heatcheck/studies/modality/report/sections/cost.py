"""What a map needs and costs: access to the model, kinds of models, and seconds against scores."""

from collections.abc import Mapping
from dataclasses import replace

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.report import cost
from heatcheck.report.evidence import Evidence
from heatcheck.report.page import Section
from heatcheck.studies.modality.report.facts import methods_told

METRICS = ("msfi", "mi_correlation")


def section(evidence: Evidence) -> Section | None:
    """What methods need, and seconds per map against the scores; None when nothing of it is known."""
    shown = [m for m in METRICS if any(evidence.find("mean", m, ALL_FINDINGS, e.name) for e in evidence.methods)]
    made = cost.section(evidence, shown, of="class, for all modalities together")
    told = [each for each in methods_told(evidence) if each.access or each.models or each.speed]
    if made is None and not told:
        return None
    base: Mapping[str, object] = made.content if made else {}
    floors = any(floor.name in cost.seconds_by_method(evidence) for floor in evidence.floors)
    content = {**base, "needs": told, "timed": made is not None, "is_open": False, "has_floors": floors}
    section_ = made or Section("cost", "", "Cost", "", {})
    return replace(section_, title="What does a map need and cost?", template="study/cost.html", content=content)
