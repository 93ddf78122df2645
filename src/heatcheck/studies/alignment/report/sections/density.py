"""How the scores of single images are spread, by arm: one small plot per pipeline."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from markupsafe import Markup

from heatcheck.report.charts import svg
from heatcheck.report.charts.axes import Axis, tick_label
from heatcheck.report.charts.legend import Key, key
from heatcheck.report.charts.panels import Panel, PanelGroup
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, number
from heatcheck.studies.alignment.report.facts import ARM_LABELS, pipelines
from heatcheck.studies.alignment.report.scores import SHOWN, ImageScores
from heatcheck.studies.alignment.report.strip import shape
from heatcheck.studies.alignment.vocabulary import MAIN_METRICS

_WIDTH, _HEIGHT = 190.0, 112.0
_LEFT, _TOP, _RIGHT, _BOTTOM = 8.0, 6.0, 182.0, 78.0
_STEPS = 80
FEWEST = 8  # scores for a curve; fewer are shown one by one
_TALLEST = 4.0  # times the lowest peak: one needle must not flatten the other curves
_BELL = "M2 15C12 15 12 3 19 3S26 15 36 15"  # a curve of the legend
_NARROWEST = 0.02  # of the kernel: equal scores must not become a needle


@dataclass(frozen=True, slots=True)
class Density:
    """One arm's scores as a curve."""

    arm: str
    values: np.ndarray

    def evaluate(self, positions: np.ndarray) -> np.ndarray:
        """The density on 0 to 1: Gaussian kernels, reflected at both ends, so that nothing lies beyond them."""
        width = _bandwidth(self.values)
        mirrored = np.concatenate([self.values, -self.values, 2 - self.values])
        kernels = np.exp(-0.5 * ((positions[:, None] - mirrored[None]) / width) ** 2)
        return np.asarray(kernels.sum(1) / (len(self.values) * width * np.sqrt(2 * np.pi)))


def _bandwidth(values: np.ndarray) -> float:
    """Silverman's rule."""
    low, high = np.quantile(values, [0.25, 0.75])
    spread = min(float(values.std()), float(high - low) / 1.34) or float(values.std())
    return max(_NARROWEST, 0.9 * spread * len(values) ** -0.2)


def densities(evidence: Evidence, scores: ImageScores) -> list[PanelGroup]:
    """One group of plots per metric that has scores."""
    groups = []
    for metric in MAIN_METRICS:
        panels = []
        for pipeline in pipelines(evidence):
            rows = scores.rows_of(pipeline)
            drawn = [] if rows.empty else [Density(arm, rows[f"{metric}_{arm}"].dropna().to_numpy()) for arm in SHOWN]
            drawn = [density for density in drawn if len(density.values)]
            if drawn:
                panels.append(Panel(pipeline.label, _draw(f"{metric} of {pipeline.label}", drawn)))
        if panels:
            measure = evidence.metrics[metric]
            groups.append(PanelGroup(measure.label, measure.summary, tuple(panels)))
    return groups


def density_keys() -> tuple[Key, ...]:
    """The marks of the curves."""
    names = {"align": "aligned", "misalign": "misaligned (dashed)"}
    drawn = [
        key(
            name,
            svg.tag("path", d=f"{_BELL}Z", class_=f"density-area arm-{arm}"),
            svg.tag("path", d=_BELL, class_=f"density arm-{arm}"),
        )
        for arm, name in names.items()
    ]
    return (*drawn, key("control (thin line)", svg.tag("path", d=_BELL, class_="density arm-control")))


def _draw(title: str, drawn: Sequence[Density]) -> Markup:
    across = Axis(0, 1, _LEFT, _RIGHT)
    few = min(len(density.values) for density in drawn) < FEWEST
    parts = [svg.line(across.at(t), _TOP, across.at(t), _BOTTOM, "grid") for t in (0, 0.5, 1)]
    parts += [svg.words(across.at(t), _BOTTOM + 14, tick_label(t, SCORE), "tick", "middle") for t in (0, 0.5, 1)]
    parts += _single(drawn, across) if few else _curves(drawn, across)
    parts.append(svg.words((_LEFT + _RIGHT) / 2, _HEIGHT - 4, f"n {len(drawn[-1].values):,}", "axis-title", "middle"))
    name = f"{'Scores' if few else 'Density'} of {title}"
    return svg.picture((_WIDTH, _HEIGHT), name, "; ".join(map(_summary, drawn)) + ".", parts)


def _single(drawn: Sequence[Density], across: Axis) -> list[Markup]:
    """One mark per image and one line per arm."""
    step = (_BOTTOM - _TOP) / len(drawn)
    return [
        svg.group(_summary(density), *(shape(density.arm, across.at(value), _TOP + step * (i + 0.5))
                                    for value in density.values.tolist()))
        for i, density in enumerate(drawn)
    ]  # fmt: skip


def _curves(drawn: Sequence[Density], across: Axis) -> list[Markup]:
    positions = np.linspace(0, 1, _STEPS + 1)
    heights = {density.arm: density.evaluate(positions) for density in drawn}
    peaks = [float(each.max()) for each in heights.values()]
    up = Axis(0, min(max(peaks), _TALLEST * min(peaks)), _BOTTOM, _TOP)
    parts = []
    for density in drawn:
        line = [(across.at(x), up.at(y)) for x, y in zip(positions, heights[density.arm], strict=True)]
        shapes = [svg.path(line, f"density arm-{density.arm}")]
        if density.arm != "control":
            area = [(_LEFT, _BOTTOM), *line, (_RIGHT, _BOTTOM)]
            shapes.insert(0, svg.path(area, f"density-area arm-{density.arm}", closed=True))
        parts.append(svg.group(_summary(density), *shapes))
    return parts


def _summary(density: Density) -> str:
    if len(density.values) < FEWEST:
        return f"{ARM_LABELS[density.arm]}: {', '.join(number(value) for value in sorted(density.values.tolist()))}"
    low, middle, high = (number(float(q)) for q in np.quantile(density.values, [0.05, 0.5, 0.95]))
    return f"{ARM_LABELS[density.arm]}: median {middle}, 90 % from {low} to {high}, n {len(density.values):,}"
