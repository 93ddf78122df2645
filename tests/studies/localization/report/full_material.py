"""A made-up run folder with every kind of row a localization study can leave: models, presets, tuning, geometry."""

import math
from dataclasses import replace

import numpy as np
from tests.studies.localization.report.material import (
    FINDINGS,
    FLOORS,
    Plan,
    draw_gallery,
    estimates,
    manifest,
    mean,
    shard,
)

from heatcheck.core.records import ALL_FINDINGS, HUMAN, Estimate, TruthShape
from heatcheck.core.vocabulary import condition
from heatcheck.runs.store import RunFolder

PRIMARY = "densenet121_ensemble"
MODELS = [
    {"name": "resnet152", "label": "ResNet152", "kind": "single", "primary": False, "members": 1, "description": "r"},
    {"name": PRIMARY, "label": "DenseNet121, ensemble", "kind": "ensemble", "primary": True, "members": 10,
     "description": "Mean of ten DenseNet121 checkpoints"},
    {"name": "densenet121", "label": "DenseNet121, best checkpoint", "kind": "per_finding", "primary": False,
     "members": 5, "description": "d"},
]  # fmt: skip
METHODS = {"grad_cam": "Grad-CAM", "grad_cam_plus_plus": "Grad-CAM++", "occlusion": "Occlusion"}
SWITCHES = [
    {"name": "ties", "label": "Several pixels share the highest value", "used": "they share the hit",
     "recommended": "they share the hit", "chexlocalize": "the first counts",
     "why": "The first maximum favours the top left."},
    {"name": "resampled", "used": "patients", "chexlocalize": "images", "why": "Images of a patient are alike."},
]  # fmt: skip
ALL = (ALL_FINDINGS, *FINDINGS)
FEATURES = ("instances", "size", "elongation", "irrectangularity")
THRESHOLDS = tuple(round(0.2 + 0.1 * i, 1) for i in range(7))
CUTOFFS = tuple(round(0.1 * i, 1) for i in range(9))


def full_manifest():
    facts = manifest(Plan(methods=3))
    for each, (name, label) in zip(facts["methods"], METHODS.items(), strict=False):
        each |= {"name": name, "label": label}
    facts["metrics"].append({"name": "box_iou", "label": "Box IoU", "higher_is_better": True, "summary": "Of boxes."})
    facts |= {"models": MODELS, "model": MODELS[1], "switches": SWITCHES, "truth_kind": "boxes",
              "validation": {"name": "val", "description": "CheXlocalize validation set", "n_cases": 234}}  # fmt: skip
    return facts


def full_rows():
    """Estimates of every kind; each value is a function of its place, so tests can name it."""
    renamed = {"method_1": "grad_cam_plus_plus", "method_2": "occlusion"}
    plain = [replace(row, method=renamed.get(row.method, row.method)) for row in estimates(Plan(methods=3))]
    plain = [row for row in plain if row.statistic != "ratio"]
    rows = [replace(row, model=model["name"]) for model in MODELS for row in _shifted(plain, model["name"])]
    mine = [*presets(), *tuning(), *slopes(), *counts(), *temperatures(), *pixels(), *boxes()]
    return rows + [replace(row, model=PRIMARY) for row in mine] + model_rows()


def _shifted(rows, model):
    shift = {"resnet152": -0.05, "densenet121": -0.02}.get(model, 0.0)
    return [replace(row, value=float(np.maximum(0.0, row.value + shift))) if row.statistic in {"mean", "auroc"} else row
            for row in rows]  # fmt: skip


def presets():
    moved = condition(placement="plain")
    numbers = {"iou": (0.06, 0.04, 0.08, 0.05), "hit": (-0.02, -0.06, 0.03, 0.1)}  # with the size that matters
    for metric, (value, low, high, size) in numbers.items():
        yield Estimate("placement", metric, ALL_FINDINGS, "grad_cam", "", value, low, high, condition=moved, size=size)
    for metric in ("iou", "hit"):
        for i, finding in enumerate(ALL):
            for k, name in enumerate((*METHODS, HUMAN)):
                row = mean(metric, finding, name, 0.4 + 0.02 * i - 0.01 * k, n=50 - i)
                yield replace(row, condition=condition(preset="chexlocalize"))
                if name != HUMAN:
                    yield Estimate("percent_decrease", metric, finding, name, "", 20.0 + i, 10.0, 30.0,
                                   other_method=HUMAN, condition=condition(preset="chexlocalize"))  # fmt: skip


