"""The learning curve of a training as a picture."""

from collections.abc import Sequence
from pathlib import Path
from typing import Literal, TypeVar

from matplotlib import rc_context
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from heatcheck.training.selection import Candidate, Check, mean_of

Style = TypeVar("Style", bound=str)
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7")  # distinguishable for colour-blind readers too
_DASHES: tuple[Literal["-", "--", ":", "-."], ...] = ("-", "--", ":", "-.")


def draw_curve(out: Path, every: Sequence[Candidate], kept: Sequence[Candidate], by: Sequence[str]) -> None:
    """Write learning-curve.svg and .png: losses and mean AUROC over the steps; strategies by colour, runs by dash."""
    strategies = list(dict.fromkeys(one.strategy for one in every))
    runs = sorted({one.run for one in every})
    with rc_context(
        {"svg.hashsalt": "heatcheck", "font.size": 10, "axes.spines.top": False, "axes.spines.right": False}
    ):
        figure = Figure(figsize=(10, 4.4), layout="constrained")
        left, right = figure.subplots(1, 2)
        names = {one.name for one in kept}
        for colour, strategy in zip(_repeated(_COLOURS), strategies, strict=False):
            for dash, run in zip(_repeated(_DASHES), runs, strict=False):
                candidates = [one for one in every if (one.strategy, one.run) == (strategy, run)]
                steps = [one.check.step for one in candidates]
                marks = [index for index, one in enumerate(candidates) if one.name in names]
                style = {"color": colour, "linestyle": dash, "marker": "o", "markevery": marks, "markersize": 4.5}
                left.plot(steps, [one.check.validation_loss for one in candidates], **style)
                left.plot(
                    steps, [one.check.training_loss for one in candidates], color=colour, linestyle=dash, alpha=0.35
                )
                right.plot(steps, [_mean_auroc(one.check, by) for one in candidates], **style)
        _label(left, "Loss", "pale: training, full: validation")
        over = f"over {len(by)} findings" if by else "over all findings"
        _label(right, "Mean AUROC on the validation data", over)
        figure.legend(handles=_legend(strategies, runs), loc="outside lower center", ncols=6, frameon=False)
        for ending in ("svg", "png"):
            figure.savefig(
                out / f"learning-curve.{ending}", dpi=150, metadata={"Date": None} if ending == "svg" else {}
            )


def _mean_auroc(check: Check, by: Sequence[str]) -> float:
    return mean_of([check.auroc[finding] for finding in by]) if by else check.mean_auroc


def _label(axes: Axes, what: str, note: str) -> None:
    axes.set_xlabel("Step")
    axes.set_title(f"{what}\n", loc="left", fontsize=11)
    axes.text(0, 1.02, note, transform=axes.transAxes, fontsize=9, color="#555555")
    axes.grid(axis="y", color="#dddddd", linewidth=0.6)
    axes.set_axisbelow(True)


def _legend(strategies: Sequence[str], runs: Sequence[int]) -> list[Line2D]:
    named = [
        Line2D([], [], color=colour, label=strategy.replace("_", " "))
        for colour, strategy in zip(_repeated(_COLOURS), strategies, strict=False)
    ]
    dashed = [
        Line2D([], [], color="#555555", linestyle=dash, label=f"run {run}")
        for dash, run in zip(_repeated(_DASHES), runs, strict=False)
    ]
    mark = Line2D([], [], color="#555555", linestyle="", marker="o", markersize=4.5, label="kept")
    return [*named, *(dashed if len(runs) > 1 else []), mark]


def _repeated(styles: tuple[Style, ...]) -> tuple[Style, ...]:
    return styles * 25  # enough for any number of runs in practice
