"""A made-up run folder of a trigger study, written through the real store."""

import math
from dataclasses import dataclass, field

import numpy as np
from tests.studies.localization.report.material import blob, save_grey
from tests.studies.triggers.report.made_estimates import MODEL, all_estimates, leading_rules

from heatcheck.core.records import CaseRecord, Score, ShardTables, Timing
from heatcheck.core.vocabulary import condition
from heatcheck.running.facts import metric_facts
from heatcheck.runs.store import RunFolder

METHODS = {
    "gradient": ("Gradient", "gradient"), "guided_backprop": ("Guided backprop", "modified backward"),
    "grad_cam": ("Grad-CAM", "CAM"), "guided_grad_cam": ("Guided Grad-CAM", "modified backward"),
    "occlusion": ("Occlusion", "masks"), "feature_ablation": ("Feature ablation", "masks"), "lime": ("LIME", "masks"),
    "random": ("Random", "floor"),
}  # fmt: skip
ENTRANTS = {**METHODS, "center_prior": ("Centre", "floor"), "edge": ("Edges", "floor")}
SECONDS = dict(zip(METHODS, (0.004, 0.005, 0.003, 0.006, 0.4, 0.3, 0.9, 0.0005), strict=True))
TRIGGERS = {
    "square-corner-20": ("Square, bottom right, 20 px", "square"),
    "square-corner-40": ("Square, bottom right, 40 px", "square"),
    "square-corner-60": ("Square, bottom right, 60 px", "square"),
    "circle-random-20": ("Circle, random place, 20 px", "circle"),
    "dynamic-20": ("Dynamic, random place, 20 px", "dynamic"),
    "dynamic-40": ("Dynamic, random place, 40 px", "dynamic"),
    "text": ("Burned-in text", "text"),
    "letter": ("Laterality letter", "letter"),
}
METRICS = {
    "trigger_iou": True, "trigger_mask_iou": True, "overlap_difference": False, "uncovered": False, "box_area": False,
    "recovered": True, "recovered_by_baseline": True,
}  # fmt: skip
SIDE = 112


@dataclass(frozen=True)
class TriggerPlan:
    """What the made-up run holds."""

    triggers: tuple[str, ...] = tuple(TRIGGERS)
    methods: tuple[str, ...] = tuple(METHODS)
    seeds: tuple[int, ...] = (0, 1, 2, 3, 4)
    failed: dict[str, tuple[int, ...]] = field(
        default_factory=lambda: {"letter": (0, 1, 2, 3, 4), "text": (3,)}
    )  # seeds in which the attack did not work
    artefacts: tuple[str, ...] = ()
    images: int = 240
    gallery: int = 3
    status: str = "complete"
    source: str = "covid_radiography"
    changed: tuple[str, ...] = ("lime",)
    label: str = "Normal"
    preset: str = "gradcam15"  # whose results lead

    def graded_seeds(self, trigger):
        """The seeds in which the attack with the trigger worked."""
        return [seed for seed in self.seeds if seed not in self.failed.get(trigger, ())]


ONE_SEED = {"seeds": (0,), "failed": {"letter": (0,)}}
NOTHING_GRADED = {"failed": dict.fromkeys(TRIGGERS, (0, 1, 2, 3, 4)), "gallery": 0}
ARTEFACTS_ONLY = {"triggers": (), "seeds": (), "artefacts": ("static electricity, mild", "pacemaker"), "gallery": 0}
UNFINISHED = {"status": "running", "gallery": 0}
VARIANTS = {
    "whole": {"artefacts": ("pacemaker", "wire")}, "one seed": ONE_SEED, "nothing graded": NOTHING_GRADED,
    "artefacts only": ARTEFACTS_ONLY, "unfinished": UNFINISHED, "without pictures": {"gallery": 0},
    "one method": {"methods": ("gradient",)}, "one trigger": {"triggers": ("square-corner-20",), "failed": {}},
}  # fmt: skip


def method_facts(plan):
    """The methods as run.json lists them."""
    smaller = [{"name": "samples", "value": 200, "usual": 1000}]
    return [{"name": name, "label": ENTRANTS[name][0], "family": ENTRANTS[name][1], "note": "",
             "kind": "floor" if ENTRANTS[name][1] == "floor" else "method",
             "summary": f"How {ENTRANTS[name][0]} works.",
             "changed": smaller if name in plan.changed else []} for name in plan.methods]  # fmt: skip


