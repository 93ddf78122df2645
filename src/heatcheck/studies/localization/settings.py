"""What a localization run estimates, and how."""

from dataclasses import dataclass
from typing import Literal

from heatcheck.estimating.settings import EstimateSettings
from heatcheck.scoring.presets import RECOMMENDED, Rules


@dataclass(frozen=True, slots=True)
class LocalizationSettings(EstimateSettings):
    """What is estimated of one model, and how."""

    findings: tuple[str, ...]
    methods: tuple[str, ...]
    floors: tuple[str, ...]
    metrics: tuple[str, ...]
    model: str
    rules: Rules = RECOMMENDED
    instances: Literal["instances", "components"] = "instances"  # what counts as one: as drawn, or a connected part
    views: Literal["each", "max"] = "each"  # whether an image or an examination is one answer of the model
