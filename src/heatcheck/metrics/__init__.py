"""From a region, peaks or a map, and the truth, to a score; importing this folder fills the registry."""

from heatcheck.metrics import boxes, overlap, pixels, pointing, relevance
from heatcheck.metrics.registry import METRICS

__all__ = ["METRICS", "boxes", "overlap", "pixels", "pointing", "relevance"]
