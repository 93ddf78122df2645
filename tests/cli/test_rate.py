"""`heatcheck rate`: a sheet to fill in, and what readers wrote on it."""

import csv
import json

import numpy as np
import pyarrow.parquet as pq
import pytest

from heatcheck.core.records import CaseRecord, Estimate, Score, ShardTables
from heatcheck.core.vocabulary import condition
from heatcheck.runs.gallery import index_of
from heatcheck.runs.lock import locked
from heatcheck.runs.store import RunFolder
from heatcheck.studies.modality.vocabulary import ModalityEntry, ModalityMapsEntry

METHODS = ("gradient", "lime", "grad_cam")
CASES = tuple(f"c{n}" for n in range(8))
FAILED = "c8"
MSFI = np.random.default_rng(0).random((8, 3))


def facts(**changed):
    """What a finished modality run says of itself."""
    methods = [{"name": name, "label": name, "family": "gradient", "kind": "method", "note": "", "summary": "Maps.",
                "changed": [], "shares_modalities": name == "grad_cam", "access": "model internals",
                "models": "neural networks", "speed": "fast"} for name in METHODS]  # fmt: skip
    model = {"name": "net", "label": "Net", "description": "a net", "architecture": "vgg3d"}
    return {
        "study": "modality", "title": "Made up", "status": "complete", "seed": 3, "methods": methods,
        "spec": {"study": "modality", "bootstrap_draws": 200, "permutations": 200},
        "versions": {"heatcheck": "0.1.0", "python": "3.12"},
        "modalities": ["T1C", "FLAIR"], "classes": ["LGG", "HGG"], "findings": ["LGG", "HGG"], "folds": 1,
        "fills": ["zero"], "known": [], "metrics": [], "ratings": None, "trained": False, "n_cases": 8, "n_failed": 0,
        "primary": {"measure": "balanced", "filled": "zero", "weights": "positive", "importance": "lesion",
                    "masks": "own", "boxes": False, "dilate": 0},
        "model": model, "models": [model],
        "source": {"name": "phantom_brain", "description": "Drawn brains", "drawn": True}, "space": 2, "notes": [],
        "per_fold": [{"fold": 1, "training": 0, "validation": 0, "test": 8, "classes": {"LGG": 4, "HGG": 4},
                      "epoch": None}], **changed,
    }  # fmt: skip


def write(path, **changed):
    """A run's folder with MSFI of three methods on eight cases, two of them in the gallery."""
    rated_under = condition(fold=1, importance="lesion", weights="positive")
    scores = tuple(Score(case, f"p{case}", "HGG", method, "net", "msfi", float(MSFI[n, m]), rated_under)
                   for n, case in enumerate(CASES) for m, method in enumerate(METHODS))  # fmt: skip
    with RunFolder.locked(path, {"seed": 3}, facts(**changed)) as folder:
        cases = (*(CaseRecord(case, f"p{case}", "ok") for case in CASES), CaseRecord(FAILED, "p", "failed"))
        folder.write_shard(0, ShardTables(scores=scores, cases=cases))
        folder.join_shards(1)
        folder.write_estimates([Estimate("seconds", "seconds", "All findings", "lime", "net", 1.5)])
    return path


@pytest.fixture
def run(tmp_path):
    return write(tmp_path / "run")


def gallery_of(run):
    """Two cases in the gallery, with what a sheet needs of it."""
    maps = tuple(
        ModalityMapsEntry(method=name, files={}, msfi=0.5, mi_correlation=None, lesion_share=0.2) for name in METHODS
    )
    shown = [ModalityEntry(id=case, case=case, finding="HGG", shape=(8, 8), images={}, maps=maps) for case in CASES[:2]]
    RunFolder(run).write_gallery(index_of(shown))


def rated(path, readers=("anna", "ben")):
    """A table in which both readers like what MSFI likes."""
    generator = np.random.default_rng(1)
    with path.open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["reader", "case", "method", "rating", "comment"])
        for reader in readers:
            for n, case in enumerate(CASES):
                for m, method in enumerate(METHODS):
                    value = np.clip(100 * MSFI[n, m] + generator.normal(0, 5), 0, 100)
                    writer.writerow([reader, case, method, f"{value:.1f}", "too wide" if n == m == 0 else ""])
    return path


def estimates(run):
    return pq.read_table(run / "estimates.parquet").to_pylist()


