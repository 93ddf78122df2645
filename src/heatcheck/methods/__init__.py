"""Classifier + images → MapBatch: one file a family; importing this folder fills the registry."""

from heatcheck.methods import (
    cam,
    deep_lift,
    floors,
    gradient,
    lrp,
    perturbation,
    propagation,
    surrogates,
)
from heatcheck.methods.registry import METHODS, MethodFacts, build_method

__all__ = [
    "METHODS",
    "MethodFacts",
    "build_method",
    "cam",
    "deep_lift",
    "floors",
    "gradient",
    "lrp",
    "perturbation",
    "propagation",
    "surrogates",
]
