"""The settings that the estimates of every study share: how often to draw, and from which seed."""

from dataclasses import dataclass

import numpy as np

from heatcheck.core.seeds import generator_for


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateSettings:
    """How intervals are drawn; a study's own settings add what is estimated."""

    draws: int  # of a bootstrap
    seed: int  # of the run

    def generator(self, *purpose: str) -> np.random.Generator:
        """The generator of one estimate: adding another estimate does not change it."""
        return generator_for(self.seed, "estimates", *purpose)
