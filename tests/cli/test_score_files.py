"""`heatcheck score` on wrong, missing and foreign files: one line that names the file, and nothing left behind."""

import json
import os
import pickle
import shutil

import numpy as np
import pandas as pd
import pytest
from tests.cli.map_material import SHAPE, Files, small_scoring, square, write_map


@pytest.fixture
def files(tmp_path) -> Files:
    return small_scoring(tmp_path / "given")


def refused(heatcheck, files: Files, *more: object) -> str:
    """What is said when nothing can be scored."""
    code, _, error = heatcheck("score", *files.flags(*more), "-q")
    assert code == 2, error
    assert error.count("\n") == 1
    assert not (files.root / "out").exists()
    return error


def scores(files: Files, metric: str, method: str = "maps", condition: str = "{}") -> pd.DataFrame:
    table = pd.read_parquet(files.root / "out" / "scores.parquet")
    return table[(table["metric"] == metric) & (table["method"] == method) & (table["condition"] == condition)]


def test_scores_worked_by_hand(heatcheck, files) -> None:
    code, printed, error = heatcheck("score", *files.flags())
    assert code == 0, error
    # 8 × 8 pixels, one row off: 56 in common, 72 in all; the peak lies inside
    iou = scores(files, "iou")
    assert len(iou) == 12
    assert iou["value"].to_numpy() == pytest.approx(56 / 72)
    assert (scores(files, "hit")["value"] == 1).all()
    full = scores(files, "iou_full")
    assert len(full) == 12  # the truth names one finding only: the other is not scored
    assert "All findings                 maps         IoU 0.778" in printed
    assert "Maps of Pneumothorax were not scored" in printed
    assert (files.root / "out" / "report.html").exists()


def test_a_label_that_denies_an_outline_fails_that_image_alone_or_is_ignored(heatcheck, files) -> None:
    images = sorted(json.loads(files.truth.read_text()))
    table = pd.DataFrame({"image": images, "patient": [name.split("_")[0] for name in images], "Edema": 1})
    table.to_csv(files.root / "labels.csv", index=False)
    code, _, error = heatcheck("score", *files.flags("--labels", files.root / "labels.csv"), "-q")
    assert code == 0, error
    agreed = scores(files, "iou")
    table.loc[1, "Edema"] = 0
    table.to_csv(files.root / "labels.csv", index=False)
    shutil.rmtree(files.root / "out")
    code, printed, error = heatcheck("score", *files.flags("--labels", files.root / "labels.csv"))
    assert code == 3
    assert f"1 of {len(images)} cases failed" in error.replace("\n", " ")
    assert f"labels.csv denies what the truth marks on 1 image, e.g. {images[1]}; left out." in printed.replace(
        "\n", " "
    )
    cases = pd.read_parquet(files.root / "out" / "cases.parquet").set_index("case")
    assert cases.index[cases["status"] == "failed"].tolist() == [images[1]]
    assert cases.loc[images[1], "reason"].startswith(f"labels.csv says that {images[1]} has no Edema, but")
    kept = agreed[agreed["case"] != images[1]].reset_index(drop=True)
    pd.testing.assert_frame_equal(scores(files, "iou").reset_index(drop=True), kept)
    for flags in (("--preset", "chexlocalize"), ("--switch", "contradiction=chexlocalize")):
        shutil.rmtree(files.root / "out")
        code, printed, error = heatcheck("score", *files.flags("--labels", files.root / "labels.csv", *flags))
        assert code == 0, error
        assert "the labels were ignored there" in printed.replace("\n", " ")
        all_of_them = scores(files, "iou").query("finding == 'Edema'").reset_index(drop=True)
        pd.testing.assert_frame_equal(all_of_them, agreed.reset_index(drop=True))


