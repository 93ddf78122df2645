"""What run.json may hold, and what is said of it when it holds something else."""

import json

import pytest
from tests.golden.make import unpack

from heatcheck.core.errors import RunFolderError
from heatcheck.running.compare import compare_runs
from heatcheck.running.reporting import build_report
from heatcheck.runs.manifest import Manifest, MethodEntry, parse_manifest
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.vocabulary import ModalityManifest


def change(folder, **facts):
    file = folder / "run.json"
    file.write_text(json.dumps({**json.loads(file.read_text()), **facts}))
    return folder


def test_only_what_was_set_is_written():
    manifest = Manifest(study="s", methods=(MethodEntry(name="m"),), n_cases=None)
    assert manifest.facts() == {"study": "s", "methods": [{"name": "m", "label": "m"}]}


def test_a_null_counts_as_absent_and_an_unknown_key_is_ignored():
    manifest = parse_manifest({"title": None, "threads": None, "colour": 3}, Manifest, "run.json")
    assert (manifest.title, manifest.threads) == ("", None)


def test_a_wrong_type_is_one_sentence_with_the_key_and_the_remedy():
    with pytest.raises(RunFolderError, match=r"run\.json cannot be used: methods\.0\.name: .*; remove the folder"):
        parse_manifest({"methods": [{"label": "no name"}]}, Manifest, "run.json")


@pytest.mark.parametrize(
    "facts",
    [
        {"judged": ["zz"]},
        {"trained": ["zz"]},
        {"methods": []},
        {"reliance": {"fills": ["zz"], "shifts": 2}},
        {"blame_metric": "zz"},
        {"metrics": []},
    ],
    ids=str,
)
def test_names_that_do_not_match_each_other_still_give_a_report(tmp_path, facts):
    assert build_report(change(unpack("alignment", tmp_path), **facts)).stat().st_size > 10_000


def test_runs_that_list_no_metrics_are_compared_by_all_scores(tmp_path):
    folders = [change(unpack("triggers", tmp_path / name), metrics=[]) for name in "ab"]
    assert compare_runs(*folders).rows


def test_settings_of_a_run_need_its_model_and_its_spec():
    with pytest.raises(RunFolderError, match="names no model or lacks its spec"):
        ModalitySettings.of_run(ModalityManifest(modalities=("T1",)))


def test_folds_are_at_least_one():
    with pytest.raises(RunFolderError, match="folds"):
        parse_manifest({"folds": 0}, ModalityManifest, "run.json")
