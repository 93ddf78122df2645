"""Checkpoints of torchvision and timm: their names load, and our networks then compute what theirs do."""

import math
import re
from collections import OrderedDict

import pytest
import tests.models.public_forwards as forwards
import tests.models.public_names as names
import torch

from heatcheck.core.errors import ModelError
from heatcheck.models import MODELS
from heatcheck.models.renaming import fitted, renamed, unwrapped

FULL = {
    "densenet121": (names.torchvision_densenet((6, 12, 24, 16), 1000), 7_978_856),
    "densenet201": (names.torchvision_densenet((6, 12, 48, 32), 1000), 20_013_928),
    "resnet152": (names.torchvision_resnet((3, 8, 36, 3), 1000), 60_192_808),
    "vgg16": (names.torchvision_vgg16(1000), 138_357_544),
    "inception_v4": (names.timm_inception_v4(1000), 42_679_816),
    "vit_base_16": (names.timm_vit(1000, 768, 12, 16, 14 * 14), 86_567_656),
    "swin_tiny": (names.timm_swin(1000, 96, (2, 2, 6, 2), (3, 6, 12, 24), 7), 28_288_354),
    "swin_base": (names.timm_swin(1000, 128, (2, 2, 18, 2), (4, 8, 16, 32), 7), 87_768_224),
}
VGG_COMPACT = {
    name: shape
    for part in (
        names.layer("features.0", 16, 3, 3, 3),
        names.layer("features.3", 32, 16, 3, 3),
        names.layer("features.6", 64, 32, 3, 3),
        names.layer("features.8", 64, 64, 3, 3),
        names.layer("classifier.0", 128, 1024),
        names.layer("classifier.3", 128, 128),
        names.layer("classifier.6", 5, 128),
    )
    for name, shape in part.items()
}
VGG_BN_COMPACT = {
    name: shape
    for part in (
        names.layer("features.0", 16, 3, 3, 3),
        names.norm("features.1", 16),
        names.layer("features.4", 32, 16, 3, 3),
        names.norm("features.5", 32),
        names.layer("features.8", 64, 32, 3, 3),
        names.norm("features.9", 64),
        names.layer("features.12", 96, 64, 3, 3),
        names.norm("features.13", 96),
        names.layer("features.15", 96, 96, 3, 3),
        names.norm("features.16", 96),
        names.layer("classifier.0", 64, 4704),
        names.layer("classifier.3", 64, 64),
        names.layer("classifier.6", 5, 64),
    )
    for name, shape in part.items()
}
VGG_BN_POOLED = {**VGG_BN_COMPACT, "classifier.0.weight": (64, 96)}
SWIN_COMPACT = names.timm_swin(5, 32, (2, 2, 2), (2, 4, 8), 4)
VIT_COMPACT = names.timm_vit(5, 96, 4, 8, 64)
COMPACT = {
    "densenet_compact": (names.torchvision_densenet((4, 6, 10), 5, 24, 16, 3), forwards.densenet),
    "resnet_compact": (names.torchvision_resnet((2, 1, 1, 1), 5, 8), forwards.resnet),
    "vgg_compact": (VGG_COMPACT, lambda state, x: forwards.vgg(state, x, 4)),
    "vgg_bn_compact": (VGG_BN_COMPACT, lambda state, x: forwards.vgg(state, x, 7)),
    "vgg_bn_pooled": (VGG_BN_POOLED, lambda state, x: forwards.vgg(state, x, 1)),
    "inception_compact": (
        names.timm_inception_v4(5, (1, 1, 1), 8),
        lambda state, x: forwards.inception(state, x, (1, 1, 1), 1),
    ),
    "vit_compact": (VIT_COMPACT, lambda state, x: forwards.vit(state, x, 3)),
    "swin_compact": (SWIN_COMPACT, lambda state, x: forwards.swin(state, x, (2, 4, 8), 4)),
}


def random_state(shapes, seed=0):
    """Weights of a size that keeps every layer's signal, and norms that are not the identity."""
    generator = torch.Generator().manual_seed(seed)
    state = {}
    for name, shape in shapes.items():
        value = torch.randn(shape, generator=generator, dtype=torch.float64)
        if name.endswith("running_var"):
            value = value.abs() + 0.5
        elif name.endswith("num_batches_tracked"):
            value = torch.tensor(7)
        elif len(shape) == 1 and name.endswith("weight"):
            value = 1 + 0.2 * value
        elif name.endswith("weight"):
            value = value * 1.4 / math.prod(shape[1:]) ** 0.5
        state[name] = value
    return state


def network(name, channels=3, outputs=5, size=()):
    return MODELS[name].build(channels, outputs, size).double().eval()


def load(module, state, name):
    module.load_state_dict(fitted(state, module, MODELS[name].translate, name))
    return module


