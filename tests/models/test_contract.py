import json
import math

import pytest
from pydantic import ValidationError

from heatcheck.core.errors import ModelError
from heatcheck.models.contract import Preprocessing, checked_contract, read_contract

LEAST = {"outputs": ["a", "b"], "size": [32, 32]}


def complaint(**changes):
    with pytest.raises(ModelError) as caught:
        checked_contract({**LEAST, **changes}, "weights.yaml")
    sentence = str(caught.value)
    assert sentence.startswith("weights.yaml: the preprocessing contract is wrong (")
    assert sentence.endswith("; correct it")
    assert "\n" not in sentence
    return sentence


def test_least_contract_is_grey_sigmoid_and_stretched():
    contract = checked_contract(LEAST, "x")
    assert contract.outputs == ("a", "b")
    assert contract.size == (32, 32)
    assert (contract.channels, contract.activation, contract.fit) == (1, "sigmoid", "stretch")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"outputs": []}, "outputs: "),
        ({"outputs": ["a", "a"]}, "contract: outputs must have different names"),
        ({"outputs": 3}, "outputs.0: Input should be a valid string"),
        ({"size": [32]}, "size: "),
        ({"size": [32, 32, 32, 32]}, "size: "),
        ({"size": [32, 0]}, "size.1: Input should be greater than 0"),
        ({"size": [-32, 32]}, "size.0: Input should be greater than 0"),
        ({"channels": 0}, "channels: "),
        ({"channels": 3, "mean": [0.1, 0.2]}, "mean needs one value, or one for each of the 3 channels"),
        ({"channels": 3, "std": [0.1, 0.2]}, "std needs one value, or one for each of the 3 channels"),
        ({"mean": []}, "mean needs one value"),
        ({"std": [0.0]}, "std must be above 0"),
        ({"std": [-1.0]}, "std must be above 0"),
        ({"std": [math.nan]}, "std.0: Input should be a finite number"),
        ({"mean": [math.inf]}, "mean.0: Input should be a finite number"),
        ({"activation": "relu"}, "activation: Input should be 'sigmoid' or 'softmax'"),
        ({"fit": "crop"}, "fit: Input should be 'stretch' or 'pad'"),
        ({"scaling": "own"}, "scaling: Input should be 'fixed' or 'nonzero'"),
        ({"scaling": "nonzero", "mean": [0.5]}, "with scaling nonzero each image has its own mean and std"),
        ({"colour": "grey"}, "colour: Extra inputs are not permitted"),
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
    contract = checked_contract({**LEAST, "channels": 4, "scaling": "nonzero"}, "x")
    assert (contract.mean, contract.std) == ((0.0,), (1.0,))
    assert read_contract(contract.model_dump_json(), "x") == contract


def test_text_that_is_no_json_is_refused():
    with pytest.raises(ModelError, match=r"^w\.safetensors: the preprocessing contract is not JSON"):
        read_contract("{outputs: [a]", "w.safetensors")


def test_contract_cannot_be_changed():
    with pytest.raises(ValidationError, match="frozen"):
        checked_contract(LEAST, "x").channels = 3
