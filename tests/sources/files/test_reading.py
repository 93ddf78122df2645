import io
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from PIL import Image as Pictures

from heatcheck.core.errors import CaseError
from heatcheck.sources.files import reading
from heatcheck.sources.files.reading import (
    IMAGE_SUFFIXES,
    image_shape,
    read_alpha,
    read_grey_film,
    read_image,
    read_mask,
)

GREY = np.random.default_rng(1).integers(0, 256, (12, 17)).astype(np.uint8)
DEEP = np.random.default_rng(2).integers(0, 65536, (12, 17)).astype(np.uint16)
COLOUR = np.random.default_rng(3).integers(0, 256, (12, 17, 3)).astype(np.uint8)


def saved(folder, name, values, **options):
    """The path of a file that holds the values."""
    path = folder / name
    if path.suffix == ".npy":
        np.save(path, values)
    else:
        (values if isinstance(values, Pictures.Image) else Pictures.fromarray(values)).save(path, **options)
    return path


def encoded(values, kind):
    if kind == "npy":
        stream = io.BytesIO()
        np.save(stream, values)
        return stream.getvalue()
    stream = io.BytesIO()
    Pictures.fromarray(values).save(stream, format=kind)
    return stream.getvalue()


def refusal(path, *, mask=False, name="sub/case 1"):
    """The sentence with which the file is refused."""
    with pytest.raises(CaseError) as caught:
        read_mask(path, name, (12, 17)) if mask else read_image(path, name)
    sentence = str(caught.value)
    assert caught.value.stage == "load"
    assert name in sentence
    assert "; " in sentence, "a remedy follows"
    assert str(path.parent) not in sentence
    assert "\n" not in sentence
    return sentence


@pytest.mark.parametrize("suffix", [".png", ".bmp", ".tif", ".TIFF", ".PNG"])
def test_8_bit_picture_is_scaled_to_one(tmp_path, suffix):
    image = read_image(saved(tmp_path, f"a{suffix}", GREY), "a")
    assert image.dtype == np.float32
    assert image.flags.c_contiguous
    np.testing.assert_array_equal(image, GREY[None] / np.float32(255))


@pytest.mark.parametrize("suffix", [".png", ".tif"])
def test_16_bit_picture_keeps_its_depth(tmp_path, suffix):
    image = read_image(saved(tmp_path, f"a{suffix}", DEEP), "a")
    assert image.dtype == np.float32
    np.testing.assert_allclose(image, DEEP[None] / 65535, rtol=1e-6)


def test_jpeg_is_read_with_small_errors(tmp_path):
    ramp = np.tile(np.linspace(0, 255, 32), (32, 1)).astype(np.uint8)
    image = read_image(saved(tmp_path, "a.jpg", ramp, quality=95), "a")
    np.testing.assert_allclose(image[0], ramp / 255, atol=0.03)


def test_colour_becomes_grey_by_luminance_unless_asked_for(tmp_path):
    path = saved(tmp_path, "a.png", COLOUR)
    luminance = COLOUR @ np.array([0.299, 0.587, 0.114]) / 255
    np.testing.assert_allclose(read_image(path, "a")[0], luminance, atol=0.005)
    image = read_image(path, "a", "rgb")
    assert image.flags.c_contiguous
    np.testing.assert_array_equal(image, np.moveaxis(COLOUR, -1, 0) / np.float32(255))


def test_grey_picture_asked_for_in_colour_has_three_equal_channels(tmp_path):
    image = read_image(saved(tmp_path, "a.png", GREY), "a", "rgb")
    assert image.shape == (3, 12, 17)
    assert (image == image[:1]).all()


@pytest.mark.parametrize("transparency", [None, bytes([0, 128, 255])])
def test_palette_is_looked_up(tmp_path, transparency):
    picture = Pictures.fromarray((GREY % 3).astype(np.uint8)).convert("P")
    picture.putpalette([10, 10, 10, 100, 100, 100, 200, 200, 200])
    options = {} if transparency is None else {"transparency": transparency}
    path = saved(tmp_path, "a.png", picture, **options)
    np.testing.assert_allclose(read_image(path, "a")[0] * 255, np.array([10, 100, 200])[GREY % 3], atol=0.01)


def test_black_and_white_picture_is_0_and_1(tmp_path):
    assert set(np.unique(read_image(saved(tmp_path, "a.png", GREY > 99), "a"))) == {0, 1}


@pytest.mark.parametrize("values", [np.linspace(-1000, 3000, 204).reshape(12, 17), np.ones((3, 12, 17))])
@pytest.mark.parametrize("dtype", ["float16", "float32", "float64", ">f4"])
def test_array_of_floats_is_not_rescaled(tmp_path, values, dtype):
    image = read_image(saved(tmp_path, "a.npy", values.astype(dtype)), "a")
    assert image.dtype == np.float32
    assert image.shape == (values.shape if values.ndim == 3 else (1, 12, 17))
    np.testing.assert_allclose(image, values.reshape(image.shape), rtol=1e-3)


