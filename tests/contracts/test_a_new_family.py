"""A method of a family that nobody has heard of works wherever methods are listed, run and reported."""

import importlib.util
import json
import sys
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml

import heatcheck
from heatcheck.cli.main import main
from heatcheck.core.batches import without_error
from heatcheck.methods import METHODS, build_method
from heatcheck.methods.registry import Access, method
from heatcheck.regions.detect import PRESETS, preset_rule
from heatcheck.studies.modality import facts as modality_facts

ROOT = Path(__file__).parent.parent.parent
SPEC = {
    "study": "localization",
    "gallery": 2,
    "threads": 1,
    "bootstrap_draws": 100,
    "source": {"name": "phantom_chest", "patients": 4, "size": 64},
    "model": "phantom_chest_densenet",
    "methods": ["grad_cam", "brightness", "random"],
}


@pytest.fixture(params=Access, ids=lambda needs: needs.name.lower())
def needs(request):
    return request.param


@pytest.fixture(autouse=True)
def brightness(needs, monkeypatch):
    """A registered method of a new family, gone after the test."""
    monkeypatch.setattr(METHODS, "_parts", dict(METHODS._parts))

    @method(
        "brightness",
        label="Brightness",
        family="daylight",
        needs=needs,
        cost="0",
        summary="Where the image is bright",
        paper="nobody",
    )
    @dataclass(frozen=True)
    class Brightness:
        def __call__(self, classifier, images, targets, seeds):  # noqa: ARG002 - a method's signature
            return without_error(images.mean(1)[:, None, None].repeat_interleave(targets.shape[1], 1))

    return Brightness


def printed(monkeypatch, capsys, *words):
    monkeypatch.setattr(sys, "argv", ["heatcheck", *words])
    with pytest.raises(SystemExit) as left:
        main()
    assert not left.value.code
    return capsys.readouterr().out


def test_it_is_listed(monkeypatch, capsys, needs):
    assert "daylight" in printed(monkeypatch, capsys, "list", "methods")
    (row,) = [
        r for r in json.loads(printed(monkeypatch, capsys, "list", "methods", "--json")) if r["name"] == "brightness"
    ]
    assert row["family"] == "daylight"
    assert row["speed"] == ("slow" if needs is Access.PREDICTIONS else "fast")


def test_it_stands_in_the_reference():
    spec = importlib.util.spec_from_file_location("reference", ROOT / "docs" / "reference.py")
    reference = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(reference)
    assert any("| `brightness` | daylight |" in text for text in reference.pages().values())


def test_it_explains_an_image(tiny_classifier, tiny_images):
    explained = heatcheck.explain(tiny_classifier, tiny_images, method="brightness", targets=[0, 2])
    assert explained.values.shape[:2] == (4, 2)
    np.testing.assert_allclose(explained.values[:, 1, 0], tiny_images.mean(1), rtol=1e-5)


@pytest.mark.parametrize("preset", PRESETS)
def test_its_maps_can_be_searched_for_triggers(preset):
    assert preset_rule(preset, "brightness") == preset_rule(preset, "a method without a rule of its own")


def test_a_modality_study_says_what_it_asks_of_a_model(needs):
    facts = modality_facts._method("brightness", build_method("brightness", {}), SimpleNamespace(shared=()))
    assert facts.access == needs.value
    assert facts.models
    assert facts.speed in {"fast", "slow"}


@pytest.mark.parametrize("needs", [Access.INTERNALS], indirect=True)
def test_a_study_reports_it(tmp_path):
    path = tmp_path / "study.yaml"
    path.write_text(yaml.safe_dump(SPEC))
    heatcheck.run_study(path, tmp_path / "run")
    page = (tmp_path / "run" / "report.html").read_text(encoding="utf-8")
    assert "Brightness" in page
    assert "daylight" in page
