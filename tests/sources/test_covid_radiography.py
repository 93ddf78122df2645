import os
import time
from collections import Counter

import cv2
import numpy as np
import pytest
from PIL import Image

from heatcheck.core.errors import CaseError, InputError
from heatcheck.sources.covid_radiography import CovidRadiography, CovidRadiographySettings, _share

CLASSES = {
    "COVID": "COVID",
    "Airspace Opacity": "Lung_Opacity",
    "Normal": "Normal",
    "Viral Pneumonia": "Viral Pneumonia",
}
PUBLISHED = {"COVID": 3616, "Airspace Opacity": 6012, "Normal": 10192, "Viral Pneumonia": 1345}
FILM = np.arange(12 * 13, dtype=np.uint8).reshape(12, 13)


def write(path, pixels):
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(path)


@pytest.fixture
def data(tmp_path):
    """Twenty films per class with gaps between their numbers, each with a lung mask of another size, in colour."""
    folder = tmp_path / "COVID-19_Radiography_Dataset"
    for name in CLASSES.values():
        mask = np.zeros((8, 8, 3), np.uint8)
        mask[2:6, 1:7] = 255
        for number in range(1, 61, 3):
            write(folder / name / f"images/{name}-{number}.png", FILM)
            write(folder / name / f"masks/{name}-{number}.png", mask)
        (folder / f"{name}.metadata.xlsx").write_bytes(b"never read")
    return folder


def opened(folder, **settings):
    return CovidRadiography(CovidRadiographySettings(folder=folder, **settings))


def refusal(folder, **settings):
    with pytest.raises(InputError) as caught:
        opened(folder, **settings)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def class_of(key):
    (name,) = (name for name, label in key.labels.items() if label == 1)
    return name


def key_of(source, case):
    return next(key for key in source.index() if key.case == case)


def test_every_film_has_one_class_and_is_a_separate_patient(data):
    source = opened(data)
    assert source.findings == tuple(CLASSES)
    keys = source.index()
    assert Counter(map(class_of, keys)) == dict.fromkeys(CLASSES, 20)
    for key in keys:
        assert tuple(key.labels) == source.findings
        assert key.case.rpartition("-")[0] == CLASSES[class_of(key)]
        assert key.patient == key.case
    assert key_of(source, "Viral Pneumonia-4")  # the space is kept


def test_a_film_is_grey_in_zero_to_one_and_has_no_truth(data):
    source = opened(data)
    case = source.load(key_of(source, "Lung_Opacity-7"))
    np.testing.assert_array_equal(case.image, FILM[None].astype(np.float32) / np.float32(255))
    assert case.image.dtype == np.float32
    assert case.truth == source.truth(case.key) == {}
    assert case.readings == ()


def test_the_published_set_is_split_as_published():
    sizes = {
        split: sum(len(range(count)[_share(count, split)]) for count in PUBLISHED.values())
        for split in ("training", "validation", "test")
    }
    assert sizes == {"training": 14_814, "validation": 3_172, "test": 3_179}


