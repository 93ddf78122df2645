"""Cases that fail in any stage of a modality study are counted and told, and leave nothing behind."""

import numpy as np
import pytest
from brightness_material import CASES, write_modality, write_pictures
from safetensors import safe_open

from heatcheck import read_run, run_study
from heatcheck.core.errors import CaseError
from heatcheck.runs.store import RunFolder
from heatcheck.studies.modality_explaining import ModalExplainer
from heatcheck.studies.registry import RunOptions

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
    made = ModalExplainer.made

    def stumbles(self, name, answered):
        if name == "input_x_gradient" and "03" in [case.key.case for case in answered.cases]:
            raise CaseError("03 cannot be explained")
        return made(self, name, answered)

    monkeypatch.setattr(ModalExplainer, "made", stumbles)


@pytest.mark.usefixtures("stumbling")
def test_a_case_that_fails_at_a_later_method_leaves_no_map(tmp_path):
    path = write_modality(tmp_path, keep_maps="all", nifti="all", gallery=0, **FEW)
    assert run_study(path, tmp_path / "run", TRUSTED).n_failed == 1
    folders = {folder.name for folder in (tmp_path / "run" / "maps" / "nifti").iterdir()}
    assert folders == {f"{case:02d}" for case in range(CASES)} - {"03"}
    assert not RunFolder(tmp_path / "run").read_maps({"03/gradient", "03/input_x_gradient"})
    assert len(RunFolder(tmp_path / "run").read_maps({"02/gradient", "04/input_x_gradient"})) == 2
