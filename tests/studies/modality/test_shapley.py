"""Every subset of the modalities leaves a row a case; what they are worth follows from the rows."""

import itertools
import json
from dataclasses import replace

import numpy as np
from tests.studies.modality.material import CLASSES, MODALITIES, small_case, weighed

from heatcheck.core.errors import CaseError
from heatcheck.runs.store import RunFolder
from heatcheck.stats.shapley import coalitions
from heatcheck.studies.modality.cases import MaskRule
from heatcheck.studies.modality.estimating.importance import importances
from heatcheck.studies.modality.networks import FoldNetworks
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.shapley import CaseSettings, FoldCases, ShapleyStage
from heatcheck.studies.modality.spec import ModalityBody


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
    networks = FoldNetworks(body, classifier.preprocessing, None, "cpu", classifier)
    source = Made(cases, broken)
    tested = [FoldCases(1, source, source.index()), *(FoldCases(1, source, source.index(), name) for name in known)]
    settings = {"batch_size": 3, "shard_size": 4, "workers": 1, "seed": 0} | seen
    look = CaseSettings(MODALITIES, MaskRule(), **settings)
    return ShapleyStage(networks, tested, look, coalitions(4).members, ("zero",))


def rows_of(stage, folder):
    """The scores and the records of all shards, as they lie in a run's folder."""
    within = RunFolder(folder).within(stage.name)
    for shard in range(stage.shards):
        within.write_shard(shard, stage.work(shard))
    within.join_shards(stage.shards)
    return within.read_table("scores"), within.read_table("cases")


def worth(folder, measure="balanced", known=(), fills=("zero",)):
    """What the modalities are worth."""
    rule = ModalitySettings(
        MODALITIES, CLASSES, ("gradient",), (1,), fills, measure, "positive", "lesion", known,
        "weighed", coalitions(4), draws=100, seed=0,
    )  # fmt: skip
    return importances(folder, 1, rule)


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


def test_the_worth_of_the_modalities_is_that_of_every_order_in_which_they_are_shown(tmp_path):
    classifier = weighed([0.1, 1.0, -0.1, 0.7], threshold=1.9)
    rows_of(stage_of(six_cases(), classifier), tmp_path)
    for kind, measure in itertools.product(("modality", "lesion"), ("accuracy", "balanced")):
        right_with = {}
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
                right_with[frozenset(shown)] = np.mean(right) if measure == "accuracy" else np.mean(by_class)
        found = getattr(worth(tmp_path, measure), kind)
        np.testing.assert_allclose(found, by_brute_force(right_with), atol=1e-12)
        assert found.any() or kind == "lesion"


def test_each_case_has_a_row_for_every_subset_and_kind_of_ablation(tmp_path):
    scores, records = rows_of(stage_of(six_cases(), weighed([0.0, 1.0, 0.0, 0.0])), tmp_path)
    assert len(scores) == 6 * 2 * 16
    shown = {json.loads(at)["shown"] for at in scores["condition"]}
    assert {"", "T1", "T1+T1C", "T1+T1C+T2+FLAIR", "T1C+FLAIR"} <= shown
    assert len(shown) == 16
    assert records["status"].tolist() == ["ok"] * 6


def test_a_case_that_cannot_be_read_or_used_is_recorded_and_the_others_are_kept(tmp_path):
    cases = six_cases()
    cases[2].truth["T2"][...] = False
    scores, records = rows_of(stage_of(cases, weighed([0.0, 1.0, 0.0, 0.0]), broken=("case0",)), tmp_path)
    assert sorted(scores["case"].unique()) == ["case1", "case3", "case4", "case5"]
    assert len(scores) == 4 * 2 * 16  # none twice, though their batch was worked on again
    failed = records[records["status"] == "failed"].set_index("case")["reason"].to_dict()
    assert failed == {
        "case0": "case0 is broken",
        "case2": "the mask of T2 of case2 is empty; leave the case out",
    }


def test_cases_on_which_one_modality_tells_the_class_are_only_asked_about(tmp_path):
    classifier = weighed([0.0, 1.0, 0.0, 0.0], threshold=1.9)
    scores, _ = rows_of(stage_of(six_cases(), classifier, known=("T1C", "FLAIR")), tmp_path)
    found = worth(tmp_path, known=("T1C", "FLAIR"))
    alone = scores[scores["condition"] == '{"fold":1,"known":"T1C"}']["value"].mean()
    assert found.known.tolist() == [0, alone, 0, alone]
    assert set(found.of_features) == {"lesion", "known"}


def test_maps_are_scored_with_the_worth_under_the_first_fill(tmp_path):
    classifier = weighed([0.1, 1.0, -0.1, 0.7], threshold=1.9)
    rows_of(replace(stage_of(six_cases(), classifier), fills=("zero", "tissue")), tmp_path)
    zero, tissue = (worth(tmp_path, fills=(fill,)) for fill in ("zero", "tissue"))
    assert zero.modality.tolist() != tissue.modality.tolist()  # other tissue is as bright as what it stands for
    for fills, expected in ((("zero", "tissue"), zero), (("tissue", "zero"), tissue)):
        found = worth(tmp_path, fills=fills)
        assert found.modality.tolist() == expected.modality.tolist()
        assert found.lesion.tolist() == expected.lesion.tolist()


def test_a_fold_without_usable_cases_has_no_worth(tmp_path):
    cases = six_cases()
    rows_of(stage_of(cases, weighed([0.0, 1.0, 0.0, 0.0]), broken=[case.key.case for case in cases]), tmp_path)
    assert np.isnan(worth(tmp_path).modality).all()
