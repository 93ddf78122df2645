import numpy as np
import pytest

from heatcheck.core.errors import InputError, SpecError
from heatcheck.triggers import build_trigger
from heatcheck.triggers.dots import KNOWN, dot_matrix

FILM = np.full((1, 112, 112), 0.4, np.float32)


def lines(text):
    return ["".join(".#"[dot] for dot in row) for row in dot_matrix(text).astype(int)]


def test_letters_are_made_of_dots():
    assert lines("L1") == [
        "#.......#..",
        "#......##..",
        "#.......#..",
        "#.......#..",
        "#.......#..",
        "#.......#..",
        "#####..###.",
    ]


def test_no_two_signs_look_the_same():
    assert len({dot_matrix(sign).tobytes() for sign in KNOWN}) == len(KNOWN)
    assert all(dot_matrix(sign).shape == (7, 5) for sign in KNOWN)


@pytest.mark.parametrize(("side", "dot"), [(112, 1), (224, 2)])
def test_text_can_be_read_dot_by_dot(side, dot):
    trigger = build_trigger({"kind": "text", "text": "AP 14:32"})
    stamped = trigger(np.full((1, side, side), 0.4, np.float32), 1).on(np.full((1, side, side), 0.4, np.float32))[0]
    dots = dot_matrix("AP 14:32").repeat(dot, 0).repeat(dot, 1)
    top = 8 * side // 224
    text = stamped[top : top + dots.shape[0], top : top + dots.shape[1]]
    assert np.array_equal(text == 1, dots)


def test_a_shadow_makes_text_visible_on_white():
    white = np.ones_like(FILM)
    stamped = build_trigger("text")(white, 1).on(white)
    assert (stamped < 0.3).sum() > 50


def test_only_the_digits_differ_between_images():
    trigger = build_trigger("text")
    stamps = [trigger(FILM, seed).on(FILM) for seed in range(12)]
    assert len({stamped.tobytes() for stamped in stamps}) == 12
    assert len({stamped[0, :, :16].tobytes() for stamped in stamps}) == 1  # the letters ID
    fixed = build_trigger({"kind": "text", "text": "PORTABLE"})
    assert np.array_equal(fixed(FILM, 1).on(FILM), fixed(FILM, 2).on(FILM))


@pytest.mark.parametrize(
    ("corner", "rows", "columns"),
    [
        ("top_left", "near", "near"),
        ("top_right", "near", "far"),
        ("bottom_left", "far", "near"),
        ("bottom_right", "far", "far"),
    ],
)
def test_text_lies_in_its_corner(corner, rows, columns):
    box = build_trigger({"kind": "text", "corner": corner})(FILM, 1).box
    for axis, side in zip(box, (rows, columns), strict=True):
        assert axis.start < 8 if side == "near" else axis.stop > 104


@pytest.mark.parametrize("text", ["", "  ", "id 1", "Ä"])
def test_text_without_known_letters_is_refused(text):
    with pytest.raises(SpecError, match="trigger text: text: text must be capitals, digits"):
        build_trigger({"kind": "text", "text": text})


def test_text_longer_than_the_image_does_not_fit():
    with pytest.raises(InputError, match="is 16×248 px on images of 112 px"):
        build_trigger({"kind": "text", "text": "A" * 40}).require_fit((112, 112))


@pytest.mark.parametrize(("letter", "half"), [("L", np.s_[:, :, 56:]), ("R", np.s_[:, :, :56])])
def test_the_letter_lies_on_its_side_of_the_patient(letter, half):
    stamp = build_trigger({"kind": "letter", "letter": letter})(FILM, 1)
    changed = stamp.on(FILM) != FILM
    assert changed.sum() == changed[half].sum() > 20


def test_an_l_is_an_l():
    for seed in range(10):
        stamp = build_trigger("letter")(np.zeros((1, 224, 224), np.float32), seed)
        ink = stamp.on(np.zeros((1, 224, 224), np.float32))[0][stamp.box]
        rows, columns = ink.shape
        assert rows == pytest.approx(20, abs=4)
        foot, stem = ink[rows * 3 // 4 :].sum(), ink[:, : columns // 2].sum()
        assert foot > 1.5 * ink[: rows // 4].sum()
        assert stem > 1.5 * ink[:, columns // 2 :].sum()


def test_the_position_of_the_letter_varies_a_little():
    stamps = [build_trigger("letter")(FILM, seed) for seed in range(12)]
    assert len({stamp.mask.tobytes() for stamp in stamps}) > 8
    overlap = np.mean([stamp.mask_on((112, 112)) for stamp in stamps], axis=0)
    assert overlap.max() == 1