def test_tuning_leaves_out_an_image_whose_label_denies_its_outline(heatcheck, files) -> None:
    images = sorted(json.loads(files.truth.read_text()))
    pd.DataFrame({"image": images, "Edema": [1, 0, *[1] * (len(images) - 2)]}).to_csv(files.root / "l.csv", index=False)
    flags = ["tune", *files.flags("--labels", files.root / "l.csv")]
    counts = {}
    for preset in ("recommended", "chexlocalize"):
        code, printed, error = heatcheck(*flags, "--preset", preset, "--json")
        assert code == 0, error
        counts[preset] = next(each["cases"] for each in json.loads(printed) if each["finding"] == "Edema")
    assert counts["chexlocalize"] - counts["recommended"] == 1


def test_a_deleted_map_is_named_or_counted(heatcheck, files) -> None:
    files.map("p2_study1_view1").unlink()
    error = refused(heatcheck, files)
    assert "no map for Edema on p2_study1_view1" in error
    assert "--allow-missing" in error
    code, printed, _ = heatcheck("score", *files.flags("--allow-missing"))
    assert code == 0
    assert "1 marked finding had no map, e.g. Edema on p2_study1_view1." in printed
    missing = scores(files, "iou").set_index("case").loc["p2_study1_view1"]
    assert np.isnan(missing["value"])
    assert missing["reason"] == "no map was given"


def test_a_deleted_map_is_an_empty_region_for_the_benchmark(heatcheck, files) -> None:
    files.map("p2_study1_view1").unlink()
    code, _, error = heatcheck("score", *files.flags("--preset", "chexlocalize", "--slice", "full"), "-q")
    assert code == 0, error
    table = pd.read_csv(files.root / "out" / "iou_results_per_cxr.csv").set_index("img_id")["Edema"]
    assert table["p2_study1_view1"] == 0
    assert table["p2_study1_view2"] == pytest.approx(56 / 72)


def test_a_duplicate_map_is_refused_with_both_names(heatcheck, files) -> None:
    (files.maps / "copy").mkdir()
    shutil.copy(files.map("p1_study1_view1"), files.maps / "copy")
    assert refused(heatcheck, files).count("p1_study1_view1_Edema_map.pkl") == 2


def test_a_malicious_map_is_refused_and_nothing_runs(heatcheck, files) -> None:
    trace = files.root / "ran"

    class Payload:
        def __reduce__(self):
            return os.mkdir, (str(trace),)

    with files.map("p5_study1_view2").open("wb") as file:
        pickle.dump({"map": Payload()}, file)
    assert "p5_study1_view2_Edema_map.pkl would run" in refused(heatcheck, files)
    assert not trace.exists()


def test_a_mended_file_may_use_the_same_folder(heatcheck, files) -> None:
    path = files.map("p5_study1_view2")
    content = path.read_bytes()
    path.write_bytes(content[:-40])
    assert "is not a whole map file" in refused(heatcheck, files)
    path.write_bytes(content)
    assert heatcheck("score", *files.flags(), "-q")[0] == 0


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"cxr_dims": SHAPE}, "one of them is swapped: 'cxr_dims' is (width, height)"),
        ({"cxr_dims": (99, 99)}, "correct one of them"),
        ({"prob": [0.1] * 14}, "without names"),
    ],
)
def test_what_a_map_says_of_itself_must_fit(heatcheck, files, changes, problem) -> None:
    path = files.map("p3_study1_view1")
    files.rewrite(path, **changes)
    error = refused(heatcheck, files)
    assert problem in error
    assert path.name in error


def test_a_finding_no_one_knows_is_refused_with_a_suggestion(heatcheck, files) -> None:
    path = files.map("p0_study1_view1")
    path.rename(files.map("p0_study1_view1", "Edemma"))
    error = refused(heatcheck, files)
    assert "p0_study1_view1_Edemma_map.pkl" in error
    assert "did you mean 'Edema'?" in error


