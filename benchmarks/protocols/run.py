"""Every shipped spec from its start to its end: as shipped where that takes minutes, else at reduced size.

Run with `python -m benchmarks.protocols.run [NAME …] [--folder DIR]`. What is reduced stands in `PROTOCOLS`. Data that
cannot be shipped are small trees in the published layouts (`trees.py`); HEATCHECK_COVID names the folder of real films
for the trigger studies. A run that was stopped goes on. Prints what each run says that it will cost, its time, its
failed cases and its main table.
"""

import argparse
import math
import os
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pandas as pd
import yaml
from benchmarks.protocols import trees

from heatcheck import read_run, run_study
from heatcheck.core.errors import HeatcheckError
from heatcheck.core.records import ALL_FINDINGS
from heatcheck.core.vocabulary import facts_of
from heatcheck.fitting.train import Trained, train
from heatcheck.running.execute import cores
from heatcheck.running.progress import Silent
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import read_spec, shipped_specs

FOLDER = Path("protocols")
COVID = trees.covid if trees.FILMS in os.environ else trees.covid_drawn
SHORT = {"epochs": 1, "batch_size": 8}
COMPACT = {"learning_rate": 0.001, "weight_decay": 0.01, "optimizer": "adamw", "schedule": "cosine", "clip": 2}
CHECKPOINTS = {"every_steps": 4, "keep": 2, "by": ["Cardiomegaly", "Edema", "Pleural Effusion"]}
SMALL_TRAINING = {"size": [96, 96], "uncertainty": ["zeros", "three_class"], "runs": 1, "ensemble": 2, "fit": SHORT,
                  "checkpoints": CHECKPOINTS}  # fmt: skip
ZEROS_TRAINING = {**SMALL_TRAINING, "uncertainty": "zeros"}  # for the larger networks
RARE_TRAINING = {"training": {"patients": 600}, "validation": {"patients": 100}, "test": {"patients": 100},
                 "runs": 2, "ensemble": 2, "fit": {"epochs": 3}}  # fmt: skip
BRAIN_TRAINING = {"training": {"cases": 800}, "validation": {"cases": 100}, "test": {"cases": 200},
                  "fit": {"epochs": 6, "batch_size": 32}}  # fmt: skip
OWN = {"kind": "slic", "count": 12, "compactness": 0.1, "sigma": 1.0, "nonzero": True, "per_channel": True}
SHARED = {**OWN, "per_channel": False}
FEW_SAMPLES = (  # the sixteen methods as published, with fewer samples, steps, segments and windows
    "gradient", "guided_backprop", "deconvolution", "input_x_gradient",
    {"name": "smooth_grad", "samples": 3, "noise": 1.0, "noise_is": "absolute"},
    {"name": "integrated_gradients", "steps": 10, "rule": "gauss", "baseline": "zero"},
    {"name": "gradient_shap", "samples": 3, "noise": 0.0, "baseline_noise": 0.0},
    {"name": "deep_lift", "baseline": "zero"},
    {"name": "grad_cam", "placement": "plain"},
    {"name": "guided_grad_cam", "upsampling": "nearest", "placement": "plain"},
    {"name": "occlusion", "window": 16, "stride": 8, "per_channel": True, "baseline": "zero"},
    {"name": "feature_ablation", "baseline": "zero", "segments": OWN},
    {"name": "shapley_value_sampling", "permutations": 2, "baseline": "zero", "segments": OWN},
    {"name": "kernel_shap", "samples": 60, "baseline": "zero", "segments": SHARED},
    {"name": "lime", "samples": 100, "surrogate": "ridge", "alpha": 0.0, "kernel_width": 1.0, "baseline": "zero",
     "segments": OWN},
    {"name": "feature_permutation", "donors_each": 1, "segments": SHARED},
)  # fmt: skip
# the estimates that a study's main table holds: statistic, metrics
MAIN = {
    "localization": ("mean", ("iou", "hit")),
    "alignment": ("robustness", ("mass", "rank")),
    "triggers": ("mean", ("trigger_iou", "recovered")),
    "modality": ("mean", ("msfi", "mi_correlation")),
}
# what is shown before it, because nothing can be graded where it fails: statistics, metrics
FIRST = {
    "triggers": (("attack", "graded"), ("cda", "asr")),
    "modality": (("shapley",), ("phi_modality",)),
}


