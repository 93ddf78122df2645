import re
import sys
from pathlib import Path

import pytest
import torch
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.torch import save_file
from torch import nn

from heatcheck.core.errors import ModelError, UnknownNameError
from heatcheck.models import MODELS, ModelFacts, ModelSettings, NetworkClassifier, Preprocessing, load_classifier
from heatcheck.models.load import digest_of, read_weights, save_classifier

CONTRACT = Preprocessing(outputs=("a", "b"), size=(6, 8), mean=(0.3,), std=(0.2,), fit="pad")


def network(channels=1, outputs=2, seed=1):
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        return nn.Sequential(
            nn.Conv2d(channels, 4, 3),
            nn.BatchNorm2d(4),
            nn.AdaptiveAvgPool2d(1),
            nn.Flatten(),
            nn.Linear(4, outputs),
        )


@pytest.fixture(autouse=True)
def small_model(monkeypatch):
    """A registered network that is built fast."""
    facts = ModelFacts(
        "small", lambda shape: network(shape.channels, shape.outputs), "For the tests", "None", (6, 8), 1, smallest=3
    )
    monkeypatch.setitem(MODELS._parts, "small", facts)


def state(**changes):
    return network(**changes).state_dict()


def same_weights(module, expected):
    return all(torch.equal(value, expected[name]) for name, value in module.state_dict().items())


def load(folder, weights, contract=CONTRACT, name="small", **options):
    return load_classifier(ModelSettings(name=name, weights=weights, contract=contract), folder, **options)


def refusal(folder, weights, contract=CONTRACT, name="small", **options):
    with pytest.raises(ModelError) as caught:
        load(folder, weights, contract, name, **options)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 700
    return str(caught.value)


def test_saved_classifier_comes_back_with_its_contract_and_its_answers(tmp_path):
    module = network().to(memory_format=torch.channels_last).eval()
    original = NetworkClassifier("small", module, CONTRACT)
    save_classifier(original, tmp_path / "w.safetensors")
    loaded = load(tmp_path, Path("w.safetensors"), contract=None)
    assert loaded.preprocessing == CONTRACT
    assert loaded.name == "small"
    assert not loaded.module.training
    assert same_weights(loaded.module, module.state_dict())
    images = torch.rand(3, 1, 6, 8)
    torch.testing.assert_close(loaded.logits(images), original.logits(images))


def test_contract_of_the_spec_overrides_that_of_the_file(tmp_path):
    save_classifier(NetworkClassifier("small", network(), CONTRACT), tmp_path / "w.safetensors")
    other = CONTRACT.model_copy(update={"mean": (0.9,)})
    assert load(tmp_path, Path("w.safetensors"), other).preprocessing == other


def test_safetensors_without_a_contract_take_the_one_beside_them(tmp_path):
    save_file(state(), tmp_path / "w.safetensors")
    (tmp_path / "w.yaml").write_text(yaml.safe_dump(CONTRACT.model_dump(mode="json")))
    assert load(tmp_path, Path("w.safetensors"), contract=None).preprocessing == CONTRACT


@pytest.mark.parametrize("suffix", [".pt", ".pth"])
@pytest.mark.parametrize(
    "wrap",
    [
        lambda weights: weights,
        lambda weights: {"state_dict": weights, "epoch": 3},
        lambda weights: {f"module.{name}": value for name, value in weights.items()},
        lambda weights: {"state_dict": {f"module.{name}": value for name, value in weights.items()}},
        lambda weights: {"state_dict": {"state_dict": weights}},
        lambda weights: {"model": weights, "optimizer": {"lr": 0.1}},
        lambda weights: {"model_state": weights},
        lambda weights: {"net": {f"module.backbone.{name}": value for name, value in weights.items()}},
        lambda weights: {f"model.densenet121.{name}": value for name, value in weights.items()},
        lambda weights: {name: value for name, value in weights.items() if "num_batches" not in name},
    ],
    ids=["plain", "state_dict", "module", "both", "nested", "model", "model_state", "net", "prefixes", "uncounted"],
)
def test_checkpoint_of_torch_is_read_however_it_is_wrapped(tmp_path, suffix, wrap):
    torch.save(wrap(state()), tmp_path / f"w{suffix}")
    assert same_weights(load(tmp_path, Path(f"w{suffix}")).module, state())


