"""What each method's maps of ten findings cost, in forward passes of the same model, beside Captum's.

    python benchmarks/methods.py [--json FILE] [--model NAME] [--without-peers] [METHOD …]

One image of 320 × 320 pixels, DenseNet-121, ten findings. Every time is divided by that of forward passes measured just
before and after it, because machines are noisy. Captum explains one finding at a time: where ten would take minutes,
one is measured and counted ten times. Ends with code 1 when a budget is missed.
"""

import argparse
import json
import statistics
import sys
import time
import warnings
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

import torch
from torch import nn

from heatcheck.methods import METHODS, build_method
from heatcheck.models import MODELS, NetworkClassifier, Preprocessing

FINDINGS = 10
SAMPLES = 64  # of lime, kernel_shap and the rest: their budget is per sample
SETTINGS: dict[str, dict[str, Any]] = {
    "lime": {"samples": SAMPLES},
    "kernel_shap": {"samples": SAMPLES},
    "shapley_value_sampling": {"permutations": 1},
}
BUDGETS = {  # in forward passes
    **dict.fromkeys(("grad_cam", "grad_cam_plus_plus", "eigen_cam"), 1.15),
    **dict.fromkeys(("gradient", "input_x_gradient"), 11.0),
    **dict.fromkeys(("guided_backprop", "deconvolution"), 14.0),
    "guided_grad_cam": 15.0,
    "lrp": 22.0,
    "deep_lift": 28.0,
    **dict.fromkeys(("integrated_gradients", "smooth_grad", "gradient_shap"), 220.0),
    **dict.fromkeys(("occlusion", "feature_ablation", "feature_permutation"), 55.0),
    **dict.fromkeys(("lime", "kernel_shap", "shapley_value_sampling"), 0.9 * SAMPLES),
    **dict.fromkeys(("random", "center_prior", "edge", "location_prior"), 0.1),  # "nothing", and the clock's own noise
}


@dataclass(frozen=True)
class Row:
    """One method's cost beside its budget and its peer's."""

    method: str
    ours: float
    spread: tuple[float, float]
    budget: float
    captum: float | None
    how: str = ""  # what Captum was asked for, or why it has no figure

    @property
    def within(self) -> bool:
        """Whether the budget is kept."""
        return self.ours <= self.budget


class Clock:
    """Measures calls in forward passes of one model."""

    def __init__(self, module: nn.Module, image: torch.Tensor) -> None:
        self.module, self.image = module, image
        for _ in range(3):
            self.forward()

    def forward(self) -> float:
        """The seconds of one forward pass without a graph."""
        start = time.perf_counter()
        with torch.no_grad():
            self.module(self.image)
        return time.perf_counter() - start

    def cost(self, call: Callable[[], object], rounds: int) -> list[float]:
        """The call's time in forward passes, round by round."""
        if rounds > 1:
            call()  # what is found once and remembered is not counted; of a long call it is nothing
        costs = []
        for _ in range(rounds):
            around = [self.forward() for _ in range(3)]
            start = time.perf_counter()
            call()
            seconds = time.perf_counter() - start
            around += [self.forward() for _ in range(3)]
            costs.append(seconds / statistics.median(around))
        return sorted(costs)


def prepared(name: str, classifier: NetworkClassifier, image: torch.Tensor) -> Callable[[], object]:
    """A call that makes the ten maps."""
    method: Any = build_method(name, SETTINGS.get(name, {}))
    facts = METHODS[name]
    if facts.wants_priors:
        method = replace(method, priors=torch.rand(1, FINDINGS, 64, 64))
    if facts.wants_donors:
        method = replace(method, donors=(torch.randn_like(image),))
    targets = torch.arange(FINDINGS)[None]
    return lambda: method(classifier, image, targets, [0])


