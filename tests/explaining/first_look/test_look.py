"""What is looked at before any work."""

import numpy as np
import pytest
from torch import nn

from heatcheck.core.errors import CaseError, ModelError
from heatcheck.core.records import Case, CaseKey
from heatcheck.explaining.first_look.look import MOST, Sample, first_look
from heatcheck.methods import METHODS
from heatcheck.models import NetworkClassifier, Preprocessing

CONTRACT = Preprocessing(outputs=("a",), size=(4, 4), channels=1, mean=(300.0,), std=(100.0,))


class Loads:
    """A source that counts what is read of it; the image of a case is its number everywhere."""

    def __init__(self, broken=()):
        self.broken, self.read = broken, []

    def load(self, key):
        self.read.append(key.case)
        if key.case in self.broken:
            raise CaseError("empty")
        return Case(key, np.full((1, 6, 5), float(key.case), np.float32), {})


def keys_of(number, patients=None):
    return [CaseKey(f"{n:03d}", f"p{n % (patients or number)}", {"a": float(n == 70)}) for n in range(number)]


def test_a_few_images_of_different_patients_are_read_and_the_rare_finding_is_among_them():
    source = Loads()
    first_look(Sample(source, keys_of(300), ["a"]), Preprocessing(outputs=("a",), size=(4, 4)), "net")
    assert len(source.read) == len(set(source.read)) == MOST[2]
    assert "070" in source.read


@pytest.mark.parametrize(("number", "patients"), [(40, 2), (5, 5), (1, 1)])
def test_few_patients_show_several_images(number, patients):
    source = Loads()
    first_look(
        Sample(source, keys_of(number, patients), ["a"]),
        CONTRACT.model_copy(update={"mean": (0.0,), "std": (1.0,)}),
        "net",
    )
    assert len(set(source.read)) == min(MOST[2], number)


def test_the_range_is_that_of_all_images_that_can_be_read():
    keys = [CaseKey(name, name, {}) for name in ("0", "900")]
    first_look(Sample(Loads(), keys, []), CONTRACT, "net")
    with pytest.raises(ModelError, match="reach from 0 to 1 here"):
        first_look(Sample(Loads(broken={"900"}), keys, []), CONTRACT, "net")


class Answers(nn.Module):
    """Gives the images' own values as answers."""

    def forward(self, images):
        return images[:, 0, 0, :2]


def answered(activation, *answers, head="binary", is_random=False):
    """What is said of a model that gives these answers."""
    contract = Preprocessing(outputs=("a", "b"), size=(4, 4), mean=(0.0,), std=(1.0,), activation=activation, head=head)
    keys = [CaseKey(str(number), str(number), {}) for number in range(len(answers))]
    image = np.zeros((1, 4, 4), np.float32)
    source = Loads()
    source.load = lambda key: Case(key, image + np.array([*answers[int(key.case)], 0, 0], np.float32), {})
    return first_look(
        Sample(source, keys, []), contract, "net", NetworkClassifier("net", Answers(), contract, "", is_random)
    )


def test_answers_between_0_and_1_are_said_to_look_like_probabilities():
    (sentence,) = answered("sigmoid", (0.1, 0.2), (0.9, 0.3), (1.0, 0.0))
    assert sentence.startswith("The answers of model net look like probabilities, not logits: on 3 images looked at")
    assert sentence.endswith("return the values before sigmoid, or log(p / (1 - p)).")


def test_answers_of_classes_look_like_probabilities_only_if_they_add_up_to_1():
    (sentence,) = answered("softmax", (0.1, 0.9), (0.7, 0.3), (1.0, 0.0))
    assert "all lie between 0 and 1 and add up to 1. If so, softmax is applied twice" in sentence
    assert not answered("softmax", (0.1, 0.9), (0.7, 0.31), (1.0, 0.0))


@pytest.mark.parametrize(
    "answers",
    [
        [(0.1, 0.2), (0.9, 0.3), (1.01, 0.0)],
        [(0.1, 0.2), (0.9, 0.3), (1.0, -0.01)],
        [(0.5, 0.5)] * 3,  # a model that always says the same has another fault
        [(0.1, 0.2), (0.9, 0.3)],  # too few
        [(0.04, 0.21), (0.06, 0.24), (0.1, 0.16)],  # logits of an untrained network, which hardly differ
    ],
)
def test_other_answers_pass_without_a_word(answers):
    assert answered("sigmoid", *answers) == ()


def test_a_network_with_random_weights_is_said_to_be_untrained_and_nothing_else():
    (sentence,) = answered("sigmoid", (0.1, 0.2), (0.9, 0.3), (1.0, 0.0), is_random=True)
    assert sentence.startswith("Model net: no weights were given: is this the trained network?")


def test_pixels_in_other_units_than_the_contract_are_said_to_be_far():
    contract = Preprocessing(outputs=("a",), size=(4, 4))
    keys = [CaseKey(name, name, {}) for name in ("40", "900")]
    (sentence,) = first_look(Sample(Loads(), keys, []), contract, "net")
    assert "their pixels, from 40 to 900, lie 1,878 standard deviations from the mean on average" in sentence
    assert "Set `value_range`" in sentence
    assert first_look(Sample(Loads(), keys, []), CONTRACT, "net") == ()


def test_images_that_cannot_be_read_are_left_to_the_run():
    source = Loads(broken={"0"})
    first_look(Sample(source, [CaseKey("0", "0", {})], []), CONTRACT, "net")
    assert source.read == ["0"]


@pytest.mark.parametrize(("activation", "said"), [("softmax", 1), ("sigmoid", 0)])
def test_findings_that_occur_together_contradict_softmax(activation, said):
    contract = Preprocessing(outputs=("a", "b"), size=(4, 4), activation=activation)
    labels = [{"a": 1.0, "b": 1.0}, {"a": 1.0, "b": 0.0}, {"a": 1.0, "b": -1.0}]
    keys = [CaseKey(str(n), str(n), each) for n, each in enumerate(labels)]
    cautions = first_look(Sample(Loads(), keys, ["a", "b"]), contract, "net")
    assert len(cautions) == said
    assert all("but 1 of 3 images has several of them" in caution for caution in cautions)


@pytest.mark.parametrize(
    ("mean", "name", "settings", "said"),
    [
        (0.0, "occlusion", {}, 1),
        (0.0, "occlusion", {"baseline": "mean"}, 0),
        (0.5, "occlusion", {}, 0),
        (0.0, "integrated_gradients", {}, 0),
    ],
)
def test_covers_are_black_where_the_model_normalises_its_input_itself(mean, name, settings, said):
    contract = Preprocessing(outputs=("a",), size=(4, 4), mean=(mean,), std=(1.0,))
    keys = [CaseKey(value, value, {}) for value in ("0.1", "0.9")]
    methods = {name: METHODS[name].settings(**settings)}
    cautions = first_look(Sample(Loads(), keys, []), contract, "net", methods=methods)
    assert len(cautions) == said
    assert all(
        "Hidden parts are black for model net" in caution and "Occlusion covers" in caution for caution in cautions
    )
