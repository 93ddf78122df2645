"""Cautions that every study shares."""

import math
from types import SimpleNamespace

import pyarrow as pa
import pytest

from heatcheck.report.caveats import of_every_study, skipped_in_words
from heatcheck.runs.manifest import SkippedEntry


@pytest.mark.parametrize("phantom", [True, False])
def test_drawn_images_are_held_against_the_run_of_any_study(phantom):
    manifest = SimpleNamespace(cautions=(), source=SimpleNamespace(drawn=phantom), model=None)
    evidence = SimpleNamespace(manifest=manifest, slices={}, models=(), findings=())
    assert any("The images are drawn" in caveat for caveat in of_every_study(evidence)) is phantom


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
    model = SimpleNamespace(name="net", outputs=("effusion", "nodule"))
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