class Spoken(Silent):
    """Prints what a run says, such as its cost, and keeps it; no progress."""

    def __init__(self) -> None:
        self.said: list[str] = []

    def say(self, sentence: str) -> None:
        """Print and keep the sentence."""
        self.said.append(sentence)
        print(sentence, flush=True)

    @property
    def cost(self) -> str:
        """The time that the run said it would take; empty where it said none."""
        about = (sentence for sentence in self.said if "on this machine" in sentence)
        return next((sentence.partition(" on this machine")[0] for sentence in about), "")


@dataclass(frozen=True)
class Protocol:
    """How one shipped spec is run: changes to it, the data it needs, and what must be run before."""

    changes: Mapping[str, Any] = field(default_factory=dict)
    tree: Callable[[Path], None] | None = None
    limit: int | None = None
    after: tuple[str, ...] = ()  # trainings whose results it reads
    out: str = ""  # where it is expected to be; by default its name
    of: str = ""  # the spec, where its name is another's


PROTOCOLS = {
    "localization-demo": Protocol(),
    "localization-subgroups": Protocol(),
    "phantom-prevalence-1": Protocol(RARE_TRAINING, out="training/prevalence-1"),
    "phantom-prevalence-2": Protocol(RARE_TRAINING, out="training/prevalence-2"),
    "localization-prevalence": Protocol(limit=40, after=("phantom-prevalence-1", "phantom-prevalence-2")),
    "alignment-demo": Protocol(),
    "triggers-demo": Protocol(),
    "modality-demo": Protocol(),
    "chexpert-densenet121": Protocol(SMALL_TRAINING, trees.chexlocalize, out="training/densenet121"),
    "chexpert-resnet152": Protocol(ZEROS_TRAINING, trees.chexlocalize, out="training/resnet152"),
    "chexpert-inception-v4": Protocol(ZEROS_TRAINING, trees.chexlocalize, out="training/inception_v4"),
    "localization-chexlocalize": Protocol(
        {"findings": ["Cardiomegaly"],
         "methods": ["grad_cam", "grad_cam_plus_plus",
                     {"name": "integrated_gradients", "steps": 5, "smooth": 0.05, "colours": 100}, "eigen_cam",
                     {"name": "deep_lift", "smooth": 0.025, "colours": 50},
                     {"name": "lrp", "smooth": 0.04, "colours": 80},
                     {"name": "occlusion", "window": 40, "stride": 40},
                     "random", "center_prior", "edge", "location_prior"]},
        trees.chexlocalize,
        limit=6,
        after=("chexpert-densenet121", "chexpert-resnet152", "chexpert-inception-v4"),
    ),
    "alignment-table1": Protocol(
        {"size": [96, 96], "base": {"fit": SHORT, "training": {"patients": [0, 0.7]},
         "validation": {"patients": [0.7, 1]}}, "fit": {"epochs": 2, "batch_size": 4}, "seeds": 2},
        trees.chexlocalize,
        limit=4,
    ),
    "alignment-chexlocalize": Protocol(
        # a published Swin needs 224 px, at which ViT-B/16 alone would take an hour
        {"models": [{"name": "densenet201", "fit": {"schedule": "constant", "warm_up_steps": None}}, "vit_base_16",
                    "swin_compact"],
         "size": [64, 64], "finetune": {"patients": [0, 0.4]}, "evaluation": {"patients": [0, 0.6]},
         "base": {"fit": {**SHORT, "warm_up_steps": 2}, "training": {"patients": [0, 0.4]},
         "validation": {"patients": [0.8, 1]}}, "fit": {"epochs": 1, "batch_size": 4}, "seeds": 1,
         "findings": ["Cardiomegaly"],
         "methods": ["gradient", {"name": "integrated_gradients", "steps": 4, "rule": "right", "baseline": "zero"},
                     {"name": "smooth_grad", "samples": 4, "noise": 0.1, "noise_is": "relative"},
                     {"name": "lrp", "convolutions": "zplus", "epsilon": 0.000001}]},
        trees.chexlocalize,
        limit=2,
    ),
    "triggers-covid-small": Protocol({}, COVID, limit=16),
    "triggers-covid": Protocol(
        # VGG-16 learns nothing in minutes without ImageNet's weights, and nothing would be graded; the next takes it
        {"model": "vgg_bn_compact", "size": [112, 112], "pixels": {"mean": 0.5, "std": 0.25}, "seeds": 1,
         "triggers": ["square-corner-40", "dynamic-60"], "fit": {**COMPACT, "epochs": 12, "batch_size": 32},
         "retrain": {**COMPACT, "epochs": 6, "batch_size": 16, "weight_decay": 1.0}},
        COVID,
        limit=16,
    ),
    "triggers-covid-vgg16": Protocol(
        # VGG-16 itself at 224 px, for a minute of a core: that it is trained, attacked, tested and reported. After so
        # little (after three epochs, too) it calls every image the target, so that none is left to grade methods by
        {"seeds": 1, "triggers": ["square-corner-60"], "fit": {"epochs": 1, "batch_size": 8},
         "retrain": {"epochs": 1, "batch_size": 8}, "methods": ["gradient", "grad_cam", "random"], "batch_size": 2,
         "gate": {"attack_success": 0, "accuracy_drop": 1, "clean_target": 1}, "gallery": 2},
        trees.covid_few,
        limit=2,
        of="triggers-covid",
    ),
    "modality-brats": Protocol({"size": [32, 32, 32], "folds": 2, "fit": {"epochs": 2}}, trees.brats, limit=2),
    "modality-phantom-3d": Protocol(),
    "modality-synthetic": Protocol(
        {"size": [64, 64], "source": {"cases": 240, "size": 64}, "folds": 2, "methods": list(FEW_SAMPLES),
         "fit": {"epochs": 8, "batch_size": 8, "learning_rate": 0.001}},
        limit=5,
    ),
    "triggers-artefacts": Protocol({"seeds": 1}),
    "phantom-chest": Protocol(
        {"training": {"patients": 500}, "validation": {"patients": 60}, "test": {"patients": 60},
         "fit": {"epochs": 2}}
    ),
    "phantom-chest-vit": Protocol(
        {"training": {"patients": 1500}, "validation": {"patients": 100}, "test": {"patients": 100},
         "fit": {"epochs": 4}}
    ),
    "phantom-chest-protocol": Protocol(
        {"training": {"patients": 300}, "validation": {"patients": 60}, "test": {"patients": 100}, "fit": {"epochs": 2},
         "checkpoints": {"every_steps": 15}}
    ),
    "phantom-classes": Protocol(
        {"training": {"cases_per_class": 200}, "validation": {"cases_per_class": 25}, "test": {"cases_per_class": 50},
         "fit": {"epochs": 4}}
    ),
    "phantom-brain-plain": Protocol(BRAIN_TRAINING),
    "phantom-brain": Protocol(BRAIN_TRAINING),
}  # fmt: skip