def test_checkpoint_takes_the_contract_from_the_file_beside_it(tmp_path):
    torch.save(state(), tmp_path / "w.pt")
    (tmp_path / "w.yaml").write_text(
        "{outputs: [x, y], size: [6, 8], channels: 1, mean: [0], std: [1], activation: softmax}"
    )
    loaded = load(tmp_path, Path("w.pt"), contract=None)
    assert loaded.outputs == ("x", "y")
    assert loaded.preprocessing.activation == "softmax"


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("outputs: [x, y\n", "w.yaml is not valid YAML"),
        (
            "outputs: [x, y]\nsize: [6, 8]\nsizes: 3\n",
            "w.yaml: the preprocessing contract is wrong (unknown key 'sizes'; did you",
        ),
        (
            "outputs: [x, y]\nsize: [6, 8]\n",
            "w.yaml: the preprocessing contract does not say channels, mean, std, activa",
        ),
        (
            "{outputs: [2020-01-01], size: [6, 8], channels: 1, mean: [0], std: [1], activation: sigmoid}",
            "w.yaml: the preprocessing contract is wrong (outputs.0: ",
        ),
        ("just text", "w.yaml: the preprocessing contract is wrong"),
        ("!!python/object/apply:os.system ['touch executed']", "w.yaml is not valid YAML"),
        (b"\xff\xfe\x00", "w.yaml is not valid YAML"),
    ],
)
def test_wrong_contract_beside_the_weights_is_refused(tmp_path, text, sentence, monkeypatch):
    monkeypatch.chdir(tmp_path)
    torch.save(state(), tmp_path / "w.pt")
    (tmp_path / "w.yaml").write_bytes(text if isinstance(text, bytes) else text.encode())
    assert sentence in refusal(tmp_path, Path("w.pt"), contract=None)
    assert not (tmp_path / "executed").exists()


def test_weights_without_any_contract_are_refused_with_the_ways_to_give_one(tmp_path):
    torch.save(state(), tmp_path / "w.pt")
    sentence = refusal(tmp_path, Path("w.pt"), contract=None)
    assert (
        "its preprocessing is unknown; add `contract:` with outputs, size, channels, mean, std, activation to"
        in sentence
    )
    assert "a YAML file of the same name beside the weights" in sentence


class Bomb:
    """Leaves a trace when it is unpickled."""

    def __init__(self, trace):
        self.trace = trace

    def __reduce__(self):
        return Path.touch, (self.trace,)


@pytest.mark.parametrize("wrap", [lambda bomb: bomb, lambda bomb: {"state_dict": state(), "extra": bomb}])
def test_checkpoint_with_code_in_it_is_refused_and_not_executed(tmp_path, wrap):
    trace = tmp_path / "executed"
    torch.save(wrap(Bomb(trace)), tmp_path / "w.pt")
    sentence = refusal(tmp_path, Path("w.pt"))
    assert "is not a plain file of weights" in sentence
    assert "save `model.state_dict()` with safetensors.torch.save_file" in sentence
    assert not trace.exists()
    torch.load(tmp_path / "w.pt", weights_only=False)  # the payload works
    assert trace.exists()


def test_whole_pickled_network_is_refused(tmp_path):
    torch.save(network(), tmp_path / "w.pt")
    assert "is not a plain file of weights" in refusal(tmp_path, Path("w.pt"))


@pytest.mark.parametrize("content", [{"a": 1}, [1, 2], {0: torch.zeros(2)}, {"state_dict": 3}, torch.zeros(3)])
def test_checkpoint_that_holds_something_else_is_refused(tmp_path, content):
    torch.save(content, tmp_path / "w.pt")
    assert "does not hold a state dict; save `model.state_dict()`" in refusal(tmp_path, Path("w.pt"))


