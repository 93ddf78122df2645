"""Methods by name, with settings that are checked."""

import pytest

from heatcheck.core.errors import SpecError, UnknownNameError
from heatcheck.methods import build_method
from heatcheck.methods.cam import GradCam


def test_a_method_is_built_with_its_settings():
    assert build_method("grad_cam", {"layer": "features"}) == GradCam(layer="features")


def test_an_unknown_method_is_answered_with_the_nearest():
    with pytest.raises(UnknownNameError, match="did you mean 'grad_cam'"):
        build_method("gradcam", {})


@pytest.mark.parametrize(
    ("name", "settings", "message"),
    [
        ("grad_cam", {"layr": "x"}, "unknown setting 'layr'; did you mean 'layer'"),
        ("grad_cam", {"layer": 3}, "layer: must be text, got 3"),
        ("random", {"cells": 0}, "cells: .*at least 2"),
        ("edge", {"size": 3}, "has no settings"),
        ("location_prior", {"priors": 1}, "unknown setting 'priors'"),
    ],
)
def test_wrong_settings_are_named(name, settings, message):
    with pytest.raises(SpecError, match=message):
        build_method(name, settings)
