"""Pictures of the user's own in a spec: read by their alpha or a mask, and refused in one line."""

import nibabel
import numpy as np
import pytest
from PIL import Image as Pictures
from tests.studies.triggers.planted_material import SMALL_TRIGGERS, write_study

from heatcheck.core.errors import SpecError
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import read_spec
from heatcheck.studies.triggers.plan import plan_triggers
from heatcheck.studies.triggers.spec import with_picture
from heatcheck.triggers import build_trigger


@pytest.fixture
def folder(tmp_path):
    rgba = np.zeros((6, 8, 4), np.uint8)
    rgba[1:5, 2:8] = (255, 255, 255, 255)
    Pictures.fromarray(rgba).save(tmp_path / "sticker.png")
    Pictures.fromarray(np.full((6, 8), 255, np.uint8)).save(tmp_path / "plain.png")
    mask = np.zeros((6, 8), np.uint8)
    mask[:3] = 1
    Pictures.fromarray(mask).save(tmp_path / "mask.png")
    Pictures.fromarray(np.zeros((6, 8), np.uint8)).save(tmp_path / "empty.png")
    Pictures.fromarray(np.ones((3, 3), np.uint8)).save(tmp_path / "small.png")
    Pictures.fromarray(np.zeros((6, 8, 4), np.uint8)).save(tmp_path / "clear.png")
    np.savez(tmp_path / "several.npz", picture=np.ones((6, 8), np.float32), mask=mask)
    np.save(tmp_path / "square.npy", np.ones((9, 9), np.float32))
    slice_ = np.linspace(-1000, 400, 48, dtype=np.float32).reshape(6, 8, 1)
    nibabel.save(nibabel.Nifti1Image(slice_, np.eye(4)), tmp_path / "slice.nii.gz")
    nibabel.save(nibabel.Nifti1Image(np.zeros((4, 4, 4), np.float32), np.eye(4)), tmp_path / "volume.nii.gz")
    return tmp_path


def opened(folder, **settings):
    return with_picture(build_trigger({"kind": "picture", **settings}), folder, "my.yaml").patch


def test_the_pictures_own_alpha_says_what_is_planted(folder):
    patch = opened(folder, image="sticker.png")
    assert patch.pixels.shape == (4, 6)
    assert patch.alpha.min() == patch.pixels.min() == 1


def test_a_mask_says_it_else_all_is(folder):
    assert opened(folder, image="plain.png", mask="mask.png").pixels.shape == (3, 8)
    assert opened(folder, image="plain.png").pixels.shape == (6, 8)


def test_a_slice_in_its_units_needs_black_and_white(folder):
    patch = opened(folder, image="slice.nii.gz", value_range=[-600, 400])
    assert patch.pixels[0, 0] == 0
    assert patch.pixels[-1, -1] == pytest.approx(1)
    with pytest.raises(
        SpecError, match=r"slice.nii.gz has values from -1000 to 400; say .*value_range: \[-1000, 400\]"
    ):
        opened(folder, image="slice.nii.gz")


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, r"name its file, as in \{kind: picture, image: sticker.png\}"),
        ({"image": "none.png"}, "none.png does not exist"),
        ({"image": "several.npz"}, "several.npz is an archive of arrays; save the one that is the image as .npy"),
        ({"image": "volume.nii.gz"}, "volume.nii.gz is a volume; save one slice"),
        ({"image": "clear.png"}, "clear.png is transparent everywhere"),
        ({"image": "plain.png", "mask": "several.npz"}, "several.npz is an archive of arrays"),
        ({"image": "plain.png", "mask": "empty.png"}, "empty.png is 0 everywhere"),
        ({"image": "plain.png", "mask": "small.png"}, "mask small.png is 3×3, its image 6×8"),
    ],
)
def test_what_cannot_be_planted_is_refused_in_one_line(folder, settings, problem):
    with pytest.raises(SpecError, match=problem) as caught:
        opened(folder, **settings)
    assert str(caught.value).startswith("my.yaml: trigger picture")
    assert "\n" not in str(caught.value)
    assert str(folder) not in str(caught.value)


def test_a_run_plants_what_its_files_show(folder):
    """A white array is planted as a white square of the same size and place is."""
    part = {"kind": "picture", "image": "square.npy", "size": 60, "name": "mine"}
    same = {"kind": "square", "grey": 1.0, "place": "corner", "size": 60, "name": "square"}
    spec = write_study(folder, SMALL_TRIGGERS, triggers=[part, same])
    mine, square = plan_triggers(read_spec(str(spec)), RunOptions(), folder / "out").triggers
    film = np.random.default_rng(1).random((1, 32, 32), dtype=np.float32)
    stamped = mine(film, 5).on(film)
    assert np.allclose(stamped, square(film, 5).on(film))
    assert (stamped != film).sum() == 9 * 9


def test_a_run_does_not_go_on_with_another_picture(folder):
    part = {"kind": "picture", "image": "plain.png", "size": 60, "name": "mine"}
    spec = write_study(folder, SMALL_TRIGGERS, triggers=[part])

    def identity():
        return plan_triggers(read_spec(str(spec)), RunOptions(), folder / "out").identity["data_hash"]

    before = identity()
    Pictures.fromarray(np.full((6, 8), 200, np.uint8)).save(folder / "plain.png")
    assert identity() != before
