"""The names of fine-tuned networks."""

import pytest

from heatcheck.studies.alignment.vocabulary import Base, network_key

BASE = Base("densenet201/random", "densenet201", "DenseNet", "random", False)


@pytest.mark.parametrize(
    ("asked", "name"),
    [
        (("base",), "densenet201/random"),
        (("control", 1), "densenet201/random · control · seed 1"),
        (("align", 2, "gradient"), "densenet201/random · gradient · align · seed 2"),
        (("misalign", 1, "gradient"), "densenet201/random · gradient · misalign · seed 1"),
    ],
)
def test_a_network_is_named_by_all_that_made_it(asked, name):
    assert network_key(BASE.key, *asked) == name
