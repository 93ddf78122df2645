"""DICOM pixels: windows by hand, compressed files against their uncompressed twins, and unreadable files."""

import shutil
import warnings
from pathlib import Path

import numpy as np
import pydicom
import pytest
from PIL import Image as Pictures
from pydicom.dataset import Dataset, FileDataset, FileMetaDataset
from pydicom.uid import ExplicitVRLittleEndian, ImplicitVRLittleEndian

from heatcheck.core.errors import CaseError
from heatcheck.sources.files.reading import image_affine, image_shape, is_image, read_image, without_ending

FOLDERS = (
    Path(pydicom.__file__).parent / "data" / "test_files",
    Path(pydicom.__file__).parents[1] / "data_store" / "data",  # pydicom-data
)
STORED = np.random.default_rng(4).integers(0, 4096, (9, 7)).astype(np.uint16)


def sample(name):
    """A file of pydicom or pydicom-data on this disk; nothing is downloaded."""
    path = next((folder / name for folder in FOLDERS if (folder / name).is_file()), None)
    assert path, f"{name} is missing; install the dependencies of pyproject.toml"
    return path


def written(path, stored=STORED, **tags):
    """The path of a small DICOM file with these values and tags."""
    file = FileDataset(str(path), {}, preamble=b"\0" * 128, file_meta=FileMetaDataset())
    file.file_meta.TransferSyntaxUID = ExplicitVRLittleEndian
    file.Modality = "DX"
    file.PatientName = "Secret^Person"
    file.Rows, file.Columns = stored.shape[:2]
    file.SamplesPerPixel = 1
    file.PhotometricInterpretation = "MONOCHROME2"
    file.BitsAllocated = stored.dtype.itemsize * 8
    file.BitsStored = 12 if stored.dtype == np.uint16 else file.BitsAllocated
    file.HighBit = file.BitsStored - 1
    file.PixelRepresentation = int(stored.dtype.kind == "i")
    file.PixelData = stored.tobytes()
    for name, value in tags.items():
        setattr(file, name, value)
    file.save_as(path, enforce_file_format=False, implicit_vr=False, little_endian=True)
    return path


def refusal(path):
    with pytest.raises(CaseError) as caught:
        read_image(path, "case 1")
    sentence = str(caught.value)
    assert "case 1" in sentence
    assert "; " in sentence, "a remedy follows"
    assert "\n" not in sentence
    assert "Secret" not in sentence
    assert str(path.parent) not in sentence
    return sentence


def by_hand(value, centre, width, function):
    """DICOM PS3.3 C.11.2.1.2 with the output from 0 to 1, one value at a time."""
    if function == "SIGMOID":
        return 1 / (1 + np.exp(-4 * (value - centre) / width))
    if function == "LINEAR_EXACT":
        if value <= centre - width / 2:
            return 0.0
        return 1.0 if value > centre + width / 2 else (value - centre) / width + 0.5
    if value <= centre - 0.5 - (width - 1) / 2:
        return 0.0
    if value > centre - 0.5 + (width - 1) / 2:
        return 1.0
    return (value - (centre - 0.5)) / (width - 1) + 0.5


@pytest.mark.parametrize("function", ["", "LINEAR", "LINEAR_EXACT", "SIGMOID"])
@pytest.mark.parametrize("photometric", ["MONOCHROME2", "MONOCHROME1"])
def test_the_first_window_is_applied_after_the_rescale(tmp_path, function, photometric):
    path = written(
        tmp_path / "a.dcm",
        RescaleSlope=2,
        RescaleIntercept=-1000,
        WindowCenter=[2500, 1],
        WindowWidth=[3000, 2],
        PhotometricInterpretation=photometric,
        **({"VOILUTFunction": function} if function else {}),
    )
    expected = [[by_hand(2 * value - 1000, 2500, 3000, function) for value in row] for row in STORED.astype(float)]
    expected = 1 - np.array(expected) if photometric == "MONOCHROME1" else np.array(expected)
    image = read_image(path, "a")
    assert image.dtype == np.float32
    assert image.shape == (1, 9, 7)
    np.testing.assert_allclose(image[0], expected, atol=1e-6)


def test_a_window_of_one_value_is_a_step(tmp_path):
    image = read_image(written(tmp_path / "a.dcm", WindowCenter=2000, WindowWidth=1), "a")
    np.testing.assert_array_equal(image[0], STORED > 1999.5)


def test_without_a_window_the_full_range_is_shown(tmp_path):
    signed = STORED.astype(np.int16) - 2000
    image = read_image(written(tmp_path / "a.dcm", signed, RescaleSlope=1, RescaleIntercept=5), "a")
    np.testing.assert_allclose(image[0], (signed - signed.min()) / np.ptp(signed), atol=1e-6)


