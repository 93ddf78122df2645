"""A made-up run folder of an alignment study, written through the real store."""

from dataclasses import dataclass

from tests.studies.alignment.report.made_estimates import FAILED, all_estimates, all_scores
from tests.studies.localization.report.material import blob, ring, save_grey

from heatcheck.core.records import CaseRecord, ShardTables, Timing
from heatcheck.metrics import METRIC_FACTS
from heatcheck.runs.store import RunFolder

METHODS = {
    "gradient": ("Gradient", "gradient"), "integrated_gradients": ("Integrated gradients", "gradient"),
    "grad_cam": ("Grad-CAM", "CAM"), "random": ("Random", "floor"),
}  # fmt: skip
MODELS = {
    "densenet201/random": ("densenet201", "DenseNet", "random_1_channel", False),
    "vit_base_16/radimagenet": ("vit_base_16", "ViT", "radimagenet", True),
    "swin_tiny/radimagenet": ("swin_tiny", "Swin", "radimagenet", True),
    "densenet121": ("densenet121", "DenseNet", "given", True),
}
METRICS = ("mass", "rank", "hit", "iou", "reliance", "reliance_placebo", "auroc", "mutual_information_label")
METRIC_LABELS = {"auroc": "AUROC", "mutual_information_label": "Mutual information"}
SIDE = 96


@dataclass(frozen=True)
class AlignmentPlan:
    """What the made-up run holds."""

    models: tuple[str, ...] = ("densenet201/random", "vit_base_16/radimagenet")
    methods: tuple[str, ...] = ("gradient", "integrated_gradients")
    judged: tuple[str, ...] = ()
    findings: tuple[str, ...] = ("Atelectasis", "Edema")
    seeds: tuple[int, ...] = (1, 2)
    failed: tuple[tuple[str, str, str, str, int], ...] = ()  # model, method, finding, arm, seed
    cases: int = 24  # positives of each finding with a mask
    human: str = "truth"
    source: str = "chexlocalize"
    gallery: int = 2
    status: str = "complete"
    title: str = "CheXlocalize, aligned and misaligned"


CELL = ("densenet201/random", "gradient", "Edema", "misalign", 2)
VARIANTS = {
    "whole": {}, "one seed": {"seeds": (1,)}, "readers": {"human": "readers"}, "failed cell": {"failed": (CELL,)},
    "one pair": {"models": ("densenet121",), "methods": ("grad_cam",)}, "without pictures": {"gallery": 0},
    "phantom": {"source": "phantom_chest", "findings": ("nodule", "effusion")},
    "unfinished": {"status": "running", "gallery": 0},
}  # fmt: skip


def model_facts(name):
    """One base model as run.json tells it."""
    architecture, family, initialisation, pretrained = MODELS[name]
    return {"name": name, "label": f"{family} ({initialisation})", "description": f"{architecture}, {initialisation}",
            "architecture": architecture, "family": family, "initialisation": initialisation,
            "pretrained": pretrained}  # fmt: skip


def manifest(plan):
    """The run's description."""
    names = (*plan.methods, *plan.judged)
    return {
        "study": "alignment", "title": plan.title, "seed": 7, "preset": "recommended",
        "spec": {"study": "alignment", "source": {"path": "/home/jane doe/secret/chexlocalize"}},
        "versions": {"heatcheck": "0.1.0", "python": "3.12"}, "device": "cpu", "batch_size": 16, "threads": 2,
        "started": "2025-11-15T18:00:00+00:00", "finished": "2025-11-15T19:42:10+00:00", "n_cases": 234,
        "n_failed": len(plan.failed), "status": plan.status,
        "methods": [{"name": n, "label": METHODS[n][0], "family": METHODS[n][1], "note": "", "changed": [],
                     "kind": "floor" if METHODS[n][1] == "floor" else "method",
                     "summary": f"How {METHODS[n][0]} works."} for n in names],
        "metrics": [{"name": name, "label": METRIC_LABELS.get(name, name.replace("_", " ").capitalize()),
                     "summary": f"What {name} means.", "unit": METRIC_FACTS[name].unit} for name in METRICS],
        "findings": list(plan.findings), "trained": list(plan.methods), "judged": list(plan.judged),
        "through": plan.methods[0], "models": [model_facts(name) for name in plan.models], "seeds": list(plan.seeds),
        "alpha": 1.0, "fit": {"epochs": 25, "batch_size": 16, "learning_rate": 1e-4}, "several": False,
        "softplus": None, "blame_metric": "mass", "reliance": {"shifts": 4, "fills": ["blur", "mean", "noise"]},
        "n_finetune": 446, "n_selection": 222, "n_evaluation": 234, "human": plan.human,
        "positives": {finding: {"finetune": 100 + i, "selection": 50 + i, "evaluation": 70 + i,
                                "evaluation_positives": 80 + i, "evaluation_negatives": 154 - i}
                      for i, finding in enumerate(plan.findings)},
        "source": {"name": plan.source, "description": "CheXlocalize, test and validation images",
                   "drawn": plan.source.startswith("phantom"),
                   "published_as": "chexlocalize" if plan.source == "chexlocalize" else ""},
        "model": {"name": plan.models[0], "description": "", "outputs": []},
        "notes": ["Each map is compared with its own mask."],
    }  # fmt: skip


def shard(plan):
    """Scores, cases and times as the cells leave them."""
    cases = [CaseRecord(f"ok_{i}", str(i), "ok") for i in range(233)]
    cases.append(CaseRecord("bad", "bad", "failed", "load", "cannot read /data/private/a.png: cut short"))
    cases += [CaseRecord(f"{model} · {method} · {arm} · seed {seed} · {finding}", "", "failed", "training", FAILED)
              for model, method, finding, arm, seed in plan.failed]  # fmt: skip
    timings = [Timing(0, "map", name, 16, 0.4) for name in plan.methods]
    return ShardTables(scores=tuple(all_scores(plan)), cases=tuple(cases), timings=tuple(timings))


def draw_gallery(folder, plan):
    """The gallery's index, its pictures written into the folder."""
    items = []
    for i in range(plan.gallery):
        name, shape = f"{i:03d}", (SIDE, SIDE)
        x, y = SIDE * (0.3 + 0.4 * (i % 2)), SIDE * 0.6
        lungs = sum(blob(shape, c * SIDE, 0.5 * SIDE, 0.16 * SIDE, 0.33 * SIDE) for c in (0.3, 0.7))
        save_grey(folder / f"{name}-film.png", 190 - 130 * lungs.clip(0, 1), None)
        maps = []
        for k, (arm, across) in enumerate((("base", 24), ("control", 22), ("align", 9), ("misalign", 10))):
            at = (SIDE - x, y) if arm == "misalign" else (x + 6 - 3 * k, y)
            save_grey(folder / f"{name}-{arm}.png", 255 * blob(shape, *at, across, across), None)
            maps.append({"arm": arm, "file": f"{name}-{arm}.png", "probability": 0.91 - 0.01 * k,
                         "mass": (0.22, 0.25, 0.66, 0.04)[k], "rank": (0.3, 0.31, 0.7, None)[k]})  # fmt: skip
        items.append({"id": name, "case": f"patient{i:04d}", "finding": plan.findings[i % len(plan.findings)],
                      "model": plan.models[i % len(plan.models)], "method": plan.methods[i % len(plan.methods)],
                      "shape": [SIDE, SIDE], "film": f"{name}-film.png", "outlines": [ring(x, y, 10, 16)],
                      "maps": maps})  # fmt: skip
    return {"items": items}


def write_alignment_run(path, plan, *, keep=lambda _row: True, changes=None, rows=None):
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
    return path
