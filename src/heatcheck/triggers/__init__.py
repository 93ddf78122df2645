"""Image → planted patch: triggers that a model can be taught to rely on. Importing the package fills the registry."""

from heatcheck.triggers import dynamic, exposure, hardware, picture, static, streak, tube, writing
from heatcheck.triggers.registry import PUBLISHED, TRIGGERS, Trigger, TriggerFacts, build_trigger, default_settings
from heatcheck.triggers.stamp import Stamp

__all__ = [
    "PUBLISHED",
    "TRIGGERS",
    "Stamp",
    "Trigger",
    "TriggerFacts",
    "build_trigger",
    "default_settings",
    "dynamic",
    "exposure",
    "hardware",
    "picture",
    "static",
    "streak",
    "tube",
    "writing",
]
