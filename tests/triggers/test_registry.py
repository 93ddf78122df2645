"""Triggers by name, with checked settings."""

import numpy as np
import pytest

from heatcheck.core.errors import CaseError, InputError, SpecError, UnknownNameError
from heatcheck.triggers import PUBLISHED, build_trigger
from heatcheck.triggers.static import Circle, Square


def test_a_short_name_gives_kind_place_and_size():
    trigger = build_trigger("square-center-40")
    assert trigger.patch == Square(place="center", size=40)
    assert trigger.name == "square-center-40"
    assert trigger.label == "Square, centre, 40 px"
    assert not trigger.needs_gradient


def test_settings_give_the_same_trigger_as_its_short_name():
    assert build_trigger({"kind": "circle", "place": "random", "size": 20}) == build_trigger("circle-random-20")


def test_other_settings_show_in_the_name_unless_a_name_is_given():
    settings = {"kind": "square", "grey": 0.9, "corner": "top_left"}
    assert build_trigger(settings).name == "square-corner-20-grey-0.9-corner-top_left"
    assert build_trigger({**settings, "name": "sticker"}).name == "sticker"
    assert build_trigger({**settings, "name": "sticker"}).patch == Square(grey=0.9, corner="top_left")


def test_a_kind_alone_has_the_default_settings():
    assert build_trigger("circle").patch == Circle()
    assert build_trigger("circle").name == "circle-corner-20"


def test_an_unknown_kind_gets_a_suggestion():
    with pytest.raises(UnknownNameError, match="did you mean 'square'"):
        build_trigger("sqare-corner-20")


@pytest.mark.parametrize(
    ("part", "message"),
    [
        ("square-centre-20", "trigger square: place: .*got 'centre'; did you mean 'center'"),
        ("square-corner-big", "trigger square: size: .*got 'big'"),
        ("square-corner-0", "trigger square: size: .*at least 1, got '0'"),
        (
            "square-corner-20-30",
            "'square-corner-20-30' has more parts than square has short settings; write square-PLACE-SIZE",
        ),
        ({"kind": "square", "gray": 0.5}, "trigger square: unknown setting 'gray'; did you mean 'grey'"),
        ({"kind": "square", "grey": 70}, "trigger square: grey: .*at most 1, got 70"),
        ({"kind": "square", "name": "a/b"}, "trigger square: name: .*got 'a/b'"),
        ({"place": "corner"}, "a trigger needs its kind"),
    ],
)
def test_wrong_settings_are_named(part, message):
    with pytest.raises(SpecError, match=message):
        build_trigger(part)


def test_a_trigger_larger_than_the_image_is_refused():
    trigger = build_trigger("square-corner-300")
    with pytest.raises(InputError, match="trigger square-corner-300 is 150 px on images of 112 px; make it smaller"):
        trigger.require_fit((112, 112))
    with pytest.raises(InputError, match="150 px on images of 112×128 px"):
        trigger(np.zeros((1, 112, 128), np.float32), seed=1)
    build_trigger("square-corner-224").require_fit((112, 112))


@pytest.mark.parametrize("image", [np.zeros((112, 112), np.float32), np.zeros((1, 112, 112), np.uint8)])
def test_an_image_without_channels_or_of_integers_is_refused(image):
    with pytest.raises(ValueError, match="expects an image of floats"):
        build_trigger("square")(image, seed=1)


@pytest.mark.parametrize("value", [255, -1000, np.nan])
def test_an_image_with_values_outside_zero_to_one_fails_the_case(value):
    with pytest.raises(CaseError, match="grey values from 0 to 1, got"):
        build_trigger("square")(np.full((1, 112, 112), value, np.float32), seed=1)


def test_the_paper_has_eleven_and_three_of_them_need_a_gradient():
    triggers = [build_trigger(name) for name in PUBLISHED]
    assert [trigger.name for trigger in triggers] == list(PUBLISHED)
    assert all(trigger.facts.published for trigger in triggers)
    assert len({trigger.name for trigger in triggers}) == 11
    assert [trigger.name for trigger in triggers if trigger.needs_gradient] == [
        "dynamic-20",
        "dynamic-40",
        "dynamic-60",
    ]
