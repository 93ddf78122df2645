"""The picture of what the network is given."""

import numpy as np
import pytest
from PIL import Image

from heatcheck.core.errors import CaseError
from heatcheck.core.records import Case, CaseKey
from heatcheck.explaining.first_look import preview
from heatcheck.explaining.first_look.contact_sheet import Block, Tile, contact_sheet
from heatcheck.explaining.first_look.look import Sample
from heatcheck.explaining.first_look.preview import Given, given_images, write_preview
from heatcheck.models import Preprocessing
from heatcheck.runs.store import RunFolder

YELLOW = (255, 214, 0)


class Cases:
    """A source of cases that are there; one without an image cannot be read."""

    findings = ("a", "b")

    def __init__(self, *cases, modalities=()):
        self.cases, self.modalities = {case.key.case: case for case in cases}, modalities

    def load(self, key):
        case = self.cases[key.case]
        if case.image is None:
            raise CaseError("empty")
        return case

    def sample(self):
        return Sample(self, [case.key for case in self.cases.values()], self.findings)


def case_of(name, image, truth=None, **labels):
    return Case(CaseKey(name, name, labels or {"a": 1.0, "b": 0.0}), image, truth or {})


def grey(value, shape=(1, 8, 8)):
    return np.full(shape, value, np.float32)


def contract(**changes):
    facts = {"outputs": ("a", "b"), "size": (8, 8), "channels": 1, "mean": (0.5,), "std": (0.25,), **changes}
    return Preprocessing(**facts)


@pytest.fixture
def blocks(monkeypatch, tmp_path):
    """A function that returns the blocks that the preview of these images is drawn from."""
    drawn = []
    monkeypatch.setattr(preview, "contact_sheet", lambda each: drawn.extend(each) or np.zeros((2, 2, 3), np.uint8))

    def of(*given):
        drawn.clear()
        write_preview(RunFolder(tmp_path), given)
        return list(drawn)

    return of


def test_normalisation_is_undone_and_its_result_is_stated(blocks):
    source = Cases(case_of("one", grey(0.25)), case_of("two", grey(1.0), a=0.0, b=0.0), case_of("three", None))
    (block,) = blocks(Given(source.sample(), contract()))
    assert [tile.picture[0, 0].tolist() for tile in block.tiles] == [[0.25] * 3, [1.0] * 3]
    assert [(tile.name, tile.words) for tile in block.tiles] == [("one", "a"), ("two", "no finding studied")]
    assert block.lines == (
        "2 of 3 cases, stretched to 8 × 8 pixels and normalised as the contract says.",
        "Given to the network: −1 to 2, mean 0.50, standard deviation 1.50 (near 0 and 1 is usual).",
        "Shown with the normalisation undone, all images on one scale: black 0, white 1.",
    )


def test_other_units_are_shown_between_their_own_ends_alike_in_all_images(blocks):
    source = Cases(case_of("air", grey(-1000)), case_of("bone", grey(1000)))
    (block,) = blocks(Given(source.sample(), contract(mean=(0.0,), std=(1000.0,))))
    assert [float(tile.picture[0, 0, 0]) for tile in block.tiles] == [0.0, 1.0]
    assert block.lines[2].endswith("black −1,000, white 1,000.")


def test_colours_are_shown_in_colour_and_equal_channels_in_grey(blocks):
    scale = {"channels": 3, "mean": (0.1, 0.2, 0.3), "std": (0.5, 0.5, 0.5)}
    red = np.stack([grey(1.0)[0], grey(0.0)[0], grey(0.0)[0]])
    (block,) = blocks(Given(Cases(case_of("red", red)).sample(), contract(**scale)))
    np.testing.assert_allclose(block.tiles[0].picture[0, 0], [1, 0, 0], atol=1e-6)
    assert [line.split(":")[0] for line in block.lines[1:4]] == [
        f"Given to the network, {c}" for c in ("red", "green", "blue")
    ]
    (block,) = blocks(Given(Cases(case_of("grey", grey(0.5))).sample(), contract(channels=3)))
    assert block.lines[1].startswith("Given to the network, 3 equal channels: 0 to 0")
    np.testing.assert_allclose(block.tiles[0].picture[0, 0], 0.5)