@pytest.mark.parametrize("count", [1, 2, 7, 10, 20, 30, 130, 250, 1345])
def test_splits_of_any_class_are_rounded_down_and_leave_out_no_film(count):
    parts = [range(count)[_share(count, split)] for split in ("training", "validation", "test")]
    assert [index for part in parts for index in part] == list(range(count))
    assert [len(part) for part in parts[:2]] == [count * 70 // 100, count * 15 // 100]


def test_splits_share_no_film_and_together_are_all(data):
    parts = [opened(data, split=split).index() for split in ("training", "validation", "test")]
    assert [len(part) for part in parts] == [4 * 14, 4 * 3, 4 * 3]
    assert all(set(Counter(map(class_of, part)).values()) == {len(part) // 4} for part in parts)
    assert sorted(key.case for part in parts for key in part) == [key.case for key in opened(data).index()]


def test_the_split_is_drawn_by_its_seed_for_each_class_separately(data):
    def numbers(seed, name):
        cases = [key.case for key in opened(data, split="test", split_seed=seed).index() if class_of(key) == name]
        return {case.rpartition("-")[2] for case in cases}

    assert numbers(0, "COVID") == numbers(0, "COVID")
    assert numbers(0, "COVID") != numbers(1, "COVID")
    assert numbers(0, "COVID") != numbers(0, "Normal")


def test_the_split_depends_on_numbers_not_on_the_order_of_files(data, monkeypatch):
    """Number 10 comes after 4: sorted as text it would come before, and the split would differ."""
    films = sorted(range(1, 61, 3))
    counts = []

    class Backwards:
        def permutation(self, count):
            counts.append(count)
            return np.arange(count)[::-1]

    monkeypatch.setattr("heatcheck.sources.covid_radiography.generator_for", lambda *_: Backwards())
    keys = opened(data, split="test").index()
    assert counts == [20] * 4
    assert {key.case for key in keys if class_of(key) == "COVID"} == {f"COVID-{number}" for number in films[:3]}


def test_lungs_are_the_nearest_pixels_of_their_mask(data):
    source = opened(data)
    lungs = source.lungs(key_of(source, "Viral Pneumonia-1"))
    stored = np.zeros((8, 8), np.uint8)
    stored[2:6, 1:7] = 1
    assert lungs.dtype == bool
    np.testing.assert_array_equal(lungs, cv2.resize(stored, (13, 12), interpolation=cv2.INTER_NEAREST_EXACT) > 0)


def test_a_missing_mask_matters_only_when_it_is_requested(data):
    (data / "COVID/masks/COVID-4.png").unlink()
    source = opened(data)
    key = key_of(source, "COVID-4")
    assert source.load(key).image.shape == (1, 12, 13)
    with pytest.raises(CaseError, match=r"^COVID-4 has no lung mask; add COVID-4.png to the masks of its class$"):
        source.lungs(key)


def test_masks_may_be_missing_altogether(data):
    for name in CLASSES.values():
        for path in (data / name / "masks").iterdir():
            path.unlink()
        (data / name / "masks").rmdir()
    assert len(opened(data).index()) == 80


def test_a_mask_without_image_reveals_an_incomplete_copy(data):
    (data / "Normal/images/Normal-10.png").unlink()
    sentence = refusal(data)
    assert sentence.startswith(f"{data / 'Normal'}: the mask Normal-10.png has no image, so the copy is incomplete")
    assert "remove the mask if" in sentence
    (data / "Normal/images/Normal-4.png").unlink()
    assert "the mask Normal-4.png and 1 more have no images" in refusal(data)


def test_a_missing_folder_is_refused(tmp_path):
    assert "nowhere: no such folder" in refusal(tmp_path / "nowhere")


@pytest.mark.parametrize("below", ["..", "COVID", "Viral Pneumonia/images", "Normal/masks"])
def test_a_folder_above_or_below_the_right_one_gets_a_suggestion(data, below):
    sentence = refusal((data / below).resolve())
    assert sentence.endswith(f"is not the folder of the classes; set `folder: {data}`")


def test_a_relative_folder_starts_at_the_spec(data, monkeypatch):
    settings = CovidRadiographySettings(folder=data.name).resolved(data.parent)
    assert len(CovidRadiography(settings).index()) == 80
    monkeypatch.chdir(data / "COVID")
    assert str(data) in refusal(".")


def lose_class(data):
    (data / "Lung_Opacity").rename(data.parent / "elsewhere")


def lose_images(data):
    (data / "Normal/images").rename(data / "Normal/pictures")


def empty_class(data):
    for path in (data / "COVID").rglob("*.png"):
        path.unlink()


def stray_image(data):
    write(data / "COVID/images/COVID-7 (1).png", FILM)


def other_format(data):
    (data / "COVID/images/COVID-7.png").rename(data / "COVID/images/COVID-7.jpg")


def foreign_class(data):
    write(data / "COVID/images/Normal-500.png", FILM)


@pytest.mark.parametrize(
    ("spoil", "words"),
    [
        (
            lose_class,
            "Dataset has no folder Lung_Opacity; the data set has COVID, Lung_Opacity, Normal, Viral Pneumonia",
        ),
        (lose_images, "Dataset has no folder images in Normal; "),
        (empty_class, "images has no images such as COVID-1.png; copy the data set again"),
        (stray_image, "images: 'COVID-7 (1).png' is not named like COVID-1.png; rename or remove it"),
        (other_format, "images: 'COVID-7.jpg' is not named like COVID-1.png; rename or remove it"),
        (foreign_class, "images: 'Normal-500.png' is not named like COVID-1.png; rename or remove it"),
    ],
)
def test_an_unusable_folder_is_refused_in_one_line(data, spoil, words):
    spoil(data)
    assert words in refusal(data)


def test_files_of_file_managers_are_ignored(data):
    (data / "COVID/images/.DS_Store").write_bytes(b"")
    (data / "COVID/images/._COVID-1.png").write_bytes(b"")
    (data / "COVID/images/Thumbs.db").write_bytes(b"")
    assert len(opened(data).index()) == 80


@pytest.mark.parametrize(("split", "kept"), [("training", 1), ("validation", 6)])
def test_a_class_too_small_for_its_split_is_refused(data, split, kept):
    for what in ("images", "masks"):
        for path in sorted((data / "COVID" / what).iterdir())[kept:]:
            path.unlink()
    assert f"COVID has {kept} images, too few for the {split} split" in refusal(data, split=split)
    assert len(opened(data, split="test").index()) > 9


def test_three_equal_channels_are_grey_and_only_a_colour_film_fails(data):
    equal = np.repeat(FILM[..., None], 3, 2)
    nearly = equal.copy()
    nearly[0, 0] = (3, 4, 5)
    coloured = equal.copy()
    coloured[5, 5] = (200, 20, 20)
    for number, pixels in ((1, equal), (4, nearly), (7, coloured)):
        write(data / f"Viral Pneumonia/images/Viral Pneumonia-{number}.png", pixels)
    source = opened(data)
    grey = source.load(key_of(source, "Normal-1")).image
    np.testing.assert_array_equal(source.load(key_of(source, "Viral Pneumonia-1")).image, grey)
    almost = source.load(key_of(source, "Viral Pneumonia-4")).image
    assert almost.shape == grey.shape
    assert almost[0, 0, 0] == np.float32(4) / np.float32(255)
    with pytest.raises(
        CaseError, match=r"Viral Pneumonia-7 is in colour \(channels differ by 180 of 255\); save it as"
    ):
        source.load(key_of(source, "Viral Pneumonia-7"))


def test_only_a_deeper_film_fails(data):
    write(data / "COVID/images/COVID-1.png", FILM.astype(np.uint16) * 16)
    cv2.imwrite(str(data / "COVID/images/COVID-4.png"), np.full((12, 13, 3), 4095, np.uint16))
    source = opened(data)
    for case in ("COVID-1", "COVID-4"):
        with pytest.raises(
            CaseError, match=f"{case} has more than 8 bits, so the value of white is unknown; save it as"
        ):
            source.load(key_of(source, case))
    assert source.load(key_of(source, "COVID-7"))


def test_only_a_damaged_film_fails(data):
    path = data / "COVID/images/COVID-1.png"
    path.write_bytes(path.read_bytes()[:50])
    (data / "COVID/images/COVID-4.png").write_bytes(b"")
    source = opened(data)
    for case, words in (("COVID-1", "cannot be read"), ("COVID-4", "is empty")):
        with pytest.raises(CaseError, match=f"{case} {words}") as caught:
            source.load(key_of(source, case))
        assert str(data) not in str(caught.value)


def test_the_stamp_changes_with_the_films_alone(data):
    before = opened(data).stamp()
    (data / "COVID/masks/COVID-1.png").write_bytes(b"other")
    assert opened(data).stamp() == before
    write(data / "Normal/images/Normal-100.png", FILM)
    added = opened(data).stamp()
    assert added != before
    os.utime(data / "COVID/images/COVID-1.png", ns=(1, 1))
    assert opened(data).stamp() not in (before, added)


def test_the_index_of_the_published_set_is_quick_and_opens_no_film(tmp_path, monkeypatch):
    for name, folder in CLASSES.items():
        for what in ("images", "masks"):
            (tmp_path / folder / what).mkdir(parents=True)
            for number in range(1, PUBLISHED[name] // 16 + 1):
                (tmp_path / folder / what / f"{folder}-{number}.png").touch()
    monkeypatch.setattr("heatcheck.sources.covid_radiography.read_grey_film", lambda *_: pytest.fail("a film was read"))
    start = time.perf_counter()
    assert len(opened(tmp_path, split="training").index()) == sum(n // 16 * 70 // 100 for n in PUBLISHED.values())
    assert time.perf_counter() - start < 1  # a sixteenth of the set, on a busy machine
