"""Cases that fail in any stage of a modality study are counted and told, and leave nothing behind."""

import numpy as np
import pytest
import yaml
from safetensors import safe_open
from tests.studies.modality.brightness_material import CASES, CONTRACT, write_modality, write_pictures

from heatcheck import read_run, run_study
from heatcheck.core.errors import CaseError, InputError
from heatcheck.fitting.examples import CaseExamples
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import read_spec
from heatcheck.runs.store import RunFolder
from heatcheck.studies.modality.explaining import ModalExplainer
from heatcheck.studies.modality.plan import plan_modality

TRUSTED = RunOptions(trust_code=True, workers=1)
FEW = {"methods": ["gradient", "input_x_gradient"], "removal": None}


def test_a_case_whose_modalities_cannot_be_ablated_is_counted_told_and_in_no_number(tmp_path):
    path = write_modality(tmp_path, **FEW)
    np.save(tmp_path / "cases-masks" / "tumour" / "03.npy", np.ones((16, 16), np.uint8))
    outcome = run_study(path, tmp_path / "run", TRUSTED)
    run = read_run(tmp_path / "run")
    assert (outcome.n_cases, outcome.n_failed) == (CASES, 1)
    failed = run.cases.set_index("case").loc["03"]
    assert (failed["status"], failed["stage"]) == ("failed", "ablation")
    assert "no tissue outside the lesion" in failed["reason"]
    assert "no tissue outside the lesion" in (tmp_path / "run" / "report.html").read_text()
    assert "03" not in set(run.scores["case"])
    means = run.estimates.query("statistic == 'mean' and metric in ('accuracy', 'lesion_share')")
    means = means[means["method"].isin(["", "uniform"])]
    assert set(means["n_cases"]) == {CASES - 1}


def test_a_case_of_a_known_source_that_fails_is_counted_beside_the_tested_one_of_its_name(tmp_path):
    known = [{"modality": "T1C", "source": write_pictures(tmp_path / "known")}]
    known[0]["source"] |= {name: f"known/{known[0]['source'][name]}" for name in ("images", "labels", "masks")}
    path = write_modality(tmp_path, known=known, **FEW)
    np.save(tmp_path / "known" / "cases" / "03.npy", np.zeros((2, 16, 16), np.float32))
    outcome = run_study(path, tmp_path / "run", TRUSTED)
    run = read_run(tmp_path / "run")
    assert (outcome.n_cases, outcome.n_failed) == (CASES + 1, 1)
    status = run.cases.set_index("case")["status"]
    assert (status["03"], status["03 (known T1C)"]) == ("ok", "failed")
    assert "03 (known T1C)" in (tmp_path / "run" / "report.html").read_text()
    assert "03" in set(run.scores["case"])


SCALED = {name: value for name, value in CONTRACT.items() if name not in ("mean", "std")} | {"scaling": "nonzero"}


def test_a_constant_modality_is_named_with_its_case(tmp_path):
    known = [{"modality": "T1C", "source": write_pictures(tmp_path / "known")}]
    known[0]["source"] |= {name: f"known/{known[0]['source'][name]}" for name in ("images", "labels", "masks")}
    path = write_modality(
        tmp_path, known=known, **FEW, model={"name": "python:readers:t1c", "label": "t1c", "contract": SCALED}
    )
    for name in ("cases/03.npy", "known/cases/05.npy"):
        picture = np.load(tmp_path / name)
        picture[2] = 1.0
        np.save(tmp_path / name, picture)
    run_study(path, tmp_path / "run", TRUSTED)
    reasons = read_run(tmp_path / "run").cases.set_index("case")["reason"]
    assert reasons["03"].startswith("T2 of 03 is constant")
    assert reasons["05 (known T1C)"].startswith("T2 of 05 is constant")


def trained(folder, **body):
    """The spec of a network trained in two folds on eight pictures."""
    values = {
        "study": "modality", "threads": 1, "gallery": 0, "source": write_pictures(folder, count=8),
        "model": "vgg_bn_compact", "size": [32, 32], "folds": 2, "fit": {"epochs": 1, "batch_size": 2},
        "bootstrap_draws": 100, **FEW, **body,
    }  # fmt: skip
    (folder / "study.yaml").write_text(yaml.safe_dump(values))
    return folder / "study.yaml"


def test_training_on_images_of_which_none_can_be_read_says_what_is_wrong_with_the_first(tmp_path):
    path = trained(tmp_path)
    for file in (tmp_path / "cases").iterdir():
        np.save(file, np.ones((4, 16, 16), np.float32))
    with pytest.raises(InputError, match=r"none of the \d training images of fold 1 can be used \(T1 of 0\d is c"):
        run_study(path, tmp_path / "run", TRUSTED)


@pytest.mark.parametrize("pixels", [{"scaling": "nonzero"}, {"mean": [1.0], "std": [1.0]}])
def test_an_image_of_one_channel_does_not_stand_for_all_modalities(tmp_path, pixels):
    plan = plan_modality(read_spec(str(trained(tmp_path, pixels=pixels))), TRUSTED, tmp_path / "run")
    np.save(tmp_path / "cases" / "03.npy", np.load(tmp_path / "cases" / "03.npy")[:1])
    examples = CaseExamples(plan.source, plan.contract)
    assert str(examples.problem(3)) == "image has 1 channels, the model expects 4 (T1, T1C, T2, FLAIR)"
    assert examples[3][0].isnan().all()
    assert examples.problem(2) is None


def test_kept_maps_are_written_batch_by_batch(tmp_path):
    run_study(write_modality(tmp_path, keep_maps="all", batch_size=2, **FEW), tmp_path / "run", TRUSTED)
    wanted = {f"{case:02d}/{method}" for case in range(CASES) for method in FEW["methods"]}
    found = RunFolder(tmp_path / "run").read_maps(wanted)
    assert set(found) == wanted
    assert {values.shape for values in found.values()} == {(4, 16, 16)}
    for file in (tmp_path / "run" / "maps").glob("*.safetensors"):
        with safe_open(file, framework="numpy") as stored:
            assert len(stored.keys()) <= 2 * len(FEW["methods"])


@pytest.fixture
def stumbling(monkeypatch):
    """The second method fails on one case."""
    original = ModalExplainer.maps_by

    def stumbles(self, name, answers):
        if name == "input_x_gradient" and "03" in [case.key.case for case in answers.cases]:
            raise CaseError("03 cannot be explained")
        return original(self, name, answers)

    monkeypatch.setattr(ModalExplainer, "maps_by", stumbles)


@pytest.mark.usefixtures("stumbling")
def test_a_case_that_fails_at_a_later_method_leaves_no_map(tmp_path):
    path = write_modality(tmp_path, keep_maps="all", nifti="all", gallery=0, **FEW)
    assert run_study(path, tmp_path / "run", TRUSTED).n_failed == 1
    folders = {folder.name for folder in (tmp_path / "run" / "maps" / "nifti").iterdir()}
    assert folders == {f"{case:02d}" for case in range(CASES)} - {"03"}
    assert not RunFolder(tmp_path / "run").read_maps({"03/gradient", "03/input_x_gradient"})
    assert len(RunFolder(tmp_path / "run").read_maps({"02/gradient", "04/input_x_gradient"})) == 2
