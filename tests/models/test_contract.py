import json
import math

import pytest
from pydantic import ValidationError

from heatcheck.core.errors import ModelError
from heatcheck.models import ModelSettings
from heatcheck.models.contract import Preprocessing, checked_contract, read_contract

LEAST = {
    "outputs": ["a", "b"],
    "size": [32, 32],
    "channels": 1,
    "mean": [0.5],
    "std": [0.25],
    "activation": "sigmoid",
}


def complaint(**changes):
    with pytest.raises(ModelError) as caught:
        checked_contract({**LEAST, **changes}, "weights.yaml")
    sentence = str(caught.value)
    assert sentence.startswith("weights.yaml: the preprocessing contract is wrong (")
    assert sentence.endswith("; correct it")
    assert "\n" not in sentence
    return sentence


def test_a_contract_of_the_least_is_stretched_with_one_answer_per_output():
    contract = checked_contract(LEAST, "x")
    assert contract.outputs == ("a", "b")
    assert contract.size == (32, 32)
    assert (contract.fit, contract.scaling, contract.head) == ("stretch", "fixed", "binary")


@pytest.mark.parametrize("part", LEAST)
def test_no_part_of_a_contract_is_guessed(part):
    values = {key: value for key, value in LEAST.items() if key != part}
    asked = rf"w.yaml: the preprocessing contract does not say {part}; add what .* in the form `{part}: "
    with pytest.raises(ModelError, match=asked):
        checked_contract(values, "w.yaml")
    with pytest.raises(ValidationError, match=f"the contract does not say {part}; add what the model"):
        ModelSettings(name="net", contract=values)
    assert ModelSettings(name="net", contract=LEAST).contract == checked_contract(LEAST, "x")


def test_all_missing_parts_are_asked_for_at_once():
    with pytest.raises(
        ModelError, match=r"does not say mean, std, activation; .* `mean: \[0.506\], std: \[0.287\], act"
    ):
        checked_contract({key: LEAST[key] for key in ("outputs", "size", "channels")}, "x")


def test_blank_parts_are_asked_for_by_name_as_missing_ones_are():
    blank = {**LEAST, "size": None, "channels": None, "mean": None}
    with pytest.raises(ModelError, match=r"does not say size, channels, mean; .* in the form `size: \[320, 320\], ch"):
        checked_contract(blank, "x")


def test_softmax_over_one_output_is_refused():
    sentence = complaint(outputs=["a"], activation="softmax")
    assert "softmax over one output gives every image a probability of 1; name an output for each class" in sentence


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"outputs": []}, "outputs: "),
        ({"outputs": ["a", "a"]}, "contract: outputs must have different names"),
        ({"outputs": 3}, "outputs.0: must be text, got 3"),
        ({"size": [32]}, "size: "),
        ({"size": [32, 32, 32, 32]}, "size: "),
        ({"size": [32, 0]}, "size.1: must be above 0, got 0"),
        ({"size": [-32, 32]}, "size.0: must be above 0, got -32"),
        ({"channels": 0}, "channels: "),
        ({"channels": 3, "mean": [0.1, 0.2]}, "mean needs one value, or one for each of the 3 channels"),
        ({"channels": 3, "std": [0.1, 0.2]}, "std needs one value, or one for each of the 3 channels"),
        ({"mean": []}, "mean needs one value"),
        ({"std": [0.0]}, "std must be above 0"),
        ({"std": [-1.0]}, "std must be above 0"),
        ({"std": [math.nan]}, "std.0: must be a finite number"),
        ({"mean": [math.inf]}, "mean.0: must be a finite number"),
        ({"activation": "relu"}, "activation: must be 'sigmoid' or 'softmax'"),
        ({"fit": "crop"}, "fit: must be 'stretch' or 'pad'"),
        ({"scaling": "own"}, "scaling: must be 'fixed' or 'nonzero'"),
        ({"scaling": "nonzero"}, "with scaling nonzero each image has its own mean and std"),
        ({"colour": "grey"}, "unknown key 'colour'; known: activation, channels"),
    ],
)
def test_wrong_contract_is_refused_in_one_sentence_that_names_the_key(changes, sentence):
    assert sentence in complaint(**changes)


@pytest.mark.parametrize("values", [None, 7, "text", [1, 2]])
def test_contract_that_is_no_mapping_is_refused(values):
    with pytest.raises(ModelError, match="the preprocessing contract is wrong"):
        checked_contract(values, "weights.yaml")


def test_one_mean_serves_all_channels_and_each_may_have_its_own():
    checked_contract({**LEAST, "channels": 3, "mean": [0.5], "std": [0.1, 0.2, 0.3]}, "x")


def test_contract_survives_its_own_json():
    contract = Preprocessing(outputs=("a",), size=(8, 9, 10), channels=2, mean=(0.1, 0.2), std=(1e-5,), fit="pad")
    assert read_contract(contract.model_dump_json(), "x") == contract
    assert read_contract(json.dumps(contract.model_dump()), "x") == contract


def test_contract_of_images_with_their_own_scale_survives_its_own_json():
    least = {key: value for key, value in LEAST.items() if key not in {"mean", "std"}}
    contract = checked_contract({**least, "channels": 4, "scaling": "nonzero"}, "x")
    assert (contract.mean, contract.std) == ((0.0,), (1.0,))
    assert read_contract(contract.model_dump_json(), "x") == contract


def test_text_that_is_no_json_is_refused():
    with pytest.raises(ModelError, match=r"^w\.safetensors: the preprocessing contract is not JSON"):
        read_contract("{outputs: [a]", "w.safetensors")


def test_contract_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        checked_contract(LEAST, "x").channels = 3