@pytest.mark.parametrize("values", [GREY, DEEP, GREY > 99], ids=["uint8", "uint16", "bool"])
def test_array_of_integers_is_scaled_to_one(tmp_path, values):
    image = read_image(saved(tmp_path, "a.npy", values), "a")
    top = 1 if values.dtype == bool else np.iinfo(values.dtype).max
    np.testing.assert_allclose(image, values[None] / top, rtol=1e-6)


def test_picture_of_floats_is_not_rescaled_and_may_be_written_to(tmp_path):
    values = np.linspace(-3, 5, 204, dtype=np.float32).reshape(12, 17)
    image = read_image(saved(tmp_path, "a.tif", values), "a")
    np.testing.assert_array_equal(image, values[None])
    assert image.flags.writeable  # torch warns about arrays that are not


@pytest.mark.parametrize(
    ("name", "values"), [("a.npy", GREY.astype(np.int64)), ("a.tif", DEEP.astype(np.int32) * 1000)]
)
def test_wide_integers_are_refused_because_their_white_is_unknown(tmp_path, name, values):
    assert "the value of white is unknown; save it as uint8" in refusal(saved(tmp_path, name, values))


def test_empty_file_is_refused(tmp_path):
    for suffix in IMAGE_SUFFIXES:
        path = tmp_path / f"a{suffix}"
        path.write_bytes(b"")
        assert refusal(path) == "sub/case 1 is empty (0 bytes); copy it again"


def test_text_that_pretends_to_be_a_picture_is_refused(tmp_path):
    path = tmp_path / "a.png"
    path.write_text("image,label\n")
    assert "is not an image despite its ending" in refusal(path)
    array = tmp_path / "a.npy"
    array.write_text("image,label\n")
    assert "is not a plain .npy array" in refusal(array)


def test_a_format_that_is_not_read_is_named(tmp_path):
    for name, words in (("a.nrrd", "the format .nrrd"), ("IM0001", "an unknown format without an ending")):
        (tmp_path / name).write_text("NRRD0004")
        assert refusal(tmp_path / name).endswith(
            f"has {words}, which is not read; convert it to PNG, JPEG, TIFF, BMP, .npy, DICOM or NIfTI"
        )