def tuning():
    for method in METHODS:
        for i, finding in enumerate(ALL):
            for facts, metric, level in (({"threshold": "tuned"}, "iou", 0.35), ({"cutoff": "tuned"}, "iou_full", 0.3)):
                under = condition(**facts)
                yield replace(mean(metric, finding, method, level + 0.01 * i, n=40), condition=under)
                yield Estimate("difference", metric, finding, method, "", -0.1, -0.2, 0.05 - 0.01 * i,
                               other_method=HUMAN, condition=under, n_cases=40)  # fmt: skip
            if finding == ALL_FINDINGS:
                continue
            best = THRESHOLDS[i % 7]
            yield Estimate("tuned_threshold", "iou", finding, method, "", best)
            yield Estimate("tuned_cutoff", "iou_full", finding, method, "", CUTOFFS[i % 9])
            for at in THRESHOLDS:
                value = 0.4 - abs(at - best) * 0.5
                yield Estimate("threshold_curve", "iou", finding, method, "", value, condition=condition(threshold=at))
            for at in CUTOFFS:
                value = 0.3 - abs(at - CUTOFFS[i % 9]) * 0.3
                yield Estimate("cutoff_curve", "iou_full", finding, method, "", value, condition=condition(cutoff=at))


def slopes():
    for method in METHODS:
        for metric in ("iou", "hit"):
            for other in ("", HUMAN):
                for i, feature in enumerate(FEATURES):
                    value = 0.111 * (i - 1) + (0.5 if other else 0)
                    row = Estimate("slope", metric, ALL_FINDINGS, method, "", value, value - 0.2, value + 0.2,
                                   p_value=0.001 * i, p_adjusted=0.04 * i, family=f"{metric} on shape", size=0.1,
                                   other_method=other, condition=condition(feature=feature), n_cases=200)  # fmt: skip
                    yield row
                    yield replace(row, value=value / 2, p_value=0.0004, p_adjusted=math.nan, family="", size=math.nan,
                                  condition=condition(feature=feature, preset="chexlocalize"))  # fmt: skip
        for metric in ("iou", "iou_full", "hit"):
            for i, finding in enumerate(ALL):
                under = condition(feature="probability", preset="chexlocalize")
                row = Estimate("slope", metric, finding, method, "", 0.3 + 0.01 * i, 0.1, 0.6, p_value=0.002,
                               p_adjusted=0.03, family=f"{metric} on probability", n_cases=90, size=0.1,
                               condition=condition(feature="probability"))  # fmt: skip
                yield row
                theirs = replace(row, p_adjusted=math.nan, condition=under, size=math.nan)
                yield replace(theirs, value=0.7 + 0.01 * i)
                yield replace(theirs, statistic="spearman", value=0.2 + 0.01 * i)


def counts():
    for metric, each in (("images", 668), ("examinations", 500), ("patients", 500), ("positives", 90),
                         ("annotated", 80), ("segmentations", 123), ("segmentations_by_reader", 117)):  # fmt: skip
        for i, finding in enumerate(ALL):
            yield Estimate("count", metric, finding, "", "", float(each + (i if each < 400 else 0)))


