"""Several views of one study as one answer: its probability is the highest of its views'."""

from dataclasses import dataclass, field
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import yaml
from scipy import stats
from sklearn.metrics import roc_auc_score

from heatcheck import read_run, run_study
from heatcheck.core.errors import CaseError, InputError, SpecError
from heatcheck.core.records import CaseKey
from heatcheck.core.vocabulary import condition
from heatcheck.explaining.batch import Explained
from heatcheck.stats.tuning import CUTOFFS
from heatcheck.studies.localization.answers.views import JOINED, Views, other_views, require_examinations
from heatcheck.studies.localization.settings import LocalizationSettings
from heatcheck.studies.localization.tuning import validation_predictions
from heatcheck.studies.localization.wrong_answers.calls import called_answers

FINDINGS = ["Airspace Opacity", "Cardiomegaly"]
MODEL = "phantom_chest_densenet"
VALIDATION = {"name": "phantom_chest", "patients": 8, "first": 900, "size": 80, "readers": 0, "second_view": 1}
SOURCE = {"name": "phantom_chest", "patients": 12, "first": 40, "size": 80, "readers": 0, "second_view": 0.7}


@pytest.fixture(scope="module")
def run(tmp_path_factory, small_spec):
    folder = tmp_path_factory.mktemp("views")
    changes = {"source": SOURCE, "validation": VALIDATION, "findings": FINDINGS, "views": "max", "shard_size": 3}
    spec = {**small_spec, **changes, "methods": ["grad_cam"], "gallery": 1, "bootstrap_draws": 100}
    (folder / "views.yaml").write_text(yaml.safe_dump(spec))
    run_study(folder / "views.yaml", folder / "run")
    return read_run(folder / "run")


def by_study(predictions):
    """Each film with the highest probability of its study, by the ids."""
    study = predictions["case"].str.rpartition("_view")[0]
    highest = predictions.groupby([study, predictions["finding"]])["probability"].transform("max")
    return predictions.assign(study=study, highest=highest)


def test_discrimination_counts_studies_by_their_highest_view(run):
    answers = by_study(run.predictions)
    assert (answers["highest"] > answers["probability"]).any()
    studies = answers.drop_duplicates(["study", "finding"])
    for finding in FINDINGS:
        rows = studies[studies["finding"] == finding]
        estimate = run.estimates.query("statistic == 'auroc' and finding == @finding").iloc[0]
        assert estimate["value"] == pytest.approx(roc_auc_score(rows["label"], rows["highest"]))
        assert estimate["n_cases"] == len(rows) == 12 < len(run.cases)
    assert JOINED in run.manifest["notes"]


def test_a_cutoff_calls_all_views_of_a_study_alike(run):
    at, tuned = condition(cutoff="tuned"), run.estimates.query("statistic == 'tuned_cutoff' and condition == '{}'")
    tuned = tuned.set_index("finding")
    answers = by_study(run.predictions).set_index(["case", "finding"])["highest"]
    scores = run.scores.query("metric == 'iou_full' and method == 'grad_cam'").set_index(["case", "finding"])
    plain, cut = (scores[scores["condition"] == under]["value"] for under in ("{}", at))
    outlined = run.shapes.set_index(["case", "finding"]).index
    own = run.predictions.set_index(["case", "finding"])["probability"]
    chosen = np.array([tuned.loc[finding, "value"] for _, finding in own.index])
    assert ((answers[own.index] >= chosen) & (own < chosen)).any()  # else nothing would be joined here
    for (case, finding), value in plain.items():
        kept = answers[case, finding] >= tuned.loc[finding, "value"]
        expected = value if kept else (0.0 if (case, finding) in outlined else np.nan)
        assert cut.get((case, finding), np.nan) == pytest.approx(expected, nan_ok=True)


def test_cutoffs_are_tuned_by_the_highest_view(run):
    """On a finding where it makes a difference."""
    folder, finding, curves = run.path / "validation", "Airspace Opacity", []
    answers = by_study(pd.read_parquet(folder / "predictions.parquet")).set_index(["case", "finding"])
    scores = pd.read_parquet(folder / "scores.parquet").query("method == 'grad_cam' and condition == '{}'")
    scores = scores[scores["finding"] == finding]
    stored = run.estimates.query("statistic == 'cutoff_curve' and finding == @finding").set_index("condition")["value"]
    full = scores.query("metric == 'iou_full'").set_index("case")["value"]
    below = np.where(full.index.isin(scores.query("metric == 'iou'")["case"]), 0.0, np.nan)
    for column in ("highest", "probability"):
        said = np.array([answers.loc[(case, finding), column] for case in full.index])
        curves.append([np.nanmean(np.where(said >= cutoff, full, below)) for cutoff in CUTOFFS])
    assert [stored[condition(cutoff=cutoff)] for cutoff in CUTOFFS] == pytest.approx(curves[0])
    assert curves[0] != curves[1]


def settings():
    return LocalizationSettings(tuple(FINDINGS), ("grad_cam",), (), (), MODEL, draws=0, seed=0, views="max")


