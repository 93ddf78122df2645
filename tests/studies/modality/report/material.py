"""A made-up run folder of a modality study, written through the real store."""

import json
import math
from dataclasses import dataclass

import numpy as np
from tests.studies.localization.report.material import blob, ring, save_grey
from tests.studies.modality.report.made_estimates import LEVELS, MODEL, all_estimates, scored, seconds

from heatcheck.core.records import CaseRecord, Prediction, ShardTables, Timing
from heatcheck.running.facts import metric_facts
from heatcheck.runs.store import RunFolder

METHODS = {
    "gradient": ("Gradient", "gradient"), "guided_backprop": ("Guided backprop", "modified backward"),
    "deconvolution": ("Deconvolution", "modified backward"), "input_x_gradient": ("Input × gradient", "gradient"),
    "smooth_grad": ("SmoothGrad", "gradient"), "integrated_gradients": ("Integrated gradients", "gradient"),
    "gradient_shap": ("Gradient SHAP", "gradient"), "deep_lift": ("DeepLIFT", "modified backward"),
    "grad_cam": ("Grad-CAM", "CAM"), "guided_grad_cam": ("Guided Grad-CAM", "modified backward"),
    "occlusion": ("Occlusion", "masks"), "feature_ablation": ("Feature ablation", "masks"),
    "shapley_value_sampling": ("Shapley sampling", "masks"), "kernel_shap": ("Kernel SHAP", "masks"),
    "lime": ("LIME", "masks"), "feature_permutation": ("Feature permutation", "masks"),
}  # fmt: skip
METRICS = {
    "msfi": True, "mi_correlation": True, "lesion_share": True, "median_iou": True, "aupc": False, "delta_aupc": True,
    "modality_sum": True, "inside_share": True, "rating": True,
}  # fmt: skip
GREYS = {"T1": (150, 110, 0.75), "T1C": (150, 110, 1.5), "T2": (105, 140, 1.5), "FLAIR": (120, 140, 1.7)}


@dataclass(frozen=True)
class ModalityPlan:
    """What the made-up run holds."""

    methods: tuple[str, ...] = tuple(METHODS)
    shared: tuple[str, ...] = ("grad_cam", "kernel_shap", "feature_permutation")
    folds: int = 5
    cases: int = 12  # of a fold
    modalities: tuple[str, ...] = ("T1", "T1C", "T2", "FLAIR")
    fills: tuple[str, ...] = ("zero", "tissue")
    known: tuple[str, ...] = ()
    source: str = "brats"
    trained: bool = True
    slices: int = 1
    side: int = 72
    gallery: int = 2
    ratings: bool = True
    status: str = "complete"
    changed: tuple[str, ...] = ("lime",)
    case: str = "BraTS20_Training_001"
    noise: bool = False  # maps that hardly compress

    @property
    def fold_numbers(self):
        """From 1."""
        return range(1, self.folds + 1)

    @property
    def total(self):
        """All test cases."""
        return self.folds * self.cases

    def cases_by_fold(self):
        """Id, patient and true class of every test case."""
        return {fold: [(f"case{fold}_{i}", f"p{fold}_{i}", ("HGG", "LGG")[i % 4 == 0]) for i in range(self.cases)]
                for fold in self.fold_numbers}  # fmt: skip

    def importances(self):
        """What weighs the modalities in MSFI."""
        return ("lesion", "known") if self.known else ("lesion",)

    @staticmethod
    def fold_of(at):
        """The fold of a condition."""
        return json.loads(at)["fold"]


PHANTOM = {"source": "phantom_brain", "folds": 1, "trained": False, "known": ("T1C", "FLAIR"), "fills": ("zero",),
           "ratings": False, "cases": 40}  # fmt: skip
VARIANTS = {
    "whole": {}, "phantom": PHANTOM, "volumes": {"slices": 7, "side": 40, "gallery": 1},
    "without pictures": {"gallery": 0}, "unfinished": {"status": "running", "gallery": 0},
    "one method": {"methods": ("gradient",), "gallery": 1}, "three folds": {"folds": 3, "gallery": 0},
}  # fmt: skip


def method_facts(plan):
    """The methods as run.json lists them."""
    smaller = [{"name": "samples", "value": 100, "usual": 500}]
    facts = []
    for name in plan.methods:
        label, family = METHODS.get(name, ("Random", "floor"))
        black_box = family == "masks"
        facts.append({
            "name": name, "label": label, "family": family, "note": "", "summary": f"How {label} works.",
            "kind": "floor" if family == "floor" else "method", "changed": smaller if name in plan.changed else [],
            "shares_modalities": name in plan.shared, "access": "predictions only" if black_box else "model internals",
            "models": "any model" if black_box else "neural networks", "speed": "slow" if black_box else "fast",
        })  # fmt: skip
    return facts


