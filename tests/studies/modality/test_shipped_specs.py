"""The shipped modality specs say what the paper did, and the shipped network relies on what tells the grade."""

from pathlib import Path

import numpy as np
import pytest
import torch

from heatcheck import models
from heatcheck.fitting.spec import planned
from heatcheck.methods import build_method
from heatcheck.methods.published import MODALITY_STUDY
from heatcheck.models import MODELS, ModelSettings, load_classifier
from heatcheck.running.open_source import open_source
from heatcheck.runs.spec import read_spec, shipped_specs
from heatcheck.sources.phantoms.phantom_brain import PhantomBrain, PhantomBrainSettings
from heatcheck.stats.shapley import coalitions, shapley
from heatcheck.studies.modality.spec import ModalityBody, modalities_of

NAME = "phantom_brain_vgg"
STUDIES = [name for name in shipped_specs() if name.startswith("modality-")]
TUNED_BELOW = 10_000_000
PUBLISHED = {part.method: part for part in MODALITY_STUDY}


def body_of(name):
    return read_spec(name).checked_body(ModalityBody)


def built(body):
    """The methods of a spec by name."""
    return {
        part["name"]: build_method(part["name"], {key: value for key, value in part.items() if key != "name"})
        for part in body.methods
    }


def test_four_studies_are_shipped():
    assert set(STUDIES) == {"modality-demo", "modality-brats", "modality-phantom-3d", "modality-synthetic"}


@pytest.mark.parametrize("name", STUDIES)
def test_a_shipped_study_has_all_sixteen_methods_and_they_can_be_built(name):
    assert set(built(body_of(name))) == set(PUBLISHED)


@pytest.mark.parametrize(("study", "size"), [("modality-brats", (128, 128, 128)), ("modality-synthetic", (256, 256))])
def test_a_paper_study_is_the_papers(study, size):
    body = body_of(study)
    for name, method in built(body).items():
        assert method == PUBLISHED[name].build(), name
    assert (body.folds, body.size, body.validation_share) == (5, size, 0.2)
    fit = body.fit
    assert (fit.optimizer, fit.learning_rate, fit.batch_size, fit.balanced) == ("adam", 5e-4, 4, True)
    assert (body.masks, body.boxes, body.measure, body.weights) == ("shared", False, "accuracy", "min_max")
    assert body.fills[0] == "zero"
    assert (body.removal.steps, body.removal.random) == (10, 15)


def test_the_synthetic_study_shows_the_grade_as_the_papers_does(tmp_path):
    """DenseNet-121 on 4 × 256 × 256, as many LGG as HGG; shape and texture agree always in T1C, in 70 % in FLAIR."""
    body = body_of("modality-synthetic")
    source = open_source(body.source, tmp_path, "")
    settings = source.settings
    assert (body.model.name, body.importance, settings.size) == ("densenet121", "known", 256)
    assert (settings.shape, settings.texture, settings.t1c, settings.flair) == (True, True, 1.0, 0.7)
    assert sum(key.labels["HGG"] for key in source.index()) == len(source.index()) / 2
    known = {part.modality: open_source(part.source, tmp_path, "") for part in body.known}
    assert all(other.settings.texture and other.settings.shape for other in known.values())
    tested = {key.patient for key in source.index()}
    assert not tested & {key.patient for other in known.values() for key in other.index()}


@pytest.mark.parametrize("name", ["modality-demo", "modality-phantom-3d", "modality-synthetic"])
def test_drawn_studies_find_their_modalities_and_known_sets(name, tmp_path):
    body = body_of(name)
    source = open_source(body.source, tmp_path, name)
    assert modalities_of(body, source, name) == ("T1", "T1C", "T2", "FLAIR")
    for part in body.known:
        right = open_source(part.source, tmp_path, name).settings
        assert right.tumour_only == 1
        assert (right.t1c, right.flair) == ((1, 0) if part.modality == "T1C" else (0, 1))


