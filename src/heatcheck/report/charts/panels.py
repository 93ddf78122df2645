"""Drawn plots with their headings, alone or in groups that share a scale."""

from dataclasses import dataclass

from markupsafe import Markup


@dataclass(frozen=True, slots=True)
class Panel:
    """A drawn plot with its heading, and a note below it."""

    heading: str
    plot: Markup
    note: str = ""


@dataclass(frozen=True, slots=True)
class PanelGroup:
    """The plots of one metric, drawn on one scale."""

    name: str
    sentence: str
    panels: tuple[Panel, ...]
