"""The steps from a raw map to one from which a region can be cut."""

from heatcheck.core.records import Map
from heatcheck.maps.normalise import min_max
from heatcheck.maps.smooth import box_smooth


def prepare(raw: Map, smooth: float = 0.0) -> Map:
    """The map that `regions.rule.region_of` expects: stretched to [0, 1] and optionally smoothed.

    `smooth` is the width of the box as a share of the longer side. Smoothing compresses a fine-grained map to a few of
    Otsu's 256 levels, so the map is stretched again. Stages do not import one another, so a study joins them:
    `region_of(prepare(raw, rule.smooth), rule)`.
    """
    normalised = min_max(raw)
    return min_max(box_smooth(normalised, smooth)) if smooth else normalised
