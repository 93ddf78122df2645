"""Every subset of the modalities leaves a row a case; what they are worth follows from the rows."""

import itertools
import json

import numpy as np
import pandas as pd
import pytest
import torch
from modality_study_material import CLASSES, MODALITIES, small_case, weighed

from heatcheck.core.errors import CaseError
from heatcheck.stats.shapley import coalitions
from heatcheck.studies.modality_cases import MaskRule
from heatcheck.studies.modality_importance import ImportanceRule, importances, told_right
from heatcheck.studies.modality_networks import Networks
from heatcheck.studies.modality_shapley import FoldCases, Seen, ShapleyStage
from heatcheck.studies.modality_spec import ModalityBody


class Made:
    """A source of made-up cases; one of them cannot be read."""

    def __init__(self, cases, broken=()):
        self.cases = {case.key.case: case for case in cases}
        self.broken = broken

    def index(self):
        """Every case."""
        return [case.key for case in self.cases.values()]

    def load(self, key):
        """The case, unless it is broken."""
        if key.case in self.broken:
            raise CaseError(f"{key.case} is broken")
        return self.cases[key.case]


def stage_of(cases, classifier, *, broken=(), known=(), **seen):
    body = ModalityBody(source={}, model="weighed", methods=["gradient"])
    networks = Networks(body, classifier.preprocessing, None, torch.device("cpu"), classifier)
    source = Made(cases, broken)
    tested = [FoldCases(1, source, source.index()), *(FoldCases(1, source, source.index(), name) for name in known)]
    settings = {"batch_size": 3, "shard_size": 4, "workers": 1, "seed": 0} | seen
    look = Seen(MODALITIES, CLASSES, MaskRule(), **settings)
    return ShapleyStage(networks, tested, look, coalitions(4).members, ("zero",))


def rows_of(stage):
    """The scores and the records of all shards."""
    tables = [stage.work(shard) for shard in range(stage.shards)]
    scores = pd.DataFrame([vars_of(row) for table in tables for row in table.scores])
    return scores, [record for table in tables for record in table.cases]


def vars_of(row):
    return {name: getattr(row, name) for name in row.__dataclass_fields__}


def six_cases():
    """Three of each class; HGG has bright T1C, and FLAIR half as bright."""
    cases = []
    for number in range(6):
        label = CLASSES[number % 2]
        case = small_case(label=label, name=f"case{number}", seed=number)
        case.image[1] *= 4 if label == "HGG" else 1
        case.image[3] *= 2 if label == "HGG" else 1
        cases.append(case)
    return cases


def by_brute_force(worth):
    """Shapley values as the mean gain over all orders in which modalities are shown."""
    orders = list(itertools.permutations(range(4)))
    values = np.zeros(4)
    for order in orders:
        for place, player in enumerate(order):
            before, after = frozenset(order[:place]), frozenset(order[: place + 1])
            values[player] += worth[after] - worth[before]
    return values / len(orders)


def test_the_worth_of_the_modalities_is_that_of_every_order_in_which_they_are_shown():
    classifier = weighed([0.1, 1.0, -0.1, 0.7], threshold=1.9)
    scores, _ = rows_of(stage_of(six_cases(), classifier))
    for kind, measure in itertools.product(("modality", "lesion"), ("accuracy", "balanced")):
        worth = {}
        for size in range(5):
            for shown in itertools.combinations(range(4), size):
                right = []
                for case in six_cases():
                    image = case.image.copy()
                    for place, name in enumerate(MODALITIES):
                        if place not in shown:
                            image[place] = 0 if kind == "modality" else np.where(case.truth[name], 0, image[place])
                    said = CLASSES[int(classifier.logits(classifier.prepare([image])).argmax())]
                    right.append(case.key.labels[said])
                by_class = [np.mean(right[0::2]), np.mean(right[1::2])]
                worth[frozenset(shown)] = np.mean(right) if measure == "accuracy" else np.mean(by_class)
        found = importances(scores, 1, ImportanceRule(MODALITIES, coalitions(4), measure, "zero", ()))
        np.testing.assert_allclose(getattr(found, kind), by_brute_force(worth), atol=1e-12)
        assert getattr(found, kind).any() or kind == "lesion"


def test_each_case_has_a_row_for_every_subset_and_kind_of_ablation():
    scores, records = rows_of(stage_of(six_cases(), weighed([0.0, 1.0, 0.0, 0.0])))
    assert len(scores) == 6 * 2 * 16
    shown = {json.loads(at)["shown"] for at in scores["condition"]}
    assert {"", "T1", "T1+T1C", "T1+T1C+T2+FLAIR", "T1C+FLAIR"} <= shown
    assert len(shown) == 16
    assert [record.status for record in records] == ["ok"] * 6


def test_a_case_that_cannot_be_read_or_used_is_recorded_and_the_others_are_kept():
    cases = six_cases()
    cases[2].truth["T2"][...] = False
    scores, records = rows_of(stage_of(cases, weighed([0.0, 1.0, 0.0, 0.0]), broken=("case0",)))
    assert sorted(scores["case"].unique()) == ["case1", "case3", "case4", "case5"]
    assert len(scores) == 4 * 2 * 16  # none twice, though their batch was worked on again
    failed = {record.case: record.reason for record in records if record.status == "failed"}
    assert failed == {
        "case0": "case0 is broken",
        "case2": "the mask of T2 of case2 is empty; leave the case out",
    }


def test_cases_on_which_one_modality_tells_the_class_are_only_asked_about():
    classifier = weighed([0.0, 1.0, 0.0, 0.0], threshold=1.9)
    scores, _ = rows_of(stage_of(six_cases(), classifier, known=("T1C", "FLAIR")))
    rule = ImportanceRule(MODALITIES, coalitions(4), "balanced", "zero", ("T1C", "FLAIR"))
    found = importances(scores, 1, rule)
    alone = scores[scores["condition"] == '{"fold":1,"known":"T1C"}']["value"].mean()
    assert found.known.tolist() == [0, alone, 0, alone]
    assert set(found.of_features) == {"lesion", "known"}


def test_balanced_accuracy_counts_each_class_alike_and_is_unknown_without_cases():
    rows = pd.DataFrame({"finding": ["HGG"] * 4 + ["LGG"], "value": [1, 1, 1, 0, 0]})
    assert told_right(rows, "accuracy") == pytest.approx(0.6)
    assert told_right(rows, "balanced") == pytest.approx(0.375)
    assert np.isnan(told_right(rows[:0], "accuracy"))
