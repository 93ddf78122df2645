"""What must never be guessed: sizes, labels, maps that were not given, and whose folder it is."""

import json
import shutil

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from tests.cli.map_material import SHAPE, Files, small_scoring, square, write_map

from heatcheck.core.errors import RunFolderError
from heatcheck.studies.localization.from_files import score


@pytest.fixture
def files(tmp_path) -> Files:
    return small_scoring(tmp_path / "given")


def run(heatcheck, files: Files, *flags: object) -> None:
    code, _, error = heatcheck("score", *files.flags(*flags), "-q")
    assert code == 0, error


def coco(files: Files, *, sized: bool) -> object:
    """The truth as COCO outlines, with or without the images' sizes."""
    truth = json.loads(files.truth.read_text())
    size = {"height": SHAPE[0], "width": SHAPE[1]} if sized else {}
    images = [{"id": n, "file_name": f"{name}.png", **size} for n, name in enumerate(truth)]
    annotations = [
        {"id": n, "image_id": n, "category_id": 1, "segmentation": [np.ravel(entry["Edema"][0]).tolist()]}
        for n, entry in enumerate(truth.values())
    ]
    path = files.root / f"coco-{sized}.json"
    content = {"images": images, "annotations": annotations, "categories": [{"id": 1, "name": "Edema"}]}
    path.write_text(json.dumps(content))
    return path


def test_a_truth_without_sizes_learns_them_from_the_maps(heatcheck, files) -> None:
    values = {}
    for sized in (True, False):
        path, out = coco(files, sized=sized), files.root / f"out-{sized}"
        flags = ("--maps", files.maps, "--truth", path, "--human", path, "--preset", "chexlocalize", "--out", out, "-q")
        assert heatcheck("score", *flags)[0] == 0
        values[sized] = out
    for name in ("area_ratio.csv", "num_instances.csv", "iou_humanbenchmark_summary_results.csv"):
        one, other = (pd.read_csv(out / name) for out in values.values())
        pd.testing.assert_frame_equal(one, other)
    assert pd.read_csv(values[False] / "area_ratio.csv")["Edema"].min() > 0


def test_the_benchmarks_files_do_not_depend_on_labels(heatcheck, files) -> None:
    truth = json.loads(files.truth.read_text())
    for image in ("p0_study1_view1", "p1_study1_view1", "p2_study1_view1"):
        del truth[image]["Edema"]
    files.truth.write_text(json.dumps(truth))
    labels = pd.DataFrame({"image": sorted(truth), "Edema": 1.0}).set_index("image")
    labels.loc[["p0_study1_view1", "p1_study1_view1"], "Edema"] = [-1.0, np.nan]
    labels.to_csv(files.root / "labels.csv")
    tables = []
    for flags in ((), ("--labels", files.root / "labels.csv")):
        run(heatcheck, files, "--preset", "chexlocalize", "--slice", "full", *flags)
        out = files.root / "out"
        tables.append((pd.read_csv(out / "iou_summary_results.csv"), (out / "pred_segmentations.json").read_text()))
        shutil.rmtree(out)
    pd.testing.assert_frame_equal(tables[0][0], tables[1][0])
    assert tables[0][1] == tables[1][1]


def scores(files: Files) -> pd.Series:
    table = pd.read_parquet(files.root / "out" / "scores.parquet")
    return table.set_index(["case", "metric", "condition"])["value"]


def test_a_map_that_was_not_given_has_no_peak(heatcheck, files) -> None:
    files.map("p2_study1_view1").unlink()
    run(heatcheck, files, "--preset", "chexlocalize")
    values = scores(files)
    assert np.isnan(values["p2_study1_view1", "hit", "{}"])
    assert values["p2_study1_view1", "iou", "{}"] == 0
    assert ("p2_study1_view1", "hit", '{"preset":"chexlocalize"}') not in values.index
    table = pd.read_parquet(files.root / "out" / "estimates.parquet")
    benchmark_rows = table["condition"] == '{"preset":"chexlocalize"}'
    ours = table[
        (table["statistic"] == "mean") & (table["metric"] == "hit") & benchmark_rows & (table["finding"] == "Edema")
    ]
    theirs = pd.read_csv(files.root / "out" / "hitmiss_summary_results.csv").set_index("name").loc["Edema", "mean"]
    assert ours["value"].item() == pytest.approx(theirs, abs=1e-3)


def test_report_and_files_draw_from_the_same_images(heatcheck, files) -> None:
    truth = json.loads(files.truth.read_text())
    for number, image in enumerate(sorted(truth)):
        if number % 3 == 0:
            del truth[image]["Edema"]  # named, with nothing marked
        files.rewrite(files.map(image), map=_shifted(number))
    files.truth.write_text(json.dumps(truth))
    run(heatcheck, files, "--preset", "chexlocalize")
    table = pd.read_parquet(files.root / "out" / "estimates.parquet")
    benchmark_rows = table["condition"] == '{"preset":"chexlocalize"}'
    row = table[
        (table["statistic"] == "mean") & (table["metric"] == "iou") & benchmark_rows & (table["finding"] == "Edema")
    ].iloc[0]
    theirs = pd.read_csv(files.root / "out" / "iou_summary_results.csv").set_index("name").loc["Edema"]
    expected = (theirs["lower"], theirs["mean"], theirs["upper"])
    assert (row["low"], row["value"], row["high"]) == pytest.approx(expected, abs=6e-4)


