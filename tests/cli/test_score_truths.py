"""One truth in every form it may have: the scores are the same, and boxes are compared as boxes too."""

import json

import numpy as np
import pandas as pd
import pytest
from PIL import Image
from tests.cli.map_material import SHAPE, Files, small_scoring

from heatcheck.sources.files.rle import encode

IMAGES = [f"p{number}_study1_view{view}" for number in range(6) for view in (1, 2)]


@pytest.fixture
def files(tmp_path) -> Files:
    return small_scoring(tmp_path / "given")


def mask_of(image: str) -> np.ndarray:
    top = 4 + int(image[1])
    mask = np.zeros(SHAPE, bool)
    mask[top : top + 8, 6:14] = True
    return mask


def as_run_lengths(files: Files):
    content = {image: {"Edema": {"size": list(SHAPE), "counts": encode(mask_of(image))}} for image in IMAGES}
    path = files.root / "segmentations.json"
    path.write_text(json.dumps(content))
    return path


def as_pictures(files: Files):
    folder = files.root / "masks" / "Edema"
    folder.mkdir(parents=True)
    for image in IMAGES:
        Image.fromarray(mask_of(image).astype(np.uint8) * 255).save(folder / f"{image}.png")
    return folder.parent


def as_nih_boxes(files: Files):
    lines = ["Image Index,Finding Label,Bbox [x,y,w,h],,,,,"]
    lines += [f"{image}.png,Edema,6,{4 + int(image[1])},8,8,,," for image in IMAGES]
    path = files.root / "BBox_List_2017.csv"
    path.write_text("\n".join(lines) + "\n")
    return path


def as_coco_boxes(files: Files):
    images = [{"id": n, "file_name": f"{image}.png", "height": SHAPE[0], "width": SHAPE[1]}
              for n, image in enumerate(IMAGES)]  # fmt: skip
    boxes = [{"id": n, "image_id": n, "category_id": 1, "bbox": [6, 4 + int(image[1]), 8, 8]}
             for n, image in enumerate(IMAGES)]  # fmt: skip
    path = files.root / "coco.json"
    categories = [{"id": 1, "name": "Edema"}]
    path.write_text(json.dumps({"images": images, "annotations": boxes, "categories": categories}))
    return path


@pytest.mark.parametrize("form", [as_run_lengths, as_pictures, as_nih_boxes, as_coco_boxes])
def test_every_form_of_truth_gives_the_same_scores(heatcheck, files, form) -> None:
    flags = ("--maps", files.maps, "--truth", form(files), "--out", files.root / "out", "-q")
    code, _, error = heatcheck("score", *flags)
    assert code == 0, error
    scores = pd.read_parquet(files.root / "out" / "scores.parquet")
    plain = scores[(scores["condition"] == "{}") & (scores["method"] == "maps")]
    assert plain[plain["metric"] == "iou"]["value"].to_numpy() == pytest.approx(56 / 72)
    boxes = plain[plain["metric"] == "box_iou"]
    if "box" not in form.__name__:
        assert boxes.empty
        return
    assert len(boxes) == 12
    assert boxes["value"].to_numpy() == pytest.approx(56 / 72)
    page = (files.root / "out" / "report.html").read_text()
    assert "as boxes" in page.lower()


def test_boxes_of_readers_stand_beside_outlines_of_the_truth(heatcheck, files) -> None:
    code, _, error = heatcheck("score", *files.flags("--human", as_nih_boxes(files)), "-q")
    assert code == 0, error
    scores = pd.read_parquet(files.root / "out" / "scores.parquet")
    human = scores[(scores["method"] == "human") & (scores["metric"] == "iou") & (scores["condition"] == "{}")]
    assert human["value"].to_numpy() == pytest.approx(1)


def test_a_segmentation_model_is_graded_by_its_masks_beside_a_heat_map(heatcheck, files) -> None:
    """It misses two patients, where its probabilities stay low: stretched as a heat map is, they would be right."""
    for name in ("probabilities", "masks"):
        (files.root / name).mkdir()
    for image in IMAGES:
        missed = image[1] < "2"
        probabilities = 0.1 * mask_of(image) if missed else 0.9 * np.roll(mask_of(image), 2, axis=1)
        np.save(files.root / "probabilities" / f"{image}_Edema_map.npy", probabilities)
        np.save(files.root / "masks" / f"{image}_Edema_map.npy", (probabilities > 0.5).astype(np.float32))
    maps = [f"--maps={name}={files.root / name}" for name in ("probabilities", "masks", "maps")]
    code, _, error = heatcheck("score", *maps, "--truth", files.truth, "--out", files.root / "out", "-q")
    assert code == 0, error
    scores = pd.read_parquet(files.root / "out" / "scores.parquet").query("condition == '{}' and metric == 'iou'")
    found = scores.set_index(["method", "case"])["value"]
    assert found["masks"][IMAGES].to_numpy() == pytest.approx([0] * 4 + [48 / 80] * 8)
    assert found["probabilities"][IMAGES].to_numpy() == pytest.approx([1] * 4 + [48 / 80] * 8)
    assert found["maps"][IMAGES].to_numpy() == pytest.approx(56 / 72)
    assert "4 of 12" in (files.root / "out" / "report.html").read_text()  # empty masks are counted and named


@pytest.mark.parametrize(("step", "code"), [(1, 0), (2, 2)])
def test_plain_arrays_give_the_size_of_unmarked_images_where_they_have_that_of_marked_ones(
    heatcheck, files, step, code
) -> None:
    """An array on a coarser grid says nothing of an image's size."""
    (files.root / "plain").mkdir()
    for image in (*IMAGES, "p9_study1_view1"):
        np.save(files.root / "plain" / f"{image}_Edema_map.npy", mask_of(image)[::step, ::step].astype(np.float32))
    flags = ("--maps", files.root / "plain", "--truth", as_pictures(files), "--out", files.root / "out", "-q")
    given, _, error = heatcheck("score", *flags)
    assert given == code, error
    assert ("np.savez(" in error) == bool(code)


def test_what_explain_wrote_is_scored_by_its_methods(heatcheck, files) -> None:
    (files.root / "explained").mkdir()
    for image in IMAGES:
        for method in ("lime", "occlusion"):
            np.savez(
                files.root / "explained" / f"{image}.{method}.npz",
                on_image=mask_of(image)[None, None].astype(np.float32),
                outputs=["Edema"],
                targets=[[0]],
                method=method,
                image=np.zeros((1, 1, *SHAPE), np.float32),
            )
    flags = ("--maps", files.root / "explained", "--truth", files.truth, "--out", files.root / "out", "-q")
    code, _, error = heatcheck("score", *flags)
    assert code == 0, error
    scores = pd.read_parquet(files.root / "out" / "scores.parquet").query("condition == '{}' and metric == 'iou'")
    assert set(scores["method"]) == {"lime", "occlusion"}
    assert scores["value"].to_numpy() == pytest.approx(1)
