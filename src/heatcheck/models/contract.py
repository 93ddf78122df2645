"""The preprocessing contract: what a model expects of an image, and what its outputs mean."""

import json
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PositiveInt,
    ValidationError,
    field_validator,
    model_validator,
)

from heatcheck.core.errors import ModelError
from heatcheck.core.findings import canonical
from heatcheck.core.registry import suggest
from heatcheck.core.settings.lists import Several
from heatcheck.core.settings.problems import in_plain_words, key_of

# without any of these, maps may be meaningless; a user's contract states them all, in this form
PARTS = {
    "outputs": "[Edema, Nodule]",
    "size": "[320, 320]",
    "channels": "1",
    "mean": "[0.506]",
    "std": "[0.287]",
    "activation": "sigmoid",
}


class Preprocessing(BaseModel):
    """Everything needed to use a network as it was trained.

    Mean and standard deviation are in the units of the source's pixels, which are scaled to [0, 1] where the file
    holds integers. With `scaling: nonzero` each image has its own: those of each channel's pixels that are not 0,
    and zeros stay 0.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, allow_inf_nan=False)

    outputs: Several[str] = Field(min_length=1)
    size: tuple[PositiveInt, ...] = Field(min_length=2, max_length=3)
    channels: int = Field(1, ge=1)
    mean: Several[float] = (0.5,)
    std: Several[float] = (0.25,)
    scaling: Literal["fixed", "nonzero"] = "fixed"  # by mean and std, or by each image's own
    activation: Literal["sigmoid", "softmax"] = "sigmoid"
    head: Literal["binary", "three_class"] = "binary"  # one number per finding, or three: negative, positive, uncertain
    fit: Literal["stretch", "pad"] = "stretch"

    @property
    def answers(self) -> int:
        """The number of values that the network returns per image."""
        return len(self.outputs) * (3 if self.head == "three_class" else 1)

    @field_validator("outputs")
    @classmethod
    def _canonical_names(cls, outputs: tuple[str, ...]) -> tuple[str, ...]:
        return tuple(map(canonical, outputs))

    @model_validator(mode="before")
    @classmethod
    def _without_common_scale(cls, values: object) -> object:
        """Where each image has its own mean and deviation, the common ones change nothing."""
        if isinstance(values, dict) and values.get("scaling") == "nonzero":
            return {"mean": (0.0,), "std": (1.0,), **values}
        return values

    @model_validator(mode="after")
    def _consistent(self) -> Self:
        for name in ("mean", "std"):
            if len(getattr(self, name)) not in (1, self.channels):
                raise ValueError(f"{name} needs one value, or one for each of the {self.channels} channels")
        if min(self.std) <= 0:
            raise ValueError("std must be above 0")
        if self.activation == "softmax" and self.answers == 1:
            raise ValueError(
                "softmax over one output gives every image a probability of 1; name an output for each class, or set "
                "activation to sigmoid"
            )
        if self.scaling == "nonzero" and (set(self.mean), set(self.std)) != ({0.0}, {1.0}):
            raise ValueError("with scaling nonzero each image has its own mean and std; leave both out")
        if len(set(self.outputs)) != len(self.outputs):
            raise ValueError("outputs must have different names")
        if self.head == "three_class" and self.activation != "sigmoid":
            raise ValueError("findings of a three_class head do not exclude each other; set activation to sigmoid")
        return self


def without_parts(values: object) -> str:
    """What a contract lacks, and how it is written; empty where it states everything.

    An unknown key is left to the contract: it may be a part that is misspelt.
    """
    if not isinstance(values, Mapping) or not set(values) <= set(Preprocessing.model_fields):
        return ""
    needless = {"mean", "std"} if values.get("scaling") == "nonzero" else set()
    missing = [part for part in PARTS if values.get(part) is None and part not in needless]  # missing, or left blank
    if not missing:
        return ""
    line = ", ".join(f"{part}: {PARTS[part]}" for part in missing)
    return f"does not say {', '.join(missing)}; add what the model was trained with, in the form `{line}`"


def _stated(values: object) -> object:
    if problem := without_parts(values):
        raise ValueError(f"the contract {problem}")
    return values


StatedContract = Annotated[Preprocessing, BeforeValidator(_stated)]  # of a user, of whom nothing is guessed


def read_contract(text: str, where: str) -> Preprocessing:
    """The contract in a JSON text; `where` names its file in errors."""
    try:
        values = json.loads(text)
    except ValueError as error:
        raise ModelError(f"{where}: the preprocessing contract is not JSON ({error}); export it again") from error
    return checked_contract(values, where)


def checked_contract(values: object, where: str) -> Preprocessing:
    """The values as a contract; a ModelError says what is wrong with them."""
    if problem := without_parts(values):
        raise ModelError(f"{where}: the preprocessing contract {problem}")
    try:
        return Preprocessing.model_validate(values)
    except ValidationError as error:
        wrong = min(error.errors(), key=lambda each: each["type"] != "extra_forbidden")
        key = key_of(wrong)
        said = f"{key or 'contract'}: {in_plain_words(wrong)}"
        if wrong["type"] == "extra_forbidden":  # most likely the misspelt key that another error calls missing
            said = f"unknown key {key!r}; {suggest(key, Preprocessing.model_fields)}"
        raise ModelError(f"{where}: the preprocessing contract is wrong ({said}); correct it") from error
