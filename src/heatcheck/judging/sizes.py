"""Sizes that matter: how large a difference must be before a report calls it one. Each is a setting of a spec."""

import math
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

BEST_SCORE = 1.0  # of every metric that a map is judged by
_USUAL = 0.05  # between two methods, of a score from 0 to 1
_BETWEEN = {"hit": 0.10, "recovered": 0.10}  # of rates


class Sizes(BaseModel):
    """The smallest differences that matter, as shares of what is possible or in the metric's own unit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    maps: float = Field(0.10, gt=0, lt=1)  # of the room between the best floor and the readers, or the best score
    reliance: float = Field(0.25, gt=0, lt=1)  # of the model's separation
    importance: float = Field(0.10, gt=0, lt=1)  # of the performance that all modalities together contribute
    methods: dict[str, Annotated[float, Field(gt=0, lt=1)]] = {}  # by metric; the others keep theirs

    def between_methods(self, metric: str) -> float:
        """The size of a difference between two methods, two models, or a method and the readers."""
        return self.methods.get(metric, _BETWEEN.get(metric, _USUAL))

    def above_floor(self, floor: float, best: float) -> float:
        """The size of a distance from the best floor: a share of the room up to the readers or the best score.

        Where the floor is as good as the readers, the room up to the best score counts; NaN where there is none.
        """
        room = best - floor if best > floor else BEST_SCORE - floor
        return self.maps * room if room > 0 else math.nan

    def of_separation(self, separation: float) -> float:
        """The size of a reliance: a share of what the model knows of the finding; NaN where it knows nothing."""
        return self.reliance * separation if separation > 0 else math.nan

    def of_contribution(self, total: float) -> float:
        """The size of an importance: a share of what all modalities together contribute; NaN where that is nothing."""
        return self.importance * total if total > 0 else math.nan
