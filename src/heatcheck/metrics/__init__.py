"""From a region, peaks, a box or a map, and the truth, to a score; importing this folder fills the registries."""

from heatcheck.metrics import (
    boxes,
    classification,
    label_information,
    overlap,
    pixels,
    pointing,
    recovery,
    relevance,
    reliance,
    similarity,
    trigger_boxes,
)
from heatcheck.metrics.modality import importance as worth
from heatcheck.metrics.modality import msfi, removal
from heatcheck.metrics.modality import shares as modalities
from heatcheck.metrics.registry import METRIC_FACTS, METRICS

__all__ = [
    "METRICS",
    "METRIC_FACTS",
    "boxes",
    "classification",
    "label_information",
    "modalities",
    "msfi",
    "overlap",
    "pixels",
    "pointing",
    "recovery",
    "relevance",
    "reliance",
    "removal",
    "similarity",
    "trigger_boxes",
    "worth",
]
