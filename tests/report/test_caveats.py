"""Cautions that every study shares."""

import math
from types import SimpleNamespace

import pyarrow as pa
import pytest

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import AUROC
from heatcheck.report.caveats import of_every_study, of_models, skipped_in_words
from heatcheck.runs.manifest import ModelEntry, SkippedEntry


@pytest.mark.parametrize("phantom", [True, False])
def test_drawn_images_are_held_against_the_run_of_any_study(phantom):
    manifest = SimpleNamespace(cautions=(), source=SimpleNamespace(drawn=phantom), model=None)
    evidence = SimpleNamespace(manifest=manifest, slices={}, models=(), findings=())
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


def test_outputs_in_another_order_are_named_with_the_labels_that_they_fit():
    rows = [
        {
            "case": str(n),
            "finding": finding,
            "model": "net",
            "label": float(n % place == 0) if n else math.nan,
            "probability": answer,
        }
        for n in range(40)
        for place, finding, answer in ((2, "effusion", (n % 3 == 0) * 0.9), (3, "nodule", (n % 2 == 0) * 0.8))
    ]
    table = pa.Table.from_pylist(rows)
    model = SimpleNamespace(name="net", outputs=("effusion", "nodule"), weights_from="file")
    evidence = SimpleNamespace(
        manifest=SimpleNamespace(cautions=(), source=SimpleNamespace(drawn=False), model=model),
        slices={},
        models=(model,),
        findings=("effusion", "nodule"),
        run=SimpleNamespace(row_groups=lambda name, columns: [table.select(columns)] if name == "predictions" else []),
    )
    (said,) = of_every_study(evidence)
    assert said.startswith("Output 1 (called effusion) fits the labels of nodule (AUROC 1.00) and output 2 (called")
    assert "are the outputs in the right order?" in said


def test_methods_that_look_inside_a_black_box_share_one_line():
    inside = "looks inside the model, but only predictions of net are available"
    entries = [SkippedEntry(name=name, model="net", reason=inside) for name in ("a", "b", "c")]
    other = SkippedEntry(name="d", model="net", reason="the model has no attention")
    assert skipped_in_words([*entries, other]) == [
        "3 methods look inside the model and are left out: a, b and c; only predictions of net are available.",
        "d on net: the model has no attention.",
    ]
