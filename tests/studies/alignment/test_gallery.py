"""Which cases an alignment gallery shows, whose maps, and what is written beside them."""

import json
import math
from collections import Counter

import numpy as np
import pytest
from PIL import Image

from heatcheck.core.errors import CaseError
from heatcheck.core.records import Case, CaseKey, Prediction, Score, ShardTables
from heatcheck.core.vocabulary import condition
from heatcheck.running.progress import Silent
from heatcheck.runs.store import RunFolder
from heatcheck.studies.alignment.gallery import choices, chosen, for_gallery, make_alignment_gallery, map_name
from heatcheck.studies.alignment.settings import AlignmentSettings
from heatcheck.studies.alignment.vocabulary import ARMS, Base, network_key

FINDINGS = ("Mass", "Fluid")
KEYS = [
    CaseKey(f"case {number}", f"patient {number // 2}", {"Mass": float(number % 2), "Fluid": float(number > 3)})
    for number in range(12)
]


def rule_of(models, methods):
    bases = tuple(Base(name, "densenet_compact", "DenseNet", "given", pretrained=False) for name in models)
    return AlignmentSettings(
        bases, FINDINGS, methods, (), methods[0], (3, 4), ("mass", "rank"), draws=100, seed=1, human="truth"
    )


RULE = rule_of(("a/random", "b"), ("gradient", "lrp"))


class Films:
    """Bright films, each with the mask of its findings in a corner; one cannot be read."""

    def load(self, key):
        if key.case == "case 11":
            raise CaseError("case 11: damaged", stage="load")
        mask = np.zeros((40, 60), bool)
        mask[5:15, 10:30] = True
        return Case(key, np.linspace(0, 1, 2400, dtype=np.float32).reshape(1, 40, 60), dict.fromkeys(FINDINGS, mask))


def test_cases_are_positives_spread_over_findings_and_patients():
    found = chosen(KEYS, FINDINGS, 5)
    assert [len(found[finding]) for finding in FINDINGS] == [3, 2]
    every = [(finding, key) for finding, keys in found.items() for key in keys]
    assert all(key.labels[finding] == 1 for finding, key in every)
    assert len({key.patient for _, key in every}) == 5
    assert found == chosen(KEYS, FINDINGS, 5)


def test_there_are_no_more_cases_than_patients_and_none_without_a_mask():
    assert sum(map(len, chosen(KEYS, FINDINGS, 100).values())) == 6
    asked = []

    def marked(key, finding):
        asked.append((key.case, finding))
        return finding == "Fluid" and key.case != "case 4"

    found = chosen(KEYS, FINDINGS, 2, marked)
    assert found == {"Mass": [], "Fluid": [KEYS[5], KEYS[6]]}
    assert ("case 8", "Fluid") not in asked  # masks cost time
    assert chosen(KEYS, FINDINGS, 0) == {"Mass": [], "Fluid": []}


@pytest.mark.parametrize(("models", "methods"), [(2, 2), (3, 2), (2, 4), (1, 3)])
def test_every_pair_of_model_and_method_is_shown_before_one_comes_again(models, methods):
    names = [f"m{number}" for number in range(models)], tuple(f"x{number}" for number in range(methods))
    keys = [CaseKey(f"{number}", f"{number}", {"Mass": 1.0}) for number in range(2 * models * methods)]
    shown = choices(rule_of(*names), {"Mass": keys, "Fluid": []}, 99)
    assert Counter((one.model, one.method) for one in shown) == Counter(
        dict.fromkeys([(model, method) for model in names[0] for method in names[1]], 2)
    )
    first = shown[: max(models, methods)]
    assert {one.model for one in first} == set(names[0])
    assert {one.method for one in first} == set(names[1])


