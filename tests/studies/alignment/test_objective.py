import math
from dataclasses import replace

import pytest
import torch
from tests.studies.alignment.objective_material import (
    TRAINED,
    classifier_of,
    examples,
    learned,
    means_of,
    method_of,
    three_layers,
    written_out,
)
from torch import nn

from heatcheck.core.errors import InputError, ModelError, SpecError
from heatcheck.core.geometry import MapGrid
from heatcheck.methods import build_method
from heatcheck.models import MODELS, NetworkClassifier, Preprocessing
from heatcheck.studies.alignment.objective import AlignmentObjective, map_grid
from heatcheck.training import Machine
from heatcheck.training.objective import mean_loss

DIRECTIONS = ("align", "misalign")


def objective_of(name="gradient", direction="align", **changes):
    return AlignmentObjective(classifier_of(), (2, 0), method=method_of(name), direction=direction, seed=9, **changes)


class Refusing:
    """A method that must not be asked."""

    def __call__(self, *_, **__):
        pytest.fail("a map was made")


def close(one, other, **tolerance):
    assert one.keys() == other.keys()
    for name, value in one.items():
        torch.testing.assert_close(value, other[name], **tolerance)


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", TRAINED)
def test_gradient_of_the_loss_agrees_with_finite_differences_of_its_definition(name, direction):
    """Each weight tensor is moved along a random direction: the slope must be what the gradient says."""
    objective, batch = objective_of(name, direction, alpha=0.7), examples()
    loss, slopes = learned(objective, batch)
    assert loss == pytest.approx(written_out(objective, batch).item(), rel=1e-9)
    chance = torch.Generator().manual_seed(4)
    for key, weight in objective.classifier.module.named_parameters():
        way = torch.randn(weight.shape, generator=chance, dtype=weight.dtype)
        values = []
        for sign in (1, -2, 1):  # forth, back, and home again
            with torch.no_grad():
                weight.add_(way, alpha=sign * 1e-6)
            values.append(written_out(objective, batch).item())
        expected = (values[0] - values[1]) / 2e-6
        assert (slopes[key] * way).sum().item() == pytest.approx(expected, rel=1e-4, abs=1e-8), key


@pytest.mark.parametrize("direction", DIRECTIONS)
@pytest.mark.parametrize("name", TRAINED)
def test_two_passes_give_the_gradient_of_one_graph(name, direction):
    objective, batch = objective_of(name, direction), examples()
    module = objective.classifier.module
    _, slopes = learned(objective, batch)
    whole = torch.autograd.grad(written_out(objective, batch), list(module.parameters()))
    close(slopes, dict(zip(slopes, whole, strict=True)), rtol=1e-7, atol=1e-10)
    without, _ = learned(replace(objective, alpha=0), batch)
    assert without < objective.learn(means_of(module), batch)


@pytest.mark.parametrize("at_once", [1, 2, 4, 5])
@pytest.mark.parametrize("name", TRAINED)
def test_passes_of_a_few_images_add_up_to_the_batch_at_once(name, at_once):
    objective, batch = objective_of(name), examples()
    loss, slopes = learned(objective, batch)
    parts, summed = learned(replace(objective, at_once=at_once), batch)
    assert parts == pytest.approx(loss, rel=1e-9)
    close(summed, slopes, rtol=1e-7, atol=1e-10)


def test_each_map_is_compared_with_its_own_mask():
    """Were maps compared with all masks of the batch, an exchange of two masks would change nothing."""
    images, labels, masks, marked, numbers = examples()
    labels, marked = torch.ones_like(labels), torch.ones_like(marked)
    batch = (images, labels, masks, marked, numbers)
    objective = objective_of()
    together, _ = learned(objective, batch)
    alone = [learned(objective, [part[place : place + 1] for part in batch])[0] for place in range(len(images))]
    assert together == pytest.approx(sum(alone) / len(alone), rel=1e-9)
    exchanged, _ = learned(objective, (images, labels, masks.roll(1, 0), marked, numbers))
    assert abs(exchanged - together) > 1e-3


def test_only_positives_with_a_mask_go_through_the_map(monkeypatch):
    asked = []
    gradient = type(method_of("gradient"))
    points = gradient.points

    def watched(self, images, seeds):
        asked.append(len(images))
        return points(self, images, seeds)

    monkeypatch.setattr(gradient, "points", watched)
    images, labels, masks, marked, numbers = examples()
    learned(objective_of(), (images, labels, masks, marked, numbers))
    assert set(asked) == {5}  # of the first finding 3, of the second 2
    asked.clear()
    learned(objective_of(), (images, labels, masks, torch.zeros_like(marked), numbers))
    learned(objective_of(), (images, torch.zeros_like(labels), masks, marked, numbers))
    assert not asked


