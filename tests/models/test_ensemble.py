import json

import pytest
import torch
from pydantic import ValidationError
from tests.ensemble_material import CHOSEN, FINDINGS, checkpoint, list_members, write_ensemble

from heatcheck.core.errors import ModelError
from heatcheck.models import ModelSettings, NetworkClassifier, load_classifier, open_model, read_ensemble
from heatcheck.models.load import file_hash, stored_state


@pytest.fixture
def folder(tmp_path):
    return write_ensemble(tmp_path)


def member(folder, name):
    return load_classifier(ModelSettings(name="densenet_compact", weights=folder / f"{name}.safetensors"))


def test_probability_of_a_finding_is_the_mean_over_its_members(folder):
    ensemble = read_ensemble(folder, "densenet_compact")
    images = torch.randn(2, 1, 32, 32, generator=torch.Generator().manual_seed(1))
    probabilities = ensemble.probabilities(ensemble.logits(images))
    for column, finding in enumerate(FINDINGS):
        with torch.no_grad():
            each = [m.probabilities(m.logits(images)) for m in (member(folder, name) for name in CHOSEN[finding])]
        torch.testing.assert_close(
            probabilities[:, column], torch.stack(each)[:, :, column].mean(0), rtol=1e-4, atol=1e-6
        )
    assert ensemble.outputs == FINDINGS
    assert ensemble.counts == [2, 2, 4]
    assert len(ensemble.members) == 4


def test_hash_depends_on_every_member_and_on_what_it_is_for(folder):
    digest = read_ensemble(folder).weights_hash
    assert read_ensemble(folder / "ensemble.json").weights_hash == digest
    list_members(folder, {**CHOSEN, "Edema": "ac"})
    other = read_ensemble(folder).weights_hash
    checkpoint(folder / "d.safetensors", 9, "three_class")
    list_members(folder)
    assert len({digest, other, read_ensemble(folder).weights_hash}) == 3


def test_first_member_stands_for_all(folder):
    ensemble = read_ensemble(folder, "my label")
    stand_in = ensemble.stand_in
    assert isinstance(stand_in, NetworkClassifier)
    assert (stand_in.name, stand_in.weights_hash) == ("my label", ensemble.weights_hash)
    images = torch.randn(1, 1, 32, 32)
    with torch.no_grad():
        ensemble.logits(images)
        assert torch.equal(stand_in.logits(images), member(folder, "a").logits(images))  # others do not overwrite it


def test_spec_names_an_ensemble_or_weights(folder):
    opened = open_model(ModelSettings(name="densenet_compact", ensemble="."), folder)
    assert opened.weights_hash == read_ensemble(folder).weights_hash
    one = open_model(ModelSettings(name="densenet_compact", weights="a.safetensors"), folder)
    assert isinstance(one, NetworkClassifier)
    with pytest.raises(ValidationError, match="either `ensemble` or `weights`"):
        ModelSettings(name="densenet_compact", ensemble="x", weights="y")
    with pytest.raises(ModelError, match="one network is needed; name `weights:`"):
        load_classifier(ModelSettings(name="densenet_compact", ensemble="x"))


def truncated(folder):
    text = (folder / "ensemble.json").read_text()
    (folder / "ensemble.json").write_text(text[: len(text) // 2])


def without_a_checkpoint(folder):
    (folder / "c.safetensors").unlink()


def exchanged(folder):
    (folder / "c.safetensors").write_bytes((folder / "a.safetensors").read_bytes())


def of_other_images(folder):
    checkpoint(folder / "c.safetensors", 2, mean=(0.4,))
    list_members(folder)


def without_a_finding(folder):
    list_members(folder, {"Edema": "ab", "Cardiomegaly": "cd"})


def of_no_one(folder):
    list_members(folder, {"Edema": "", "Cardiomegaly": "", "Pneumothorax": ""})


def with_another_key(folder):
    listed = json.loads((folder / "ensemble.json").read_text())
    (folder / "ensemble.json").write_text(json.dumps({**listed, "weights": "x"}))


def not_there(folder):
    (folder / "ensemble.json").unlink()


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (truncated, "does not describe an ensemble"),
        (without_a_checkpoint, "checkpoint c.safetensors is missing"),
        (exchanged, "checkpoint c.safetensors is not the one it was chosen with"),
        (of_other_images, "checkpoint c.safetensors was trained with other images or findings"),
        (without_a_finding, "has no checkpoint for Pneumothorax"),
        (of_no_one, "names no checkpoint"),
        (with_another_key, "weights: Extra inputs are not permitted"),
        (not_there, "no such ensemble; correct `ensemble:`"),
    ],
)
def test_damaged_ensemble_is_refused_in_one_line(folder, damage, message):
    damage(folder)
    with pytest.raises(ModelError) as caught:
        read_ensemble(folder, "densenet_compact")
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_ensemble_of_another_architecture_is_refused(folder):
    with pytest.raises(ModelError, match="is an ensemble of densenet_compact, the spec names densenet121"):
        read_ensemble(folder, "densenet121")


def test_checkpoint_exchanged_while_it_is_used_is_noticed(folder):
    ensemble = read_ensemble(folder)
    exchanged(folder)
    with pytest.raises(ModelError, match="was changed while it was in use"):
        ensemble.logits(torch.zeros(1, 1, 32, 32))


def test_a_checkpoint_is_hashed_once_and_again_only_after_a_change(folder, monkeypatch):
    ensemble = read_ensemble(folder)
    hashed = []
    monkeypatch.setattr("heatcheck.models.ensemble.file_hash", lambda path: hashed.append(path) or file_hash(path))
    for _ in range(3):
        ensemble.logits(torch.zeros(1, 1, 32, 32))
    assert sorted(hashed) == sorted(member.path for member in ensemble.members)
    exchanged(folder)
    with pytest.raises(ModelError, match="was changed while it was in use"):
        ensemble.logits(torch.zeros(1, 1, 32, 32))


@pytest.mark.parametrize(("room", "readings"), [(1.5, {"a": 1, "b": 3, "c": 3, "d": 3}), (9, dict.fromkeys("abcd", 1))])
def test_files_are_read_once_and_not_for_every_batch_as_far_as_there_is_room(folder, monkeypatch, room, readings):
    """Answers are the same with and without room."""
    images = torch.randn(1, 1, 32, 32, generator=torch.Generator().manual_seed(1))
    expected = read_ensemble(folder).logits(images)
    ensemble, read = read_ensemble(folder), []
    size = sum(tensor.nbytes for tensor in ensemble.stand_in.module.state_dict().values())
    monkeypatch.setattr("heatcheck.models.ensemble.MOST_BYTES", room * size)
    monkeypatch.setattr(
        "heatcheck.models.ensemble.stored_state", lambda path: read.append(path.stem) or stored_state(path)
    )
    for _ in range(3):
        assert torch.equal(ensemble.logits(images), expected)
    assert {name: read.count(name) for name in read} == readings
