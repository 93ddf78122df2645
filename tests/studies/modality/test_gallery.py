"""Pictures of the modality study's gallery: every slice as radiologists look at it, whatever its order in the file."""

import json
from types import SimpleNamespace

import numpy as np
import pytest
from PIL import Image

from heatcheck.core.records import Case, CaseKey
from heatcheck.running.progress import Silent
from heatcheck.runs.store import RunFolder
from heatcheck.studies.modality.cases import MaskRule, modal_case
from heatcheck.studies.modality.gallery import MOST_SLICES, ModalCaseWithMaps, cut_of, evenly, make_modality_gallery

NAMES = ("T1", "T1C")
RAS = np.diag([1.0, 1.0, 1.0, 1.0])  # stored from left to right, back to front and below upwards
SHAPE = (10, 12, 8)


def volume(shape=SHAPE):
    """A head with a lesion in the patient's right, front and upper part, in RAS order; largest in the slice at 6."""
    image = np.zeros((2, *shape), np.float32)
    image[:, 1:-1, 1:-1, 1:] = 50
    image[1] *= 2
    lesion = np.zeros(shape, bool)
    lesion[6:9, 8:11, 5:8] = True
    lesion[5, 9, 6] = True
    image[:, lesion] *= 3
    return image, lesion


def case_of(order=(0, 1, 2), flips=(1, 1, 1), affine=RAS):
    """The same head, stored in another order."""
    image, lesion = volume()
    axes = (0, *(axis + 1 for axis in order))
    ways = (slice(None), *(slice(None, None, flip) for flip in flips))
    back = np.zeros((4, 4))
    back[3, 3] = 1
    for place, (axis, flip) in enumerate(zip(order, flips, strict=True)):
        back[axis, place] = flip
        back[axis, 3] = SHAPE[axis] - 1 if flip < 0 else 0
    stored, mask = image.transpose(axes)[ways], lesion.transpose(order)[ways[1:]]
    key = CaseKey("a", "a", {"LGG": 0.0, "HGG": 1.0})
    masks = {name: np.ascontiguousarray(mask) for name in NAMES}
    return modal_case(Case(key, np.ascontiguousarray(stored), masks, affine=affine @ back), NAMES, MaskRule())


class Run:
    """A run's folder in which pictures are written, and nothing is scored."""

    def __init__(self, path):
        self.path = path
        (path / "gallery").mkdir(parents=True)

    write_picture, write_gallery = RunFolder.write_picture, RunFolder.write_gallery


RULE = SimpleNamespace(modalities=NAMES, model="net", classes=("LGG", "HGG"), primary=lambda _: {})


def drawn(folder, case, maps=None):
    """The one item of a gallery, and its pictures."""
    maps = maps or {"gradient": np.stack([case.masks[0] * 0.5, case.masks[0] * 1.0])}
    shown = ModalCaseWithMaps(case, 2, "LGG", 0.75, maps)
    run = Run(folder)
    make_modality_gallery(run, RULE, ["a"], lambda _: shown, Silent())
    (item,) = json.loads((folder / "gallery/index.json").read_text())["items"]
    files = {path.name: np.asarray(Image.open(path)) for path in (folder / "gallery").glob("*.png")}
    return item, files


@pytest.mark.parametrize(
    ("order", "flips"), [((2, 1, 0), (1, 1, 1)), ((0, 1, 2), (-1, -1, 1)), ((1, 2, 0), (1, -1, -1))]
)
def test_pictures_are_the_same_however_the_volume_is_stored(tmp_path, order, flips):
    plain, expected = drawn(tmp_path / "one", case_of())
    item, files = drawn(tmp_path / "two", case_of(order, flips))
    assert item == plain
    assert all(np.array_equal(files[name], expected[name]) for name in expected)


def test_front_is_up_the_patients_right_is_on_the_left_and_the_largest_slice_comes_first(tmp_path):
    item, files = drawn(tmp_path, case_of())
    assert item["shape"] == [12, 10]
    assert (item["slices"], item["first"], item["step"], item["start"]) == (7, 1, 1, 5)
    strip = files["000-map-gradient-T1C.png"]
    assert strip.shape == (12, 70)
    hot = np.argwhere(strip.reshape(12, 7, 10)[:, 5] > 127)
    assert hot[:, 0].max() < 6  # rows from the top: the front
    assert hot[:, 1].max() < 6  # columns from the left: the patient's right
    (outline,) = item["outlines"]["T1"][5]
    corners = np.array(outline)
    assert corners[:, 0].min() == hot[:, 1].min()
    assert corners[:, 1].max() == hot[:, 0].max()
    assert item["outlines"]["T1"][0] == []


def test_maps_keep_their_common_scale_and_images_have_each_their_own(tmp_path):
    _, files = drawn(tmp_path, case_of())
    assert files["000-map-gradient-T1.png"].max() == 128
    assert files["000-map-gradient-T1C.png"].max() == 255
    for name in NAMES:
        image = files[f"000-image-{name}.png"]
        assert image.max() == 255
        assert image.min() == 0
        assert 70 < np.median(image[image > 0]) < 100  # a third of the lesion's


def test_one_map_for_all_is_stored_once(tmp_path):
    case = case_of()
    item, files = drawn(tmp_path, case, {"grad_cam": case.masks[:1].astype(np.float32)})
    assert item["maps"][0]["files"] == {"all": "000-map-grad_cam-all.png"}
    assert "000-map-grad_cam-all.png" in files


def test_many_slices_are_taken_at_even_steps_with_the_largest_among_them():
    image = np.ones((1, 155, 20, 20), np.float32)
    for largest in (0, 3, 77, 150, 154):
        lesion = np.zeros((1, 155, 20, 20), bool)
        lesion[0, largest, 4:9, 4:9] = True
        lesion[0, 80, 4, 4] = True
        cut = cut_of(Case(CaseKey("a", "a", {}), image, {}), lesion)
        assert len(cut.slices) <= MOST_SLICES
        assert cut.slices[cut.start] == largest
        assert len(set(np.diff(cut.slices))) == 1


def test_lesion_outside_the_head_is_still_shown():
    image = np.zeros((1, 9, 20, 20), np.float32)
    image[0, 4:] = 1
    lesion = np.zeros((1, 9, 20, 20), bool)
    lesion[0, 1, 4:9, 4:9] = True
    cut = cut_of(Case(CaseKey("a", "a", {}), image, {}), lesion)
    assert cut.slices[cut.start] == 1


def test_flat_pixels_are_shown_in_their_true_proportions(tmp_path):
    item, files = drawn(tmp_path, case_of(affine=np.diag([1.0, 2.0, 5.0, 1.0])))
    assert item["shape"] == [24, 10]
    assert files["000-image-T1.png"].shape == (24, 70)


@pytest.mark.parametrize(("length", "wanted", "places"), [(5, 9, [0, 1, 2, 3, 4]), (9, 3, [0, 4, 8]), (9, 1, [0])])
def test_cases_are_taken_at_even_steps(length, wanted, places):
    assert evenly(length, wanted) == places
