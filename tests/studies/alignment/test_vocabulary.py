"""The names of fine-tuned networks, and that every estimate has draws of its own."""

import pytest

from heatcheck.studies.alignment.vocabulary import AlignmentRule, Base, network_key

BASE = Base("densenet201/random", "densenet201", "DenseNet", "random", False)
RULE = AlignmentRule(
    (BASE,), ("Nodule",), ("gradient",), ("random",), "gradient", (1, 2), ("mass", "rank"), 100, 7, "readers"
)


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


def test_an_estimate_is_drawn_the_same_whatever_was_drawn_before_it():
    first = RULE.generator("mean", "mass").random(3)
    RULE.generator("mean", "rank").random(50)
    assert (RULE.generator("mean", "mass").random(3) == first).all()
    assert (RULE.generator("mean", "rank").random(3) != first).all()