def made_run(tmp_path, cases):
    """Shards as networks leave them: each keeps the maps of all chosen cases, with its scores and predictions."""
    shards = []
    for base in RULE.bases:
        for arm in ARMS:
            for method in RULE.methods:
                maps, scores, predictions = {}, [], []
                which = condition(arm=arm) if arm == "base" else condition(arm=arm, seed=3)
                for finding, keys in cases.items():
                    for key in keys:
                        values = np.zeros((40, 60), np.float32)
                        values[ARMS.index(arm), 0] = 1e-9  # a gradient may be as small
                        if not (key.case == "case 1" and arm == "misalign"):
                            maps[map_name(base.key, finding, method, arm, key.case)] = for_gallery(values)
                        row = (key.case, key.patient, finding)
                        scores += [
                            Score(*row, method, base.key, name, 0.1 * ARMS.index(arm) + part, which)
                            for name, part in (("mass", 0.01), ("rank", 0.02))
                        ]
                        scores.append(Score(*row, method, base.key, "mass", 0.9, condition(arm=arm, split="finetune")))
                        model = network_key(base.key, arm, 3, method)
                        predictions.append(Prediction(*row, model, 1.0, 0.0, 0.5 + 0.1 * ARMS.index(arm)))
                shards.append(ShardTables(tuple(scores), tuple(predictions), maps=maps))
    with RunFolder.locked(tmp_path / "run", {"study": "alignment"}, {}) as folder:
        for number, tables in enumerate(shards):
            folder.write_shard(number, tables)
        folder.join_shards(len(shards))
    return folder


def test_every_arm_of_a_case_is_drawn_with_what_its_network_says_and_how_its_map_scores(tmp_path):
    cases = chosen(KEYS, FINDINGS, 4)
    folder = made_run(tmp_path, cases)
    make_alignment_gallery(folder, RULE, Films(), cases, 4, Silent())
    items = json.loads((folder.path / "gallery" / "index.json").read_text())["items"]
    assert [item["id"] for item in items] == ["000", "001", "002", "003"]
    assert [item["case"] for item in items] == ["case 1", "case 4", "case 3", "case 6"]
    assert {(item["model"], item["method"]) for item in items} == {
        (base.key, method) for base in RULE.bases for method in RULE.methods
    }
    second = items[1]
    assert second["finding"] == "Fluid"
    assert second["shape"] == [40, 60]
    assert second["outlines"] == [[[10, 5], [10, 14], [29, 14], [29, 5]]]
    assert [one["arm"] for one in second["maps"]] == list(ARMS)
    for number, one in enumerate(second["maps"]):
        assert one["probability"] == pytest.approx(0.5 + 0.1 * number)
        assert one["mass"] == pytest.approx(0.1 * number + 0.01)
        assert one["rank"] == pytest.approx(0.1 * number + 0.02)
        picture = np.asarray(Image.open(folder.path / "gallery" / one["file"]))
        assert picture.shape == (40, 60)
        assert (picture[number, 0], np.count_nonzero(picture)) == (255, 1)
    film = np.asarray(Image.open(folder.path / "gallery" / second["film"]))
    assert (film.min(), film.max()) == (0, 255)


def test_what_was_not_kept_or_cannot_be_read_is_left_out(tmp_path):
    cases = {"Mass": [KEYS[1], KEYS[11], KEYS[3]], "Fluid": [KEYS[8]]}
    folder = made_run(tmp_path, cases)
    make_alignment_gallery(folder, RULE, Films(), {**cases, "Fluid": [KEYS[6]]}, 9, Silent())  # of case 6 is no map
    items = json.loads((folder.path / "gallery" / "index.json").read_text())["items"]
    assert [item["case"] for item in items] == ["case 1", "case 3"]
    assert [one["arm"] for one in items[0]["maps"]] == ["base", "control", "align"]  # one network's loss turned NaN
    assert len(items[1]["maps"]) == 4


def test_a_score_that_is_not_known_is_nan(tmp_path):
    cases = {"Mass": [KEYS[1]], "Fluid": []}
    folder = made_run(tmp_path, cases)
    other = rule_of(("b",), ("gradient",))
    folder.write_maps("extra", {map_name("b", "Mass", "gradient", "align", "case 5"): np.eye(4, dtype=np.float16)})
    make_alignment_gallery(folder, other, Films(), {"Mass": [KEYS[5]], "Fluid": []}, 1, Silent())
    items = json.loads((folder.path / "gallery" / "index.json").read_text())["items"]
    assert math.isnan(items[0]["maps"][0]["mass"])
    assert math.isnan(items[0]["maps"][0]["probability"])


def test_a_run_that_shows_no_case_has_an_empty_gallery(tmp_path):
    folder = made_run(tmp_path, {"Mass": [KEYS[1]]})
    make_alignment_gallery(folder, RULE, Films(), {"Mass": [], "Fluid": []}, 0, Silent())
    assert json.loads((folder.path / "gallery" / "index.json").read_text()) == {"items": []}


def test_kept_maps_are_small():
    kept = for_gallery(np.random.default_rng(1).random((2000, 1000)))
    assert kept.shape == (224, 112)
    assert kept.dtype == np.float16