@pytest.mark.parametrize("changes", [{"alpha": 0.0, "method": Refusing()}, {"method": None}])
def test_control_makes_no_map_and_has_the_loss_of_the_labels(changes):
    objective, batch = replace(objective_of(), **changes), examples()
    loss, slopes = learned(objective, batch)
    logits = objective.classifier.logits(batch[0])[:, [2, 0]]
    known = (batch[1] == 0) | (batch[1] == 1)
    expected = nn.functional.binary_cross_entropy_with_logits(logits[known], batch[1][known])
    assert loss == pytest.approx(expected.item())
    whole = torch.autograd.grad(expected, list(objective.classifier.module.parameters()))
    close(slopes, dict(zip(slopes, whole, strict=True)))
    with torch.no_grad():
        judged = objective.judge(means_of(objective.classifier.module), batch)
    assert mean_loss([judged]) == pytest.approx(loss)
    assert len(judged.terms) == 1


def test_batch_of_which_no_label_is_known_teaches_nothing():
    images, labels, masks, marked, numbers = examples()
    loss, slopes = learned(objective_of(), (images, torch.full_like(labels, math.nan), masks, marked, numbers))
    assert loss == 0
    assert all(not slope.any() for slope in slopes.values())


@pytest.mark.parametrize("name", TRAINED)
@torch.no_grad()
def test_judged_loss_is_the_learned_one_however_the_data_are_cut(name):
    objective, batch = objective_of(name, alpha=0.5), examples()
    module = objective.classifier.module
    with torch.enable_grad():
        expected = written_out(objective, batch, step="judged").item()
    for cuts, at_once in (([6], None), ([2, 4], 3), ([1, 5], 2)):
        parts = zip(*(torch.split(part, cuts) for part in batch), strict=True)
        judged = [replace(objective, at_once=at_once).judge(means_of(module), part) for part in parts]
        assert mean_loss(judged) == pytest.approx(expected, rel=1e-9)
        answers = torch.cat([one.answers for one in judged])
        torch.testing.assert_close(answers, objective.classifier.logits(batch[0])[:, [2, 0]])
        assert not any(one.answers.requires_grad for one in judged)
    assert all(weight.grad is None for weight in module.parameters())


def test_noise_is_new_in_every_step_and_the_same_at_every_check():
    objective, batch = objective_of("smooth_grad"), examples()
    losses = [learned(objective, batch, step)[0] for step in (3, 3, 4)]
    assert losses[0] == losses[1] != losses[2]
    assert learned(replace(objective, seed=10), batch, 3)[0] != losses[0]
    module = objective.classifier.module
    with torch.no_grad():
        checks = [mean_loss([objective.judge(means_of(module, step), batch)]) for step in (3, 4)]
    assert checks[0] == checks[1]


def test_network_stays_in_evaluation_and_its_statistics_stay():
    module = three_layers()
    module[1] = nn.Sequential(nn.BatchNorm2d(3), nn.Softplus(), nn.Dropout(0.5)).double()
    objective = replace(objective_of(), classifier=classifier_of(module.train()))
    statistics = module[1][0].running_mean.clone()
    losses = {learned(objective, examples())[0] for _ in range(3)}
    assert len(losses) == 1
    assert not module.training
    assert torch.equal(module[1][0].running_mean, statistics)


def test_three_answers_a_finding_are_explained_by_the_positive_and_judged_by_the_odds():
    classifier = classifier_of(three_layers(answers=9), head="three_class")
    objective, batch = replace(objective_of(), classifier=classifier), examples()
    loss, slopes = learned(objective, batch)
    assert loss == pytest.approx(written_out(objective, batch).item(), rel=1e-9)
    assert slopes["6.weight"][[1, 7]].abs().min() > 0  # the positive answers of the first and the last finding


def test_softplus_takes_the_place_of_relu_while_learning_only():
    sharp, batch = replace(objective_of(), classifier=classifier_of(three_layers(nn.ReLU))), examples()
    module = sharp.classifier.module
    parts, before = list(module), learned(sharp, batch)[0]
    soft = replace(sharp, softplus=2.0)
    rounded = learned(soft, batch)[0]
    twin = replace(sharp, classifier=classifier_of(three_layers(lambda: nn.Softplus(2.0))))
    assert rounded == pytest.approx(learned(twin, batch)[0], rel=1e-9)
    assert rounded != before
    assert all(here is there for here, there in zip(module, parts, strict=True))
    with torch.no_grad():
        assert mean_loss([soft.judge(means_of(module), batch)]) == mean_loss([sharp.judge(means_of(module), batch)])
    with pytest.raises(ValueError, match="masks"):
        soft.learn(means_of(module), [*batch[:2], batch[2][..., 1:], *batch[3:]])
    assert all(here is there for here, there in zip(module, parts, strict=True))
    assert learned(replace(objective_of(), softplus=2.0), batch)[0] == learned(objective_of(), batch)[0]