@pytest.mark.parametrize("suffix", [".pt", ".safetensors"])
@pytest.mark.parametrize("content", [b"", b"some text\n", b"PK\x03\x04"])
def test_file_that_holds_no_weights_is_refused(tmp_path, suffix, content):
    (tmp_path / f"w{suffix}").write_bytes(content)
    assert re.search(r"is not a (plain file of weights|safetensors file)", refusal(tmp_path, Path(f"w{suffix}")))


@settings(deadline=None, max_examples=60)
@given(share=st.floats(0, 0.99), legacy=st.booleans())
def test_truncated_checkpoint_is_refused_wherever_it_ends(tmp_path_factory, share, legacy):
    path = tmp_path_factory.getbasetemp() / "truncated.pt"
    torch.save({"a": torch.arange(40.0)}, path, _use_new_zipfile_serialization=not legacy)
    path.write_bytes(path.read_bytes()[: int(share * path.stat().st_size)])
    with pytest.raises(ModelError, match="is not a plain file of weights"):
        read_weights(path)


def test_missing_weights_are_refused(tmp_path):
    assert "w.pt: no such weights file; correct its path in the spec" in refusal(tmp_path, Path("w.pt"))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        (
            {"channels": 3},
            "(they take images of 3 channels, the contract says 1); set `channels: 3` in the contract",
        ),
        (
            {"outputs": 5},
            "(they give 5 outputs, the contract names 2); name all 5 under `outputs` of the contract, in their order",
        ),
    ],
)
def test_weights_for_other_channels_or_outputs_are_refused_with_the_remedy(tmp_path, changes, sentence):
    torch.save(state(**changes), tmp_path / "w.pt")
    assert refusal(tmp_path, Path("w.pt")) == f"the weights do not fit model small {sentence}"


def test_weights_of_another_shape_are_refused(tmp_path):
    torch.save({**state(), "1.weight": torch.ones(7)}, tmp_path / "w.pt")
    sentence = refusal(tmp_path, Path("w.pt"))
    assert "the weights do not fit model small (size mismatch: 1.weight (7,) instead of (4,))" in sentence


def test_weights_with_missing_or_unknown_names_are_refused(tmp_path):
    torch.save({**state(), "extra": torch.zeros(1)}, tmp_path / "more.pt")
    assert "the weights do not fit model small (unexpected extra); " in refusal(tmp_path, Path("more.pt"))
    torch.save({}, tmp_path / "none.pt")
    sentence = refusal(tmp_path, Path("none.pt"))
    assert "(missing 0.weight, 0.bias, 1.weight and 5 more); name the model they were trained as" in sentence


def test_registered_model_without_weights_is_refused_with_a_remedy():
    with pytest.raises(ModelError, match=r"model small comes without weights; name a file under `weights:`"):
        load_classifier(ModelSettings(name="small", contract=CONTRACT))


@pytest.mark.parametrize("weights", [None, Path("w.pt")])
def test_unknown_model_is_met_with_a_suggestion(tmp_path, weights):
    torch.save(state(), tmp_path / "w.pt")
    with pytest.raises(UnknownNameError, match="unknown model 'smal'; did you mean 'small'"):
        load(tmp_path, weights, name="smal")


def test_digest_belongs_to_the_weights(tmp_path):
    save_file(state(), tmp_path / "one.safetensors")
    save_file(state(), tmp_path / "same.safetensors")
    changed = state()
    changed["4.bias"][0] += 1e-6
    save_file(changed, tmp_path / "other.safetensors")
    one, same, other = (load(tmp_path, Path(f"{n}.safetensors")).weights_hash for n in ("one", "same", "other"))
    assert one == same != other
    assert len(one) == 64


def test_digest_of_a_network_sees_weights_buffers_and_names_of_any_type():
    module = network()
    first = digest_of(module)
    assert first == digest_of(network().to(memory_format=torch.channels_last))
    renamed = nn.Sequential(nn.Identity(), *module)
    assert digest_of(renamed) != first
    module[1].running_mean += 1
    second = digest_of(module)
    module.register_buffer("steps", torch.zeros(2, dtype=torch.bfloat16))
    assert len({first, second, digest_of(module), digest_of(network(seed=2))}) == 4


