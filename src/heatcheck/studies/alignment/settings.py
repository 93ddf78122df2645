"""What an alignment study estimates."""

from dataclasses import dataclass

from heatcheck.estimating.settings import EstimateSettings
from heatcheck.studies.alignment.vocabulary import Base, Human


@dataclass(frozen=True, slots=True)
class AlignmentSettings(EstimateSettings):
    """What is estimated."""

    bases: tuple[Base, ...]
    findings: tuple[str, ...]
    methods: tuple[str, ...]  # through which networks are fine-tuned
    judged: tuple[str, ...]  # methods that are only scored, on networks fine-tuned through another
    through: str  # that other method
    seeds: tuple[int, ...]
    metrics: tuple[str, ...]  # of maps
    human: Human
    blame_metric: str = "mass"

    @property
    def fine_tuned(self) -> tuple[Base, ...]:
        """The bases from which networks are fine-tuned."""
        return tuple(base for base in self.bases if base.fine_tuned)
