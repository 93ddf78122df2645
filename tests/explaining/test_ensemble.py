"""Maps and predictions of an ensemble, and the whole way from training to them."""

import gc
from dataclasses import replace

import numpy as np
import pytest
import torch
from tests.ensemble_material import CHOSEN, FINDINGS, list_members, write_ensemble
from tests.fitting.material import PROTOCOL, training_spec

from heatcheck.explaining import ensemble as ensemble_module
from heatcheck.explaining.batch import Explainer
from heatcheck.explaining.dry_run import extra_inputs_for, tried_on
from heatcheck.explaining.ensemble import EnsembleExplainer
from heatcheck.explaining.methods import chosen_methods
from heatcheck.explaining.study_models import StudyModel, facts_of
from heatcheck.fitting.train import train
from heatcheck.methods import build_method
from heatcheck.models import Ensemble, ModelSettings, load_classifier, open_model, read_ensemble
from heatcheck.running.progress import Silent
from heatcheck.sources.phantoms.phantom_chest import PhantomChest, PhantomChestSettings

pytestmark = pytest.mark.usefixtures("plain_curves")
STUDIED = ("Pneumothorax", "Edema")  # some of the outputs, in another order
METHODS = ("grad_cam", "gradient", "random", "location_prior", "feature_permutation")
SETTINGS = {"feature_permutation": {"segments": {"kind": "grid", "cells": 2}}}


@pytest.fixture(scope="module")
def source():
    return PhantomChest(PhantomChestSettings(patients=6, size=40, first=700))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_ensemble(tmp_path_factory.mktemp("ensemble"))


def methods():
    return {name: build_method(name, SETTINGS.get(name, {})) for name in METHODS}


def ready(explainer, source):
    parts = [{"name": name, **SETTINGS.get(name, {})} for name in METHODS]
    assert not tried_on(chosen_methods(parts, "spec"), explainer.classifier, source.index()).skipped
    return replace(explainer, extra_inputs=extra_inputs_for(explainer, source, source.index(), Silent()))


def alone(folder, name, source):
    classifier = load_classifier(ModelSettings(name="densenet_compact", weights=folder / f"{name}.safetensors"))
    return ready(Explainer(classifier, STUDIED, methods(), "positive", 3), source)


def test_an_ensemble_is_described_by_its_network_and_the_number_of_its_checkpoints(folder):
    explainer = EnsembleExplainer(read_ensemble(folder), STUDIED, methods(), "positive", 3)
    facts = facts_of(StudyModel(name="several", ensemble=folder), explainer)
    assert facts.description == "Compact DenseNet, an ensemble of 4 checkpoints"


def test_predictions_and_maps_are_means_over_the_members_of_each_finding(folder, source):
    explainer = ready(EnsembleExplainer(read_ensemble(folder), STUDIED, methods(), "positive", 3), source)
    cases = [source.load(key) for key in source.index()[:3]]
    explained, seconds = explainer(cases)
    assert seconds.keys() == set(METHODS)
    each = {name: alone(folder, name, source)(cases)[0] for name in "abcd"}
    for number, one in enumerate(explained):
        for column, finding in enumerate(STUDIED):
            mine = [each[name][number] for name in CHOSEN[finding]]
            expected = np.mean([other.probabilities[column] for other in mine])
            assert one.probabilities[column] == pytest.approx(expected, rel=1e-5)
            assert one.logits[column] == pytest.approx(np.log(expected / (1 - expected)), rel=1e-3, abs=1e-5)
            for method in METHODS:
                maps = torch.stack([other.grids[method].values[column] for other in mine])
                torch.testing.assert_close(one.grids[method].values[column], maps.mean(0), rtol=1e-4, atol=1e-7)
                assert one.why_missing(method, column) == mine[0].why_missing(method, column)
        assert one.placement == each["a"][number].placement


