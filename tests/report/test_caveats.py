"""Cautions that every study shares."""

from types import SimpleNamespace

import pytest

from heatcheck.report.caveats import of_every_study


@pytest.mark.parametrize("phantom", [True, False])
def test_drawn_images_are_held_against_the_run_of_any_study(phantom):
    manifest = SimpleNamespace(cautions=(), source=SimpleNamespace(drawn=phantom), model=None)
    evidence = SimpleNamespace(manifest=manifest, slices={}, models=())
    assert any("The images are drawn" in caveat for caveat in of_every_study(evidence)) is phantom