@pytest.mark.parametrize(
    ("polygon", "problem"), [([[1, 1], [5, 5]], "2 points"), (square(500, 500, 4), "outside the image")]
)
def test_impossible_outlines_are_refused(heatcheck, files, polygon, problem) -> None:
    files.change_truth("p3_study1_view1", Edema=[polygon])
    error = refused(heatcheck, files)
    assert problem in error
    assert "p3_study1_view1" in error


def test_truncated_truth_and_run_lengths_are_refused(heatcheck, files) -> None:
    content = files.truth.read_text()
    files.truth.write_text(content[: len(content) // 2])
    assert "truth.json" in refused(heatcheck, files)
    masks = {name: {"Edema": {"size": list(SHAPE), "counts": "0"}} for name in json.loads(content)}
    files.truth.write_text(json.dumps(masks))
    assert "truth.json" in refused(heatcheck, files)


def test_readers_of_other_images_are_refused(heatcheck, files) -> None:
    human = files.root / "human.json"
    human.write_text(json.dumps({"somebody_else": {"img_size": list(SHAPE), "Edema": [square(2, 2, 5)]}}))
    assert "names none of the images" in refused(heatcheck, files, "--human", human)
    some = {name: entry for name, entry in json.loads(files.truth.read_text()).items() if name.startswith("p1")}
    human.write_text(json.dumps({**some, "somebody_else": {"img_size": list(SHAPE), "Edema": [square(2, 2, 5)]}}))
    code, printed, _ = heatcheck("score", *files.flags("--human", human))
    assert code == 0
    assert "human.json lacks 10 images of the truth." in printed
    assert "human.json names 1 image that the truth does not; they were not used." in printed
    human_iou = scores(files, "iou", "human")
    assert human_iou["value"].notna().sum() == 2


def test_maps_of_other_images_are_refused(heatcheck, files) -> None:
    other = small_scoring(files.root / "other")
    truth = {f"x{name}": entry for name, entry in json.loads(other.truth.read_text()).items()}
    other.truth.write_text(json.dumps(truth))
    assert "have no image in common" in refused(heatcheck, other)


def test_thresholds_tuned_on_the_same_patients_are_refused_or_warned_about(heatcheck, files) -> None:
    tuning = files.root / "tuning"
    assert heatcheck("tune", "--maps", files.maps, "--truth", files.truth, "--out", tuning, "-q")[0] == 0
    flags = ("--threshold", tuning / "tuning_results.csv")
    assert "6 of the patients are those the thresholds or cutoffs were tuned on, e.g. p0" in refused(
        heatcheck, files, *flags
    )
    others = small_scoring(files.root / "others")
    for path in sorted(others.maps.iterdir()):
        path.rename(path.with_name(f"q{path.name}"))
    truth = {f"q{name}": entry for name, entry in json.loads(others.truth.read_text()).items()}
    others.truth.write_text(json.dumps(truth))
    assert heatcheck("score", *others.flags(*flags), "-q")[0] == 0
    code, printed, _ = heatcheck("score", *files.flags(*flags, "--preset", "chexlocalize"))
    assert code == 2  # the tuned table knows one finding only, the benchmark has ten
    assert not printed


def test_cutoffs_call_cases_negative(heatcheck, files) -> None:
    files.rewrite(files.map("p4_study1_view1"), prob=0.3)
    table = files.root / "cutoffs.csv"
    table.write_text("prob_threshold,mIoU,task\n0.0,0.1,Edema\n0.5,0.4,Edema\n0.6,0.4,Edema\n")
    assert heatcheck("score", *files.flags("--probability-cutoffs", table), "-q")[0] == 0
    negative = scores(files, "iou").set_index("case").loc["p4_study1_view1"]
    assert np.isnan(negative["value"])
    assert "below the cutoff" in negative["reason"]
    assert scores(files, "iou_full").set_index("case").loc["p4_study1_view1", "value"] == 0
    assert scores(files, "hit").set_index("case").loc["p4_study1_view1", "value"] == 1
    shutil.rmtree(files.root / "out")
    write_map(files.map("p4_study1_view1"), np.eye(*SHAPE, dtype=np.float32), None)
    assert "hold no probability" in refused(heatcheck, files, "--probability-cutoffs", table)


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (("--threshold", "1.5"), "between 0 and 1"),
        (("--threshold", "nowhere.csv"), "no such file"),
        (("--threshold", "0.5", "--smooth", "0.1"), "leave out --smooth or --threshold"),
        (("--smooth", "50"), "fraction of the image's side"),
        (("--smooth", "0.5", "--preset", "chexlocalize"), "number of pixels"),
        (("--probability-cutoffs", "nowhere.csv"), "no such file"),
        (("--human", "nowhere.json"), "no such file"),
        (("--labels", "nowhere.csv"), "no such file"),
    ],
)
def test_flags_that_cannot_work_are_one_line(heatcheck, files, flags, problem) -> None:
    assert problem in refused(heatcheck, files, *flags)