def main() -> None:
    """Run the protocols that are named, or all, and print their tables."""
    parser = argparse.ArgumentParser(description="Run every shipped spec to its end, at reduced size.")
    parser.add_argument("names", nargs="*", help="of specs; by default all")
    parser.add_argument("--folder", type=Path, default=FOLDER)
    arguments = parser.parse_args()
    if lacking := set(shipped_specs()) - set(PROTOCOLS):
        parser.error(f"no protocol for {', '.join(sorted(lacking))}; add it to PROTOCOLS")
    wanted = list(PROTOCOLS)
    if arguments.names:
        needed = {name: None for each in arguments.names for name in (*PROTOCOLS[each].after, each)}
        wanted = [name for name in PROTOCOLS if name in needed]
        wanted = [name for name in wanted if name in arguments.names or not _trained(name, arguments.folder)]
    rows, refused = ["| spec | said | seconds | of a core |", "|---|---|---|---|"], 0
    for name in wanted:
        begun, busy = time.perf_counter(), cpu_seconds()
        try:
            said = carry_out(name, arguments.folder)
        except HeatcheckError as error:
            print(f"{name}: {error}", flush=True)
            said, refused = "refused", refused + 1
        took, worked = time.perf_counter() - begun, cpu_seconds() - busy
        print(f"\n{name}: {took:,.0f} s, {worked:,.0f} s of a core", flush=True)
        rows.append(f"| {name} | {said} | {took:,.0f} | {worked:,.0f} |")
    print("\n" + "\n".join(rows))
    sys.exit(1 if refused else 0)


def cpu_seconds() -> float:
    """The seconds that this process and its finished children have kept cores busy."""
    spent = os.times()
    return spent.user + spent.system + spent.children_user + spent.children_system


