"""Sizes that matter: how large a difference must be before a report calls it one. Each is a setting of a spec."""

import math
from collections.abc import Mapping
from typing import Annotated, Any

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from heatcheck.core.errors import RunFolderError
from heatcheck.core.settings.problems import of_value

BEST_SCORE = 1.0  # of every metric that a map is judged by
_RATES = ("hit", "recovered")  # metrics that are judged as hits are, all others as overlaps
Share = Annotated[float, Field(gt=0, lt=1)]


class MethodSizes(BaseModel):
    """The smallest differences between two methods that matter."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    iou: Share = 0.05  # of overlap, and of every other score that is not a rate
    hit: Share = 0.10  # of a rate


class Sizes(BaseModel):
    """The smallest differences that matter, as shares of what is possible or in the metric's own unit."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    maps: Share = 0.10  # of the room between the best floor and the readers, or the best score
    reliance: Share = 0.25  # of the model's separation
    importance: Share = 0.10  # of the performance that all modalities together contribute
    methods: MethodSizes = MethodSizes()

    def between_methods(self, metric: str) -> float:
        """The size of a difference between two methods, two models, or a method and the readers."""
        return self.methods.hit if metric in _RATES else self.methods.iou

    def above_floor(self, floor: float, best: float) -> float:
        """The size of a distance from the best floor: a share of the room up to the readers or the best score.

        Where the readers are hardly better than the floor, or worse, the room up to the best score counts. Where the
        floor has the best score, nothing can be better than it, and the direction alone matters (0).
        """
        most = BEST_SCORE - floor
        room = best - floor if best - floor >= self.maps * most else most
        return self.maps * max(room, 0.0) if not math.isnan(room) else math.nan

    def of_separation(self, separation: float) -> float:
        """The size of a reliance: a share of what the model knows of the finding; NaN where it knows nothing."""
        return self.reliance * separation if separation > 0 else math.nan

    def of_contribution(self, total: float) -> float:
        """The size of an importance: a share of what all modalities together contribute; NaN where that is nothing."""
        return self.importance * total if total > 0 else math.nan


def has_room(floor: float, best: float) -> bool:
    """Whether the best score lies above a floor, so that a map can be shown to be better than that floor."""
    return best > floor


def stored_sizes(values: Mapping[str, Any], source: str) -> Sizes:
    """The sizes that a run was judged by, as run.json holds them."""
    try:
        return Sizes.model_validate(values)
    except ValidationError as error:
        raise RunFolderError(
            f"{source} cannot be used: sizes.{of_value(error)}; remove the folder and run the study again"
        ) from error