def test_a_range_replaces_the_window(tmp_path):
    path = written(tmp_path / "a.dcm", WindowCenter=1, WindowWidth=2, RescaleSlope=1, RescaleIntercept=100)
    image = read_image(path, "a", value_range=(100, 1100))
    np.testing.assert_allclose(image[0], STORED / 1000, rtol=1e-6)


@pytest.mark.parametrize("photometric", ["MONOCHROME2", "MONOCHROME1"])
def test_padding_is_black_and_does_not_affect_the_range(tmp_path, photometric):
    stored = STORED.astype(np.int16) + 50
    stored[:3] = -2000
    stored[3] = -1990
    path = written(
        tmp_path / "a.dcm",
        stored,
        PhotometricInterpretation=photometric,
        PixelPaddingValue=-2000,
        PixelPaddingRangeLimit=-1990,
    )
    image = read_image(path, "a")[0]
    assert (image[:4] == 0).all()
    assert {image[4:].min(), image[4:].max()} == {0, 1}


def test_a_flat_picture_is_black(tmp_path):
    assert (read_image(written(tmp_path / "a.dcm", np.full_like(STORED, 7)), "a") == 0).all()


TWINS = [
    ("MR_small_RLE.dcm", "MR_small.dcm", 0),
    ("MR_small_jp2klossless.dcm", "MR_small.dcm", 0),
    ("MR_small_jpeg_ls_lossless.dcm", "MR_small.dcm", 0),
    ("MR_small_bigendian.dcm", "MR_small.dcm", 0),
    ("MR_small_implicit.dcm", "MR_small.dcm", 0),
    ("MR_small_padded.dcm", "MR_small.dcm", 0),
    ("693_J2KR.dcm", "693_UNCR.dcm", 0),
    ("RG3_J2KR.dcm", "RG3_UNCR.dcm", 0),
    ("JPEG2000.dcm", "JPEG2000_UNC.dcm", 1e-3),
    ("SC_rgb_rle.dcm", "SC_rgb.dcm", 0),
    ("SC_rgb_jpeg_gdcm.dcm", "SC_rgb.dcm", 0),  # JPEG lossless
    ("SC_rgb_expb.dcm", "SC_rgb.dcm", 0),
    ("SC_rgb_16bit.dcm", "SC_rgb.dcm", 1e-3),
    ("SC_ybr_full_uncompressed.dcm", "SC_rgb.dcm", 0.02),
    ("SC_rgb_jpeg_dcmtk.dcm", "SC_rgb.dcm", 0.02),  # baseline, YBR_FULL
    ("SC_rgb_jls_lossy_line.dcm", "SC_rgb.dcm", 0.02),
    ("US1_J2KR.dcm", "US1_UNCR.dcm", 0),
    ("OBXXXX1A_rle.dcm", "OBXXXX1A.dcm", 0),  # a palette
    ("OBXXXX1A_expb.dcm", "OBXXXX1A.dcm", 0),
]


@pytest.mark.parametrize("colour", ["grey", "rgb"])
@pytest.mark.parametrize(("name", "twin", "tolerance"), TWINS, ids=[name for name, *_ in TWINS])
def test_a_compressed_picture_equals_its_uncompressed_twin(name, twin, tolerance, colour):
    image, plain = (read_image(sample(each), each, colour) for each in (name, twin))
    assert image.shape == plain.shape
    assert plain.std() > 0
    # lossy coding rings at the edges of the colour bars: the typical pixel is compared there
    assert np.quantile(np.abs(image - plain), 0.95 if tolerance else 1) <= tolerance


def test_a_deflated_file_equals_its_bytes():
    file = pydicom.dcmread(sample("image_dfl.dcm"))
    raw = np.frombuffer(file.PixelData, np.uint8)[: 512 * 512].reshape(512, 512)
    image = read_image(sample("image_dfl.dcm"), "a")[0]
    np.testing.assert_allclose(image, (raw.astype(float) - raw.min()) / np.ptp(raw), atol=1e-6)


def test_a_voi_lut_is_looked_up_by_hand():
    file = pydicom.dcmread(sample("vlut_04.dcm"))
    table = file.VOILUTSequence[0]
    entries, first, bits = table.LUTDescriptor
    lut = np.asarray(table.LUTData if not isinstance(table.LUTData, bytes) else np.frombuffer(table.LUTData, "<u2"))
    values = file.pixel_array.astype(float) * float(file.get("RescaleSlope", 1)) + float(
        file.get("RescaleIntercept", 0)
    )
    expected = lut[np.clip(values.astype(int) - first, 0, (entries or 65536) - 1)] / (2**bits - 1)
    expected = 1 - expected if file.PhotometricInterpretation == "MONOCHROME1" else expected
    np.testing.assert_allclose(read_image(sample("vlut_04.dcm"), "a")[0], expected, atol=1e-6)