@pytest.mark.parametrize("kind", ["png", "jpeg", "tiff", "bmp"])
def test_truncated_picture_is_refused(tmp_path, kind):
    path = tmp_path / f"a.{kind}"
    content = encoded(np.tile(GREY, (4, 4)), kind)
    path.write_bytes(content[: len(content) // 2])
    refusal(path)


def test_truncated_array_is_refused(tmp_path):
    path = saved(tmp_path, "a.npy", GREY)
    path.write_bytes(path.read_bytes()[:-5])
    assert "is not a plain .npy array" in refusal(path)


@settings(deadline=None, max_examples=150)
@given(kind=st.sampled_from(["png", "jpeg", "tiff", "bmp", "npy"]), data=st.data())
def test_damaged_bytes_are_refused_or_read_but_never_crash(tmp_path_factory, kind, data):
    damaged = bytearray(encoded(GREY, kind))
    for _ in range(data.draw(st.integers(1, 4))):
        damaged[data.draw(st.integers(0, min(len(damaged), 150) - 1))] = data.draw(st.integers(0, 255))
    damaged = damaged[: data.draw(st.integers(1, len(damaged)))]
    path = tmp_path_factory.getbasetemp() / f"damaged.{kind}"
    path.write_bytes(damaged)
    for attempt in (read_image, image_shape):
        try:
            attempt(path, "given")
        except CaseError as error:
            assert str(path.parent) not in str(error)  # noqa: PT017 - most damage is harmless


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_pixels_that_are_not_numbers_are_refused(tmp_path, value):
    values = np.zeros((12, 17))
    values[3, 4] = value
    path = saved(tmp_path, "a.npy", values)
    assert "has NaN or infinite pixels" in refusal(path)
    if value != 1e300:
        assert "has NaN or infinite pixels" in refusal(path, mask=True)


class Bomb:
    """Leaves a trace when it is unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return Path.touch, (self.trace,)


def test_pickled_array_is_refused_and_not_executed(tmp_path):
    trace = tmp_path / "executed"
    objects = np.empty((12, 17), object)
    objects[0, 0] = Bomb(trace)
    path = tmp_path / "a.npy"
    np.save(path, objects, allow_pickle=True)
    assert "is not a plain .npy array" in refusal(path)
    path.write_bytes(pickle.dumps(Bomb(trace)))
    assert "is not a plain .npy array" in refusal(path)
    assert not trace.exists()
    pickle.loads(path.read_bytes())  # noqa: S301 - the payload works
    assert trace.exists()


def test_archive_of_arrays_is_refused(tmp_path):
    np.savez(tmp_path / "a.npz", a=GREY)
    assert "is an archive of arrays; save the one that is the image as .npy" in refusal(tmp_path / "a.npz")
    path = (tmp_path / "a.npz").rename(tmp_path / "a.npy")
    assert "is not a plain .npy array" in refusal(path)


@pytest.mark.parametrize("values", [np.zeros(5), np.zeros((2, 3, 4, 5, 6)), np.float32(1)])
def test_array_with_other_axes_is_refused(tmp_path, values):
    assert f"has {values.ndim} axes" in refusal(saved(tmp_path, "a.npy", values))


@pytest.mark.parametrize("values", [np.zeros((3, 4), complex), np.zeros((3, 4), "U2"), np.zeros((3, 4), "M8[s]")])
def test_array_of_other_things_than_numbers_is_refused(tmp_path, values):
    assert "not numbers" in refusal(saved(tmp_path, "a.npy", values))


def test_array_without_pixels_is_refused(tmp_path):
    assert "has no pixels" in refusal(saved(tmp_path, "a.npy", np.zeros((0, 4))))


@pytest.mark.parametrize("name", ["a.png", "a.npy", "."])
def test_missing_file_is_refused(tmp_path, name):
    assert refusal(tmp_path / name) == "sub/case 1 does not exist; correct its name or add the file"


def test_picture_of_absurd_size_is_refused_before_it_is_decoded(tmp_path, monkeypatch):
    path = saved(tmp_path, "a.png", GREY)
    monkeypatch.setattr(Pictures, "MAX_IMAGE_PIXELS", 12 * 17 - 1)
    monkeypatch.setattr(Pictures.Image, "load", lambda *_: pytest.fail("the picture was decoded"))
    assert "12×17 pixels are too many" in refusal(path)
    monkeypatch.setattr(Pictures, "MAX_IMAGE_PIXELS", 50)
    assert "could be decompression bomb" in refusal(path)


@pytest.mark.parametrize("name", ["a.png", "a.npy"])
def test_error_of_the_operating_system_does_not_reveal_the_folder(tmp_path, monkeypatch, name):
    path = saved(tmp_path, name, GREY)

    def denied(*_, **__):
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(reading.Pictures, "open", denied)
    monkeypatch.setattr(np.lib.format, "read_array", denied)
    assert "Permission denied" in refusal(path)


@pytest.mark.parametrize(
    ("name", "values"),
    [
        ("m.png", (GREY > 99)),
        ("m.png", (GREY > 99).astype(np.uint8)),
        ("m.png", (GREY > 99).astype(np.uint16) * 700),
        ("m.png", np.repeat(((GREY > 99) * 255).astype(np.uint8)[..., None], 3, 2)),
        ("m.npy", (GREY > 99).astype(np.int64)),
        ("m.npy", GREY > 99),
        ("m.npy", (GREY > 99).astype(float)[None] * 0.01),
    ],
)
def test_mask_is_the_pixels_above_zero_in_any_format(tmp_path, name, values):
    mask = read_mask(saved(tmp_path, name, values), "m", (12, 17))
    assert mask.dtype == bool
    np.testing.assert_array_equal(mask, GREY > 99)


def test_mask_with_several_channels_is_their_union(tmp_path):
    first, second = GREY > 200, GREY < 20
    mask = read_mask(saved(tmp_path, "m.npy", np.stack([first, second])), "m", (12, 17))
    np.testing.assert_array_equal(mask, first | second)


def test_array_of_four_axes_is_a_volume_with_channels(tmp_path):
    values = np.arange(2 * 3 * 4 * 5, dtype=np.float32).reshape(2, 3, 4, 5)
    path = saved(tmp_path, "a.npy", values)
    np.testing.assert_array_equal(read_image(path, "a"), values)
    assert image_shape(path, "a") == (3, 4, 5)


def test_three_axes_of_a_mask_are_a_volume_where_the_image_is_one(tmp_path):
    volume = np.arange(3 * 4 * 5).reshape(3, 4, 5) % 7 == 0
    path = saved(tmp_path, "m.npy", volume)
    np.testing.assert_array_equal(read_mask(path, "m", (3, 4, 5)), volume)
    np.testing.assert_array_equal(read_mask(path, "m", (4, 5)), volume.any(0))
    np.testing.assert_array_equal(read_mask(saved(tmp_path, "n.npy", volume[None]), "n", (3, 4, 5)), volume)
    with pytest.raises(CaseError, match="is 4×5, its image 3×4×5"):
        read_mask(saved(tmp_path, "o.npy", volume[0]), "o", (3, 4, 5))


@pytest.mark.parametrize("name", ["m.png", "m.npy"])
def test_mask_of_another_size_is_refused_with_both_sizes(tmp_path, name):
    path = saved(tmp_path, name, np.zeros((6, 9), np.uint8))
    sentence = refusal(path, mask=True)
    assert sentence == "mask sub/case 1 is 6×9, its image 12×17; export it at the image's size"


def test_damaged_and_missing_masks_are_refused_like_images(tmp_path):
    assert "does not exist" in refusal(tmp_path / "m.png", mask=True)
    (tmp_path / "m.png").write_bytes(encoded(GREY, "png")[:60])
    refusal(tmp_path / "m.png", mask=True)


@pytest.mark.parametrize("name", ["a.png", "a.jpg", "a.npy"])
def test_shape_is_known_without_decoding_the_picture(tmp_path, name, monkeypatch):
    path = saved(tmp_path, name, GREY)
    monkeypatch.setattr(Pictures.Image, "load", lambda *_: pytest.fail("the picture was decoded"))
    monkeypatch.setattr(Pictures.Image, "convert", lambda *_: pytest.fail("the picture was decoded"))
    assert image_shape(path, "a") == (12, 17)


def test_shape_of_a_missing_file_is_refused(tmp_path):
    with pytest.raises(CaseError, match=r"^a does not exist"):
        image_shape(tmp_path / "a.png", "a")


def test_a_range_of_values_becomes_0_to_1(tmp_path):
    path = saved(tmp_path, "a.png", np.array([[0, 4095], [2048, 1024]], np.uint16))
    np.testing.assert_allclose(
        read_image(path, "a", value_range=(0, 4095))[0], [[0, 1], [2048 / 4095, 1024 / 4095]], rtol=1e-6
    )


def test_a_jpeg_is_rotated_by_its_exif_tag(tmp_path):
    picture = Pictures.fromarray(np.tile(np.linspace(0, 255, 40, dtype=np.uint8), (16, 1)))
    exif = Pictures.Exif()
    exif[0x0112] = 6  # turn a quarter to the right
    picture.save(tmp_path / "a.jpg", exif=exif)
    image = read_image(tmp_path / "a.jpg", "a")
    assert image.shape == (1, 40, 16)
    assert image_shape(tmp_path / "a.jpg", "a") == (40, 16)
    assert image[0, -1].mean() > 0.9
    assert image[0, 0].mean() < 0.1


@pytest.mark.parametrize("mode", ["L", "RGB", "RGBA", "LA", "P"])
def test_a_grey_film_is_the_same_however_its_greys_are_stored(tmp_path, mode):
    path = saved(tmp_path, "film.png", Pictures.fromarray(GREY).convert(mode))
    np.testing.assert_array_equal(read_grey_film(path, "film"), read_image(saved(tmp_path, "as.png", GREY), "as"))


@pytest.mark.parametrize(
    ("values", "words"),
    [(DEEP, "more than 8 bits"), (GREY.astype(np.int32), "more than 8 bits"), (COLOUR, "is in colour")],
)
def test_a_grey_film_is_neither_deep_nor_coloured(tmp_path, values, words):
    path = saved(tmp_path, "film.tif", values)
    with pytest.raises(CaseError, match=f"^sub/case 1 .*{words}"):
        read_grey_film(path, "sub/case 1")


@pytest.mark.parametrize(("difference", "coloured"), [(5, False), (6, True)])
def test_channels_that_hardly_differ_are_grey(tmp_path, difference, coloured):
    values = np.full((4, 5, 3), 100, np.uint8)
    values[2, 3, 1] += difference
    path = saved(tmp_path, "film.png", values)
    if coloured:
        with pytest.raises(CaseError, match="differ by 6 of 255"):
            read_grey_film(path, "film")
    else:
        assert read_grey_film(path, "film")[0, 2, 3] == np.float32(102) / np.float32(255)


def test_alpha_is_the_share_that_is_not_transparent(tmp_path):
    grey_alpha = np.stack([np.full((2, 2), 90), [[0, 255], [51, 255]]], -1).astype(np.uint8)
    Pictures.fromarray(grey_alpha).save(tmp_path / "la.png")
    assert read_alpha(tmp_path / "la.png", "la.png") == pytest.approx(np.array([[0, 1], [0.2, 1]]))
    palette = Pictures.fromarray(np.array([[0, 1]], np.uint8)).convert("P")
    palette.putpalette([0, 0, 0, 255, 255, 255])
    palette.save(tmp_path / "p.png", transparency=0)
    assert read_alpha(tmp_path / "p.png", "p.png").tolist() == [[0, 1]]
    Pictures.fromarray(np.zeros((2, 2), np.uint8)).save(tmp_path / "grey.png")
    assert read_alpha(tmp_path / "grey.png", "grey.png") is None
    assert read_alpha(tmp_path / "slice.nii.gz", "slice.nii.gz") is None
