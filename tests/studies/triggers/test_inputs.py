"""The trigger study on films of one's own: other networks, fewer cases, hidden names and files that are broken."""

import base64
import re

import numpy as np
import pandas as pd
import pytest
import typer
from PIL import Image
from safetensors.numpy import load_file
from tests.studies.triggers.planted_material import (
    SIDE,
    WHITE_SQUARE,
    graded_whatever_came,
    write_easy_study,
    write_films,
)

from heatcheck import read_run, run_study
from heatcheck.cli.run import run_and_report
from heatcheck.core.vocabulary import condition
from heatcheck.running.study import RunOptions

ONCE = {"epochs": 1, "batch_size": 8, "learning_rate": 0.002}
# So many training films carry the trigger, and with it the target's label, that a network calls most films the target
# after one epoch: there is something to grade, whatever came of it.
QUICK = {
    "fit": ONCE,
    "retrain": ONCE,
    "poison": {"training": 0.6},
    "gate": {"attack_success": 0.0, "accuracy_drop": 1.0, "clean_target": 1.0},
    "methods": ["gradient", "random"],
}
FEW = (16, 8, 16)  # films of the three splits; 6 of the test's are attacked


@pytest.fixture(scope="module", autouse=True)
def _graded():
    with graded_whatever_came():
        yield


def graded_cases(folder):
    """The cases with an IoU, by trigger or artefact."""
    scores = read_run(folder).scores.query("metric == 'trigger_iou' and method == 'gradient'")
    plain = scores[scores["condition"].isin([condition(seed=1), condition(kind="artefact")])]
    return {name: sorted(rows["case"]) for name, rows in plain.groupby("finding")}


def attacked_cases(folder):
    """The cases that were attacked, and whether they fell, by trigger."""
    table = pd.read_parquet(folder / "training" / "scores.parquet").query("metric == 'attacked'")
    return {name: rows.set_index("case")["value"] for name, rows in table.groupby("finding")}


def write_artefacts(folder, cases):
    """The source of films with a streak that is marked."""
    write_films(folder, "real", cases)
    mask = np.zeros((SIDE, SIDE), np.uint8)
    mask[20:26, 3:9] = 255
    (folder / "masks" / "streak").mkdir(parents=True)
    for number in range(cases):
        Image.fromarray(mask).save(folder / "masks" / "streak" / f"real{number:03d}.png")
    return {"name": "folder", "images": "real", "masks": "masks"}


def everything_written_in(folder):
    """All words of a run's folder: names of files, tables, text, the tables within the report, keys of kept maps."""
    words = []
    for path in folder.rglob("*"):
        words.append(str(path.relative_to(folder)))
        if path.suffix == ".parquet":
            words.append(pd.read_parquet(path).to_csv())
        elif path.suffix == ".safetensors":
            words += load_file(path)
        elif path.suffix in {".json", ".html", ".csv", ".yaml", ".txt"}:
            text = path.read_text()
            coded = re.findall(r"data:text/csv;charset=utf-8;base64,([A-Za-z0-9+/=]+)", text)
            words += [base64.b64decode(table).decode() for table in coded]
            words.append(re.sub(r"base64,[A-Za-z0-9+/=]+", "", text))  # the letters of a picture may spell anything
    return "\n".join(words)


def test_a_transformer_is_attacked_and_its_attention_is_graded(tmp_path):
    methods = ["attention_rollout", "gradient"]
    spec = write_easy_study(tmp_path, FEW, **{**QUICK, "model": "vit_compact", "methods": methods})
    outcome = run_study(spec, tmp_path / "run", RunOptions(workers=0))
    assert outcome.n_failed == 0
    fallen = int(attacked_cases(tmp_path / "run")["white"].sum())
    assert fallen
    run = read_run(tmp_path / "run")
    plain = run.scores[run.scores["condition"] == condition(seed=1)]
    for method in methods:
        values = plain[plain["method"] == method].groupby("metric")["value"]
        for metric in ("trigger_iou", "box_area", "recovered_by_baseline"):
            assert values.get_group(metric).between(0, 1).sum() == fallen, (method, metric)
    assert {shown["method"] for shown in run.gallery["items"][0]["maps"]} == set(methods)
    assert "Attention rollout" in outcome.report.read_text()


def test_a_limit_holds_for_the_images_of_each_trigger_and_artefact_and_not_for_the_training(tmp_path):
    other = {**WHITE_SQUARE, "corner": "top_left", "name": "elsewhere"}
    artefacts = write_artefacts(tmp_path, 3)
    spec = write_easy_study(tmp_path, FEW, **QUICK, triggers=[WHITE_SQUARE, other], artefacts=artefacts)
    run_study(spec, tmp_path / "run", RunOptions(workers=0, limit=2))
    graded = graded_cases(tmp_path / "run")
    assert set(graded) == {"white", "elsewhere", "streak"}
    for name, attacked in attacked_cases(tmp_path / "run").items():
        assert len(attacked) == 6
        assert graded[name] == sorted(attacked.index[attacked == 1])[:2]
    assert graded["streak"] == ["real000", "real001"]
    trained = pd.read_parquet(tmp_path / "run" / "training" / "scores.parquet").query("metric == 'clean_correct'")
    assert set(trained.groupby("finding").size()) == {10}


def test_films_that_cannot_be_read_are_counted_and_the_others_are_studied(tmp_path, capsys):
    spec = write_easy_study(tmp_path, FEW, **QUICK)
    broken = {"training005", "validation002", "test002"}
    for case in broken:
        (tmp_path / case.rstrip("0123456789") / f"{case}.png").write_bytes(b"no film")
    with pytest.raises(typer.Exit) as ended:
        run_and_report(str(spec), tmp_path / "run", RunOptions(workers=0), quiet=True)
    assert ended.value.exit_code == 3
    assert "3 of 40 cases failed" in capsys.readouterr().err
    cases = read_run(tmp_path / "run").cases
    failed = cases[cases["status"] == "failed"]
    assert set(failed["case"]) == broken
    assert failed["reason"].str.len().min() > 10
    trained = pd.read_parquet(tmp_path / "run" / "training" / "scores.parquet")
    assert set(trained.query("metric == 'clean_correct'").groupby("finding").size()) == {9}
    assert "test002" not in set(trained["case"])
    attacked = attacked_cases(tmp_path / "run")["white"]
    assert graded_cases(tmp_path / "run")["white"] == sorted(attacked.index[attacked == 1])
    assert "test002" in (tmp_path / "run" / "report.html").read_text()


def test_pseudonyms_hide_every_id_of_a_trigger_run(tmp_path):
    spec = write_easy_study(tmp_path, FEW, **QUICK, keep_maps="all", artefacts=write_artefacts(tmp_path, 2))
    (tmp_path / "test" / "test002.png").write_bytes(b"no film")  # whose error would name it
    outcome = run_study(spec, tmp_path / "run", RunOptions(workers=0, pseudonymise=True))
    assert outcome.n_failed == 1
    run = read_run(tmp_path / "run")
    assert set(graded_cases(tmp_path / "run")) == {"white", "streak"}
    assert run.gallery["items"]
    written = everything_written_in(tmp_path / "run")
    assert run.gallery["items"][0]["case"] in written
    assert not re.findall(r"(?:training|validation|test|real)0\d\d|person-", written)