def test_softplus_leaves_the_feature_map_of_grad_cam_where_it_was():
    batch, known = examples(), classifier_of(three_layers(nn.ReLU))
    learned(replace(objective_of("grad_cam"), classifier=known), batch)  # the feature map is now remembered
    fresh = classifier_of(three_layers(nn.ReLU))
    losses = [
        learned(replace(objective_of("grad_cam"), classifier=classifier, softplus=3.0), batch)[0]
        for classifier in (known, fresh)
    ]
    assert losses[0] == losses[1]


@pytest.mark.parametrize("model", ["densenet_compact", "vit_compact"])
@pytest.mark.parametrize("name", TRAINED)
def test_half_precision_gives_nearly_the_same_gradient(name, model):
    with torch.random.fork_rng():
        torch.manual_seed(2)
        module = MODELS[model].build(1, 2, (32, 32)).eval()
    *_, head = (part for part in module.modules() if isinstance(part, nn.Linear))
    with torch.no_grad():
        head.weight.abs_()
    contract = Preprocessing(outputs=("a", "b"), size=(32, 32), mean=(0.0,), std=(1.0,))
    objective = AlignmentObjective(NetworkClassifier(model, module, contract), (1,), method_of(name), softplus=3.0)
    grid = map_grid(objective.method, objective.classifier).shape
    chance = torch.Generator().manual_seed(3)
    masks = torch.zeros(2, 1, *grid)
    masks[..., : grid[-1] // 2] = 1
    batch = (
        torch.rand(2, 1, 32, 32, generator=chance),
        torch.ones(2, 1),
        masks,
        torch.ones(2, 1).bool(),
        torch.arange(2),
    )
    exact, slopes = learned(objective, batch)
    coarse, rough = learned(objective, batch, autocast=lambda: torch.autocast("cpu", torch.bfloat16))
    assert coarse == pytest.approx(exact, rel=0.1)
    one, other = (torch.cat([slope.flatten() for slope in each.values()]) for each in (slopes, rough))
    assert other.dtype == torch.float32
    assert nn.functional.cosine_similarity(one, other, dim=0) > 0.8
    assert [slope.any() for slope in slopes.values()] == [slope.any() for slope in rough.values()]


def test_masks_must_be_on_the_grid_of_the_maps():
    fine = map_grid(build_method("integrated_gradients", {}), classifier_of(three_layers(double=False)))
    assert fine == MapGrid((6, 6))
    module = MODELS["densenet_compact"].build(1, 3, (64, 64)).eval()
    contract = Preprocessing(outputs=("a", "b", "c"), size=(64, 64), mean=(0.0,), std=(1.0,))
    classifier = NetworkClassifier("d", module, contract)
    grid = map_grid(build_method("grad_cam", {}), classifier).shape
    assert max(grid) < 64
    objective = AlignmentObjective(classifier, (0,), build_method("grad_cam", {}))
    batch = [
        torch.rand(1, 1, 64, 64),
        torch.ones(1, 1),
        torch.zeros(1, 1, 64, 64),
        torch.ones(1, 1).bool(),
        torch.ones(1),
    ]
    with pytest.raises(ValueError, match="of the same sizes"):
        objective.learn(means_of(module), batch)


def test_examples_and_networks_of_something_else_are_refused():
    objective, batch = objective_of(), examples()
    with pytest.raises(ValueError, match="a column for each of 2 findings, got"):
        objective.learn(means_of(objective.classifier.module), [batch[0], batch[1][:, :1], *batch[2:]])
    with pytest.raises(ValueError, match="must hold the module that is fitted"):
        objective.learn(means_of(three_layers()), batch)


@pytest.mark.parametrize(
    ("changes", "machine", "error", "message"),
    [
        ({}, Machine(precision="16-mixed"), InputError, "16-mixed scales the loss.*use bf16-mixed or 32-true"),
        ({}, Machine(devices=2), InputError, "use one device per network"),
        ({"method": build_method("grad_cam_plus_plus", {})}, Machine(), SpecError, "cannot be part of a loss"),
        ({"classifier": classifier_of(activation="softmax")}, Machine(), ModelError, "exclude each other"),
    ],
)
def test_what_cannot_be_learned_is_refused_before_it_begins(changes, machine, error, message):
    with pytest.raises(error, match=message):
        replace(objective_of(), **changes).check(machine)


@pytest.mark.parametrize("precision", ["32-true", "bf16-mixed"])
@pytest.mark.parametrize("name", TRAINED)
def test_other_machines_will_do(name, precision):
    objective_of(name).check(Machine(precision=precision))
    replace(objective_of(), method=None).check(Machine(precision=precision))
