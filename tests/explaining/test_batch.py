"""Maps of a batch: each case draws its own numbers, channels are joined by a rule or kept, and maps must be finite."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from tests.conftest import small_cnn

from heatcheck.core.batches import without_error
from heatcheck.core.errors import CaseError
from heatcheck.core.geometry import Cells
from heatcheck.core.records import Case, CaseKey
from heatcheck.core.seeds import seed_for
from heatcheck.explaining.batch import BatchMaps, Explainer, GridMaps, MapRequest, require_finite
from heatcheck.explaining.extra_inputs import ExtraValues
from heatcheck.models import NetworkClassifier, Preprocessing

SIZE = (4, 6)
CONTRACT = Preprocessing(outputs=("a", "b", "c"), size=SIZE, channels=1, mean=(0.0,), std=(1.0,))


@dataclass(frozen=True)
class Signs:
    """Two channels: the target's number plus what the seed draws, and `against`."""

    against: float = -5.0

    def __call__(self, _, images, targets, seeds):
        values = torch.full((*targets.shape, 2, *images.shape[2:]), self.against)
        drawn = torch.tensor([seed % 1000 / 1000 for seed in seeds])
        values[:, :, 0] = (targets + drawn[:, None])[:, :, None, None]
        return without_error(values)


@pytest.fixture(scope="module")
def classifier():
    return NetworkClassifier("tiny", small_cnn(2, 1, 3).eval(), CONTRACT)


def cases(*names):
    return [Case(CaseKey(name, name, {}), np.full((1, *SIZE), 0.5, np.float32), {}) for name in names]


def request(classifier, *names):
    targets = torch.tensor([[2, 0]]).expand(len(names), -1)
    return MapRequest(classifier, names, torch.zeros(len(names), 1, *SIZE), targets, 7)


def drawn(name):
    return seed_for(7, name, "signs") % 1000 / 1000


def test_a_case_draws_the_same_numbers_in_every_batch(classifier):
    together = request(classifier, "x", "y").made_by("signs", Signs()).values
    alone = request(classifier, "y").made_by("signs", Signs()).values
    assert torch.equal(together[1:], alone)
    assert not torch.equal(together[0], together[1])


def test_a_map_that_is_not_finite_is_the_fault_of_its_case():
    require_finite("signs", torch.zeros(2, 3))
    with pytest.raises(CaseError, match="the map of signs is not finite") as raised:
        require_finite("signs", torch.tensor([0.0, torch.nan]))
    assert raised.value.stage == "map"


def test_what_a_study_hands_over_is_filled_into_the_method():
    assert ExtraValues({"against": -1.0}, [{}]).filled_in(Signs()) == Signs(-1.0)
    plain = Signs()
    assert ExtraValues({}, [{}]).filled_in(plain) is plain


def test_a_batch_is_handed_on_case_by_case(classifier):
    grids = torch.arange(4.0).reshape(2, 2, 1, 1).expand(-1, -1, *SIZE)
    maps = BatchMaps(
        torch.tensor([[1.0, 2.0], [3.0, 4.0]]),
        torch.full((2, 2), 0.5),
        {"signs": GridMaps(grids)},
        {"signs": [{}, {1: "no prior"}]},
    )
    first, second = maps.by_case(cases("x", "y"), classifier.placement)
    assert (first.logits, second.logits) == ((1.0, 2.0), (3.0, 4.0))
    assert second.probabilities == (0.5, 0.5)
    assert first.missing == {}
    assert second.map_of("signs", 1) is None
    assert second.why_missing("signs", 1) == "no prior"
    assert (second.map_of("signs", 0) == 2).all()


def test_a_map_lies_where_its_cells_do_unless_it_is_placed_plainly(classifier):
    """One hot cell whose centre is the first pixel, of a grid whose tiles would be half of the image."""
    grid = torch.tensor([[[[1.0, 0.0], [0.0, 0.0]]]])
    maps = BatchMaps(*(torch.zeros(1, 1),) * 2, {"m": GridMaps(grid, Cells((0.5, 0.5), (4.0, 4.0)))}, {"m": [{}]})
    (one,) = maps.by_case(cases("x"), classifier.placement)
    placed, plain = one.map_of("m", 0), one.map_of("m", 0, plain=True)
    assert placed[0, :5].tolist() == [1.0, 0.75, 0.5, 0.25, 0.0]
    np.testing.assert_allclose(plain[0], [1, 1, 2 / 3, 1 / 3, 0, 0], atol=1e-6)  # tiles three pixels wide


def test_an_explainer_joins_the_channels_of_its_findings(classifier):
    explainer = Explainer(classifier, ("c", "a"), {"random": Signs()}, "positive", 7)
    (one,), seconds = explainer(cases("x"))
    drawn = seed_for(7, "x", "random") % 1000 / 1000
    assert one.map_of("random", 0).max() == pytest.approx((2 + drawn) / 2)
    assert one.map_of("random", 1).max() == pytest.approx(drawn / 2)
    logits = classifier.logits(classifier.prepare([case.image for case in cases("x")]))[0]
    assert one.logits == pytest.approx(logits[[2, 0]].tolist())
    assert set(seconds) == {"random"}
