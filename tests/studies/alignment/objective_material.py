"""A network of three layers without kinks, images with masks of two findings, and the loss written out in one graph."""

import math
from contextlib import nullcontext

import torch
from torch import nn
from torch.nn import functional

from heatcheck.methods import build_method
from heatcheck.models import NetworkClassifier, Preprocessing, explained
from heatcheck.studies.alignment.objective import AlignmentObjective
from heatcheck.training.objective import Means

SETTINGS = {"integrated_gradients": {"steps": 3, "rule": "right"}, "smooth_grad": {"samples": 3}}
TRAINED = ("gradient", "integrated_gradients", "smooth_grad", "lrp", "grad_cam")
SIDE = 6


def method_of(name):
    return build_method(name, SETTINGS.get(name, {}))


def three_layers(activation=nn.Softplus, answers=3, double=True):
    """Findings that all rise with the last features, or ReLU would leave nothing of Grad-CAM."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        module = nn.Sequential(
            nn.Conv2d(1, 3, 3, padding=1), activation(), nn.Conv2d(3, 4, 3, padding=1), activation(),
            nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, answers),
        )  # fmt: skip
    with torch.no_grad():
        module[-1].weight.abs_()
    return (module.double() if double else module).eval()


def classifier_of(module=None, **contract):
    outputs = ("a", "b", "c")
    wanted = Preprocessing(outputs=outputs, size=(SIDE, SIDE), mean=(0.0,), std=(1.0,), **contract)
    return NetworkClassifier("three layers", module or three_layers(), wanted)


def examples(count=6, dtype=torch.float64, seed=1):
    """Images, labels of two findings of which some are unknown or uncertain, masks of most positives, and numbers."""
    chance = torch.Generator().manual_seed(seed)
    images = torch.rand(count, 1, SIDE, SIDE, generator=chance).to(dtype)
    labels = torch.tensor([[1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [1.0, math.nan], [-1.0, 1.0], [1.0, 0.0]]).to(dtype)
    masks = (torch.rand(count, 2, SIDE, SIDE, generator=chance) > 0.6).to(dtype)
    marked = torch.tensor([[1, 1], [1, 1], [1, 1], [1, 1], [1, 0], [0, 0]]).bool()
    return images, labels[torch.arange(count) % 6], masks, marked[torch.arange(count) % 6], torch.arange(count) + 100


def means_of(module, step=0, autocast=nullcontext):
    return Means(module, step, lambda loss: loss.backward(), autocast)


def learned(objective, batch, step=0, autocast=nullcontext):
    """The loss, and the gradient that it leaves with each weight."""
    module = objective.classifier.module
    module.zero_grad()
    loss = objective.learn(means_of(module, step, autocast), batch)
    return loss, {name: torch.zeros_like(w) if w.grad is None else w.grad for name, w in module.named_parameters()}


def written_out(objective: AlignmentObjective, batch, step=0):
    """The loss of the study as its definition reads, with one graph and one map at a time; a judge of its own."""
    images, labels, masks, marked, numbers = batch
    logits = objective.classifier.logits(images)[:, list(objective.targets)]
    known = (labels == 0) | (labels == 1)
    loss = functional.binary_cross_entropy_with_logits(logits[known], labels[known].to(logits))
    for finding, target in enumerate(objective.targets):
        each = []
        for case in range(len(images)):
            if labels[case, finding] == 1 and marked[case, finding]:
                seed = objective._seed(int(numbers[case]), step)
                made = objective.method(
                    explained(objective.classifier), images[case][None], torch.tensor([[target]]), [seed],
                    create_graph=True,
                ).values[0, 0]  # fmt: skip
                shown = made.relu().mean(0)
                shown = (shown - shown.min()) / (shown.max() - shown.min() + 1e-6)
                wanted = masks[case, finding] if objective.direction == "align" else 1 - masks[case, finding]
                each.append(((shown - wanted) ** 2).mean())
        if each:
            loss = loss + objective.alpha * sum(each) / len(each)
    return loss
