"""Failed cases run again in the same folder, after they were repaired."""

import json
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import yaml
from PIL import Image

from heatcheck import RunOptions, read_run, run_study
from heatcheck.core.errors import RunFolderError
from heatcheck.sources.folder import FolderSource

OPTIONS = RunOptions()
RETRY = replace(OPTIONS, retry_failed=True)
MARKED = range(4)  # of eight images
SPEC = {
    "study": "localization",
    "title": "A study of one's own films",
    "gallery": 2,
    "threads": 1,
    "shard_size": 4,
    "bootstrap_draws": 100,
    "keep_maps": "all",
    "source": {"name": "folder", "images": "images", "labels": "labels.csv", "masks": "masks"},
    "model": "phantom_chest_densenet",
    "methods": ["grad_cam", "random"],
}


@pytest.fixture
def data(tmp_path):
    """Eight films with a label each, the first four with a mask; film 1 is empty and the mask of film 2 too small."""
    generator = np.random.default_rng(1)
    (tmp_path / "masks" / "Edema").mkdir(parents=True)
    (tmp_path / "images").mkdir()
    for number in range(8):
        film = generator.integers(0, 255, (48, 48), np.uint8)
        Image.fromarray(film).save(tmp_path / "images" / f"film{number}.png")
        if number in MARKED:
            write_mask(tmp_path, number)
    rows = [f"film{number},{int(number in MARKED)}" for number in range(8)]
    (tmp_path / "labels.csv").write_text("\n".join(["image,Edema", *rows]) + "\n")
    (tmp_path / "study.yaml").write_text(yaml.safe_dump(SPEC))
    (tmp_path / "good.png").write_bytes((tmp_path / "images" / "film1.png").read_bytes())
    (tmp_path / "images" / "film1.png").write_bytes(b"")
    Image.new("L", (9, 9), 255).save(tmp_path / "masks" / "Edema" / "film2.png")
    return tmp_path


def write_mask(folder, number, start=10):
    mask = np.zeros((48, 48), np.uint8)
    mask[start : start + 15, 12:30] = 255
    Image.fromarray(mask).save(folder / "masks" / "Edema" / f"film{number}.png")


def repair(data):
    (data / "images" / "film1.png").write_bytes((data / "good.png").read_bytes())
    write_mask(data, 2)


def run(data, name="run", options=OPTIONS, **changes):
    if changes:
        (data / "study.yaml").write_text(yaml.safe_dump({**SPEC, **changes}))
    return run_study(data / "study.yaml", data / name, options)


@pytest.fixture
def read(monkeypatch):
    """The cases that a source was asked for, in their order."""
    cases = []
    load = FolderSource.load

    def counted(self, key):
        cases.append(key.case)
        return load(self, key)

    monkeypatch.setattr(FolderSource, "load", counted)
    return cases


def table(data, name, kind, order):
    rows = pd.read_parquet(data / name / f"{kind}.parquet")
    return rows.sort_values(order).reset_index(drop=True)


def test_repaired_cases_give_what_a_new_run_gives_and_the_others_are_not_run_again(data, read):
    first = run(data)
    assert (first.n_failed, first.can_retry) == (2, True)
    repair(data)
    read.clear()
    again = run(data, options=RETRY)
    assert (again.n_failed, again.n_cases, again.can_retry) == (0, 8, False)
    looked_at_first = {f"film{number}" for number in range(8)}  # once each, before any work
    assert sorted(read[: len(looked_at_first)]) == sorted(looked_at_first)
    later = read[len(looked_at_first) :]
    assert set(later) - {"film1", "film2"} <= {row["case"] for row in read_run(data / "run").gallery["items"]}
    assert {"film1", "film2"} <= set(later)
    run(data, "new")
    order = ["case", "finding", "method", "metric", "condition", "other_method"]
    for kind, by in (("scores", order), ("predictions", order[:2]), ("shapes", order[:2]), ("cases", order[:1])):
        pd.testing.assert_frame_equal(table(data, "run", kind, by), table(data, "new", kind, by), check_exact=False)
    pd.testing.assert_frame_equal(
        read_run(data / "run").estimates, read_run(data / "new").estimates, check_exact=False, rtol=1e-6
    )


