"""What a map goes through before a region is cut out of it."""

from heatcheck.core.records import Map
from heatcheck.maps.normalise import min_max
from heatcheck.maps.smooth import box_smooth


def prepare(raw: Map, smooth: float = 0.0) -> Map:
    """The map that `regions.rule.region_of` expects: stretched to [0, 1], after smoothing by that share of its side.

    Smoothing flattens a fine-grained map to a few hundredths, of which Otsu's 256 levels would see four or five: so
    the map is stretched again. Stages do not import one another, so a study joins them:
    `region_of(prepare(raw, rule.smooth), rule)`.
    """
    normalised = min_max(raw)
    return min_max(box_smooth(normalised, smooth)) if smooth else normalised