def test_sheet_is_filled_in_and_read_back(heatcheck, run, tmp_path):
    gallery_of(run)
    sheet = tmp_path / "sheet.csv"
    code, out, _ = heatcheck("rate", run, "--sheet", sheet)
    assert code == 0
    assert f"6 maps to rate: {sheet}" in out
    (run / "gallery" / "index.json").unlink()  # its pictures are not drawn here
    lines = sheet.read_text().splitlines()
    filled = [lines[0], *(f"anna{line[:-2]},{10 * n},ok" for n, line in enumerate(lines[1:]))]
    sheet.write_text("\n".join(filled) + "\n")
    code, out, _ = heatcheck("rate", run, sheet)
    assert code == 0
    assert "6 ratings of 1 reader, 6 with a comment" in out
    assert "Readers' agreement (alpha): nothing was rated by two readers" in out


def test_ratings_are_added_estimated_and_reported(heatcheck, run, tmp_path):
    code, out, _ = heatcheck("rate", run, rated(tmp_path / "given.csv"))
    assert code == 0
    assert "48 ratings of 2 readers, 2 with a comment" in out
    assert "Rating and MSFI (Spearman): 0.9" in out
    assert (run / "report.html").exists()
    assert json.loads((run / "run.json").read_text())["ratings"] == {"readers": 2, "rows": 48, "comments": 2}
    assert len((run / "ratings.csv").read_text().splitlines()) == 49
    kinds = [row["statistic"] for row in estimates(run)]
    assert kinds.count("seconds") == 1
    assert {"mean", "correlation", "alpha"} <= set(kinds)


def test_ratings_given_again_take_the_place_of_the_first(heatcheck, run, tmp_path):
    heatcheck("rate", run, rated(tmp_path / "first.csv"), "-q")
    before = len(estimates(run))
    code, out, _ = heatcheck("rate", run, rated(tmp_path / "second.csv", readers=("carl",)), "-q")
    assert (code, out) == (0, "")
    assert len(estimates(run)) == before
    assert json.loads((run / "run.json").read_text())["ratings"]["readers"] == 1


def test_ratings_of_a_case_that_failed_are_left_out(heatcheck, run, tmp_path):
    table = rated(tmp_path / "given.csv")
    table.write_text(f"{table.read_text()}anna,{FAILED},lime,50,\n")
    code, error, _ = heatcheck("rate", run, table)
    assert code == 0
    assert "48 ratings of 2 readers" in error
    assert FAILED not in (run / "ratings.csv").read_text()
    table.write_text(f"reader,case,method,rating,comment\nanna,{FAILED},lime,50,\n")
    code, _, error = heatcheck("rate", run, table)
    assert code == 2
    assert "rates only cases that failed" in error


def test_bad_line_is_one_sentence_and_changes_nothing(heatcheck, run, tmp_path):
    table = tmp_path / "bad.csv"
    table.write_text("reader,case,method,rating,comment\nanna,c0,gradient,300,\n")
    before = (run / "run.json").read_bytes(), (run / "estimates.parquet").read_bytes()
    code, _, error = heatcheck("rate", run, table)
    assert code == 2
    assert "line 2: the rating must be a number from 0 to 100, got '300'" in error
    assert len(error.strip().splitlines()) == 1
    assert ((run / "run.json").read_bytes(), (run / "estimates.parquet").read_bytes()) == before
    assert not (run / "ratings.csv").exists()


@pytest.mark.parametrize(
    ("changed", "message"),
    [({"study": "triggers"}, "only modality runs take ratings"), ({"status": "running"}, "is not finished")],
)
def test_other_runs_are_refused(heatcheck, tmp_path, changed, message):
    run = write(tmp_path / "other", **changed)
    code, _, error = heatcheck("rate", run, rated(tmp_path / "given.csv"))
    assert code == 2
    assert message in error


def test_table_and_sheet_together_or_neither_are_refused(heatcheck, run, tmp_path):
    for words in ((), (rated(tmp_path / "given.csv"), "--sheet", tmp_path / "sheet.csv")):
        code, _, error = heatcheck("rate", run, *words)
        assert code == 2
        assert "give either a table of ratings, or --sheet" in error


def test_sheet_that_is_there_is_not_overwritten(heatcheck, run, tmp_path):
    gallery_of(run)
    sheet = rated(tmp_path / "given.csv")
    before = sheet.read_bytes()
    code, _, error = heatcheck("rate", run, "--sheet", sheet)
    assert code == 2
    assert "exists already" in error
    assert sheet.read_bytes() == before


def test_run_that_another_process_writes_is_left_alone(heatcheck, run, tmp_path):
    with locked(run):
        code, _, error = heatcheck("rate", run, rated(tmp_path / "given.csv"))
    assert code == 2
    assert "another process is writing" in error


def test_folder_that_is_no_run_is_refused_and_help_has_an_example(heatcheck, tmp_path):
    code, _, error = heatcheck("rate", tmp_path, rated(tmp_path / "given.csv"))
    assert code == 2
    assert "is not a run folder" in error
    code, out, _ = heatcheck("rate", "--help")
    assert code == 0
    assert "Examples heatcheck rate my-run --sheet" in " ".join(out.split())
