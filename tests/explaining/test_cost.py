"""How the seconds of passes are measured and added up."""

import time
from dataclasses import replace

import pytest
import torch
from tests.conftest import small_cnn
from tests.ensemble_material import write_ensemble

from heatcheck.core.errors import CaseError
from heatcheck.core.records import Case, CaseKey
from heatcheck.explaining import cost
from heatcheck.explaining.batch import Explainer
from heatcheck.explaining.cost import PassSeconds, pass_seconds, passes_for, read_one, seconds_per_image
from heatcheck.explaining.ensemble import EnsembleExplainer
from heatcheck.methods import build_method
from heatcheck.methods.registry import Passes
from heatcheck.models import NetworkClassifier, Preprocessing, read_ensemble

CONTRACT = Preprocessing(outputs=("a", "b", "c"), size=(24, 32), channels=2)


@pytest.fixture
def classifier():
    return NetworkClassifier("c", small_cnn(2, 2, 3), CONTRACT)


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test moves."""
    now = [0.0]
    monkeypatch.setattr(cost.time, "perf_counter", lambda: now[0])
    return now


def test_passes_of_all_methods_and_of_the_answer_are_added():
    methods = {
        "grad_cam": build_method("grad_cam", {}),
        "gradient": build_method("gradient", {}),
        "occlusion": build_method("occlusion", {"window": 8}),
        "random": build_method("random", {}),
    }
    # the answer, Grad-CAM, one gradient for three findings, and the image with 3 · 4 windows
    assert passes_for(methods, (2, 24, 32), 3) == Passes(1 + 1 + 1, 3, covered=13)
    assert PassSeconds(0.5, 2.0, 0.25).of(Passes(16, 3, 8, extra=2)) == 18 * 0.5 + 3 * 2.0 + 8 * 0.25


def test_seconds_are_those_of_a_batch_after_a_first_call(clock):
    sizes = []

    def run(images):
        sizes.append(len(images))
        clock[0] += 0.1 if len(sizes) == 1 else 0.1 + 0.02 * len(images)

    assert seconds_per_image(run, torch.zeros(8, 1)) == pytest.approx((0.1 + 0.02 * 4) / 4)
    assert sizes == [1, 1, 4, 4]  # as many as fit into half a second


def test_a_slow_first_call_that_sets_things_up_is_not_what_an_image_takes(clock):
    sizes = []

    def run(images):
        sizes.append(len(images))
        clock[0] += 1.5 if len(sizes) == 1 else 0.6 + 0.1 * len(images)

    # two at a time, and four: the share of the weights is halved
    assert seconds_per_image(run, torch.zeros(8, 1), least=2) == pytest.approx((0.6 + 0.4) / 4)
    assert sizes == [2, 2, 4]


def test_a_network_that_takes_long_is_asked_once(clock):
    sizes = []

    def run(images):
        sizes.append(len(images))
        clock[0] += 30.0

    assert seconds_per_image(run, torch.zeros(8, 1)) == 30.0
    assert sizes == [1]


def test_the_network_is_measured_within_a_moment_and_left_as_it_was(classifier):
    classifier.module.train()
    before = {name: value.clone() for name, value in classifier.module.state_dict().items()}
    begun = time.process_time()
    found = pass_seconds(classifier, 4)
    assert time.process_time() - begun < 3
    assert found.forward > 0
    assert found.backward >= 0
    assert found.covered > 0
    assert pass_seconds(classifier, 4, Passes(1)).covered == 0  # not measured where it is not needed
    assert classifier.module.training
    assert all(torch.equal(before[name], value) for name, value in classifier.module.state_dict().items())
    assert all(weight.grad is None for weight in classifier.module.parameters())


def test_a_case_takes_the_seconds_of_its_passes(classifier, monkeypatch):
    asked = []

    def measured(_, batch, needed):
        asked.append((batch, needed.backward > 0, needed.covered > 0))
        return PassSeconds(1.0, 10.0, 0.5)

    monkeypatch.setattr(cost, "pass_seconds", measured)
    explainer = Explainer(classifier, ("a", "b"), {"gradient": build_method("gradient", {})}, "positive", 0)
    assert cost.seconds_to_explain(explainer, 4) == 2 * 1.0 + 2 * 10.0
    without = replace(explainer, methods={"occlusion": build_method("occlusion", {"window": 8})})
    assert cost.seconds_to_explain(without, 4) == 1.0 + 13 * 0.5
    assert asked == [(4, True, False), (4, False, True)]  # a model that only predicts has no backward pass


def test_each_member_of_an_ensemble_takes_the_seconds_of_its_own_findings(tmp_path, monkeypatch):
    monkeypatch.setattr(cost, "pass_seconds", lambda *_: PassSeconds(1.0, 10.0))
    ensemble = read_ensemble(write_ensemble(tmp_path))  # two members answer for each of two findings, all for a third
    gradient = {"gradient": build_method("gradient", {})}
    explainer = EnsembleExplainer(ensemble, ("Edema", "Pneumothorax"), gradient, "positive", 0)
    by_member = [len({"Edema", "Pneumothorax"} & set(member.findings)) for member in ensemble.members]
    assert sorted(by_member) == [1, 1, 2, 2]
    assert cost.seconds_to_explain(explainer, 4) == sum(2 * 1.0 + findings * 10.0 for findings in by_member)


def test_the_first_case_that_can_be_read_is_timed():
    class Torn:
        def load(self, key):
            if key.case == "a":
                raise CaseError("a is torn")
            return Case(key, None, {})

    keys = [CaseKey(name, name, {}) for name in "abcd"]
    assert read_one(Torn(), keys).case.key.case == "b"
    assert read_one(Torn(), keys[:1]) is None
