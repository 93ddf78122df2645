"""The settings that all studies share: every estimate has draws of its own, which the run's seed decides."""

from dataclasses import dataclass, replace

from heatcheck.core.seeds import generator_for
from heatcheck.estimating.settings import EstimateSettings


@dataclass(frozen=True, slots=True)
class OfAStudy(EstimateSettings):
    """Settings with something to estimate."""

    methods: tuple[str, ...]


SETTINGS = OfAStudy(("gradient",), draws=100, seed=7)


def test_an_estimate_is_drawn_the_same_whatever_was_drawn_before_it():
    first = SETTINGS.generator("mean", "mass").random(3)
    SETTINGS.generator("mean", "rank").random(50)
    assert (SETTINGS.generator("mean", "mass").random(3) == first).all()
    assert (SETTINGS.generator("mean", "rank").random(3) != first).all()


def test_the_seed_of_the_run_and_the_purpose_decide_what_is_drawn():
    drawn = SETTINGS.generator("mean", "mass").random(3)
    assert (generator_for(7, "estimates", "mean", "mass").random(3) == drawn).all()
    assert (replace(SETTINGS, seed=8).generator("mean", "mass").random(3) != drawn).all()
    assert (replace(SETTINGS, methods=(), draws=5).generator("mean", "mass").random(3) == drawn).all()
