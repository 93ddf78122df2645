"""What a test set holds."""

import math

from paper_material import rule_of, table_of, write_folder

from heatcheck.core.records import Prediction, Score, TruthShape, condition
from heatcheck.studies.paper_estimates import paper_estimates


def test_counts_by_hand(tmp_path):
    said = [
        Prediction("a", "p", "f", "model", 1.0, 0.0, 0.5),
        Prediction("b", "p", "f", "model", 1.0, 0.0, 0.5),
        Prediction("c", "q", "f", "model", 0.0, 0.0, 0.5),
        Prediction("a", "p", "g", "model", math.nan, 0.0, 0.5),
        Prediction("d", "r", "g", "model", 0.0, 0.0, 0.5),
    ]
    shapes = [TruthShape("a", "p", "f", 3, 1, 0.1, 2.0, 0.1), TruthShape("b", "p", "f", 1, 1, 0.1, 2.0, 0.1)]
    scores = [
        Score("a", "p", "f", "human", "", metric, value, condition=condition(reader=reader))
        for reader, pixels in (("one", (5.0, 0.0)), ("two", (0.0, 7.0)), ("three", (0.0, 0.0)))
        for metric, value in zip(("true_positive_pixels", "false_positive_pixels"), pixels, strict=True)
    ]
    scores += [Score("a", "p", "f", "human", "", "true_positive_pixels", 2.0)]
    table = table_of(paper_estimates(write_folder(tmp_path, scores, said, shapes), rule_of(["f", "g"], ["good"])))
    counts = table.query("statistic == 'count'").pivot_table("value", "metric", "finding")
    without = counts.loc["without_finding", "All findings"]
    counts = counts.drop(index="without_finding")
    assert counts["f"].to_dict() == {
        "annotated": 2,
        "images": 3,
        "patients": 2,
        "positives": 2,
        "segmentations": 4,
        "segmentations_by_reader": 2,
    }
    assert counts["g"].to_dict() == {**dict.fromkeys(counts.index, 0), "images": 1, "patients": 1}
    assert counts.loc["images", "All findings"] == 4
    assert counts.loc["patients", "All findings"] == 3
    assert without == 2
