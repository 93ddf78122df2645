"""Who is tested in which fold, under which name, and how many: pseudonyms and limits change nothing else."""

import csv
import json

import numpy as np
import pytest
import yaml
from tests.studies.modality.brightness_material import CASES, METHODS, write_modality, write_pictures

from heatcheck import read_run, run_study
from heatcheck.core.records import CaseKey
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import read_spec
from heatcheck.studies.modality.cases import limited
from heatcheck.studies.modality.plan import plan_modality


def trained_in_folds(folder, **body):
    """A spec that trains in two folds; each patient has two cases, and the folds are those of a table."""
    source = write_pictures(folder, count=24)
    table = folder / "cases.csv"
    rows = list(csv.reader(table.read_text().splitlines()))
    for number, row in enumerate(rows[1:]):
        patient, high = number // 2, number // 2 % 2
        row[1:] = [f"p{patient:02d}", str(1 - high), str(high)]
    table.write_text("\n".join(map(",".join, rows)))
    folds = [f"{number:02d},{1 + number // 8 % 2}" for number in range(24)]
    (folder / "folds.csv").write_text("\n".join(["case,fold", *folds]))
    values = {
        "study": "modality", "source": source, "model": "vgg_bn_compact", "size": [32, 32], "folds": "folds.csv",
        "fit": {"epochs": 1, "batch_size": 2}, "methods": ["gradient"], **body,
    }  # fmt: skip
    path = folder / "study.yaml"
    path.write_text(yaml.safe_dump(values))
    return read_spec(str(path))


@pytest.mark.parametrize("folds", ["folds.csv", 2])
def test_pseudonyms_leave_every_patient_in_the_fold_it_is_tested_in(tmp_path, folds):
    spec = trained_in_folds(tmp_path, folds=folds)
    plain = plan_modality(spec, RunOptions(), tmp_path / "plain")
    hidden = plan_modality(spec, RunOptions(pseudonymise=True), tmp_path / "hidden")
    keys, own = hidden.source.index(), plain.source.index()
    assert [key.case for key in keys] == sorted(hidden.data.names.values())
    for fold, before in zip(hidden.folds, plain.folds, strict=True):
        taught = {keys[place].patient for place in (*fold.training, *fold.validation)}
        assert not taught & {key.patient for key in hidden.tested(fold).keys}
        for part in ("training", "validation", "test"):
            expected = {hidden.data.names[own[place].case] for place in getattr(before, part)}
            assert {keys[place].case for place in getattr(fold, part)} == expected
            assert list(getattr(fold, part)) == sorted(getattr(fold, part))  # their former order is nobody's business


def test_the_table_of_folds_counts_under_pseudonyms(tmp_path):
    hidden = plan_modality(trained_in_folds(tmp_path), RunOptions(pseudonymise=True), tmp_path / "run")
    said = dict(csv.reader((tmp_path / "folds.csv").read_text().splitlines()[1:]))
    found = {hidden.data.source.originals[key.case].case: fold.number
             for fold in hidden.folds for key in hidden.tested(fold).keys}  # fmt: skip
    assert found == {case: int(number) for case, number in said.items()}


def test_a_pseudonymous_run_does_not_say_where_the_data_lie(tmp_path):
    path = write_modality(tmp_path / "ward", methods=["gradient"], removal=None)
    values = yaml.safe_load(path.read_text())
    values["source"] |= {
        name: str(tmp_path / "ward" / values["source"][name]) for name in ("images", "labels", "masks")
    }
    values["known"] = [{"modality": "T1C", "source": values["source"]}]
    path.write_text(yaml.safe_dump(values))
    np.save(tmp_path / "ward" / "cases" / "03.npy", np.zeros((2, 16, 16), np.float32))
    run_study(path, tmp_path / "run", RunOptions(trust_code=True, workers=1, pseudonymise=True))
    for file in ("run.json", "report.html"):
        assert str(tmp_path) not in (tmp_path / "run" / file).read_text()
    cases = read_run(tmp_path / "run").cases
    assert (cases["status"] == "failed").sum() == 2  # the tested one and the known one
    assert not cases["reason"].str.contains(str(tmp_path)).any()
    assert read_run(tmp_path / "run").manifest["spec"]["source"]["images"] == "(hidden)"


