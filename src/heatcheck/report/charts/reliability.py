"""The reliability curve: how often a finding is there, for each probability the model states."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from heatcheck.core.records import Estimate
from heatcheck.core.vocabulary import RELIABILITY
from heatcheck.report.charts import svg
from heatcheck.report.charts.axes import Axis, grid_below, tick_label
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SHARE, Unit, count

_PERCENT = SHARE.rounded(0)
_SIDE = 300.0
_LEFT, _TOP = 44.0, 10.0


@dataclass(frozen=True, slots=True)
class Bin:
    """The cases to which the model gave about the same probability."""

    predicted: float
    observed: float
    cases: int


def bins_by_finding(evidence: Evidence, *, scaled: bool = False) -> dict[str, list[Bin]]:
    """Each finding's bins in the order of the stated probability, before or after temperature scaling."""
    bins_by_finding: dict[str, list[Bin]] = {}
    for row, facts in evidence.rows(RELIABILITY):
        bin_ = _bin(row, facts) if (facts.get("temperature") == "scaled") == scaled else None
        if bin_:
            bins_by_finding.setdefault(row.finding, []).append(bin_)
    return {finding: sorted(bins, key=lambda b: b.predicted) for finding, bins in bins_by_finding.items()}


def _bin(row: Estimate, facts: Mapping[str, Any]) -> Bin | None:
    try:
        predicted = float(facts["predicted"])
    except (ValueError, KeyError, TypeError):
        return None
    return None if math.isnan(row.value) else Bin(predicted, row.value, row.n_cases)


def draw(finding: str, bins: Sequence[Bin], after: Sequence[Bin] = ()) -> Markup:
    """The curve as inline SVG, and the curve after scaling; a dot's area grows with the number of cases behind it."""
    across = Axis(0, 1, _LEFT, _LEFT + _SIDE)
    up = Axis(0, 1, _TOP + _SIDE, _TOP)
    parts = grid_below(across, _PERCENT, _TOP, _TOP + _SIDE) + _rows(across, up, _PERCENT)
    parts.append(svg.line(across.at(0), up.at(0), across.at(1), up.at(1), "ideal"))
    most = max((b.cases for b in (*bins, *after)), default=0) or 1
    for shown, kind in ((bins, ""), (after, "after")):
        positions = [(across.at(b.predicted), up.at(b.observed)) for b in shown]
        if positions:
            parts.append(svg.path(positions, f"curve {kind}".strip()))
        for b, (x, y) in zip(shown, positions, strict=True):
            parts.append(_dot(b, x, y, 2.5 + 6.5 * math.sqrt(b.cases / most), kind))
    parts += _titles()
    words = " ".join(f"{_alt_text(b)}." for b in bins)
    if after:
        words += " After scaling: " + " ".join(f"{_alt_text(b)}." for b in after)
    size = (_LEFT + _SIDE + 12, _TOP + _SIDE + 42)
    return svg.picture(size, f"Reliability curve, {finding}", words, parts)


def _dot(b: Bin, x: float, y: float, radius: float, kind: str) -> Markup:
    if kind:
        return svg.group(f"after scaling: {_alt_text(b)}", svg.diamond(x, y, radius, "point after"))
    return svg.group(_alt_text(b), svg.circle(x, y, radius, "point method soft"))


def _rows(across: Axis, up: Axis, unit: Unit) -> list[Markup]:
    lines = [svg.line(across.at(0), up.at(t), across.at(1), up.at(t), "grid") for t in up.ticks()]
    labels = [svg.words(across.at(0) - 6, up.at(t) + 4, tick_label(t, unit), "tick", "end") for t in up.ticks()]
    return lines + labels


def _titles() -> list[Markup]:
    middle = _TOP + _SIDE / 2
    turned = svg.tag(
        "text", "finding present (%)", x=12, y=middle, class_="axis-title", text_anchor="middle",
        transform=f"rotate(-90 12 {middle})",
    )  # fmt: skip
    stated = svg.words(
        _LEFT + _SIDE / 2, _TOP + _SIDE + 34, "probability stated by the model (%)", "axis-title", "middle"
    )
    return [turned, stated]


def _alt_text(b: Bin) -> str:
    return f"stated {b.predicted:.0%}, present in {b.observed:.0%} of {count(b.cases, 'case')}"