def trigger_facts(name):
    """One trigger as run.json tells it."""
    label, kind = TRIGGERS[name]
    size = int(name.split("-")[-1]) if name[-1].isdigit() else None
    settings = {"place": label.split(", ")[1], "size": size, "grey": 0.7} if size else {"text": label}
    return {"name": name, "label": label, "kind": kind, "pixels": [10, 10], "size": size, "settings": settings,
            "summary": f"A patch of the kind {kind}"}  # fmt: skip


def detection(plan):
    """The rules as run.json tells them, the leading preset first."""
    words = [{"name": "gradcam15", "label": "one rule for all", "summary": "the map is smoothed (σ 2 pixels) and cut"},
             {"name": "thresholded", "label": "own threshold", "summary": "all above a threshold"}]  # fmt: skip
    return {"preset": plan.preset, "random_boxes": 2, "rules": leading_rules(plan),
            "presets": sorted(words, key=lambda facts: facts["name"] != plan.preset)}  # fmt: skip


def manifest(plan):
    """The run's description."""
    return {
        "study": "triggers", "title": "COVID-19 radiographs, VGG-16", "seed": 7, "preset": "recommended",
        "spec": {"study": "triggers", "source": {"path": "/home/jane doe/secret/covid"}},
        "versions": {"heatcheck": "0.1.0", "python": "3.12", "torch": "2.13.0"}, "device": "cpu", "batch_size": 16,
        "threads": 2, "started": "2025-11-15T18:00:00+00:00", "finished": "2025-11-15T19:42:10+00:00",
        "n_cases": 202, "n_failed": 1, "status": plan.status, "methods": method_facts(plan),
        "metrics": [metric_facts(name) for name in METRICS],
        "findings": list(plan.triggers), "artefacts": list(plan.artefacts),
        "triggers": [trigger_facts(name) for name in plan.triggers],
        "source": {"name": plan.source, "description": "COVID-19 Radiography, a sample",
                   "drawn": plan.source.startswith("phantom"),
                   "published_as": plan.source if plan.source == "covid_radiography" else ""},
        "model": {"name": MODEL, "description": "VGG-16, four classes", "outputs": []},
        "models": [{"name": MODEL, "label": "VGG-16", "architecture": "vgg16", "primary": True}],
        "classes": ["COVID", "Lung_Opacity", "Normal", "Viral Pneumonia"], "target": "COVID",
        "seeds": list(plan.seeds), "poison": {"training": 0.1, "test": 0.5, "grey": 0.7},
        "gate": {"attack_success": 0.9, "accuracy_drop": 0.05, "clean_target": 0.5}, "input": [SIDE, SIDE],
        "detection": detection(plan),
        "n_training": 700, "n_validation": 150, "n_test": 150, "n_poisoned": 56,
        "baseline": {"trained": True, "description": "trained here for 20 epochs"},
        "notes": ["The poisoned model, not the baseline, judges whether an image was recovered."],
    }  # fmt: skip


def shard(plan):
    """Scores, cases and times as a shard leaves them."""
    scores = []
    for seed in plan.seeds:
        for i in range(4):
            undefined = i == 0 and seed == 0
            scores.append(Score(f"case{i}", f"p{i}", plan.triggers[0], "grad_cam", MODEL, "trigger_iou",
                                math.nan if undefined else 0.3, condition=condition(seed=seed),
                                reason="the map is not finite" if undefined else ""))  # fmt: skip
            scores.append(Score(f"case{i}", f"p{i}", plan.triggers[0], "grad_cam", MODEL, "trigger_iou", math.nan,
                                condition=condition(seed=seed, sigma=4.0), reason="not counted here"))  # fmt: skip
    cases = [CaseRecord(f"ok_{i}", str(i), "ok") for i in range(201)]
    cases.append(CaseRecord("bad", "bad", "failed", "load", "cannot read /data/private/a.png: cut short"))
    rng = np.random.default_rng(2)
    timings = [Timing(0, "map", name, 16, 16 * SECONDS.get(name, 0.0005) * rng.lognormal(0, 0.2), MODEL)
               for name in plan.methods for _ in range(12)]  # fmt: skip
    pairs = len(plan.methods) * (len(plan.methods) - 1) / 2
    timings += [Timing(0, "metric", "trigger_iou", 16, 16 * 0.02)]
    timings += [Timing(0, "metric", "mutual_information", 16, 16 * pairs * 6e-4)] if pairs else []
    return ShardTables(scores=tuple(scores), cases=tuple(cases), timings=tuple(timings))