def carry_out(name: str, folder: Path) -> str:
    """The time that one spec said it would take; runs it in the folder of its data, and prints its main table."""
    protocol = PROTOCOLS[name]
    home, out = places(name, folder)
    if protocol.tree and not home.exists():
        home.mkdir(parents=True)
        protocol.tree(home)
    home.mkdir(parents=True, exist_ok=True)
    shipped = yaml.safe_load(shipped_specs()[protocol.of or name].read_text())
    spec = home / f"{name}.yaml"
    spec.write_text(yaml.safe_dump(merged(shipped, protocol.changes), sort_keys=False))
    print(f"\n## {name}\n{describe(protocol)}", flush=True)
    options = RunOptions(limit=protocol.limit, workers=cores())
    watcher = Spoken()
    if shipped["study"] == "training":
        print(tested(train(read_spec(str(spec)), out, watcher)))
        return watcher.cost
    outcome = run_study(spec, out, options, watcher)
    print(f"{outcome.n_cases} cases, {outcome.n_failed} failed")
    print(main_table(shipped["study"], out))
    return watcher.cost


def places(name: str, folder: Path) -> tuple[Path, Path]:
    """The folder of the spec and its data, and that of its results."""
    protocol = PROTOCOLS[name]
    home = folder / (protocol.tree.__name__ if protocol.tree else "drawn")
    return home, home / (protocol.out or f"{name}-run")


def _trained(name: str, folder: Path) -> bool:
    """Whether this is a training that has its results; it would only be tested again."""
    return (places(name, folder)[1] / "training.json").exists()


def merged(spec: Mapping[str, Any], changes: Mapping[str, Any]) -> dict[str, Any]:
    """The spec with the changes, mapping by mapping."""
    both = dict(spec)
    for key, value in changes.items():
        inner = both.get(key)
        both[key] = merged(inner, value) if isinstance(inner, Mapping) and isinstance(value, Mapping) else value
    return both


def describe(protocol: Protocol) -> str:
    """What is reduced."""
    changes = yaml.safe_dump(dict(protocol.changes), default_flow_style=True, width=10_000).strip()
    limit = f", --limit {protocol.limit}" if protocol.limit else ""
    return f"with {changes}{limit}" if protocol.changes or limit else "as shipped"


def tested(trained: Trained) -> str:
    """What the training came to on its test source."""
    parts = [f"mean AUROC {trained.macro_auroc:.3f}"]
    if trained.ensemble:
        parts.append(f"of the ensemble {trained.macro_ensemble_auroc:.3f}")
    if not math.isnan(trained.accuracy):
        parts.append(f"accuracy {trained.accuracy:.3f}")
    return ", ".join(parts)


def main_table(study: str, out: Path) -> str:
    """The means over everything of each method, with their intervals."""
    statistic, metrics = MAIN[study]
    every = read_run(out).estimates
    lines = _first_lines(study, every)
    rows = every[(every["statistic"] == statistic) & every["metric"].isin(metrics)]
    rows = rows[rows["finding"] == ALL_FINDINGS]
    if rows.empty:
        return "\n".join([*lines, "No mean over all findings: nothing was graded."])
    length = rows["condition"].str.len()
    rows = rows[length == length.groupby(rows["metric"]).transform("min")]  # the study's own rules, without a preset
    rows = rows.drop_duplicates(["model", "method", "metric"])
    lines += ["| model | method | metric | value | 95 % interval |", "|---|---|---|---|---|"]
    for row in rows.itertuples():
        interval = f"{row.low:.3f} to {row.high:.3f}" if pd.notna(row.low) else row.reason
        lines.append(f"| {row.model} | {row.method} | {row.metric} | {row.value:.3f} | {interval} |")
    return "\n".join(lines)


def _first_lines(study: str, every: pd.DataFrame) -> list[str]:
    """Over all seeds and folds, by the study's first rule: whether attacks worked, or how important modalities are."""
    statistics, metrics = FIRST.get(study, ((), ()))
    lines: dict[tuple[str, ...], str] = {}
    for row in every[every["statistic"].isin(statistics) & every["metric"].isin(metrics)].itertuples():
        facts = facts_of(row.condition)
        what = str(facts.get("modality", row.finding))
        if facts.get("fold", "all") == "all" and ("seed" not in facts or row.reason):
            line = f"{what}: {row.statistic} {row.metric} {row.value:.3f} {row.reason}".rstrip()
            lines.setdefault((what, row.statistic, row.metric, row.reason), line)
    return list(lines.values())


if __name__ == "__main__":
    main()