def test_what_was_done_is_recorded_and_shown(data):
    run(data)
    repair(data)
    report = run(data, options=RETRY).report.read_text()
    (retry,) = read_run(data / "run").manifest["retries"]
    assert retry["cases"] == 2
    assert retry["started"] <= retry["finished"]
    assert "failed cases run again" in report
    assert "after they were repaired; the scores of all others were kept" in report
    assert run(data).n_failed == 0  # the same command without the option knows the repaired files


def test_a_case_that_fails_again_may_be_retried_again(data):
    run(data)
    write_mask(data, 2)
    assert run(data, options=RETRY).n_failed == 1
    (data / "images" / "film1.png").write_bytes((data / "good.png").read_bytes())
    assert run(data, options=RETRY).n_failed == 0
    assert [retry["cases"] for retry in read_run(data / "run").manifest["retries"]] == [2, 1]


def test_maps_that_were_kept_stay_beside_those_of_repaired_cases(data):
    run(data)
    repair(data)
    run(data, options=RETRY)
    from heatcheck.runs.store import RunFolder

    names = {f"film{number}/Edema/grad_cam" for number in range(8)}
    assert set(RunFolder(data / "run").read_maps(names)) == names


def _change_another_image(data):
    Image.new("L", (48, 48), 9).save(data / "images" / "film5.png")


def _change_another_mask(data):
    write_mask(data, 0, start=20)


def _change_another_label(data):
    text = (data / "labels.csv").read_text()
    (data / "labels.csv").write_text(text.replace("film7,0", "film7,1"))


@pytest.mark.parametrize("change", [_change_another_image, _change_another_mask, _change_another_label])
def test_changes_of_other_cases_are_refused(data, change):
    run(data)
    repair(data)
    change(data)
    before = (data / "run" / "run.json").read_text()
    with pytest.raises(RunFolderError, match="more changed than the files of failed cases"):
        run(data, options=RETRY)
    assert (data / "run" / "run.json").read_text() == before


def test_another_spec_is_refused_as_when_a_run_goes_on(data):
    run(data)
    repair(data)
    before = (data / "run" / "run.json").read_text()
    with pytest.raises(RunFolderError, match=r"differs in the spec \(`methods`\)"):
        run(data, options=RETRY, methods=["grad_cam"])
    assert (data / "run" / "run.json").read_text() == before


def test_a_corrected_label_of_a_failed_case_is_a_repair(data):
    labels = (data / "labels.csv").read_text()
    (data / "labels.csv").write_text(labels.replace("film3,1", "film3,0"))  # its mask says otherwise
    assert run(data).n_failed == 3
    (data / "labels.csv").write_text(labels)
    repair(data)
    assert run(data, options=RETRY).n_failed == 0


def test_an_interrupted_retry_goes_on(data, monkeypatch):
    from heatcheck.running.retry import repeating

    run(data)
    repair(data)

    def interrupt(*_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(repeating.ShardRows, "sorted_tables", interrupt)
        with pytest.raises(KeyboardInterrupt):
            run(data, options=RETRY)
    assert json.loads((data / "run" / "run.json").read_text())["status"] == "running"
    assert run(data).n_failed == 0
    assert len(read_run(data / "run").manifest["retries"]) == 1


def test_there_must_be_a_finished_run_with_failed_cases(data):
    with pytest.raises(RunFolderError, match="holds no run yet; leave out --retry-failed"):
        run(data, options=RETRY)
    repair(data)
    run(data)
    with pytest.raises(RunFolderError, match="has no failed cases; leave out --retry-failed"):
        run(data, options=RETRY)
    path = data / "run" / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "status": "running"}))
    with pytest.raises(RunFolderError, match="is not finished; leave out --retry-failed"):
        run(data, options=RETRY)


def test_a_run_that_recorded_no_hash_of_the_rest_is_refused(data):
    run(data)
    path = data / "run" / "run.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "rest_hash": ""}))
    with pytest.raises(RunFolderError, match="not known which cases a change concerns; choose another --out"):
        run(data, options=RETRY)


def test_repairing_without_the_option_names_it(data):
    run(data)
    repair(data)
    with pytest.raises(RunFolderError, match="add --retry-failed if you repaired failed cases; otherwise choose"):
        run(data)


def test_pseudonyms_do_not_stand_in_the_way(data):
    hidden = replace(OPTIONS, pseudonymise=True)
    assert run(data, options=hidden).can_retry
    repair(data)
    assert run(data, options=replace(hidden, retry_failed=True)).n_failed == 0