@pytest.mark.parametrize("device", ["", "gpu", "cuda:x", "meta", "hpu", "vulkan"])
def test_device_that_cannot_be_used_is_refused_in_one_line(tmp_path, device):
    torch.save(state(), tmp_path / "w.pt")
    sentence = refusal(tmp_path, Path("w.pt"), device=device)
    assert sentence.startswith(f"device {device!r} cannot be used (")
    assert sentence.endswith("; try --device cpu")


@pytest.mark.parametrize(
    ("size", "sentence"),
    [
        ((2, 9), "model small needs sides of at least 3 px, `size` is 2×9; set a larger `size`"),
        (
            (6, 8, 9),
            "model small takes images of 2 axes, `size` is 6×8×9; set `size` to 2 sides such as [6, 8]",
        ),
    ],
)
def test_size_the_network_cannot_take_is_refused(tmp_path, size, sentence):
    torch.save(state(), tmp_path / "w.pt")
    assert refusal(tmp_path, Path("w.pt"), CONTRACT.model_copy(update={"size": size})) == sentence


FACTORY = """
import torch
from torch import nn

def make():
    torch.manual_seed(4)
    return nn.Sequential(nn.Flatten(), nn.Linear(48, 2), nn.Dropout(0.5))

def three():
    return nn.Sequential(nn.Flatten(), nn.Linear(48, 3))

def pair():
    class Pair(nn.Module):
        def forward(self, images):
            return images, images
    return Pair()

def broken():
    raise RuntimeError("no weights\\nfor you")

def text():
    return "a network"

def predict(images):
    return images.mean((2, 3))

def flat():
    return lambda images: images.mean((1, 2, 3))
"""


@pytest.fixture
def factory(tmp_path, monkeypatch):
    """The name of a module in the folder of the spec that makes networks, and leaves a trace when imported."""
    name = re.sub(r"\W", "_", f"own_{tmp_path.name}")
    (tmp_path / f"{name}.py").write_text(
        f"import pathlib\npathlib.Path({str(tmp_path / 'imported')!r}).touch()\n{FACTORY}"
    )
    monkeypatch.setattr(sys, "path", sys.path.copy())
    yield name
    sys.modules.pop(name, None)


def own(folder, module, function, *, trust_code=True, weights=None, contract=CONTRACT):
    with torch.random.fork_rng():
        return load(folder, weights, contract, f"python:{module}:{function}", trust_code=trust_code)


def own_refusal(folder, module, function, **options):
    with pytest.raises(ModelError) as caught:
        own(folder, module, function, **options)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_own_code_is_not_run_without_trust(tmp_path, factory):
    sentence = own_refusal(tmp_path, factory, "make", trust_code=False)
    assert (
        "runs your own code; if you trust it, add --trust-code to the command (in Python: RunOptions(trust_code=True))"
        in sentence
    )
    assert not (tmp_path / "imported").exists()


def test_own_network_is_used_with_trust(tmp_path, factory):
    before = sys.path.copy()
    classifier = own(tmp_path, factory, "make")
    assert (tmp_path / "imported").exists()
    assert sys.path == before
    assert classifier.name == f"python:{factory}:make"
    assert not classifier.module.training
    assert len(classifier.weights_hash) == 64
    assert classifier.logits(torch.zeros(2, 1, 6, 8)).shape == (2, 2)


def test_function_that_predicts_is_not_taken_for_the_one_that_returns_it(tmp_path, factory):
    sentence = own_refusal(tmp_path, factory, "predict")
    assert "predict needs images, but a function without arguments is wanted" in sentence
    assert "write `def make_model(): return predict` and name it" in sentence


def test_own_network_takes_weights_from_a_file(tmp_path, factory):
    weights = {"1.weight": torch.ones(2, 48), "1.bias": torch.zeros(2)}
    save_file(weights, tmp_path / "w.safetensors")
    classifier = own(tmp_path, factory, "make", weights=Path("w.safetensors"))
    assert torch.equal(classifier.logits(torch.ones(1, 1, 6, 8)), torch.full((1, 2), 48.0))
    assert classifier.weights_hash != read_weights(tmp_path / "w.safetensors").digest  # its code counts too