def images(*size, channels=3):
    return torch.rand(2, channels, *size, generator=torch.Generator().manual_seed(5), dtype=torch.float64)


def old_swin(state):
    """The names of timm before 0.9, with the buffers it kept then."""
    state = renamed(state, [(r"^head\.fc\.", "head.")])
    moved = {
        re.sub(r"^layers\.(\d+)\.downsample", lambda match: f"layers.{int(match[1]) - 1}.downsample", name): value
        for name, value in state.items()
    }
    buffers = {
        "layers.0.blocks.0.attn.relative_position_index": torch.zeros(16, 16, dtype=torch.long),
        "layers.0.blocks.1.attn_mask": torch.zeros(16, 16, 16),
    }
    return moved | buffers


@pytest.mark.parametrize("name", FULL)
def test_names_and_shapes_of_the_public_checkpoint_load(name):
    shapes, parameters = FULL[name]
    buffers = ("running_mean", "running_var", "num_batches_tracked")
    assert sum(math.prod(shape) for key, shape in shapes.items() if not key.endswith(buffers)) == parameters
    with torch.device("meta"):
        module = MODELS[name].build(3, 1000)
        state = {key: torch.empty(shape) for key, shape in shapes.items()}
        assert fitted(state, module, MODELS[name].translate, name).keys() == module.state_dict().keys()


@pytest.mark.parametrize("name", COMPACT)
def test_network_with_public_weights_computes_what_the_public_network_does(name):
    shapes, reference = COMPACT[name]
    state = random_state(shapes)
    with torch.no_grad():
        ours = load(network(name), state, name)(images(64, 64))
        theirs = reference(state, images(64, 64))
    assert theirs.std() > 1e-2
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("size", [(128, 128), (64, 128)], ids=["large", "wide"])
def test_swin_on_another_size_computes_what_the_public_network_does(size):
    state = random_state(SWIN_COMPACT)
    with torch.no_grad():
        ours = load(network("swin_compact", size=size), state, "swin_compact")(images(*size))
        theirs = forwards.swin(state, images(*size), (2, 4, 8), 4)
    torch.testing.assert_close(ours, theirs, rtol=1e-9, atol=1e-9)


def test_old_names_of_densenet_load_as_the_new_ones():
    sizes = ((4, 6, 10), 5, 24, 16, 3)
    new = random_state(names.torchvision_densenet(*sizes))
    old = dict(zip(names.torchvision_densenet(*sizes, old=True), new.values(), strict=True))
    assert "features.denseblock1.denselayer1.norm.1.weight" in old
    one, two = (load(network("densenet_compact"), state, "densenet_compact") for state in (new, old))
    assert torch.equal(one(images(64, 64)), two(images(64, 64)))


def test_old_names_of_swin_load_as_the_new_ones():
    state = random_state(SWIN_COMPACT)
    one, two = (load(network("swin_compact"), named, "swin_compact") for named in (state, old_swin(state)))
    assert torch.equal(one(images(64, 64)), two(images(64, 64)))


@pytest.mark.parametrize("name", [*COMPACT, "vgg3d_compact"])
def test_own_names_load_as_they_are(name):
    facts = MODELS[name]
    with torch.random.fork_rng():
        torch.manual_seed(3)
        first, second = network(name, facts.channels), network(name, facts.channels)
    load(second, first.state_dict(), name)
    volumes = images(*facts.size, channels=facts.channels)
    assert torch.equal(first(volumes), second(volumes))


def test_wrapped_densenet_with_a_sequential_head_loads():
    state = random_state(COMPACT["densenet_compact"][0])
    wrapped = renamed(state, [(r"^classifier\.", "classifier.0."), ("^", "module.densenet121.")])
    assert "module.densenet121.classifier.0.weight" in wrapped
    ours = load(network("densenet_compact"), wrapped, "densenet_compact")(images(64, 64))
    torch.testing.assert_close(ours, forwards.densenet(state, images(64, 64)), rtol=1e-9, atol=1e-9)


def test_name_beside_the_networks_prefix_is_reported_alone():
    state = renamed(random_state(VGG_COMPACT), [("^", "model.")])
    with pytest.raises(ModelError, match=re.escape("vgg_compact (unexpected loss.pos_weight);")):
        fitted(
            {**state, "loss.pos_weight": torch.ones(5)},
            network("vgg_compact"),
            MODELS["vgg_compact"].translate,
            "vgg_compact",
        )