def temperatures():
    for i, finding in enumerate(ALL):
        yield Estimate("calibration", "ece", finding, "", "", 0.021 + 0.001 * i, n_cases=668,
                       reason="over 9 of 10 findings" if finding == ALL_FINDINGS else "",
                       condition=condition(temperature="scaled"))  # fmt: skip
        if finding != ALL_FINDINGS:
            undefined = finding == "Pneumothorax"
            yield Estimate("temperature", "ece", finding, "", "", math.nan if undefined else 1.5 + 0.1 * i,
                           condition=condition(fitted_on="validation"),
                           reason="every logit is on the right side" if undefined else "")  # fmt: skip
        for k in range(10):
            predicted = (k + 0.5) / 10
            yield Estimate("reliability", "observed", finding, "", "", predicted**1.1, n_cases=200 // (k + 1),
                           condition=condition(bin=k, predicted=predicted, temperature="scaled"))  # fmt: skip
        for method in METHODS:
            after = {"temperature": "scaled"}
            for cutoff, facts, value in ((0.3, {}, 0.311), (0.3, after, 0.322), (0.5, {}, 0.281), (0.5, after, 0.281)):
                yield replace(mean("iou_full", finding, method, value + 0.001 * i),
                              condition=condition(cutoff=cutoff, **facts))  # fmt: skip


def pixels():
    for k, metric in enumerate(("precision", "recall", "specificity")):
        for finding in ALL:
            for name in (*METHODS, HUMAN, "random"):
                value = 0.4 + 0.2 * k
                yield Estimate("ratio", metric, finding, name, "", value, value - 0.05, value + 0.05, n_cases=80)


def boxes():
    for finding in ALL:
        for k, name in enumerate((*METHODS, HUMAN, *FLOORS)):
            yield mean("box_iou", finding, name, 0.456 - 0.02 * k)


def model_rows():
    rows = []
    for pair, (model, other) in enumerate((("resnet152", PRIMARY), ("densenet121", PRIMARY))):
        for metric in ("iou", "hit", "auroc"):
            for i, finding in enumerate(ALL):
                for method in ("",) if metric == "auroc" else METHODS:
                    value = -0.031 - 0.002 * i
                    rows.append(Estimate("model_difference", metric, finding, method, model, value, value - 0.02,
                                         value + 0.02 + 0.03 * pair, p_value=0.001, p_adjusted=0.01 + 0.2 * pair,
                                         family=f"{metric} between models", n_cases=80, n_patients=70, size=0.03,
                                         condition=condition(other_model=other)))  # fmt: skip
    for metric in ("iou", "hit"):
        for i, method in enumerate(METHODS):
            model = ("resnet152", PRIMARY)[i % 2]
            rows.append(Estimate("selected", metric, ALL_FINDINGS, method, model, 0.3 + 0.01 * i,
                                 condition=condition(stage="architecture")))  # fmt: skip
        rows.append(Estimate("selected", metric, ALL_FINDINGS, "grad_cam_plus_plus", PRIMARY, 0.345,
                             condition=condition(stage="pair")))  # fmt: skip
    return rows


def shapes():
    rng = np.random.default_rng(3)
    for finding in FINDINGS:
        for i in range(30):
            yield TruthShape(f"case{i}", f"p{i}", finding, 1 + int(rng.integers(0, 4)), 1, float(rng.beta(2, 20)),
                             float(1 + rng.gamma(2, 0.6)) if i else math.nan, float(rng.beta(3, 5)))  # fmt: skip


def gallery(folder):
    index = draw_gallery(folder, Plan(methods=1, gallery=6))
    names = ("many instances", "single instance", "large", "small", "elongated", "irregular outline")
    for item, why in zip(index["items"], names, strict=True):
        item |= {"why": why, "rectangle": [[40, 100], [110, 120], [90, 230], [20, 210]]}
    return index


def write_full_run(path, *, keep=lambda _row: True, changes=None):
    """The whole run; `keep` chooses among its estimates, `changes` replace facts (None removes one)."""
    facts = full_manifest() | (changes or {})
    facts = {name: value for name, value in facts.items() if value is not None}
    with RunFolder.locked(path, {"spec": facts["spec"]}, facts) as folder:
        folder.record(status="complete")
        folder.write_shard(0, replace(shard(Plan()), shapes=tuple(shapes())))
        folder.join_shards(1)
        folder.write_estimates([row for row in full_rows() if keep(row)])
        folder.write_gallery(gallery(path / "gallery"))
    return path
