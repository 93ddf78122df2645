"""Cautions that every study shares."""

import math
from types import SimpleNamespace

import pytest

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import AUROC
from heatcheck.report.caveats import of_every_study, of_models
from heatcheck.runs.manifest import ModelEntry


@pytest.mark.parametrize("phantom", [True, False])
def test_drawn_images_are_held_against_the_run_of_any_study(phantom):
    manifest = SimpleNamespace(cautions=(), source=SimpleNamespace(drawn=phantom), model=None)
    evidence = SimpleNamespace(manifest=manifest, slices={}, models=())
    assert any("The images are drawn" in caveat for caveat in of_every_study(evidence)) is phantom


@pytest.mark.parametrize(
    ("weights_from", "auroc", "is_asked"),
    [
        ("function", (0.52, 0.41, 0.63), True),
        ("function", (0.5, math.nan, math.nan), True),
        ("function", (0.8, 0.7, 0.9), False),
        ("function", (0.1, 0.02, 0.2), False),  # far from a guess: something is mixed up
        ("function", (1.0, math.nan, math.nan), False),  # a few cases, all right
        ("file", (0.52, 0.41, 0.63), False),
        ("chance", (0.52, 0.41, 0.63), False),  # said before the work
    ],
)
def test_a_guessing_model_without_weights_is_asked_whether_it_was_trained(weights_from, auroc, is_asked):
    row = Estimate(AUROC, "auroc", ALL_FINDINGS, "", "net", *auroc)
    manifest = SimpleNamespace(model=None)
    model = ModelEntry(name="net", weights_from=weights_from)
    evidence = SimpleNamespace(manifest=manifest, slices={"": {"": row}}, models=(model,), findings=())
    said = of_models(evidence)
    assert any("no weights were given: is this the trained network?" in each for each in said) is is_asked
    assert "nan" not in " ".join(said)