def test_a_modality_lut_is_looked_up_by_hand():
    file = pydicom.dcmread(sample("mlut_18.dcm"))
    table = file.ModalityLUTSequence[0]
    entries, first, _ = table.LUTDescriptor
    values = np.asarray(table.LUTData)[np.clip(file.pixel_array.astype(int) - first, 0, (entries or 65536) - 1)]
    expected = (values - values.min()) / np.ptp(values)
    expected = 1 - expected if file.PhotometricInterpretation == "MONOCHROME1" else expected
    np.testing.assert_allclose(read_image(sample("mlut_18.dcm"), "a")[0], expected, atol=1e-6)


def test_colour_becomes_grey_as_it_does_for_a_png(tmp_path):
    path = sample("examples_rgb_color.dcm")
    Pictures.fromarray(pydicom.dcmread(path).pixel_array).save(tmp_path / "a.png")
    np.testing.assert_allclose(read_image(path, "a"), read_image(tmp_path / "a.png", "a"), atol=0.005)
    np.testing.assert_allclose(read_image(path, "a", "rgb"), read_image(tmp_path / "a.png", "a", "rgb"), atol=1e-6)


def test_a_file_without_preamble_is_read_when_it_looks_like_dicom(tmp_path):
    with_preamble = written(tmp_path / "a.dcm", WindowCenter=2000, WindowWidth=4000)
    without_preamble = tmp_path / "bare.dcm"
    file = pydicom.dcmread(with_preamble)
    for implicit in (True, False):
        file.file_meta.TransferSyntaxUID = ImplicitVRLittleEndian if implicit else ExplicitVRLittleEndian
        plain = Dataset({element.tag: element for element in file})
        plain.save_as(without_preamble, implicit_vr=implicit, little_endian=True, enforce_file_format=False)
        assert without_preamble.read_bytes()[128:132] != b"DICM"
        np.testing.assert_array_equal(read_image(without_preamble, "a"), read_image(with_preamble, "a"))


def test_a_file_without_an_ending_is_recognised_by_its_signature(tmp_path):
    for name in ("IM0001", "DICOMDIR"):
        shutil.copy(written(tmp_path / "a.dcm"), tmp_path / name)
    assert is_image(tmp_path / "IM0001")
    assert not is_image(tmp_path / "DICOMDIR")
    np.testing.assert_array_equal(read_image(tmp_path / "IM0001", "a"), read_image(tmp_path / "a.dcm", "a"))


def test_the_shape_comes_from_the_header(tmp_path):
    assert image_shape(written(tmp_path / "a.dcm"), "a") == (9, 7)


@pytest.mark.parametrize(
    ("name", "ending"), [("x/1.2.840.dcm", ".dcm"), ("b.NII.GZ", ".NII.GZ"), ("c.nii", ".nii"), ("d.e", "")]
)
def test_only_the_ending_of_an_image_is_taken_off(name, ending):
    assert without_ending(name) + ending == name


def test_several_frames_are_refused_with_a_remedy(tmp_path):
    frames = np.stack([STORED, STORED])
    path = written(tmp_path / "a.dcm", STORED, NumberOfFrames=2, PixelData=frames.tobytes())
    assert "holds 2 frames; export the one" in refusal(path)
    with pytest.raises(CaseError, match="2 frames"):
        image_shape(path, "case 1")


def test_a_report_without_pixels_is_refused():
    assert "is a DICOM file that holds no image (it may be a report" in refusal(sample("reportsi.dcm"))


def test_missing_pixels_are_refused(tmp_path):
    path = written(tmp_path / "a.dcm")
    file = pydicom.dcmread(path)
    del file.PixelData
    file.save_as(path)
    assert refusal(path) == "case 1 is a DICOM file without pixels, only a header; export it with its image"


@pytest.mark.parametrize("name", ["MR_small.dcm", "MR_small_RLE.dcm", "MR_small_jp2klossless.dcm", "SC_rgb_jpeg.dcm"])
@pytest.mark.parametrize("share", [0.3, 0.6, 0.95])
def test_a_truncated_file_is_refused(tmp_path, name, share):
    data = sample(name).read_bytes()
    path = tmp_path / "a.dcm"
    path.write_bytes(data[: int(len(data) * share)])
    refusal(path)


def test_anything_else_called_dcm_is_refused(tmp_path):
    path = tmp_path / "a.dcm"
    path.write_bytes(b"hello" * 100)
    assert "is not a DICOM file" in refusal(path)
    path.write_bytes(b"")
    assert "0 bytes" in refusal(path)