def keys_of(classes):
    return [CaseKey(f"{place:02d}", f"p{place}", {"a": float(c == "a"), "b": float(c == "b")})
            for place, c in enumerate(classes)]  # fmt: skip


@pytest.mark.parametrize(
    ("classes", "limit", "kept"),
    [
        ("aaaabb", 2, ["00", "04"]),
        ("aaaabb", 3, ["00", "04", "05"]),
        ("aaaab", 4, ["00", "01", "02", "04"]),
        ("ab", 5, ["00", "01"]),
        ("aab", None, ["00", "01", "02"]),
    ],
)
def test_a_limit_takes_the_classes_in_turn(classes, limit, kept):
    assert [key.case for key in limited(keys_of(classes), ("a", "b"), limit)] == kept


def test_a_limit_leaves_no_class_of_a_fold_untested_whatever_the_names(tmp_path):
    spec = trained_in_folds(tmp_path)
    plain = plan_modality(spec, RunOptions(limit=2), tmp_path / "plain")
    hidden = plan_modality(spec, RunOptions(limit=2, pseudonymise=True), tmp_path / "hidden")
    for fold, other in zip(plain.folds, hidden.folds, strict=True):
        keys = plain.tested(fold).keys
        assert len({key.patient for key in keys}) == 2
        assert {key.labels["HGG"] for key in keys} == {0, 1}
        assert {hidden.data.names[key.case] for key in keys} == {key.case for key in hidden.tested(other).keys}


def write_ratings(folder):
    """Two readers' ratings of every case."""
    chance = np.random.default_rng(0)
    names = [method if isinstance(method, str) else method["name"] for method in METHODS]
    rows = [f"{reader},{case:02d},{method},{chance.integers(100)},"
            for reader in "AB" for case in range(CASES) for method in names]  # fmt: skip
    (folder / "ratings.csv").write_text("\n".join(["reader,case,method,rating,comment", *rows]))


def run_rated(folder, *, broken=(), **options):
    """The run of a rated study with its notes, and the cases whose ratings it keeps."""
    path = write_modality(folder, ratings="ratings.csv", removal=None)
    write_ratings(folder)
    for case in broken:
        np.save(folder / "cases" / f"{case}.npy", np.full((4, 16, 16), np.nan, np.float32))
    run_study(path, folder / "run", RunOptions(trust_code=True, workers=1, **options))
    kept = {row["case"] for row in csv.DictReader((folder / "run" / "ratings.csv").read_text().splitlines())}
    run = read_run(folder / "run")
    return run, " ".join(run.manifest["notes"]), kept


def test_ratings_speak_of_cases_by_their_own_names_and_are_kept_under_pseudonyms(tmp_path):
    run, notes, kept = run_rated(tmp_path, pseudonymise=True)
    assert kept == set(run.cases["case"])
    assert "ratings are left out" not in notes
    assert run.manifest["ratings"]["rows"] == 2 * CASES * len(METHODS)
    whole = run.estimates.query("statistic == 'mean' and metric == 'rating' and method == 'gradient'")
    assert whole["n_cases"].tolist() == [CASES]


def test_ratings_of_cases_that_are_not_tested_are_left_out_with_a_note(tmp_path):
    run, notes, kept = run_rated(tmp_path, limit=4)
    assert kept == set(run.cases["case"]) == {"00", "01", "02", "03"}
    assert f"{2 * 8 * len(METHODS)} ratings are left out because their cases failed or were not tested" in notes


def test_ratings_of_a_case_that_failed_are_left_out_and_the_run_ends(tmp_path):
    run, notes, kept = run_rated(tmp_path, broken=["03"])
    assert run.manifest["status"] == "complete"
    assert kept == {f"{case:02d}" for case in range(CASES)} - {"03"}
    assert f"{2 * len(METHODS)} ratings" in notes
    rated = run.estimates.query("statistic == 'mean' and metric == 'rating'")
    assert set(rated["n_cases"]) == {CASES - 1}
    assert json.loads((tmp_path / "run" / "run.json").read_text())["ratings"]["rows"] == 2 * 11 * len(METHODS)
