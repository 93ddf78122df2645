"""Drawn plots with their headings, alone or in groups that share a scale."""

from dataclasses import dataclass

from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Panel:
    """A drawn plot with its heading."""

    heading: str
    plot: Markup


@dataclass(frozen=True, slots=True)
class PanelGroup:
    """The plots of one metric, drawn on one scale."""

    name: str
    sentence: str
    panels: tuple[Panel, ...]