def test_two_methods_are_scored_side_by_side(heatcheck, files) -> None:
    second = files.root / "second"
    shutil.copytree(files.maps, second)
    for path in second.iterdir():
        files.rewrite(path, map=np.ascontiguousarray(np.zeros(SHAPE, np.float32)))
    flags = ("--maps", f"grad_cam={files.maps}", "--maps", f"flat={second}", "--truth", files.truth)
    code, _, error = heatcheck("score", *flags, "--out", files.root / "out")
    assert code == 2  # arrays are not what the benchmark stores, and only tensors are let in
    assert "would run" in error or "holds no array" in error
    shutil.rmtree(second)
    shutil.copytree(files.maps, second)
    code, printed, error = heatcheck("score", *flags, "--out", files.root / "out")
    assert code == 0, error
    assert {"grad_cam", "flat"} <= set(pd.read_parquet(files.root / "out" / "scores.parquet")["method"])
    assert "flat" in printed
    files.rewrite(second / "p0_study1_view1_Edema_map.pkl", prob=0.1)
    shutil.rmtree(files.root / "out")
    code, _, error = heatcheck("score", *flags, "--out", files.root / "out")
    assert code == 2
    assert "different probabilities" in error


def test_a_stopped_scoring_continues_and_ends_the_same(heatcheck, files, monkeypatch) -> None:
    from heatcheck.studies.localization.from_files import stage as score_stage

    monkeypatch.setattr(score_stage.ScoreStage, "SIZE", 4)
    assert heatcheck("score", *files.flags(), "-q")[0] == 0
    uninterrupted = pd.read_parquet(files.root / "out" / "scores.parquet")
    shutil.rmtree(files.root / "out")
    real = score_stage.ScoreStage.work

    def stopped(stage, shard):
        if shard == 2:
            raise KeyboardInterrupt
        return real(stage, shard)

    monkeypatch.setattr(score_stage.ScoreStage, "work", stopped)
    code, _, _ = heatcheck("score", *files.flags(), "-q")
    assert code not in (0, 2)
    sizes: list[int] = []
    monkeypatch.setattr(score_stage.ScoreStage, "work", lambda stage, shard: sizes.append(shard) or real(stage, shard))
    assert heatcheck("score", *files.flags(), "-q")[0] == 0
    assert sizes == [2]
    pd.testing.assert_frame_equal(pd.read_parquet(files.root / "out" / "scores.parquet"), uninterrupted)


def test_the_same_names_below_another_folder_do_not_matter(heatcheck, files) -> None:
    deep = files.maps / "a" / "b"
    deep.mkdir(parents=True)
    for path in list(files.maps.glob("p0*")):
        path.rename(deep / path.name)
    assert heatcheck("score", *files.flags(), "-q")[0] == 0
    assert len(scores(files, "iou")) == 12


