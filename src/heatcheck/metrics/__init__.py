"""Metrics: scores of regions, peaks, boxes and maps against the truth; importing this package fills the registries."""

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
from heatcheck.metrics.modality import importance, msfi, removal, shares
from heatcheck.metrics.registry import METRIC_FACTS, METRICS

__all__ = [
    "METRICS",
    "METRIC_FACTS",
    "boxes",
    "classification",
    "importance",
    "label_information",
    "msfi",
    "overlap",
    "pixels",
    "pointing",
    "recovery",
    "relevance",
    "reliance",
    "removal",
    "shares",
    "similarity",
    "trigger_boxes",
]
