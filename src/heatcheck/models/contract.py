"""The preprocessing contract: what a model expects of an image, and what its outputs mean."""

import json
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, ValidationError, model_validator

from heatcheck.core.errors import ModelError


class Preprocessing(BaseModel):
    """Everything needed to use a network as it was trained.

    Image values are mapped from `input_range` of the file to [0, 1] by the source; here mean and standard deviation
    are in those units.
    """

    model_config = ConfigDict(extra="forbid", frozen=True)

    outputs: tuple[str, ...] = Field(min_length=1)
    size: tuple[int, ...] = Field(min_length=2, max_length=3)
    channels: int = Field(1, ge=1)
    mean: tuple[float, ...] = (0.5,)
    std: tuple[float, ...] = (0.25,)
    activation: Literal["sigmoid", "softmax"] = "sigmoid"
    fit: Literal["stretch", "pad"] = "stretch"

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name in ("mean", "std"):
            if len(getattr(self, name)) not in (1, self.channels):
                raise ValueError(f"{name} needs one value, or one for each of the {self.channels} channels")
        if min(self.std) <= 0:
            raise ValueError("std must be above 0")
        if len(set(self.outputs)) != len(self.outputs):
            raise ValueError("two outputs have the same name")
        return self


def read_contract(text: str, where: str) -> Preprocessing:
    """The contract in a JSON text; `where` names its file in errors."""
    try:
        return Preprocessing.model_validate(json.loads(text))
    except (ValidationError, ValueError) as error:
        first = error.errors()[0] if isinstance(error, ValidationError) else None
        what = f"{'.'.join(map(str, first['loc'])) or 'contract'}: {first['msg']}" if first else str(error)
        raise ModelError(f"{where}: the preprocessing contract is wrong ({what}); correct it") from error
