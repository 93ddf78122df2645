"""Mean and std are in the units of the pixels."""

import pytest

from heatcheck.core.errors import ModelError
from heatcheck.models import Preprocessing
from heatcheck.models.pixel_scale import require_pixel_scale


def contract(**changes):
    return Preprocessing(
        **{"outputs": ("a",), "size": (4, 4), "channels": 3, "mean": (0.5,), "std": (0.25,), **changes}
    )


@pytest.mark.parametrize(
    ("scale", "low", "high"),
    [
        ({}, 0.0, 1.0),
        ({}, 0.0, 0.04),  # a film of 12 bits in 16: dark, but the unit is right
        ({"mean": (0.0,), "std": (1.0,)}, 0.1, 0.9),
        ({"mean": (0.485, 0.456, 0.406), "std": (0.229, 0.224, 0.225)}, 0.0, 1.0),
        ({"mean": (0.5,), "std": (1 / 2048,)}, 0.0, 1.0),  # to a range of -1024 to 1024
        ({"mean": (-300.0,), "std": (500.0,)}, -1000.0, 3000.0),  # Hounsfield units
        ({"mean": (127.5,), "std": (64.0,)}, 0.0, 255.0),  # a file of floats
        ({"mean": (0.0,), "std": (1.0,), "scaling": "nonzero"}, 0.0, 4000.0),
    ],
)
def test_mean_and_std_in_the_units_of_the_pixels_are_accepted(scale, low, high):
    require_pixel_scale(contract(**scale), low, high, "net")


@pytest.mark.parametrize(
    ("scale", "low", "high", "sentence"),
    [
        ({"mean": (127.5,), "std": (64.0,)}, 0.0, 1.0, "from 0 to 255, set mean [0.5] and std [0.251]"),
        ({"mean": (127.5,), "std": (64.0,)}, 0.2, 0.7, "which reach from 0 to 1 here, and has mean [127.5]"),
        ({"mean": (0.0,), "std": (255.0,)}, 0.0, 1.0, "set mean [0] and std [1]"),
        ({"mean": (0.485, 0.456, 116.0), "std": (0.2,)}, 0.0, 1.0, "set `value_range` of the source"),
        ({"mean": (2048.0,), "std": (800.0,)}, 0.0, 1.0, "set `value_range` of the source"),
        ({"mean": (-300.0,), "std": (500.0,)}, 0.0, 1.0, "set `value_range` of the source"),
        ({"mean": (-300.0,), "std": (500.0,)}, 0.0, 2500.0, "which reach from 0 to 2500 here"),
    ],
)
def test_mean_or_std_beyond_all_pixels_are_refused_with_a_remedy(scale, low, high, sentence):
    with pytest.raises(ModelError) as refused:
        require_pixel_scale(contract(**scale), low, high, "net")
    assert sentence in str(refused.value)
    assert str(refused.value).startswith("model net: its contract needs mean and std in the units of the pixels")
