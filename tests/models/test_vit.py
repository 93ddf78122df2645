import re
from pathlib import Path

import pytest
import torch
from tests.models.public_names import timm_vit

from heatcheck.core.errors import ModelError
from heatcheck.models import MODELS, ModelSettings, Preprocessing, load_classifier
from heatcheck.running.open_source import open_source


def test_logits_are_not_bounded():
    module = MODELS["vit_compact"].build(1, 2).eval()
    with torch.no_grad():
        module.head.bias += 5
        assert (module(torch.rand(1, 1, 64, 64)) > 1).all()


def test_second_derivatives_exist():
    """Fused attention has none on the CPU, and maps that are trained through need them."""
    for name in ("vit_compact", "swin_compact"):
        module = MODELS[name].build(1, 2).eval()
        image = torch.rand(1, 1, 64, 64, requires_grad=True)
        (gradient,) = torch.autograd.grad(module(image)[0, 0], image, create_graph=True)
        gradient.square().sum().backward()
        assert image.grad.isfinite().all()


def test_tokens_lie_on_the_grid_of_patches():
    module = MODELS["vit_compact"].build(1, 2, (64, 96)).eval()
    assert module.grid == (8, 12)
    with torch.no_grad():
        assert module.patch_embedding(torch.rand(1, 1, 64, 96)).shape == (1, 96, 96)
        assert module(torch.rand(1, 1, 64, 96)).shape == (1, 2)


def test_no_weight_is_left_unused():
    assert not [name for name in MODELS["vit_compact"].build(1, 2).state_dict() if "cross" in name]


def test_trained_and_untrained_network_are_the_same_architecture():
    assert MODELS["vit_compact"].make is MODELS["phantom_chest_vit"].make
    assert not MODELS["vit_compact"].weights


def test_the_trained_one_is_small_and_recognises_the_phantoms_findings():
    classifier = load_classifier(ModelSettings(name="phantom_chest_vit"))
    assert sum(weight.numel() * weight.element_size() for weight in classifier.module.parameters()) < 5e6
    films = open_source({"name": "phantom_chest", "patients": 40, "first": 4000000, "size": 160}, Path(), "test")
    keys = films.index()
    with torch.no_grad():
        logits = classifier.logits(classifier.prepare([films.load(key).image for key in keys]))
    effusion = logits[:, classifier.outputs.index("Pleural Effusion")]
    there = torch.tensor([key.labels["Pleural Effusion"] == 1 for key in keys])
    assert (effusion[there][:, None] > effusion[~there]).float().mean() > 0.85  # the AUROC, by its definition


def test_public_transformer_of_another_size_loads(tmp_path):
    generator = torch.Generator().manual_seed(1)
    shapes = timm_vit(2, 96, 4, 8, 8 * 8)
    weights = {f"module.{name}": torch.randn(shape, generator=generator) for name, shape in shapes.items()}
    torch.save({"model": weights}, tmp_path / "w.pth")
    contract = Preprocessing(outputs=("a", "b"), size=(96, 80), channels=3)
    settings = ModelSettings(name="vit_compact", weights=Path("w.pth"), contract=contract)
    assert load_classifier(settings, tmp_path).module.grid == (12, 10)
    odd = settings.model_copy(update={"contract": contract.model_copy(update={"size": (100, 80)})})
    with pytest.raises(ModelError, match=re.escape("multiples of 8 px, `size` is 100×80; set `size` to [96, 80]")):
        load_classifier(odd, tmp_path)