def test_names_that_would_become_one_are_refused():
    state = random_state(VGG_COMPACT)
    twice = {**state, **renamed(state, [("^", "teacher.")])}
    with pytest.raises(ModelError, match=r"unexpected teacher\.features\.0\.weight"):
        load(network("vgg_compact"), twice, "vgg_compact")
    with pytest.raises(ModelError, match=r"unexpected model\.features\.0\.weight"):
        load(
            network("vgg_compact"),
            {**renamed(state, [("^", "model.")]), "classifier.6.bias": torch.zeros(5)},
            "vgg_compact",
        )
    densenet = random_state(COMPACT["densenet_compact"][0])
    with pytest.raises(ModelError, match=r"unexpected classifier\.0\.bias"):
        load(network("densenet_compact"), {**densenet, "classifier.0.bias": torch.zeros(5)}, "densenet_compact")


@pytest.mark.parametrize("name", COMPACT)
def test_counters_of_batches_are_kept_where_the_file_has_them(name):
    state = random_state(COMPACT[name][0])
    counters = {key: int(v) for key, v in load(network(name), state, name).state_dict().items() if "num_batches" in key}
    assert set(counters.values()) <= {7}
    bare = {key: value for key, value in state.items() if "num_batches" not in key}
    counters = {key: int(v) for key, v in load(network(name), bare, name).state_dict().items() if "num_batches" in key}
    assert set(counters.values()) <= {0}


@pytest.mark.parametrize("name", COMPACT)
def test_other_channels_and_outputs_are_refused_with_the_remedy(name):
    state = random_state(COMPACT[name][0])
    with pytest.raises(ModelError, match=r"take images of 3 channels, the contract says 1\); set `channels: 3`"):
        load(network(name, channels=1), state, name)
    with pytest.raises(ModelError, match=r"give 5 outputs, the contract names 2\); name all 5 under `outputs`"):
        load(network(name, outputs=2), state, name)


def test_weights_of_another_family_are_refused_with_some_names():
    with pytest.raises(ModelError) as caught:
        load(network("swin_compact"), random_state(VIT_COMPACT), "swin_compact")
    assert re.search(r"\(missing .* and \d+ more; unexpected .* and \d+ more\); name the model", str(caught.value))
    assert len(str(caught.value)) < 500


def test_positions_of_another_size_are_interpolated_without_the_class_token():
    state = random_state(VIT_COMPACT)
    rows, columns = torch.meshgrid(torch.arange(8.0), torch.arange(8.0), indexing="ij")
    state["pos_embed"] = torch.zeros(1, 65, 96, dtype=torch.float64)
    state["pos_embed"][0, 1:, 0], state["pos_embed"][0, 1:, 1] = rows.flatten(), columns.flatten()
    state["pos_embed"][0, 0] = 5
    module = network("vit_compact", size=(128, 64))
    fit = fitted(state, module, MODELS["vit_compact"].translate, "vit_compact")
    positions = fit["patch_embedding.position_embeddings"].reshape(16, 8, 96)
    inside = (torch.arange(16.0) + 0.5) / 2 - 0.5
    torch.testing.assert_close(positions[4:-4, 3, 0], inside[4:-4], rtol=0, atol=1e-4)
    torch.testing.assert_close(positions[4, :, 1], torch.arange(8.0), rtol=0, atol=1e-4)
    assert torch.equal(fit["cls_token"], state["cls_token"] + 5)


def test_square_table_for_as_many_patches_of_another_shape_is_interpolated():
    module = network("vit_compact", size=(32, 128))  # 4 × 16 patches, as many as 8 × 8
    fit = fitted(random_state(VIT_COMPACT), module, MODELS["vit_compact"].translate, "vit_compact")
    assert not torch.equal(
        fit["patch_embedding.position_embeddings"].double(), random_state(VIT_COMPACT)["pos_embed"][:, 1:]
    )


def test_own_positions_are_interpolated_too_unless_their_grid_is_unknown():
    translate = MODELS["vit_compact"].translate
    module = network("vit_compact", size=(96, 96))
    fit = fitted(network("vit_compact").state_dict(), module, translate, "vit_compact")
    assert fit["patch_embedding.position_embeddings"].shape == (1, 144, 96)
    with pytest.raises(ModelError, match="hold 128 positions of patches, which is not a square number; set `size`"):
        fitted(network("vit_compact", size=(64, 128)).state_dict(), module, translate, "vit_compact")


def test_swin_with_other_windows_is_refused():
    state = random_state(names.timm_swin(5, 32, (2, 2, 2), (2, 4, 8), 6))
    with pytest.raises(ModelError, match="trained with windows of 6 patches, the model has windows of 4; use a"):
        load(network("swin_compact"), state, "swin_compact")


def test_dicts_around_a_state_dict_are_opened():
    state = OrderedDict(a=torch.zeros(1))
    assert unwrapped({"model": {"state_dict": state}, "epoch": 3}) is state
    assert unwrapped({"net": state}) is state
    assert unwrapped(state) is state
    assert unwrapped({"model": torch.zeros(1)}).keys() == {"model"}
    assert unwrapped(3) == 3
