"""The rule by which a study turns maps into regions."""

from dataclasses import dataclass
from typing import Literal

from heatcheck.core.records import Map, Mask
from heatcheck.regions.colours import colour_region
from heatcheck.regions.fixed import fixed_region
from heatcheck.regions.otsu import otsu_region

Threshold = Literal["otsu"] | float


@dataclass(frozen=True, slots=True)
class RegionRule:
    """A threshold, and by how much the map is smoothed before (a fraction of the image's longer side).

    Only Otsu's threshold allows smoothing: a fixed one was tuned on unsmoothed maps. `colours` is the box with which
    the CheXlocalize benchmark smooths a map's colours instead of the map: in pixels, or below 1 as such a fraction.
    """

    threshold: Threshold = "otsu"
    smooth: float = 0.0
    colours: float = 0

    def __post_init__(self) -> None:
        fixed = self.threshold != "otsu"
        if fixed and (isinstance(self.threshold, str) or not 0 <= self.threshold < 1):
            raise ValueError(f"a region's threshold must be 'otsu' or a number from 0 up to 1, got {self.threshold!r}")
        if not 0 <= self.smooth <= 1:
            raise ValueError(f"smoothing must be a fraction of the image's side between 0 and 1, got {self.smooth}")
        if self.colours < 0 or (self.colours > 1 and self.colours % 1):
            raise ValueError(
                f"colours are smoothed by a whole number of pixels, or by a fraction of the image's side below 1, got "
                f"{self.colours:g}"
            )
        if self.colours and self.smooth:
            raise ValueError("smooth either the map (a fraction of its side) or its colours (pixels), not both")
        if fixed and (self.smooth or self.colours):
            raise ValueError("smoothing works with the threshold 'otsu' only; set smooth to 0 for a fixed threshold")


def region_of(prepared: Map, rule: RegionRule) -> Mask:
    """The region of a map that `maps.prepare.prepare(raw, rule.smooth)` has stretched to [0, 1] and smoothed.

    Stages do not import one another, so the study calls `prepare` itself.
    """
    if rule.colours:
        share = round(rule.colours * max(prepared.shape)) if rule.colours < 1 else rule.colours
        return colour_region(prepared, max(1, int(share)))
    if rule.threshold == "otsu":
        return otsu_region(prepared)
    return fixed_region(prepared, rule.threshold)