def peers(module: nn.Module, image: torch.Tensor) -> dict[str, tuple[Callable[[int], object], bool]]:
    """Captum's call for one finding, and whether it is measured for one finding only."""
    from captum import attr

    leaf = image.clone().requires_grad_()
    zero = torch.zeros_like(image)
    cells = (torch.arange(320) // 40)[:, None] * 8 + torch.arange(320) // 40
    layer = module.get_submodule("class_layers.relu")
    plain = {"perturbations_per_eval": 4}
    noisy = attr.NoiseTunnel(attr.Saliency(module))
    return {
        "grad_cam": (lambda t: attr.LayerGradCam(module, layer).attribute(image, t), False),
        "gradient": (lambda t: attr.Saliency(module).attribute(leaf, t, abs=False), False),
        "input_x_gradient": (lambda t: attr.InputXGradient(module).attribute(leaf, t), False),
        "guided_backprop": (lambda t: attr.GuidedBackprop(module).attribute(leaf, t), False),
        "deconvolution": (lambda t: attr.Deconvolution(module).attribute(leaf, t), False),
        "guided_grad_cam": (lambda t: attr.GuidedGradCam(module, layer).attribute(leaf, t), False),
        "lrp": (lambda t: attr.LRP(module).attribute(leaf, t), False),
        "deep_lift": (lambda t: attr.DeepLift(module).attribute(leaf, zero, t), False),
        "integrated_gradients": (
            lambda t: attr.IntegratedGradients(module).attribute(leaf, zero, t, n_steps=20, internal_batch_size=4),
            True,
        ),
        "smooth_grad": (lambda t: noisy.attribute(leaf, nt_samples=20, nt_samples_batch_size=4, target=t), True),
        "gradient_shap": (lambda t: attr.GradientShap(module).attribute(leaf, zero, n_samples=20, target=t), True),
        "occlusion": (
            lambda t: attr.Occlusion(module).attribute(image, (1, 40, 40), strides=(1, 40, 40), target=t, **plain),
            True,
        ),
        "feature_ablation": (
            lambda t: attr.FeatureAblation(module).attribute(image, target=t, feature_mask=cells[None, None], **plain),
            True,
        ),
        "shapley_value_sampling": (
            lambda t: attr.ShapleyValueSampling(module).attribute(
                image, target=t, feature_mask=cells[None, None], n_samples=1, **plain
            ),
            True,
        ),
        "kernel_shap": (
            lambda t: attr.KernelShap(module).attribute(
                image, target=t, feature_mask=cells[None, None], n_samples=SAMPLES, **plain
            ),
            True,
        ),
        "lime": (
            lambda t: attr.Lime(module).attribute(
                image, target=t, feature_mask=cells[None, None], n_samples=SAMPLES, **plain
            ),
            True,
        ),
    }


def peer_cost(clock: Clock, call: Callable[[int], object], once: bool) -> tuple[float | None, str]:
    """Captum's cost for ten findings, or why there is none."""
    try:
        if once:
            return FINDINGS * clock.cost(lambda: call(3), 1)[0], "one finding × 10"
        return clock.cost(lambda: [call(target) for target in range(FINDINGS)], 1)[0], ""
    except Exception as error:  # noqa: BLE001 - that it fails is the finding
        return None, f"fails: {type(error).__name__}: {' '.join(str(error).split())[:80]}"


def without_writing_in_place(module: nn.Module) -> nn.Module:
    """The same network as Captum wants it: its hooks do not stand ReLUs in place. Ours takes it as it is."""
    for part in module.modules():
        if isinstance(part, nn.ReLU):
            part.inplace = False
    return module


def measured(names: list[str], model: str, *, with_peers: bool) -> list[Row]:
    """One row a method, printed as soon as it is known."""
    outputs = tuple(f"finding {n}" for n in range(FINDINGS))
    contract = Preprocessing(outputs=outputs, size=(320, 320), mean=(0.0,), std=(1.0,))
    torch.manual_seed(0)
    module = MODELS[model].build(1, FINDINGS, (320, 320)).eval()
    image = torch.randn(1, 1, 320, 320)
    classifier = NetworkClassifier(model, module, contract)
    clock = Clock(module, image)
    ours = {}
    for name in names:
        dearness = BUDGETS.get(name, 0)
        rounds = 31 if dearness < 2 else 7 if dearness < 30 else 3 if dearness < 100 else 1
        ours[name] = clock.cost(prepared(name, classifier, image), rounds)
        print(f"  {name}: {statistics.median(ours[name]):.2f}", file=sys.stderr, flush=True)
    known = peers(without_writing_in_place(module), image) if with_peers else {}
    rows = []
    for name in names:
        theirs, how = peer_cost(clock, *known[name]) if name in known else (None, "")
        costs = ours[name]
        budget = BUDGETS.get(name, float("inf"))
        rows.append(Row(name, statistics.median(costs), (costs[0], costs[-1]), budget, theirs, how))
        print(line(rows[-1]), flush=True)
    return rows


def line(row: Row) -> str:
    """The row as a line of the table."""
    theirs = f"{row.captum:9.1f} {row.captum / max(row.ours, 1e-3):7.1f}×" if row.captum else f"{'–':>9} {'–':>8}"
    mark = "" if row.within else "  OVER BUDGET"
    low, high = row.spread
    return f"{row.method:<24}{row.ours:8.2f} ({low:.2f} to {high:.2f}) of {row.budget:6.2f} {theirs} {row.how}{mark}"


def main() -> int:
    """Print the table; 1 when a budget is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("methods", nargs="*")
    parser.add_argument("--json", type=Path)
    parser.add_argument("--model", default="densenet121")
    parser.add_argument("--without-peers", action="store_true")
    arguments = parser.parse_args()
    names = arguments.methods or [name for name in METHODS if METHODS[name].family != "attention"]
    warnings.simplefilter("ignore")
    print(f"Maps of {FINDINGS} findings, {arguments.model} at 320 px, {torch.get_num_threads()} threads.")
    print("Forward passes, median (lowest to highest) of the budget; Captum's; how many times ours that is.")
    rows = measured(names, arguments.model, with_peers=not arguments.without_peers)
    if arguments.json:
        arguments.json.write_text(json.dumps([asdict(row) for row in rows], indent=1) + "\n")
    return 0 if all(row.within for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