def _shifted(number: int) -> object:
    import torch

    values = np.zeros(SHAPE, np.float32)
    values[4 + number % 5 : 12 + number % 5, 6:14] = 1
    values[6, 8] = 2
    return torch.from_numpy(values)[None, None]


def test_what_map_files_say_of_the_label_is_believed_where_nobody_else_speaks(heatcheck, files) -> None:
    truth = json.loads(files.truth.read_text())
    del truth["p0_study1_view1"]
    files.truth.write_text(json.dumps(truth))
    files.rewrite(files.map("p0_study1_view1"), gt=1)
    run(heatcheck, files)
    predictions = pd.read_parquet(files.root / "out" / "predictions.parquet").set_index("case")["label"]
    assert predictions["p0_study1_view1"] == 1
    assert ("p0_study1_view1", "iou_full", "{}") not in scores(files).dropna().index


def test_lists_of_boxes_do_not_tell_who_is_healthy(heatcheck, files) -> None:
    path = files.root / "boxes.csv"
    rows = [f"p{n}_study1_view1,Edema,6,{4 + n},8,8" for n in range(5)]
    path.write_text("image,finding,x,y,w,h\n" + "\n".join(rows) + "\np9_study1_view1,Edema,1,1,4,4\n")
    flags = ("--maps", files.maps, "--truth", path, "--out", files.root / "out", "-q")
    code, _, error = heatcheck("score", *flags, "--allow-missing")
    assert code == 0, error
    predictions = pd.read_parquet(files.root / "out" / "predictions.parquet").set_index("case")["label"]
    assert np.isnan(predictions["p5_study1_view2"])
    lost = pd.read_parquet(files.root / "out" / "scores.parquet").set_index("case").loc["p9_study1_view1"]
    assert set(lost["reason"]) == {"no map was given"}


def test_an_exchanged_mask_is_another_run(heatcheck, files) -> None:
    folder = files.root / "masks" / "Edema"
    folder.mkdir(parents=True)
    for image in json.loads(files.truth.read_text()):
        mask = np.zeros(SHAPE, np.uint8)
        mask[4:12, 6:14] = 255
        Image.fromarray(mask).save(folder / f"{image}.png")
    flags = ("--maps", files.maps, "--truth", folder.parent, "--out", files.root / "out", "-q")
    assert heatcheck("score", *flags)[0] == 0
    Image.fromarray(mask[::-1].copy()).save(folder / "p0_study1_view1.png")
    code, _, error = heatcheck("score", *flags)
    assert code == 2
    assert "differs in the files of images, masks or labels" in error


def test_a_folder_that_another_process_writes_is_left_alone(tmp_path) -> None:
    out = tmp_path / "out"

    def writing() -> None:
        with score._removed_on_error(out):
            out.mkdir()
            (out / "run.json").write_text("{}")
            raise RunFolderError("another process is writing")

    with pytest.raises(RunFolderError):
        writing()
    assert (out / "run.json").exists()


def test_cleaning_up_follows_no_link(heatcheck, files) -> None:
    real = files.root / "real"
    real.mkdir()
    (files.root / "out").symlink_to(real)
    files.map("p5_study1_view2").write_bytes(b"broken")
    code, _, error = heatcheck("score", *files.flags(), "-q")
    assert (code, error.count("\n")) == (2, 1)
    assert list(real.iterdir()) == []


def test_tuning_counts_only_what_it_knows_and_saw(heatcheck, files) -> None:
    truth = json.loads(files.truth.read_text())
    del truth["p0_study1_view1"]["Edema"]
    truth["p8_study1_view1"] = {"img_size": list(SHAPE), "Edema": [square(4, 6, 8)]}  # no map of this patient
    files.truth.write_text(json.dumps(truth))
    labels = pd.DataFrame({"image": sorted(truth), "Edema": [np.nan, *[1] * (len(truth) - 1)]})
    labels.to_csv(files.root / "labels.csv", index=False)
    flags = ("--maps", files.maps, "--truth", files.truth, "--allow-missing", "--out", files.root / "tuning", "-q")
    curves = []
    for more in ((), ("--labels", files.root / "labels.csv")):
        assert heatcheck("tune", *flags, *more)[0] == 0
        table = pd.read_csv(files.root / "tuning" / "probability_tuning_results.csv")
        curves.append(table["mIoU"].iloc[0])
    assert curves[1] == pytest.approx(56 / 72)  # the image without a label is left out
    assert curves[0] == pytest.approx(56 / 72 * 11 / 12)
    record = json.loads((files.root / "tuning" / "tuning.json").read_text())
    assert "p8" not in record["patients"]


