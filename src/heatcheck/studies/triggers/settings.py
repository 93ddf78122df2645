"""What a trigger study estimates."""

from dataclasses import dataclass

from heatcheck.estimating.settings import EstimateSettings
from heatcheck.studies.triggers.spec import GatePart


@dataclass(frozen=True, slots=True)
class TriggerSettings(EstimateSettings):
    """What is estimated, and how."""

    triggers: tuple[str, ...]
    artefacts: tuple[str, ...]
    methods: tuple[str, ...]
    model: str
    gate: GatePart