@pytest.mark.parametrize(
    ("function", "sentence"),
    [
        ("broken", "RuntimeError: no weights for you; run with --debug to see the full traceback"),
        ("absent", "AttributeError: "),
        ("text", "the factory returned str, not a torch.nn.Module, nor a function that predicts"),
        ("three", "gives (1, 3) for one image, its contract names 2 outputs (1, 2); correct `outputs`"),
        ("pair", "gives tuple for one image, its contract names 2 outputs (1, 2); return the tensor of logits alone"),
    ],
)
def test_own_code_that_makes_no_fitting_network_is_refused(tmp_path, factory, function, sentence):
    assert sentence in own_refusal(tmp_path, factory, function)


def test_answers_without_an_axis_of_outputs_are_refused_with_the_index_that_adds_it(tmp_path, factory):
    single = CONTRACT.model_copy(update={"outputs": ("a",)})
    sentence = own_refusal(tmp_path, factory, "flat", contract=single)
    assert "gives (1,) for one image, its contract names 1 outputs (1, 1); return them with an" in sentence
    assert sentence.endswith("`answers[:, None]`")


def test_search_path_is_restored_after_own_code_failed(tmp_path, factory):
    before = sys.path.copy()
    own_refusal(tmp_path, factory, "broken")
    assert sys.path == before


def test_own_module_that_does_not_exist_is_refused(tmp_path):
    message = own_refusal(tmp_path, "no_such_module_here", "make")
    assert "there is no no_such_module_here.py beside the spec" in message


@pytest.mark.parametrize("name", ["python:", "python:module", "python::make", "python:module:"])
def test_own_code_named_incompletely_is_refused(tmp_path, name):
    assert "must have the form python:package.module:factory" in refusal(tmp_path, None, name=name, trust_code=True)


def test_own_network_without_a_contract_is_refused(tmp_path, factory):
    assert "its preprocessing is unknown" in own_refusal(tmp_path, factory, "make", contract=None)


def test_settings_refuse_a_key_they_do_not_know():
    with pytest.raises(ValueError, match="Extra inputs are not permitted"):
        ModelSettings.model_validate({"name": "small", "weight": "w.pt"})


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({"name": "small"}, False),
        ({"name": "no such model"}, False),
        ({"name": "small", "weights": "w.safetensors"}, True),
        ({"name": "small", "ensemble": "trained"}, True),
        ({"name": "python:module:factory"}, True),
        *(({"name": name}, bool(facts.weights)) for name, facts in MODELS.items()),
    ],
)
def test_a_model_comes_with_weights_that_are_shipped_named_or_of_the_users_code(settings, expected):
    assert ModelSettings(**settings).has_weights == expected


def test_the_size_is_the_usual_one_by_default_and_is_always_checked():
    assert MODELS["small"].checked_size(()) == MODELS["small"].checked_size(None) == (6, 8)
    assert MODELS["small"].checked_size((3, 4)) == (3, 4)
    with pytest.raises(ModelError, match="at least 3 px"):
        MODELS["small"].checked_size((2, 4))


@pytest.mark.parametrize(
    ("factory", "is_random"),
    [("return make()", True), ("torch.manual_seed(3); return make()", False), ("return loaded()", False)],
)
def test_a_function_that_draws_its_weights_at_every_call_is_recognised(tmp_path, monkeypatch, factory, is_random):
    """A model whose weights were forgotten would otherwise pass for a trained one."""
    save_file(state(), tmp_path / "w.safetensors")
    name = f"drawn_{len(factory)}"
    (tmp_path / f"{name}.py").write_text(f"""
import torch
from pathlib import Path
from safetensors.torch import load_file
from torch import nn
def make():
    return nn.Sequential(nn.Conv2d(1, 4, 3), nn.BatchNorm2d(4), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2))
def loaded():
    network = make()
    network.load_state_dict(load_file(Path(__file__).parent / "w.safetensors"))
    return network
def build():
    {factory}
""")
    settings = ModelSettings(name=f"python:{name}:build", contract=CONTRACT)
    assert load_classifier(settings, tmp_path, trust_code=True).is_random is is_random
    assert not load(tmp_path, "w.safetensors", name=settings.name, trust_code=True).is_random