def manifest(plan):
    """The run's description."""
    return {
        "study": "modality", "title": "Gliomas in four modalities", "seed": 7,
        "spec": {"study": "modality", "source": {"path": "/home/jane doe/secret/brats"}},
        "versions": {"heatcheck": "0.1.0", "python": "3.12", "torch": "2.13.0"}, "device": "cpu", "batch_size": 4,
        "threads": 2, "started": "2025-11-15T18:00:00+00:00", "finished": "2025-11-15T19:42:10+00:00",
        "n_cases": plan.total, "n_failed": 1, "status": plan.status, "methods": method_facts(plan),
        "metrics": [metric_facts(name) for name in METRICS],
        "findings": ["LGG", "HGG"], "classes": ["LGG", "HGG"], "modalities": list(plan.modalities),
        "source": {"name": plan.source, "description": {"brats": "BraTS 2020"}.get(plan.source, "Drawn brain slices"),
                   "drawn": plan.source != "brats", "published_as": "brats" if plan.source == "brats" else ""},
        "model": {"name": MODEL, "label": "3D VGG", "description": "3D VGG, two classes", "architecture": "vgg3d"},
        "models": [{"name": MODEL, "label": "3D VGG", "architecture": "vgg3d", "primary": True}],
        "trained": plan.trained, "folds": plan.folds, "fills": list(plan.fills), "known": list(plan.known),
        "primary": {"measure": "balanced", "filled": plan.fills[0], "weights": "positive", "importance": "lesion",
                    "masks": "own", "boxes": False, "dilate": 0},
        "per_fold": [{"fold": fold, "training": 236, "validation": 59, "test": plan.cases,
                      "classes": {"LGG": plan.cases // 4, "HGG": plan.cases - plan.cases // 4},
                      "epoch": 30 + fold if plan.trained else None} for fold in plan.fold_numbers],
        "space": 3 if plan.slices > 1 else 2,
        "ratings": {"readers": 2, "rows": 64, "comments": 3} if plan.ratings else None,
        "notes": ["Balanced accuracy is the value of a subset; the paper uses accuracy."],
    }  # fmt: skip


def shard(plan):
    """Scores, predictions, cases and times as shards leave them."""
    predictions, cases = [], []
    for each in plan.cases_by_fold().values():
        for case, patient, finding in each:
            cases.append(CaseRecord(case, patient, "ok"))
            predictions += [Prediction(case, patient, name, MODEL, float(name == finding), 0.4, 0.9 if name == finding
                                       else 0.1) for name in ("LGG", "HGG")]  # fmt: skip
    cases.append(CaseRecord("bad", "bad", "failed", "load", "cannot read /data/private/a.nii: cut short"))
    rng = np.random.default_rng(2)
    timings = [Timing(0, "map", name, 4, 4 * seconds(name) * rng.lognormal(0, 0.2), MODEL)
               for name in plan.methods for _ in range(6)]  # fmt: skip
    return ShardTables(tuple(scored(plan)), tuple(predictions), tuple(cases), tuple(timings))


def head(side, depth):
    """Tissue between 0 and 1 of one slice: skull, brain, ventricles; `depth` from −1 to 1 shrinks it."""
    shape, reach = (side, side), math.sqrt(max(0.05, 1 - 0.8 * depth**2))
    rows, columns = np.mgrid[0:side, 0:side] / side - 0.5
    inside = (columns / (0.36 * reach)) ** 2 + (rows / (0.44 * reach)) ** 2 < 1
    brain = (columns / (0.32 * reach)) ** 2 + (rows / (0.4 * reach)) ** 2 < 1
    white = brain * (0.65 + 0.35 * np.cos(9 * np.hypot(columns, rows * 1.2)))
    for x in (0.44, 0.56):
        white = white * (1 - 0.8 * blob(shape, x * side, 0.46 * side, 0.03 * side, 0.11 * side))
    return inside, brain, white


def tumour(plan, modality, k):
    """Where the lesion is in a slice: its centre, and how far it reaches."""
    depth = 2 * (k + 0.5) / plan.slices - 1 if plan.slices > 1 else 0.0
    reach = math.sqrt(max(0.0, 1 - (1.6 * (depth - 0.1)) ** 2))
    size = {"T1C": 0.08, "T1": 0.07}.get(modality, 0.11)
    return (0.36 * plan.side, 0.4 * plan.side), size * plan.side * reach


def strips(plan, modality):
    """The slices of one modality side by side, and each slice's outlines."""
    pictures, outlines = [], []
    brain_grey, skull, factor = GREYS.get(modality, (130, 120, 1.3))
    for k in range(plan.slices):
        depth = 2 * (k + 0.5) / plan.slices - 1 if plan.slices > 1 else 0.0
        inside, brain, white = head(plan.side, depth)
        grey = np.where(brain, brain_grey * white, np.where(inside, skull, 0.0))
        (x, y), reach = tumour(plan, modality, k)
        if reach > 1:
            spot = blob((plan.side, plan.side), x, y, reach, reach)
            grey = grey * (1 + (factor - 1) * spot)
        pictures.append(np.clip(grey, 0, 255))
        outlines.append([ring(x, y, reach, reach)] if reach > 1 else [])
    return np.concatenate(pictures, axis=1), outlines


def heat(plan, method, modality, rng):
    """One method's strip for a modality: the better the method, the more of it on the lesion."""
    msfi, tau = LEVELS[method][:2]
    weight = {"T1C": 1.0, "FLAIR": 0.6}.get(modality, 0.15) if tau > 0.2 else 0.7
    slices = []
    for k in range(plan.slices):
        (x, y), reach = tumour(plan, modality, k)
        shape = (plan.side, plan.side)
        spot = blob(shape, x, y, reach, reach) if reach > 1 else np.zeros(shape)
        inside, _, _ = head(plan.side, 2 * (k + 0.5) / plan.slices - 1 if plan.slices > 1 else 0.0)
        speckle = (
            rng.random(shape) * (0.6 - 0.5 * msfi) if METHODS[method][1] != "CAM" else 0.3 * blob(shape, *shape, 30, 30)
        )
        slices.append(np.where(inside, np.clip(msfi * 2 * spot + speckle * (1 if plan.noise else 0.6), 0, 1), 0))
    return 255 * np.clip(weight * np.concatenate(slices, axis=1), 0, 1)


def draw_gallery(folder, plan):
    """The gallery's index, its pictures written into the folder."""
    items, rng = [], np.random.default_rng(3)
    for i in range(plan.gallery):
        name, images, outlines = f"{i:03d}", {}, {}
        for modality in plan.modalities:
            strip, outlines[modality] = strips(plan, modality)
            images[modality] = f"{name}-image-{modality}.png"
            save_grey(folder / images[modality], strip, None)
        maps = []
        for method in plan.methods:
            files = {}
            for modality in ("all",) if method in plan.shared else plan.modalities:
                files[modality] = f"{name}-map-{method}-{modality}.png"
                save_grey(folder / files[modality], heat(plan, method, modality, rng), None)
            msfi, tau, share = LEVELS[method][:3]
            maps.append({"method": method, "files": files, "msfi": msfi, "lesion_share": share,
                         "mi_correlation": None if method in plan.shared else tau})  # fmt: skip
        items.append({"id": name, "case": plan.case if i == 0 else f"BraTS20_Training_{i + 1:03d}",
                      "finding": ("HGG", "LGG")[i % 2], "said": "HGG", "probability": 0.93, "fold": 1,
                      "shape": [plan.side, plan.side], "slices": plan.slices, "first": 20, "step": 4,
                      "start": plan.slices // 2, "plane": "axial", "sides": "patient's right on the left",
                      "images": images, "outlines": outlines, "maps": maps})  # fmt: skip
    return {"items": items}


RATINGS = """reader,case,method,rating,comment
A,BraTS20_Training_001,guided_backprop,70,Follows the enhancing rim.
A,BraTS20_Training_001,lime,20,"Marks the skull, not the tumour."
B,BraTS20_Training_001,guided_backprop,65,
B,BraTS20_Training_001,lime,10,<b>useless</b>
"""


def write_modality_run(path, plan, *, keep=lambda _row: True, changes=None, rows=None):
    """The plan as a run folder.

    `keep` chooses among its estimates, `rows` replace them all, `changes` replace facts (None removes one).
    """
    facts = manifest(plan) | (changes or {})
    facts = {name: value for name, value in facts.items() if value is not None}
    with RunFolder.locked(path, {"spec": facts.get("spec")}, facts) as folder:
        folder.record(status=plan.status)
        folder.write_shard(0, shard(plan))
        if plan.status == "complete":
            folder.join_shards(1)
            folder.write_estimates([row for row in (all_estimates(plan) if rows is None else rows) if keep(row)])
        if plan.gallery:
            folder.write_gallery(draw_gallery(path / "gallery", plan))
        if plan.ratings:
            (path / "ratings.csv").write_text(RATINGS)
    return path