def test_nobody_of_the_demonstration_was_learnt_from_or_tuned_on(tmp_path):
    """Networks and settings were chosen on people with numbers below ten millions."""
    body, met = body_of("modality-demo"), set()
    for name in ("phantom-brain", "phantom-brain-plain"):
        spec = planned(read_spec(name))
        met |= {key.patient for source in (spec.training, spec.validation, spec.test) for key in source.index()}
    for part in (body.source, *(known.source for known in body.known)):
        source = open_source(part, tmp_path, "")
        assert source.settings.first >= TUNED_BELOW
        assert not met & {key.patient for key in source.index()}
    assert max(int(patient.removeprefix("phantom")) for patient in met) < TUNED_BELOW


def test_the_plain_network_was_trained_as_the_shipped_one_but_for_what_was_hidden():
    hidden, plain = (planned(read_spec(name)) for name in ("phantom-brain", "phantom-brain-plain"))
    assert (hidden.body.fit.hide, plain.body.fit.hide) == (0.25, 0.0)
    fit = hidden.body.fit.model_copy(update={"hide": 0.0})
    assert hidden.body.model_copy(update={"fit": fit}) == plain.body
    assert hidden.seed == plain.seed
    networks = [load_classifier(ModelSettings(name=name)) for name in (NAME, f"{NAME}_plain")]
    assert networks[0].preprocessing == networks[1].preprocessing
    assert networks[0].weights_hash != networks[1].weights_hash


@pytest.fixture(scope="module")
def network():
    return load_classifier(ModelSettings(name=NAME))


def shown_to(network, **changes):
    """Prepared images of people the network has never met, and the places of their grades."""
    side = network.preprocessing.size[0]
    source = PhantomBrain(PhantomBrainSettings(**{"cases": 100, "first": 9_000_000, "size": side, **changes}))
    keys = source.index()
    images = network.prepare([source.load(key).image for key in keys])
    return images, np.array([[key.labels[name] for name in network.outputs] for key in keys]).argmax(1)


@torch.no_grad()
def right(network, images, grades):
    return network.logits(images).argmax(1).numpy() == grades


@pytest.mark.slow
def test_the_shipped_network_is_small_and_right_on_unseen_people(network):
    assert network.outputs == ("LGG", "HGG")
    assert (network.preprocessing.activation, network.preprocessing.scaling) == ("softmax", "nonzero")
    assert right(network, *shown_to(network)).mean() >= 0.95
    assert (Path(models.__file__).parent / "weights" / MODELS[NAME].weights).stat().st_size <= 5_000_000


@pytest.mark.slow
def test_the_shipped_network_relies_on_t1c_and_not_on_t1_and_t2(network):
    """The exact Shapley values over all sixteen subsets, with intervals of people drawn with replacement."""
    images, grades = shown_to(network)
    among = coalitions(4)
    told = np.stack([right(network, images * torch.tensor(s)[:, None, None], grades) for s in among.members], 1)
    drawn = np.random.default_rng(0).integers(len(grades), size=(400, len(grades)))
    phi = shapley(told.mean(0), among).values
    low, high = np.quantile(shapley(told[drawn].mean(1), among).values, [0.025, 0.975], axis=0)
    t1, t1c, t2, flair = range(4)
    assert phi.argmax() == t1c
    assert low[t1c] > high[[t1, t2, flair]].max()
    for useless in (t1, t2):
        assert low[useless] <= 0 <= high[useless]


@pytest.mark.slow
@pytest.mark.parametrize(("t1c", "flair", "least", "most"), [(1, 0, 0.9, 1), (0, 1, 0, 0.15)])
def test_the_shipped_network_follows_t1c_where_only_tumours_are_shown(network, t1c, flair, least, most):
    told = right(network, *shown_to(network, t1c=t1c, flair=flair, tumour_only=True))
    assert least <= told.mean() <= most
