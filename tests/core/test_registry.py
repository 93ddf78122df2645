import pytest

from heatcheck.core.errors import InputError, UnknownNameError
from heatcheck.core.registry import Registry, suggest


def registry_of(*names):
    parts = Registry("method")
    for name in names:
        parts.add(name, name.upper())
    return parts


def test_registered_part_is_returned_and_found():
    parts = Registry("method")
    assert parts.add("gradcam", "the part") == "the part"
    assert parts["gradcam"] == "the part"
    assert "gradcam" in parts
    assert len(parts) == 1


def test_names_are_listed_in_alphabetical_order_whatever_the_order_of_registration():
    assert list(registry_of("saliency", "eigencam", "gradcam")) == ["eigencam", "gradcam", "saliency"]
    assert list(registry_of("b", "a").items()) == [("a", "A"), ("b", "B")]


def test_second_part_under_one_name_is_refused_and_the_first_stays():
    parts = registry_of("gradcam")
    with pytest.raises(ValueError, match="'gradcam' is registered twice"):
        parts.add("gradcam", "another")
    assert parts["gradcam"] == "GRADCAM"


def test_unknown_name_is_answered_with_the_nearest_known_one():
    with pytest.raises(UnknownNameError, match=r"unknown method 'GradCam\+'; did you mean 'gradcam'\?"):
        registry_of("gradcam", "occlusion")["GradCam+"]


def test_unknown_name_with_nothing_near_is_answered_with_the_whole_list():
    with pytest.raises(UnknownNameError, match="known: gradcam, occlusion"):
        registry_of("occlusion", "gradcam")["zzzz"]


def test_unknown_name_is_an_input_error_so_that_a_command_ends_with_code_two():
    with pytest.raises(InputError):
        registry_of("gradcam")["lime"]


def test_nothing_known_is_said_as_none():
    assert suggest("iou", []) == "known: none"


def test_registry_cannot_be_changed_except_by_adding():
    with pytest.raises(TypeError):
        registry_of("gradcam")["gradcam"] = "another"
