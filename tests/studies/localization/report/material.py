"""A made-up run folder, written through the real store, whose every number is drawn from a fixed seed."""

import math
from dataclasses import dataclass

import numpy as np
from PIL import Image

from heatcheck.core.records import ALL_FINDINGS, HUMAN, CaseRecord, Estimate, Prediction, Score, ShardTables, Timing
from heatcheck.core.vocabulary import condition
from heatcheck.running.facts import metric_facts
from heatcheck.runs.store import RunFolder
from heatcheck.studies.localization.vocabulary import ADDED

FINDINGS = (
    "Airspace Opacity", "Atelectasis", "Cardiomegaly", "Consolidation", "Edema", "Enlarged Cardiomediastinum",
    "Lung Lesion", "Pleural Effusion", "Pneumothorax", "Support Devices",
)  # fmt: skip
FLOORS = {"random": "Random map", "center_prior": "Centre", "edge": "Edges", "location_prior": "Usual location"}
FLOOR_LEVEL = {"random": 0.05, "center_prior": 0.12, "edge": 0.1, "location_prior": 0.2}
CAMS = ("Grad-CAM", "Grad-CAM++", "Integrated gradients", "Occlusion", "LRP", "DeepLIFT", "Guided backprop")


@dataclass(frozen=True)
class Plan:
    """What the made-up run holds."""

    methods: int = 1
    readers: bool = True
    gallery: int = 4
    calibration: bool = True
    status: str = "complete"
    findings: tuple[str, ...] = FINDINGS
    case: str = "patient0001_study1_view1"
    noise: bool = False  # pictures that do not compress
    shape: tuple[int, int] = (300, 240)


def method_facts(methods):
    facts = [{"name": "grad_cam", "label": "Grad-CAM", "family": "cam", "kind": "method", "note": "",
              "summary": "Weights the last feature maps by their gradients."}]  # fmt: skip
    for i in range(1, methods):
        label = CAMS[i] if i < len(CAMS) else f"Method number {i}"
        facts.append({"name": f"method_{i}", "label": label, "family": "gradient", "kind": "method",
                      "note": "", "summary": "Another way."})  # fmt: skip
    for name, label in FLOORS.items():
        facts.append({"name": name, "label": label, "family": "floors", "kind": "floor", "note": "ignores the model",
                      "summary": "A picture made without the model."})  # fmt: skip
    return facts


def manifest(plan):
    metrics = {"iou": "IoU", "hit": "Hit rate", "mass": "Mass accuracy", "iou_full": "IoU, all cases"}
    return {
        "study": "localization", "title": "CheXlocalize, DenseNet-121", "seed": 7, "preset": "recommended",
        "spec": {"study": "localization", "source": {"path": "/home/jane doe/secret/chexlocalize"}},
        "versions": {"heatcheck": "0.1.0", "python": "3.12", "torch": "2.13.0"}, "device": "cpu", "batch_size": 16,
        "shard_size": 64, "threads": 2, "started": "2025-11-15T18:00:00+00:00", "finished": "2025-11-15T18:42:10+00:00",
        "spec_hash": "ab12", "weights_hash": "cd34", "cases_hash": "ef56", "n_cases": 202, "n_failed": 2,
        "methods": method_facts(plan.methods), "findings": list(plan.findings), "status": plan.status,
        "metrics": [metric_facts(name) for name in (*metrics, *ADDED)],
        "source": {"name": "chexlocalize", "description": "CheXlocalize test set", "published_as": "chexlocalize"},
        "model": {"name": "densenet121", "description": "DenseNet-121 trained on CheXpert", "outputs": []},
        "notes": ["An empty region on a positive case scores 0; the published scripts leave it out."],
    }  # fmt: skip


def estimates(plan):
    rng = np.random.default_rng(0)
    names = [facts["name"] for facts in method_facts(plan.methods)]
    rows = []
    for finding in (ALL_FINDINGS, *plan.findings):
        n = 210 if finding == ALL_FINDINGS else int(rng.integers(8, 90))
        for metric, lift in (("iou", 0.0), ("hit", 0.3), ("mass", 0.05), ("iou_full", -0.05)):
            human = 0.55 + lift + rng.uniform(-0.1, 0.1)
            for name in [*names, *([HUMAN] if plan.readers else [])]:
                level = FLOOR_LEVEL.get(name, human if name == HUMAN else 0.32)
                value = float(np.clip(level + (lift if name != HUMAN else 0) + rng.uniform(-0.08, 0.08), 0.01, 0.98))
                rows.append(mean(metric, finding, name, value, n))
                if plan.readers and name not in {HUMAN, *FLOORS} and metric in {"iou", "hit"}:
                    gap = value - human
                    rows.append(Estimate("difference", metric, finding, name, "densenet121", gap, gap - 0.06,
                                         gap + 0.06, other_method=HUMAN, n_cases=n, n_patients=n,
                                         size=0.05))  # fmt: skip
                    rows.append(Estimate("percent_decrease", metric, finding, name, "densenet121", -100 * gap / human,
                                         -100 * gap / human - 9, -100 * gap / human + 9, other_method=HUMAN,
                                         n_cases=n, n_patients=n))  # fmt: skip
                if name not in {HUMAN, *FLOORS} and metric in {"iou", "hit"}:
                    rows += [
                        floor_test(metric, finding, name, floor, value - level, n)
                        for floor, level in FLOOR_LEVEL.items()
                    ]
        rows.append(Estimate("ratio", "precision", finding, "grad_cam", "densenet121", 0.41, 0.35, 0.47, n_cases=n))
        if plan.calibration:
            rows += calibration(finding, n, rng)
    lesion = next((i for i, r in enumerate(rows) if r.metric == "iou" and r.finding == plan.findings[-4]), 0)
    rows[lesion] = Estimate("mean", "iou", rows[lesion].finding, rows[lesion].method, "densenet121", math.nan,
                            reason="no case with this finding has a map")  # fmt: skip
    return rows