def test_a_picture_of_absurd_size_is_refused(tmp_path):
    assert "too many" in refusal(written(tmp_path / "a.dcm", Rows=60000, Columns=60000))


def test_wrong_tags_are_refused_in_one_sentence(tmp_path):
    refusal(written(tmp_path / "a.dcm", PhotometricInterpretation="NONSENSE", SamplesPerPixel=3))
    refusal(written(tmp_path / "b.dcm", BitsAllocated=13))


@pytest.mark.parametrize(
    "name", ["MR_small.dcm", "MR_small_RLE.dcm", "MR_small_jp2klossless.dcm", "SC_rgb_jpeg_dcmtk.dcm"]
)
def test_damaged_bytes_are_read_or_refused_and_nothing_else(tmp_path, name):
    content = sample(name).read_bytes()
    generator = np.random.default_rng(len(content))
    path = tmp_path / "a.dcm"
    for _ in range(25):
        damaged = bytearray(content)
        for index in generator.integers(132, len(content), 12):
            damaged[index] = generator.integers(256)
        path.write_bytes(damaged)
        try:
            image = read_image(path, "case 1")
        except CaseError as error:
            assert "case 1" in str(error)  # noqa: PT017 - either is right
        else:
            assert np.isfinite(image).all()


def test_a_decoder_that_ends_its_process_refuses_one_file_only(tmp_path, monkeypatch):
    from heatcheck.sources.files import decoding

    monkeypatch.setattr(decoding, "_CHILD", "import os; os.abort()")
    path = tmp_path / "a.dcm"
    shutil.copy(sample("MR_small_jpeg_ls_lossless.dcm"), path)
    assert "JPEG-LS Lossless Image Compression, cannot be read" in refusal(path)


def test_a_decoder_that_hangs_refuses_one_file_only(tmp_path, monkeypatch):
    from heatcheck.sources.files import decoding

    monkeypatch.setattr(decoding, "_CHILD", "import time; time.sleep(60)")
    monkeypatch.setattr(decoding, "_SECONDS", 0.5)
    path = tmp_path / "a.dcm"
    shutil.copy(sample("MR_small_jpeg_ls_lossless.dcm"), path)
    assert "TimeoutExpired" in refusal(path)


@pytest.mark.parametrize("name", ["CT_small.dcm", "MR_small.dcm", "693_J2KI.dcm"])
def test_position_in_the_patient_equals_nibabels(name):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # nibabel calls its reader experimental
        from nibabel.nicom.dicomwrappers import wrapper_from_file
    affine = image_affine(sample(name), "case 1")
    judge = np.diag([-1, -1, 1, 1]) @ wrapper_from_file(str(sample(name))).affine  # DICOM counts to the left and back
    assert affine[:, [0, 1, 3]] == pytest.approx(judge[:, [0, 1, 3]], abs=1e-6)
    thickness = float(np.linalg.norm(affine[:3, 2]))
    assert affine[:3, 2] / thickness == pytest.approx(judge[:3, 2] / np.linalg.norm(judge[:3, 2]), abs=1e-6)


def test_pixels_lie_where_the_tags_say(tmp_path):
    tags = {
        "ImageOrientationPatient": [0, 1, 0, 0, 0, -1],  # rows run to the back, columns down: sagittal
        "ImagePositionPatient": [10, 20, 30],
        "PixelSpacing": [2, 3],  # between rows, between columns
        "SliceThickness": 4,
    }
    affine = image_affine(written(tmp_path / "a.dcm", **tags), "case 1")
    assert affine @ [0, 0, 0, 1] == pytest.approx([-10, -20, 30, 1])
    assert affine @ [1, 0, 0, 1] == pytest.approx([-10, -20, 28, 1])
    assert affine @ [0, 1, 0, 1] == pytest.approx([-10, -23, 30, 1])
    assert np.linalg.norm(affine[:3, 2]) == 4


@pytest.mark.parametrize(
    "tags",
    [
        {},
        {"ImageOrientationPatient": [1, 0, 0, 0, 1, 0], "PixelSpacing": [1, 1]},
        {"ImageOrientationPatient": [1, 0, 0, 1, 0, 0], "PixelSpacing": [1, 1], "ImagePositionPatient": [0, 0, 0]},
        {"ImageOrientationPatient": [1, 0, 0, 0, 1, 0], "PixelSpacing": [0, 1], "ImagePositionPatient": [0, 0, 0]},
    ],
    ids=["nothing", "no position", "rows along columns", "no spacing"],
)
def test_file_without_position_tags_has_no_affine(tmp_path, tags):
    assert image_affine(written(tmp_path / "a.dcm", **tags), "case 1") is None