def test_patients_of_the_tuning_stay_out_of_the_report(heatcheck, files) -> None:
    others = small_scoring(files.root / "secret")
    for path in sorted(others.maps.iterdir()):
        path.rename(path.with_name(f"secret{path.name}"))
    truth = {f"secret{name}": entry for name, entry in json.loads(others.truth.read_text()).items()}
    others.truth.write_text(json.dumps(truth))
    tuning = files.root / "tuning"
    assert heatcheck("tune", "--maps", others.maps, "--truth", others.truth, "--out", tuning, "-q")[0] == 0
    run(heatcheck, files, "--threshold", tuning / "tuning_results.csv")
    assert "secretp0" not in (files.root / "out" / "report.html").read_text()


@pytest.mark.parametrize("kind", ["bfloat16", "negative view"])
def test_unusual_tensors_are_read(heatcheck, files, kind) -> None:
    import torch

    plain = _shifted(0)
    odd = plain.to(torch.bfloat16) if kind == "bfloat16" else torch._neg_view(-plain)
    files.rewrite(files.map("p0_study1_view1"), map=odd)
    run(heatcheck, files)
    assert scores(files)["p0_study1_view1", "hit", "{}"] == 1


def test_sizes_that_no_film_has_are_refused(heatcheck, files) -> None:
    for dims in ((10**6, 10**6), (float("nan"), 3), (float("inf"), 3)):
        files.rewrite(files.map("p0_study1_view1"), cxr_dims=dims)
        code, _, error = heatcheck("score", *files.flags(), "-q")
        assert code == 2
        assert "'cxr_dims' must be (width, height)" in error


def test_files_with_nearly_the_right_name_are_counted(heatcheck, files) -> None:
    shutil.copy(files.map("p0_study1_view1"), files.maps / "p0_study1_view1_Edema_map copy.pkl")
    code, printed, _ = heatcheck("score", *files.flags())
    assert code == 0
    assert "Skipped 1 file not named <image>_<finding>_map.pkl, .npz or .npy, e.g." in printed


def test_blank_maps_are_counted_named_and_score_zero(heatcheck, files) -> None:
    blank = {"p0_study1_view1": 0.0, "p1_study1_view1": 0.7}  # on a coarser grid, so that the resize rounds
    for image, value in blank.items():
        write_map(files.map(image), np.full((7, 7), value, np.float32), 0.9)
        files.rewrite(files.map(image), cxr_dims=SHAPE[::-1])
    code, printed, _ = heatcheck("score", *files.flags())
    assert code == 0
    assert "maps: 2 of 12 maps are empty (the same value everywhere), 2 of them among the 12 of marked" in printed
    scores = pd.read_parquet(files.root / "out" / "scores.parquet").query("condition == '{}' and finding == 'Edema'")
    of_blank = scores[scores["case"].isin(list(blank)) & scores["metric"].isin(["iou", "hit", "mass", "rank"])]
    assert len(of_blank) == 8
    assert set(of_blank["value"]) == {0.0}
    hits = scores[scores["metric"] == "hit"]
    assert hits["value"].mean() == pytest.approx(10 / 12)
    page = (files.root / "out" / "report.html").read_text()
    assert "2 of 12" in page
    assert "they are failures and score 0" in page


def test_results_are_divided_by_columns_of_the_labels(heatcheck, files) -> None:
    images = sorted(json.loads(files.truth.read_text()))
    sex = ["F" if image < "p2" else "M" for image in images]
    labels = files.root / "labels.csv"
    rows = pd.DataFrame({"image": images, "Edema": 1, "sex": sex, "age": range(30, 42), "coil": "8ch"})
    rows.to_csv(labels, index=False)
    flags = ("--labels", labels, "--subgroup", "sex", "--subgroup", "age=35", "--subgroup", "coil")
    code, _, error = heatcheck("score", *files.flags(*flags))
    assert code == 0, error
    table = pd.read_parquet(files.root / "out" / "estimates.parquet")
    counts = table[(table["statistic"] == "count") & (table["metric"] == "images") & (table["condition"] != "{}")]
    assert dict(zip(counts["condition"].str.extract('"group":"([^"]+)"')[0], counts["value"], strict=True)) == {
        "F": 4, "M": 8, "under 35": 5, "35 and over": 7, "8ch": 12,
    }  # fmt: skip
    assert "Does it hold in every group of patients?" in (files.root / "out" / "report.html").read_text()


@pytest.mark.parametrize(
    ("subgroup", "said"),
    [("scanner", "no column 'scanner' to divide cases by; the columns are Edema"), ("age=60,40", "rising edges")],
)
def test_a_subgroup_that_cannot_be_is_refused_in_one_line(heatcheck, files, subgroup, said) -> None:
    code, _, error = heatcheck("score", *files.flags("--subgroup", subgroup))
    assert code == 2
    assert said in error
    assert error.strip().count("\n") == 0
    assert not (files.root / "out").exists()