def test_each_modality_has_its_picture_with_its_own_mask(blocks):
    image = np.stack([grey(0.0)[0], grey(0.0)[0]])
    image[:, 2:6, 2:6] = np.random.default_rng(0).uniform(1, 2, (2, 4, 4))
    mask = np.zeros((8, 8), bool)
    mask[3:5, 3:5] = True
    source = Cases(case_of("p", image, {"PET": mask}), modalities=("CT", "PET"))
    (block,) = blocks(Given(source.sample(), contract(channels=2, mean=(0.0,), std=(1.0,), scaling="nonzero")))
    assert [tile.words for tile in block.tiles] == ["CT, a", "PET, a"]
    assert [int(tile.mask.sum()) for tile in block.tiles] == [0, 4]
    assert (block.tiles[0].picture[0, 0] == 0).all()  # the background, which is given as 0, the mean
    assert block.across == 2


def test_marks_are_those_of_the_findings_studied(blocks):
    mask = {name: np.zeros((8, 8), bool) for name in ("a", "b")}
    mask["a"][0, 0] = mask["b"][7, 7] = True
    source = Cases(case_of("p", grey(0.5), mask))
    (block,) = blocks(Given(Sample(source, source.sample().keys, ("b",)), contract()))
    assert np.argwhere(block.tiles[0].mask).tolist() == [[7, 7]]
    assert block.lines[-1] == "Yellow: the marks that come with the images."


def test_of_a_volume_the_slice_with_the_marks_is_shown_and_all_values_are_counted(blocks):
    volume, mask = np.zeros((1, 6, 5, 4), np.float32), np.zeros((6, 5, 4), bool)
    volume[0, 4], mask[4, 1:3, 1:3] = 1.0, True
    source = Cases(case_of("v", volume, {"a": mask}))
    (block,) = blocks(Given(source.sample(), contract(size=(6, 5, 4), mean=(0.0,), std=(1.0,))))
    assert (block.tiles[0].picture == 1).all()
    assert block.tiles[0].mask.sum() == 4
    assert block.lines[1].startswith("Given to the network: 0 to 1, mean 0.17, standard deviation 0.37")


def test_models_share_a_block_if_they_prepare_images_alike(blocks):
    sample = Cases(*(case_of(str(number), grey(0.5)) for number in range(30))).sample()
    contracts = {"one": contract(), "other": contract(activation="softmax"), "coarse": contract(size=(4, 4))}
    first, second = blocks(*given_images(sample, contracts))
    assert (first.title, second.title) == ("one and other", "coarse")
    assert (len(first.tiles), len(second.tiles)) == (8, 8)
    (only,) = blocks(*given_images(sample, {"one": contract()}))
    assert (only.title, len(only.tiles)) == ("", 12)


def test_nothing_is_written_where_no_image_can_be_read(tmp_path):
    write_preview(RunFolder(tmp_path), [Given(Cases(case_of("p", None)).sample(), contract())])
    assert not (tmp_path / "preview.png").exists()


def test_sheet_outlines_marks_and_is_the_same_each_time():
    picture, mask = np.zeros((20, 10, 3)), np.zeros((20, 10), bool)
    bare = contact_sheet([Block("", ("Caption",), (Tile(picture, mask, "name", "words"),))])
    assert not (bare == YELLOW).all(-1).any()
    mask[5:15, 2:8] = True
    block = Block("", ("Caption",), (Tile(picture, mask, "name", "words"),) * 5)
    sheet = contact_sheet([block])
    assert (sheet == YELLOW).all(-1).any()
    np.testing.assert_array_equal(sheet, contact_sheet([block]))
    assert sheet.shape[0] > bare.shape[0] > 224
    assert sheet.shape[1] == bare.shape[1]


def test_long_names_and_captions_stay_on_the_sheet():
    tile = Tile(np.zeros((8, 8, 3)), np.zeros((8, 8), bool), "n" * 200, "w" * 200)
    short = contact_sheet([Block("", ("Caption",), (tile,))])
    long = contact_sheet([Block("", ("A caption that goes on " * 30,), (tile,))])
    assert long.shape[1] == short.shape[1]
    assert long.shape[0] > short.shape[0]


def test_picture_is_stored_as_it_is_drawn(tmp_path):
    source = Cases(case_of("one", grey(0.25)))
    for folder in ("a", "b"):
        (tmp_path / folder).mkdir()
        write_preview(RunFolder(tmp_path / folder), [Given(source.sample(), contract())])
    first, second = ((tmp_path / folder / "preview.png").read_bytes() for folder in ("a", "b"))
    assert first == second
    assert (np.asarray(Image.open(tmp_path / "a" / "preview.png")) == 64).any()