def mean(metric, finding, method, value, n=120, width=0.04):
    return Estimate("mean", metric, finding, method, "densenet121", value, max(0, value - width), min(1, value + width),
                    n_cases=n, n_patients=max(1, n - 5), n_undefined=1)  # fmt: skip


def floor_test(metric, finding, method, floor, difference, n=120):
    adjusted = 0.0008 if difference > 0.08 else 0.21
    return Estimate("test", metric, finding, method, "densenet121", difference, difference - 0.05, difference + 0.05,
                    p_value=adjusted / 4, p_adjusted=adjusted, family=f"{metric}: each method against each floor",
                    other_method=floor, n_cases=n, n_patients=n, size=0.03)  # fmt: skip


def calibration(finding, n, rng):
    auroc = 0.8 + rng.uniform(-0.1, 0.12)
    rows = [Estimate("auroc", "auroc", finding, "", "densenet121", auroc, auroc - 0.04, auroc + 0.04, n_cases=668),
            Estimate("calibration", "ece", finding, "", "densenet121", 0.06, 0.03, 0.09, n_cases=668)]  # fmt: skip
    for k in range(10):
        predicted = (k + 0.5) / 10
        rows.append(Estimate("reliability", "observed", finding, "", "densenet121", predicted**1.4,
                             condition=condition(bin=k, predicted=predicted), n_cases=200 // (k + 1)))  # fmt: skip
    return rows


def shard(plan):
    scores, predictions, cases = [], [], [CaseRecord(f"ok_{i}", str(i), "ok") for i in range(200)]
    for i in range(20):
        undefined = i % 5 == 0
        scores.append(Score(f"case{i}", f"p{i}", plan.findings[0], "grad_cam", "densenet121", "iou",
                            math.nan if undefined else 0.3, reason="empty truth" if undefined else ""))  # fmt: skip
        predictions.append(Prediction(f"case{i}", f"p{i}", plan.findings[0], "densenet121", float(i % 2), 0.4, 0.6))
    why = "cannot read /data/private/{}.png: cut short"
    cases += [CaseRecord(f"bad_{name}", name, "failed", "load", why.format(name), "Traceback …") for name in "ab"]
    timings = [Timing(0, "map", "grad_cam", 20, 1.5), Timing(0, "map", "random", 20, 0.01)]
    return ShardTables(tuple(scores), tuple(predictions), tuple(cases), tuple(timings))


def draw_gallery(folder, plan):
    """The gallery's index, its pictures written into the folder."""
    rng = np.random.default_rng(1)
    height, width = plan.shape
    items = []
    for i in range(plan.gallery):
        x, y = width * (0.3 + 0.4 * (i % 2)), height * 0.6
        lungs = sum(blob(plan.shape, c * width, 0.5 * height, 0.16 * width, 0.33 * height) for c in (0.3, 0.7))
        save_grey(folder / f"{i}.png", 190 - 130 * lungs.clip(0, 1), rng if plan.noise else None)
        maps = []
        for k, facts in enumerate(method_facts(plan.methods)):
            at = (x + 0.04 * width * k - 15, y - 0.05 * height * k)
            heat = 255 * blob(plan.shape, *at, 0.16 * width, 0.16 * width)
            save_grey(folder / f"{i}_{k}.png", heat, rng if plan.noise else None)
            region = [ring(*at, 0.15 * width, 0.15 * width)]
            maps.append({"method": facts["name"], "file": f"{i}_{k}.png", "iou": 0.4 - 0.05 * (k % 8),
                         "hit": [1.0, 0.0, 0.5, 1.0, None][k % 5], "peak": list(at), "region": region})  # fmt: skip
        reader = {"reader": "A", "contours": [ring(x + 8, y + 4, 0.12 * width, 0.17 * height)], "points": [[x, y]]}
        items.append({"id": str(i), "case": plan.case if i == 0 else f"patient{i + 1:04d}_study1_view1", "patient": f"p{i}",
                      "finding": plan.findings[i % len(plan.findings)], "image": f"{i}.png", "shape": [height, width],
                      "why": ["low overlap but hit", "high overlap but miss", "typical"][i % 3], "label": 1.0,
                      "probability": 0.93, "truth": [ring(x, y, 0.13 * width, 0.2 * height)], "maps": maps,
                      "readers": [reader]})  # fmt: skip
    return {"items": items}


def blob(shape, x, y, across, down):
    rows, columns = np.mgrid[0 : shape[0], 0 : shape[1]]
    return np.exp(-(((columns - x) / across) ** 2 + ((rows - y) / down) ** 2))


def save_grey(path, values, noise):
    values = values if noise is None else noise.integers(0, 255, values.shape)
    Image.fromarray(np.asarray(values, np.uint8)).save(path)


def ring(x, y, across, down):
    angles = np.linspace(0, 2 * np.pi, 60, endpoint=False)
    return [[float(x + across * np.cos(a)), float(y + down * np.sin(a))] for a in angles]


def write_run(path, plan):
    """The plan as a run folder."""
    facts = manifest(plan)
    with RunFolder.locked(path, {"spec": facts["spec"]}, facts) as folder:
        folder.record(status=plan.status)
        folder.write_shard(0, shard(plan))
        if plan.status == "complete":
            folder.join_shards(1)
            folder.write_estimates(estimates(plan))
        if plan.gallery:
            folder.write_gallery(draw_gallery(path / "gallery", plan))
    return path
