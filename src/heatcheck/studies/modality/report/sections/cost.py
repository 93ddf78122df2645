"""What a map needs and costs: access to the model, kinds of models, and seconds against scores."""

from collections.abc import Mapping
from dataclasses import replace

from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import MEAN
from heatcheck.report import cost
from heatcheck.report.evidence import Evidence
from heatcheck.report.page import Section
from heatcheck.studies.modality.report.facts import manifest

METRICS = ("msfi", "mi_correlation")


def section(evidence: Evidence) -> Section | None:
    """What methods need, and seconds per map against the scores; None when nothing of it is known."""
    shown = [m for m in METRICS if any(evidence.find(MEAN, m, ALL_FINDINGS, e.name) for e in evidence.methods)]
    timed = cost.section(evidence, shown, of="class, for all modalities together")
    methods = [method for method in manifest(evidence).methods if method.kind == "method"]
    needs = [method for method in methods if method.access or method.models or method.speed]
    if timed is None and not needs:
        return None
    base: Mapping[str, object] = timed.content if timed else {}
    floors = any(floor.name in cost.seconds_by_method(evidence) for floor in evidence.floors)
    content = {**base, "needs": needs, "timed": timed is not None, "is_open": False, "has_floors": floors}
    section_ = timed or Section("cost", "", "Cost", "", {})
    return replace(section_, title="What does a map need and cost?", template="study/cost.html", content=content)
