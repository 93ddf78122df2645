"""Classifier + images → MapBatch: one file per family; importing this folder fills the registry."""

from heatcheck.methods import attention, cam, deep_lift, floors, gradient, lrp, perturbation, propagation, surrogates
from heatcheck.methods.registry import (
    METHODS,
    MethodFacts,
    build_method,
    changed_settings,
    plain_settings,
    shares_modalities,
)

__all__ = [
    "METHODS",
    "MethodFacts",
    "attention",
    "build_method",
    "cam",
    "changed_settings",
    "deep_lift",
    "floors",
    "gradient",
    "lrp",
    "perturbation",
    "plain_settings",
    "propagation",
    "shares_modalities",
    "surrogates",
]
