"""Sizes that matter: how large a difference must be before a report calls it one. Each is a setting of a spec."""

import math

from pydantic import BaseModel, ConfigDict, Field


class Sizes(BaseModel):
    """The smallest differences that matter, as shares of what is possible or in the metric's own unit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    maps: float = Field(0.10, gt=0, lt=1)  # of the room between the best floor and the readers, or the best score
    reliance: float = Field(0.25, gt=0, lt=1)  # of the model's separation
    methods: dict[str, float] = Field({"iou": 0.05, "hit": 0.10})  # one method against another, by metric

    def between_methods(self, metric: str) -> float:
        """The size of a difference between two methods; NaN for a metric of which none is defined."""
        return self.methods.get(metric, math.nan)

    def above_floor(self, floor: float, best: float) -> float:
        """The size of a distance from the best floor: a share of the room up to the readers or the best score.

        NaN where the floor leaves no room: nothing could be better then.
        """
        room = best - floor
        return self.maps * room if room > 0 else math.nan

    def of_separation(self, separation: float) -> float:
        """The size of a reliance: a share of what the model knows of the finding; NaN where it knows nothing."""
        return self.reliance * separation if separation > 0 else math.nan
