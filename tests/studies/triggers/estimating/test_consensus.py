"""The order of methods by agreement beside that by truth, worked by hand from a few scores."""

import math
from dataclasses import replace
from itertools import combinations

import numpy as np
import pytest

from heatcheck.core.records import ALL_FINDINGS, Score
from heatcheck.core.vocabulary import condition
from heatcheck.judging.judgement import judgement_of
from heatcheck.runs.tables import write_table
from heatcheck.studies.triggers.estimating.consensus import consensus_estimates
from heatcheck.studies.triggers.settings import TriggerSettings
from heatcheck.studies.triggers.spec import GatePart

METHODS = ("gradient", "occlusion", "grad_cam", "lime", "random")
ALIKE = {
    ("gradient", "occlusion"): 0.9, ("gradient", "grad_cam"): 0.7, ("gradient", "lime"): 0.2,
    ("occlusion", "grad_cam"): 0.6, ("occlusion", "lime"): 0.1, ("grad_cam", "lime"): 0.0,
}  # fmt: skip
# with the others: gradient 0.6, occlusion 0.533, grad_cam 0.433, lime 0.1
IOU = {"gradient": 0.5, "occlusion": 0.3, "grad_cam": 0.2, "lime": 0.9, "random": 0.05}


def scores(images, seeds, noise=0.0, alike=None, iou=None):
    """Scores of every image; noise is drawn anew for each value."""
    generator = np.random.default_rng(4)
    rows = []
    for seed in seeds:
        for number in range(images):
            shared = (f"c{number}", f"p{number}", "square")
            template = Score(*shared, "", "m", "trigger_iou", 0.0, condition(seed=seed))
            for method, value in (iou or IOU).items():
                rows.append(replace(template, method=method, value=value + generator.normal(0, noise)))
            for one, other in combinations(METHODS, 2):
                value = (alike or ALIKE).get((one, other), 0.95 if "random" in (one, other) else 0.0)
                for metric in ("mutual_information", "cross_correlation", "ssim"):
                    noisy = value + generator.normal(0, noise)
                    rows.append(replace(template, method=one, other_method=other, metric=metric, value=noisy))
    return rows


def estimated(folder, rows):
    write_table(folder / "scores.parquet", Score, rows)
    settings = TriggerSettings(("square",), (), METHODS, "m", GatePart(), draws=200, seed=1)
    every = list(consensus_estimates(folder, settings))

    def one(metric, method="", **facts):
        (row,) = [r for r in every if (r.metric, r.method, r.condition) == (metric, method, condition(**facts))]
        return row

    return one


def test_the_consensus_is_the_share_of_other_methods_that_agree_less_with_the_rest(tmp_path):
    one = estimated(tmp_path, scores(4, (1, 2)))
    assert [one("consensus", name).value for name in METHODS[:-1]] == pytest.approx([1, 2 / 3, 1 / 3, 0])
    assert [one("consensus_rank", name).value for name in METHODS[:-1]] == [1, 2, 3, 4]
    assert [one("truth_rank", name).value for name in METHODS[:-1]] == [2, 3, 4, 1]
    tau = one("rank_agreement")
    assert tau.value == pytest.approx((3 - 3) / 6)  # the three pairs with LIME are the other way round
    assert one("rank_agreement", measure="ssim").value == pytest.approx(0)
    assert (tau.finding, tau.n_cases, tau.n_patients) == (ALL_FINDINGS, 8, 4)


def test_floors_have_no_part_however_much_they_agree(tmp_path):
    one = estimated(tmp_path, scores(4, (1, 2)))
    with pytest.raises(ValueError, match="not enough values"):
        one("consensus", "random")


def test_measures_are_averaged_place_by_place_and_not_by_their_scale(tmp_path):
    rows = [
        replace(row, value=1000 * (1 - row.value)) if row.metric == "mutual_information" else row
        for row in scores(4, (1, 2))
    ]
    one = estimated(tmp_path, rows)  # one measure has the opposite order, the two others win
    assert [one("consensus", name).value for name in METHODS[:-1]] == pytest.approx([2 / 3, 5 / 9, 4 / 9, 1 / 3])
    assert one("rank_agreement", measure="mutual_information").value == pytest.approx(0)


def test_with_enough_images_places_are_clear_and_agreement_that_misleads_is_seen(tmp_path):
    opposite = {"gradient": 0.1, "occlusion": 0.3, "grad_cam": 0.5, "lime": 0.9, "random": 0.0}
    one = estimated(tmp_path, scores(40, (1, 2, 3), noise=0.03, iou=opposite))
    assert (one("truth_rank", "lime").low, one("truth_rank", "lime").high) == (1, 1)
    assert (one("consensus_rank", "lime").low, one("consensus_rank", "lime").high) == (4, 4)
    tau = one("rank_agreement")
    assert tau.high < 0
    assert judgement_of(tau).is_no


def test_the_same_order_is_claimed_of_several_trainings_only(tmp_path):
    same = {"gradient": 0.8, "occlusion": 0.6, "grad_cam": 0.4, "lime": 0.1, "random": 0.0}
    for seeds, is_claimed in (((1, 2, 3), True), ((1,), False)):
        folder = tmp_path / str(len(seeds))
        folder.mkdir()
        tau = estimated(folder, scores(40, seeds, noise=0.03, iou=same))("rank_agreement")
        assert tau.value == 1
        assert judgement_of(tau).is_yes == is_claimed
        assert math.isnan(tau.size) != is_claimed


def test_an_image_without_a_value_of_every_method_is_left_out(tmp_path):
    rows = scores(4, (1, 2))
    rows[0] = replace(rows[0], value=math.nan, reason="the map is not finite")
    assert estimated(tmp_path, rows)("rank_agreement").n_cases == 7
