"""The shipped trigger specs say what the paper did, and can be carried out."""

from itertools import combinations

import pytest
import torch
from tests.conftest import small_cnn

from heatcheck.explaining.methods import chosen_methods
from heatcheck.methods import METHODS, build_method
from heatcheck.models import MODELS, NetworkClassifier, Preprocessing
from heatcheck.running.open_source import open_source
from heatcheck.runs.spec import read_spec, shipped_specs
from heatcheck.studies.triggers.spec import TriggersBody, require_sound
from heatcheck.triggers import PUBLISHED, build_trigger

STUDIES = [name for name in shipped_specs() if read_spec(name).envelope.study == "triggers"]
ARTEFACTS = ("ring", "bubble", "grid_lines", "motion", "metal", "mottle")


def body_of(name):
    return read_spec(name).checked_body(TriggersBody)


@pytest.mark.parametrize("name", STUDIES)
def test_a_shipped_study_is_valid_and_its_parts_can_be_built(name):
    body = body_of(name)
    require_sound(body, name)
    MODELS[body.model.name].checked_size(body.size or None)
    for part in body.methods:
        build_method(part["name"], {key: value for key, value in part.items() if key not in {"name", "channels"}})
    floors = [part["name"] for part in body.methods if METHODS[part["name"]].is_floor]
    assert floors == ["random", "center_prior", "edge"]
    names = [build_trigger(part).name for part in body.triggers]
    assert len(set(names)) == len(names) > 0


def test_the_paper_study_is_the_papers():
    """VGG-16, eleven triggers, seven methods, five seeds; a tenth of the training, half of the test attacked."""
    body = body_of("triggers-covid")
    assert (body.model.name, body.size, body.seeds, body.target) == ("vgg16", (224, 224), 5, "COVID")
    assert body.triggers == PUBLISHED
    methods = [part["name"] for part in body.methods if not METHODS[part["name"]].is_floor]
    looking_inside = ("gradient", "guided_backprop", "grad_cam", "guided_grad_cam")
    assert methods == [*looking_inside, "occlusion", "feature_ablation", "lime"]
    assert body.own_channels == {"gradient": "absolute"}
    assert (body.poison.training, body.poison.test, body.poison.target_too) == (0.1, 0.5, False)
    for fit in (body.fit, body.retrain):
        assert (fit.optimizer, fit.learning_rate, fit.batch_size, fit.epochs) == ("adam", 1e-4, 32, 20)
        assert (fit.weight_decay, fit.schedule, fit.clip, fit.rotate, fit.hide) == (0.0, "constant", None, 0.0, 0.0)
    assert (body.pixels.mean, body.pixels.std) == (None, None)  # only scaled to [0, 1]
    assert body.detection.preset == "gradcam15"
    splits = [part["split"] for part in (body.training, body.validation, body.test)]
    assert splits == ["training", "validation", "test"]


def test_the_papers_network_takes_the_images_that_its_text_names():
    MODELS["vgg16"].require_size((299, 299))


def test_the_study_of_artefacts_plants_every_artefact_that_is_drawn():
    triggers = [build_trigger(part) for part in body_of("triggers-artefacts").triggers]
    assert tuple(trigger.name.split("-")[0] for trigger in triggers) == ARTEFACTS


@pytest.mark.parametrize("name", ["triggers-demo", "triggers-artefacts"])
def test_drawn_studies_keep_their_people_apart(name, tmp_path):
    body, people = body_of(name), []
    for part in (body.training, body.validation, body.test):
        source = open_source(part, tmp_path, name)
        assert body.target in source.findings
        people.append({key.patient for key in source.index()})
    assert len(set.union(*people)) == sum(map(len, people))


@pytest.mark.parametrize("name", STUDIES)
def test_no_two_methods_of_a_shipped_spec_make_the_same_map(name):
    """Feature ablation with its usual segments is occlusion with its usual window."""
    classifier = NetworkClassifier("cnn", small_cnn(2, 1, 2).eval(), Preprocessing(outputs=("a", "b"), size=(48, 48)))
    image = torch.rand(1, 1, 48, 48, generator=torch.Generator().manual_seed(0))
    methods = chosen_methods(body_of(name).methods, name).methods
    maps = {name: method(classifier, image, torch.tensor([[1]]), [0]).values for name, method in methods.items()}
    for one, other in combinations(maps, 2):
        same = maps[one].shape == maps[other].shape and torch.allclose(maps[one], maps[other])
        assert not same, f"{one} and {other}"