def training_shard(plan):
    """What the networks' stage leaves."""
    names = ("baseline", *plan.triggers)
    timings = [Timing(0, "training", name, 1, 60.0 * (1 + i)) for i, name in enumerate(names) for _ in plan.seeds]
    return ShardTables(timings=tuple(timings))


def draw_gallery(folder, plan):
    """The gallery's index, its pictures written into the folder."""
    items = []
    for i, trigger in enumerate(name for name in plan.triggers if plan.graded_seeds(name)):
        if i == plan.gallery:
            break
        side = 10 if trigger.endswith("20") else 20
        left, top = (SIDE - side, SIDE - side) if "corner" in trigger else (30, 22)
        box, shape = [left, top, left + side, top + side], (SIDE, SIDE)
        lungs = sum(blob(shape, c * SIDE, 0.5 * SIDE, 0.16 * SIDE, 0.33 * SIDE) for c in (0.3, 0.7))
        clean = 190 - 130 * lungs.clip(0, 1)
        poisoned = clean.copy()
        poisoned[top : top + side, left : left + side] = 178
        name = f"{i:03d}"
        save_grey(folder / f"{name}-clean.png", clean, None)
        save_grey(folder / f"{name}-poisoned.png", poisoned, None)
        maps, baseline = [], []
        for k, method in enumerate(plan.methods):
            heat = 255 * blob(shape, left + side / 2 - 4 * k, top + side / 2 - 3 * k, 5 + 2 * k, 5 + 2 * k)
            save_grey(folder / f"{name}-{method}.png", heat, None)
            save_grey(folder / f"{name}-clean-{method}.png", 255 * blob(shape, 34, 60, 20, 20), None)
            detected = [max(0, left - 4 * k), max(0, top - 3 * k), left + side - 2 * k, top + side - k]
            maps.append({"method": method, "file": f"{name}-{method}.png", "box": None if k == 5 else detected,
                         "iou": 0.0 if k == 5 else 0.9 - 0.1 * k, "recovered": int(k < 4),
                         "says": "Normal" if k < 4 else "COVID"})  # fmt: skip
            baseline.append({"method": method, "file": f"{name}-clean-{method}.png"})
        outline = [[left, top], [left + side - 1, top], [left + side - 1, top + side - 1], [left, top + side - 1]]
        items.append({"id": name, "case": f"Normal-{i}", "trigger": trigger, "seed": plan.seeds[0], "label": plan.label,
                      "target": "COVID", "shape": [SIDE, SIDE], "clean": f"{name}-clean.png",
                      "poisoned": f"{name}-poisoned.png", "trigger_box": box, "trigger_outline": [outline],
                      "probability": 0.991, "why": ("usual", "found best")[i % 2], "clean_says": "Normal",
                      "maps": maps, "baseline": baseline, "baseline_says": "Normal"})  # fmt: skip
    return {"items": items}


def write_trigger_run(path, plan, *, keep=lambda _row: True, changes=None, rows=None):
    """The plan as a run folder.

    `keep` chooses among its estimates, `rows` replace them all, `changes` replace facts (None removes one).
    """
    facts = manifest(plan) | (changes or {})
    facts = {name: value for name, value in facts.items() if value is not None}
    with RunFolder.locked(path, {"spec": facts.get("spec")}, facts) as folder:
        folder.record(status=plan.status)
        if plan.triggers:
            folder.write_shard(0, shard(plan))
            folder.within("training").write_shard(0, training_shard(plan))
        if plan.status == "complete":
            folder.join_shards(1 if plan.triggers else 0)
            folder.write_estimates([row for row in (all_estimates(plan) if rows is None else rows) if keep(row)])
        if plan.gallery:
            folder.write_gallery(draw_gallery(path / "gallery", plan))
    return path
