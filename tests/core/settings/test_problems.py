"""What is wrong with a setting is said without the words of the library that checks it."""

import pytest
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from heatcheck.core.settings.problems import of_value


class Part(BaseModel):
    """Settings of every kind."""

    model_config = ConfigDict(allow_inf_nan=False)

    size: tuple[int, ...] = Field((1,), min_length=1, max_length=3)
    share: float = Field(0.5, gt=0, lt=1)
    name: str = "iou"
    either: float | tuple[float, ...] = 1.0
    part: dict[str, int] = {}

    @field_validator("name")
    @classmethod
    def _known(cls, name: str) -> str:
        if name != "iou":
            raise ValueError(f"{name!r} is not known")
        return name


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        ({"size": None}, "size: must be a list, such as [1, 2]"),
        ({"size": []}, "size: needs at least 1 value, got []"),
        ({"size": [1, 2, 3, 4]}, "size: takes at most 3 values, got [1, 2, 3, 4]"),
        ({"size": ["a"]}, "size.0: must be a whole number, got 'a'"),
        ({"share": "half"}, "share: must be a number, got 'half'"),
        ({"share": 0}, "share: must be above 0, got 0"),
        ({"share": 1}, "share: must be below 1, got 1"),
        ({"name": "bogus"}, "name: 'bogus' is not known"),
        ({"either": "big"}, "either: must be a number, got 'big'"),
        ({"part": 3}, "part: must be names with values, got 3"),
    ],
)
def test_a_wrong_setting_is_said_in_plain_words(values, sentence):
    with pytest.raises(ValidationError) as caught:
        Part(**values)
    assert of_value(caught.value) == sentence
