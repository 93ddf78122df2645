"""Maps of one network beside the masks: one bad image costs no other its scores."""

from dataclasses import dataclass

import numpy as np
import pytest
import torch
from tests.conftest import small_cnn

from heatcheck.core.batches import without_error
from heatcheck.core.errors import CaseError, InputError
from heatcheck.core.geometry import place
from heatcheck.core.records import CaseKey
from heatcheck.models import NetworkClassifier, Preprocessing
from heatcheck.running.case_stage import ShardRows
from heatcheck.studies.alignment.networks import NetworkCell
from heatcheck.studies.alignment.reliance import RelianceSettings
from heatcheck.studies.alignment.scores import Measuring, NetworkEvaluation

SIZE = (4, 4)


class FourImages:
    """Prepared images that hold their own number, each with the upper left quarter outlined."""

    keys = tuple(CaseKey(f"c{number}", f"p{number}", {"f": 1.0}) for number in range(4))

    def prepared(self, rows, contract):
        return torch.tensor(rows, dtype=torch.float32).reshape(-1, 1, 1, 1).expand(-1, 1, *contract.size)

    def placement(self, _, contract):
        return place((8, 8), contract.size, "stretch")

    def mask(self, *_):
        mask = np.zeros((8, 8), bool)
        mask[:4, :4] = True
        return mask


@dataclass(frozen=True)
class Fails:
    """Two channels, of which one speaks against the finding; it fails on the second image, and the third is NaN."""

    error: Exception

    def __call__(self, _, images, *__):
        numbers = images[:, 0, 0, 0].tolist()
        if 1.0 in numbers:
            raise self.error
        values = torch.zeros(len(images), 1, 2, *SIZE)
        values[:, :, 0, :2, :2] = 1
        values[:, :, 1] = -1
        values[[number == 2.0 for number in numbers]] = torch.nan
        return without_error(values)


def scored(error, keep):
    contract = Preprocessing(outputs=("f", "g"), size=SIZE, channels=1, mean=(0.0,), std=(1.0,))
    classifier = NetworkClassifier("tiny", small_cnn(2, 1, 2).eval(), contract)
    measuring = Measuring(("mass",), {"cam": Fails(error)}, 4, 0, RelianceSettings())
    collected = ShardRows()
    network = NetworkEvaluation(NetworkCell("net", "base", ("f",)), classifier, FourImages(), measuring, 3, collected)
    network.score_maps("f", "cam", range(4), "{}", keep)
    return collected


def test_an_image_without_a_map_is_recorded_and_the_others_are_scored():
    collected = scored(CaseError("no gradient", stage="map"), {"c0": "net/c0", "c1": "net/c1", "c2": "net/c2"})
    assert [(record.case, record.status, record.reason) for record in collected.cases] == [
        ("c1", "failed", "no gradient")
    ]
    assert [(row.case, row.reason) for row in collected.scores] == [
        ("c0", ""),
        ("c2", "the map of cam is not finite"),
        ("c3", ""),
    ]
    assert [row.value > 0.7 for row in collected.scores] == [True, False, True]
    assert set(collected.maps) == {"net/c0"}
    assert [(row.shard, row.step, row.method, row.maps) for row in collected.timings] == [(3, "map", "cam", 4)]


def test_an_error_of_the_input_ends_the_run():
    with pytest.raises(InputError, match="no such weights"):
        scored(InputError("no such weights"), {})


@dataclass(frozen=True)
class Signs:
    """One pixel for the finding beside one against it."""

    def __call__(self, _, images, *__):
        values = torch.zeros(len(images), 1, 1, *SIZE)
        values[..., 0, 0], values[..., 0, 1] = 1, -1
        return without_error(values)


@pytest.mark.parametrize(("order", "between"), [("reduce_first", [0.75, 0.25]), ("resize_first", [0.5, 0.0])])
def test_negative_values_are_dropped_before_resizing_unless_the_papers_order_is_asked_for(order, between, monkeypatch):
    """Between 1 and −1, twice as fine: 0.75 and 0.25 if the −1 counts as 0, and 0.5 and −0.5 if it does not."""
    seen = []
    monkeypatch.setattr(NetworkEvaluation, "_score_rows", lambda *args: seen.append(args[4]) or [])
    contract = Preprocessing(outputs=("f", "g"), size=SIZE, channels=1, mean=(0.0,), std=(1.0,))
    classifier = NetworkClassifier("tiny", small_cnn(2, 1, 2).eval(), contract)
    measuring = Measuring(("mass",), {"signs": Signs()}, 4, 0, RelianceSettings(), map_order=order)
    cell = NetworkCell("net", "base", ("f",))
    NetworkEvaluation(cell, classifier, FourImages(), measuring, 3, ShardRows()).score_maps("f", "signs", [0], "{}", {})
    assert seen[0][0, 1:3].tolist() == pytest.approx(between)
