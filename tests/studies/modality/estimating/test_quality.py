"""Slopes of maps' scores on answer, uncertainty and lesion size, from tables of which the slopes are known."""

import math

import numpy as np
import pytest
from tests.studies.modality.made_tables import MODEL, Found, class_of, msfi_of, rule_of, scored, write_run

from heatcheck.core.records import Prediction
from heatcheck.estimating.slopes import ALL_POSSIBLE
from heatcheck.judging.judgement import judgement_of, opposite_of
from heatcheck.runs.tables import write_table
from heatcheck.studies.modality.estimates import modality_estimates
from heatcheck.studies.modality.estimating.quality import quality_rows
from heatcheck.studies.modality.estimating.score_tables import read_scores
from heatcheck.studies.modality.vocabulary import MAP_METRICS

N = 120
METHODS = ("gradient", "lime", "grad_cam")


def predictions(wrong, sure):
    rows = []
    for number, probability in enumerate(sure):
        label = class_of(number)
        for name in ("LGG", "HGG"):
            said = (name == label) != wrong[number]
            rows.append(
                Prediction(f"c{number}", f"p{number}", name, MODEL, float(name == label), 0.0,
                           float(probability if said else 1 - probability))
            )  # fmt: skip
    return rows


def entropy(sure):
    """Of two classes, in bits."""
    return -(sure * np.log2(sure) + (1 - sure) * np.log2(1 - sure))


def scaled(values):
    return (values - values.min()) / (values.max() - values.min())


def made(folder, scores, wrong, sure, size):
    """The estimates of a run with these MSFI by method; each half of the cases belongs to a fold."""
    rows = []
    for fold, half in ((1, slice(0, N // 2)), (2, slice(N // 2, N))):
        first = half.start
        rows += [msfi_of(values[half], method, fold=fold, first=first) for method, values in scores.items()]
        rows.append(scored(size[half], "lesion_share", "uniform", fold=fold, first=first))
        rows.append(msfi_of(size[half], "uniform", fold=fold, first=first))
    write_run(folder, *rows)
    write_table(folder / "predictions.parquet", Prediction, predictions(wrong, sure))
    return Found(modality_estimates(folder, rule_of(methods=METHODS, folds=(1, 2), draws=100)))


@pytest.fixture(scope="module")
def truth():
    luck = np.random.default_rng(3)
    return {"wrong": luck.random(N) < 0.25, "sure": luck.uniform(0.51, 0.99, N), "size": luck.uniform(0.02, 0.2, N)}


@pytest.fixture(scope="module")
def found(tmp_path_factory, truth):
    """Gradient is better where the answer is right, LIME falls with uncertainty and rises with size, Grad-CAM neither.

    The maps of the second fold's network are better by 0.3, whatever the case.
    """
    luck = np.random.default_rng(4)
    level = 0.3 * (np.arange(N) >= N // 2)
    scores = {
        "gradient": 0.2 + level + 0.25 * ~truth["wrong"] + luck.normal(0, 0.03, N),
        "lime": 0.4
        + level
        - 0.3 * scaled(entropy(truth["sure"]))
        + 0.2 * scaled(truth["size"])
        + luck.normal(0, 0.03, N),
        "grad_cam": 0.3 + level + luck.normal(0, 0.03, N),
    }
    return made(tmp_path_factory.mktemp("quality"), scores, **truth)


def test_slopes_are_those_that_were_put_in_and_are_judged_by_them(found):
    known = {("gradient", "correct"): 0.25, ("lime", "uncertainty"): -0.3, ("lime", "lesion_size"): 0.2}
    for method in METHODS:
        for feature in ("correct", "uncertainty", "lesion_size"):
            row = found.one("slope", "msfi", method, feature=feature)
            slope = known.get((method, feature), 0.0)
            if (method, feature) != ("lime", "correct"):  # its answers differ by chance in uncertainty and size
                assert row.low < slope < row.high, (method, feature)
            assert judgement_of(row).is_yes == (slope > 0), (method, feature)
            assert opposite_of(row).is_yes == (slope < 0), (method, feature)
            assert (row.n_cases, row.n_patients) == (N, N)


def test_what_matters_is_the_usual_change_between_methods(found, truth):
    low, high = np.percentile(scaled(truth["size"]), (10, 90))
    assert found.one("slope", "msfi", "gradient", feature="lesion_size").size == pytest.approx(0.05 / (high - low))
    assert found.one("slope", "msfi", "gradient", feature="correct").size == pytest.approx(0.05)


def test_a_slope_is_that_within_networks(found, truth):
    """By least squares with a column for each fold."""
    design = np.stack([scaled(truth["size"]), np.arange(N) < N // 2, np.arange(N) >= N // 2], 1).astype(float)
    row = found.one("slope", "msfi", "uniform", feature="lesion_size")
    wanted = np.linalg.lstsq(design, truth["size"], rcond=None)[0][0]
    assert row.value == pytest.approx(wanted)
    assert math.isnan(row.size)  # of a map of the whole head nothing is claimed


def test_few_wrong_answers_leave_the_other_features(tmp_path, truth):
    wrong = np.arange(N) < 5
    found = made(tmp_path, {"gradient": np.random.default_rng(5).random(N)}, wrong, truth["sure"], truth["size"])
    row = found.one("slope", "msfi", "gradient", feature="correct")
    assert math.isnan(row.value)
    assert row.reason.startswith("fewer than 6 patients with a wrong answer")
    assert not math.isnan(found.one("slope", "msfi", "gradient", feature="uncertainty").low)


def test_unrelated_scores_are_rarely_claimed_to_depend_on_anything(tmp_path, truth):
    """In 20 runs of three methods and three features, one false claim is due."""
    luck, claims = np.random.default_rng(6), 0
    rule = rule_of(methods=METHODS)
    for _ in range(20):
        write_run(tmp_path, *(msfi_of(luck.beta(1, 3, N), name) for name in METHODS),
                  scored(truth["size"], "lesion_share", "uniform"))  # fmt: skip
        write_table(tmp_path / "predictions.parquet", Prediction, predictions(truth["wrong"], truth["sure"]))
        rows = list(quality_rows(tmp_path, read_scores(tmp_path, MAP_METRICS, MODEL), rule))
        claims += any(judgement_of(row).is_yes or opposite_of(row).is_yes for row in rows)
    assert claims <= 4


def test_where_one_patient_alone_is_unsure_nothing_is_said_of_uncertainty(tmp_path, truth):
    luck = np.random.default_rng(4)
    sure = luck.uniform(0.9997, 0.9999, N)
    sure[5] = 0.97
    scores = {method: luck.uniform(0.3, 0.7, N) for method in METHODS}
    found = made(tmp_path, scores, truth["wrong"], sure, truth["size"])
    slopes = [found.one("slope", "msfi", method, feature="uncertainty") for method in METHODS]
    assert all(math.isnan(row.low) and row.reason == ALL_POSSIBLE for row in slopes)
    sizes = [found.one("slope", "msfi", method, feature="lesion_size") for method in METHODS]
    assert all(-1 <= row.low < row.high <= 1 for row in sizes)