def test_each_member_explains_only_the_findings_it_was_chosen_for(folder, source, monkeypatch):
    """Maps that do not depend on the model are made once."""
    calls = []
    grids = Explainer.grids

    def watched(self, name, *rest):
        calls.append((name, self.findings))
        return grids(self, name, *rest)

    monkeypatch.setattr(Explainer, "grids", watched)
    both = {name: build_method(name, {}) for name in ("grad_cam", "random")}
    explainer = EnsembleExplainer(read_ensemble(folder), ("Edema", "Cardiomegaly"), both, "positive", 3)
    explainer([source.load(source.index()[0])])
    one_each = [("grad_cam", (finding,)) for finding in ("Cardiomegaly", "Cardiomegaly", "Edema", "Edema")]
    assert sorted(calls) == [*one_each, ("random", ("Edema", "Cardiomegaly"))]


def test_each_member_is_read_once_for_all_cases_and_they_pass_it_in_batches(folder, source, monkeypatch):
    read, passed = [], []
    loaded, answers = Ensemble.loaded, ensemble_module.answers_of
    monkeypatch.setattr(Ensemble, "loaded", lambda self, member: read.append(member.path.stem) or loaded(self, member))
    monkeypatch.setattr(
        ensemble_module, "answers_of", lambda network, images: passed.append(len(images)) or answers(network, images)
    )
    explainer = ready(EnsembleExplainer(read_ensemble(folder), STUDIED, methods(), "positive", 3), source)
    explainer = replace(explainer, batch_size=2)
    cases = [source.load(key) for key in source.index()[:3]]
    together, seconds = explainer(cases)
    assert read == ["a", "b", "c", "d"]
    assert passed == [2, 1] * 4
    assert seconds.keys() == set(METHODS)
    apart = [*explainer(cases[:2])[0], *explainer(cases[2:])[0]]
    for one, other in zip(together, apart, strict=True):
        assert (one.case.key.case, one.probabilities) == (other.case.key.case, other.probabilities)
        for name in METHODS:
            assert torch.equal(one.grids[name].values, other.grids[name].values)


def test_member_that_no_studied_finding_chose_is_not_loaded(folder, source):
    explainer = EnsembleExplainer(read_ensemble(folder), ("Edema",), methods(), "positive", 3)
    assert [member.path.stem for member in explainer.members] == ["a", "b"]


def networks():
    gc.collect()
    return sum(type(each).__name__ == "DenseNet" for each in gc.get_objects())


def test_number_of_networks_in_memory_does_not_grow_with_the_members(tmp_path, source):
    """One for each kind of head, and the one that methods are tried out on."""
    write_ensemble(tmp_path)
    for number in range(4):
        (tmp_path / f"{number}.safetensors").write_bytes((tmp_path / "a.safetensors").read_bytes())
    list_members(tmp_path, dict.fromkeys(FINDINGS, "abcd0123"))
    before = networks()
    only = {"grad_cam": build_method("grad_cam", {})}
    explainer = EnsembleExplainer(read_ensemble(tmp_path), FINDINGS, only, "positive", 3)
    alive = []
    loaded = type(explainer.ensemble).loaded

    class Watched(type(explainer.ensemble)):
        def loaded(self, member):
            alive.append(networks() - before)
            return loaded(self, member)

    object.__setattr__(explainer.ensemble, "__class__", Watched)
    ready(explainer, source)([source.load(source.index()[0])])
    assert len(alive) == 8
    assert max(alive) <= 3


def test_training_with_uncertain_labels_ends_in_maps_of_an_ensemble(tmp_path, source):
    """The whole way: train, choose, read back as a study would, explain cases."""
    trained = train(training_spec(tmp_path, PROTOCOL, runs=1), tmp_path / "my-training", Silent())
    assert trained.ensemble is not None
    model = open_model(ModelSettings(name="densenet_compact", ensemble="my-training"), tmp_path)
    few = {name: build_method(name, {}) for name in ("grad_cam", "lrp", "location_prior")}
    explainer = ready(EnsembleExplainer(model, model.outputs, few, "positive", 3), source)
    explained, _ = explainer([source.load(key) for key in source.index()[:2]])
    for one in explained:
        assert all(0 < probability < 1 for probability in one.probabilities)
        shown = one.map_of("grad_cam", 0)
        assert shown.shape == one.case.image.shape[1:]
        assert np.isfinite(shown).all()
