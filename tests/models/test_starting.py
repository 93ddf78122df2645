"""Weights of another task as a start, from small random files under torchvision's names."""

import re

import pytest
import tests.models.public_names as names
import torch
from safetensors.torch import save_file

from heatcheck.core.errors import ModelError
from heatcheck.models import MODELS
from heatcheck.models.starting import start_from

DENSENET = names.torchvision_densenet((4, 6, 10), 1000, 24, 16, 3)


def random_file(path, shapes, seed=0):
    """A file of weights as a user has it, and what it holds."""
    generator = torch.Generator().manual_seed(seed)
    state = {
        name: torch.tensor(7) if name.endswith("num_batches_tracked") else torch.rand(shape, generator=generator)
        for name, shape in shapes.items()
    }
    torch.save(state, path)
    return state


def network(name="densenet_compact", channels=3, outputs=4):
    with torch.random.fork_rng():
        torch.manual_seed(1)
        return MODELS[name].build(channels, outputs)


def test_everything_but_the_last_layer_comes_from_a_file_with_other_outputs(tmp_path):
    state = random_file(tmp_path / "w.pth", DENSENET)
    module = network()
    before = {key: value.clone() for key, value in module.state_dict().items()}
    started = start_from(tmp_path / "w.pth", module, "densenet_compact")
    after = module.state_dict()
    assert started.fresh == ("class_layers.out.weight", "class_layers.out.bias")
    assert torch.equal(after["features.conv0.weight"], state["features.conv0.weight"])
    name = "features.denseblock2.denselayer3"
    assert torch.equal(after[f"{name}.layers.conv1.weight"], state[f"{name}.conv1.weight"])
    assert torch.equal(after[f"{name}.layers.norm2.running_var"], state[f"{name}.norm2.running_var"])
    assert all(torch.equal(after[key], before[key]) for key in started.fresh)
    names_of_all = {key for key in after if not key.endswith("num_batches_tracked")}
    assert set(started.loaded) == names_of_all - set(started.fresh)


def test_last_layer_with_as_many_outputs_comes_too(tmp_path):
    state = random_file(tmp_path / "w.pth", names.torchvision_densenet((4, 6, 10), 4, 24, 16, 3))
    module = network()
    assert start_from(tmp_path / "w.pth", module, "densenet_compact").fresh == ()
    assert torch.equal(module.state_dict()["class_layers.out.bias"], state["classifier.bias"])


def test_network_for_grey_answers_as_the_colour_network_on_three_equal_channels(tmp_path):
    """By the sum over the channels; the last layer is the same in both, for both files have as many outputs."""
    random_file(tmp_path / "w.pth", names.torchvision_densenet((4, 6, 10), 4, 24, 16, 3))
    colour, grey = network(channels=3).eval(), network(channels=1).eval()
    for module in (colour, grey):
        assert start_from(tmp_path / "w.pth", module, "densenet_compact").fresh == ()
    images = torch.rand(2, 1, 64, 64, generator=torch.Generator().manual_seed(2))
    with torch.no_grad():
        expected = colour.features.conv0(images.expand(-1, 3, -1, -1))
        torch.testing.assert_close(grey.features.conv0(images), expected, rtol=1e-5, atol=1e-5)


def test_first_convolution_of_other_channels_stays_fresh(tmp_path):
    random_file(tmp_path / "w.pth", DENSENET)
    started = start_from(tmp_path / "w.pth", network(channels=2), "densenet_compact")
    assert started.fresh[0] == "features.conv0.weight"


def test_wrapped_safetensors_under_a_prefix_fit_too(tmp_path):
    state = random_file(tmp_path / "w.pth", DENSENET)
    save_file({f"module.{name}": value for name, value in state.items()}, tmp_path / "w.safetensors")
    module = network()
    assert len(start_from(tmp_path / "w.safetensors", module, "densenet_compact").fresh) == 2
    assert torch.equal(module.state_dict()["features.conv0.weight"], state["features.conv0.weight"])


def test_convolutions_without_the_linear_layers_are_a_start(tmp_path):
    shapes = names.layer("features.0", 16, 3, 3, 3) | names.layer("features.3", 32, 16, 3, 3)
    shapes |= names.layer("features.6", 64, 32, 3, 3) | names.layer("features.8", 64, 64, 3, 3)
    random_file(tmp_path / "w.pth", shapes)
    started = start_from(tmp_path / "w.pth", network("vgg_compact"), "vgg_compact")
    assert {name.partition(".")[0] for name in started.loaded} == {"features"}
    assert {name.partition(".")[0] for name in started.fresh} == {"classifier"}


def test_file_of_another_architecture_is_refused_and_the_network_left_alone(tmp_path):
    random_file(tmp_path / "w.pth", names.torchvision_resnet((2, 1, 1, 1), 1000, 8))
    module = network()
    before = {key: value.clone() for key, value in module.state_dict().items()}
    message = "w.pth: only 0 of the 219 weights of model densenet_compact are in it (missing features.conv0.weight, "
    with pytest.raises(ModelError, match=re.escape(message)):
        start_from(tmp_path / "w.pth", module, "densenet_compact")
    assert all(torch.equal(value, before[key]) for key, value in module.state_dict().items())


def test_file_of_a_wider_network_is_refused_with_the_shapes(tmp_path):
    random_file(tmp_path / "w.pth", names.torchvision_resnet((2, 1, 1, 1), 5, 16))
    message = r"of another shape conv1\.weight \(16, 3, 7, 7\) instead of \(8, 3, 7, 7\), .* same architecture"
    with pytest.raises(ModelError, match=message):
        start_from(tmp_path / "w.pth", network("resnet_compact"), "resnet_compact")


def test_missing_file_is_refused(tmp_path):
    with pytest.raises(ModelError, match=r"nothing\.pth: no such weights file; correct its path"):
        start_from(tmp_path / "nothing.pth", network(), "densenet_compact")