def test_golden_through_recommended(heatcheck, golden, tmp_path) -> None:
    data = golden / "data"
    flags = (
        "--maps", data / "maps", "--truth", data / "gt_annotations.json", "--human", data / "hb_annotations.json",
        "--human-points", data / "hb_salient_pt.json", "--labels", data / "labels.csv", "--out", tmp_path / "out",
    )  # fmt: skip
    code, _, error = heatcheck("score", *flags, "-q")
    assert code == 2
    assert "patient90010_study1_view1_frontal" in error  # the image with an unnamed vector of probabilities
    code, _, error = heatcheck("score", *flags, "--allow-missing", "-q")
    assert code == 0, error
    estimates = pd.read_parquet(tmp_path / "out" / "estimates.parquet")
    means = estimates[(estimates["statistic"] == "mean") & (estimates["condition"] == "{}")]
    mean = means[(means["metric"] == "iou") & (means["method"] == "maps")].set_index("finding")["value"]
    theirs = pd.read_csv(golden / "expected" / "tp" / "iou_results_per_cxr.csv").drop(columns="img_id")
    for finding in theirs:
        # a constant map on a positive case is left out there and scores 0 here
        positives = pd.read_csv(golden / "expected" / "tp" / "hitmiss_results_per_cxr.csv")[finding].notna().sum()
        assert mean[finding] == pytest.approx(theirs[finding].sum() / positives), finding
    assert mean["Edema"] < theirs["Edema"].mean()
    reference = estimates[(estimates["statistic"] == "mean") & (estimates["condition"] == '{"preset":"chexlocalize"}')]
    summary = pd.read_csv(golden / "expected" / "tp" / "iou_summary_results.csv").set_index("name")
    rows = reference[(reference["metric"] == "iou") & (reference["method"] == "maps")].set_index("finding")
    for finding, row in summary.iterrows():
        ours = rows.loc[str(finding)]
        assert (ours["low"], ours["value"], ours["high"]) == pytest.approx(
            (row["lower"], row["mean"], row["upper"]), abs=6e-4
        )


def test_every_folder_of_maps_is_named_once(heatcheck, files) -> None:
    flags = ("--maps", files.maps, "--maps", files.maps, "--truth", files.truth, "--out", files.root / "out")
    code, _, error = heatcheck("score", *flags)
    assert code == 2
    assert "two --maps are called 'maps'" in error


def test_help_shows_an_example(heatcheck) -> None:
    code, printed, _ = heatcheck("score", "--help")
    assert code == 0
    assert "Examples heatcheck score" in " ".join(printed.split())


def test_tuned_smoothing_is_read_from_its_table(heatcheck, files) -> None:
    table = files.root / "smoothing_results.csv"
    table.write_text("smooth,mIoU,task\n0.0,0.2,Edema\n0.2,0.5,Edema\n0.3,0.5,Edema\n")
    assert heatcheck("score", *files.flags(), "-q")[0] == 0
    plain = scores(files, "iou")["value"].to_numpy()
    (files.root / "out").rename(files.root / "plain")
    assert heatcheck("score", *files.flags("--smooth", "0.2"), "-q")[0] == 0
    by_number = scores(files, "iou")["value"].to_numpy()
    (files.root / "out").rename(files.root / "number")
    code, printed, error = heatcheck("score", *files.flags("--smooth", table))
    assert code == 0, error
    assert np.array_equal(scores(files, "iou")["value"].to_numpy(), by_number)
    assert not np.array_equal(by_number, plain)
    assert "smoothing_results.csv does not record the patients it was tuned on" in printed


def test_outlines_that_leave_the_image_are_counted(heatcheck, files) -> None:
    files.change_truth("p3_study1_view1", Edema=[[[20, 4], [90, 4], [90, 12], [20, 12]]])
    code, printed, error = heatcheck("score", *files.flags())
    assert code == 0, error
    assert "1 outline of the truth extended beyond the image, e.g. on p3_study1_view1; cut off there." in printed