def test_calibration_and_temperatures_count_studies(run):
    rows = run.estimates.query("statistic == 'calibration' and finding in @FINDINGS")
    assert len(rows)
    assert set(rows["n_cases"] + rows["n_undefined"]) == {12}
    fitted_to = validation_predictions(run.path, settings())
    assert len(fitted_to) == 8 * len(FINDINGS)
    films = by_study(pd.read_parquet(run.path / "validation" / "predictions.parquet"))
    highest = films.groupby(["study", "finding"])["highest"].first()
    found = fitted_to.set_index(["case", "finding"])["probability"]
    assert sorted(found) == pytest.approx(sorted(highest))


def test_operating_points_and_calls_are_those_of_the_study(run):
    answers = called_answers(run.path, settings(), None).answers
    said = by_study(run.predictions).set_index(["case", "finding"])["highest"]
    expected = [[said[case, finding] for finding in FINDINGS] for case in answers.cases]
    np.testing.assert_allclose(answers.probabilities, expected)
    assert len(answers.cases) == len(run.cases)


def test_confidence_is_that_of_the_study(run):
    answers = by_study(run.predictions).set_index(["case", "finding"])["highest"]
    under = condition(feature="probability", preset="chexlocalize")
    rows = run.estimates.query("statistic == 'slope' and metric == 'hit' and finding == 'Airspace Opacity'")
    slope = rows[rows["condition"] == under]["value"].item()
    hits = run.scores.query("metric == 'hit' and method == 'grad_cam' and finding == 'Airspace Opacity'")
    hits = hits[hits["condition"] == condition(preset="chexlocalize")]
    said = [answers[case, "Airspace Opacity"] for case in hits["case"]]
    assert slope == pytest.approx(stats.linregress(said, hits["value"]).slope)


def test_views_are_joined_by_hand():
    films = pd.DataFrame(
        [("a1", "f", 0.2, 0.0), ("a2", "f", 0.6, np.nan), ("b", "f", 0.4, 1.0), ("a1", "g", 0.9, np.nan)],
        columns=["case", "finding", "probability", "label"],
    )
    views = Views({"a1": "a", "a2": "a", "b": "b"})
    joined = views.joined(films).set_index(["case", "finding"])
    assert joined["probability"].to_dict() == {("a", "f"): 0.6, ("b", "f"): 0.4, ("a", "g"): 0.9}
    assert joined["label"][["a", "b"]].fillna(-9).tolist() == [0, -9, 1]  # a finding is unknown if no view knows it
    assert views.spread(films)["probability"].tolist() == [0.6, 0.6, 0.4, 0.9]
    assert views.spread(films)["case"].tolist() == films["case"].tolist()


@dataclass(frozen=True)
class Said:
    """A model that says what is written on the image, and can say nothing of a negative number."""

    methods: dict = field(default_factory=lambda: {"grad_cam": None})
    asked: list = field(default_factory=list)

    def __call__(self, cases):
        self.asked.append([case.key.case for case in cases])
        if any(case.image[0] < 0 for case in cases):
            raise CaseError("the model's output is not finite", stage="model")
        return [Explained(case, (0.0,), case.image, dict(self.methods), None) for case in cases], {}


class Films:
    """Films of which one cannot be read."""

    said = {"p_view1": 0.2, "p_view2": 0.7, "q_view1": 0.3, "r": 0.1, "s_view1": 0.4, "s_view2": 0.5}  # noqa: RUF012 - never changed

    def index(self):
        return [CaseKey(name, name[0], {}) for name in (*self.said, "q_view2")]

    def load(self, key):
        if key.case == "q_view2":
            raise CaseError("broken")
        return SimpleNamespace(key=key, image=(self.said[key.case],))


def test_views_in_another_shard_are_asked_about_together_once_and_without_maps():
    films, model = Films(), Said()
    keys = {key.case: key for key in films.index()}
    views = other_views(films, films.index())
    names = ["p_view1", "q_view1", "r", "s_view1"]
    batch, _ = model([films.load(keys[name]) for name in names])
    for _ in range(2):
        joined = views.joined(batch, model)
        assert [each.probabilities for each in joined] == [(0.7,), (0.3,), (0.1,), (0.5,)]
        assert [set(each.grids) for each in joined] == [{"grad_cam"}] * 4
    assert model.asked == [names, ["p_view2", "s_view2"]]


def test_a_view_that_the_model_fails_on_spoils_no_other(monkeypatch):
    monkeypatch.setitem(Films.said, "p_view2", -1.0)
    films, model = Films(), Said()
    keys = {key.case: key for key in films.index()}
    batch, _ = model([films.load(keys[name]) for name in ("p_view1", "s_view1")])
    joined = other_views(films, films.index()).joined(batch, model)
    assert [each.probabilities for each in joined] == [(0.2,), (0.5,)]


def test_images_without_studies_cannot_be_joined(write_spec, tmp_path):
    with pytest.raises(SpecError, match="add a column `study` to the labels, name images like patient1_study1_view1"):
        require_examinations([CaseKey("a", "p", {})], "my.yaml")
    require_examinations([CaseKey("a", "p", {}), CaseKey("a", "p", {}, {"study": "1"})], "my.yaml")
    with pytest.raises(InputError, match="views"):
        run_study(write_spec(views="highest"), tmp_path / "run")
