"""Run folders made up for the paper's estimates: the golden tables, and a model whose truth is known."""

import json
import math
from dataclasses import asdict

import numpy as np
import pandas as pd
from scipy.special import expit

from heatcheck.core.records import Prediction, Score, TruthShape
from heatcheck.core.vocabulary import condition
from heatcheck.runs.tables import write_table
from heatcheck.studies.localization.settings import LocalizationSettings

REFERENCE = condition(preset="chexlocalize")


def rule_of(findings, methods, model="model"):
    return LocalizationSettings(tuple(findings), tuple(methods), (), ("iou", "hit"), model, draws=200, seed=0)


def write_folder(folder, scores=(), predictions=(), shapes=()):
    write_table(folder / "scores.parquet", Score, list(scores))
    write_table(folder / "predictions.parquet", Prediction, list(predictions))
    write_table(folder / "shapes.parquet", TruthShape, list(shapes))
    return folder


def patient_of(image):
    return image.split("_")[0]


def wide_scores(path, method, metric, model="model"):
    table = pd.read_csv(path, index_col="img_id")
    return [
        Score(image, patient_of(image), finding, method, model, metric, value, condition=REFERENCE)
        for image, row in table.iterrows()
        for finding, value in row.items()
    ]


def golden_folder(folder, golden):
    """The paper's scores as a run holds them."""
    expected, tp = golden / "expected", golden / "expected" / "tp"
    scores = [
        *wide_scores(tp / "iou_results_per_cxr.csv", "map", "iou"),
        *wide_scores(tp / "hitmiss_results_per_cxr.csv", "map", "hit"),
        *wide_scores(expected / "full" / "iou_results_per_cxr.csv", "map", "iou_full"),
        *wide_scores(tp / "iou_humanbenchmark_results_per_cxr.csv", "human", "iou", ""),
        *wide_scores(tp / "hitmiss_humanbenchmark_results_per_cxr.csv", "human", "hit", ""),
    ]
    images = json.loads((golden / "data" / "manifest.json").read_text())["images"]
    names = ("num_instances", "area_ratio", "elongation", "rec_area_ratio")
    tables = [pd.read_csv(expected / f"{name}.csv", index_col="img_id") for name in names]
    findings = sorted(tables[0].columns)
    predictions = [
        Prediction(image, patient_of(image), finding, "model", math.nan, math.nan, said[finding])
        for image, said in images.items()
        for finding in findings
    ]
    shapes = []
    for image in tables[0].index:
        for finding in findings:
            count, size, elongation, filled = (table.loc[image, finding] for table in tables)
            if count:
                shape = (int(count), int(count), size, elongation, 1 - filled)
                shapes.append(TruthShape(image, patient_of(image), finding, *shape))
    write_folder(folder, scores, predictions, shapes)
    return findings


def known_folder(folder, patients=150, models=("model",)):
    """Two findings; the scores of `good` rise with size and probability; the model is three times too sure."""
    generator = np.random.default_rng(7)
    scores, predictions, shapes = [], [], []
    for number in range(patients):
        for view in range(1 + number % 2):
            case, patient = f"c{number:03d}-{view}", f"p{number:03d}"
            for finding, level in (("f", 0.1), ("g", 0.4)):
                honest = generator.normal(0, 1.5)
                label = float(generator.random() < expit(honest))
                said = float(expit(3 * honest))
                predictions += [Prediction(case, patient, finding, m, label, 3 * honest, said) for m in models]
                size, noise = generator.random(), generator.normal(0, 0.05)
                values = {"good": level + 0.3 * size + 0.2 * expit(honest) + noise, "flat": 0.2 + noise}
                for method, value in values.items():
                    hit = float(generator.random() < value)
                    key = (case, patient, finding, method)
                    scores += [Score(*key, m, "iou_full", value * label) for m in models]
                    if label:
                        scores += [Score(*key, m, "iou", value) for m in models]
                        scores += [Score(*key, m, "hit", hit) for m in models]
                if label:
                    human = (case, patient, finding, "human", "")
                    scores += [Score(*human, "iou", 0.8 + noise), Score(*human, "hit", 1.0)]
                    shapes.append(TruthShape(case, patient, finding, 1 + number % 3, 1, size, 1 + size**2, 0.5 * noise))
    return write_folder(folder, scores, predictions, shapes)


def table_of(rows):
    """The estimates as a table."""
    return pd.DataFrame([asdict(row) for row in rows])


def row_of(table, statistic, metric, finding="All findings", method="good", other="", **facts):
    """The one row of a table that has these facts as its condition."""
    chosen = table[
        (table["statistic"] == statistic)
        & (table["metric"] == metric)
        & (table["finding"] == finding)
        & (table["method"] == method)
        & (table["other_method"] == other)
        & (table["condition"] == condition(**facts))
    ]
    assert len(chosen) == 1
    return chosen.iloc[0]


def numbers(cell):
    """Of "-0.727, (-1.282, -0.172)*" the three numbers."""
    return [float(part.strip(" ()*")) for part in cell.split(",")]


def shown(row):
    """The three numbers of a row as the paper's files write them."""
    return [round(row[name], 3) for name in ("value", "low", "high")]
