"""Settings that the estimates of all studies share: the number of draws, the seed, the sizes that matter."""

from dataclasses import dataclass, field

import numpy as np

from heatcheck.core.seeds import generator_for
from heatcheck.judging.sizes import Sizes


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateSettings:
    """How intervals are estimated; each study adds settings on what is estimated."""

    draws: int  # of a bootstrap
    seed: int  # of the run
    sizes: Sizes = field(default_factory=Sizes)  # that matter

    def generator(self, *purpose: str) -> np.random.Generator:
        """The generator of one estimate, which does not depend on other estimates."""
        return generator_for(self.seed, "estimates", *purpose)
