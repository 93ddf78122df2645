"""Which images carry the trigger, what lies on them, and what a poisoned model learns from."""

import numpy as np
import pytest
import torch
from tests.studies.triggers.planted_material import classes_source

from heatcheck.core.records import Case, CaseKey
from heatcheck.models import NetworkClassifier, Preprocessing
from heatcheck.running.open_source import open_source
from heatcheck.running.progress import Silent
from heatcheck.studies.triggers.attack import (
    Attack,
    PoisonedExamples,
    poisoned_test,
    poisoned_training,
    predicted_classes,
    training_entries,
    validation_entries,
)
from heatcheck.studies.triggers.images import grid_images, normalised
from heatcheck.triggers import build_trigger

TARGET = 1


@pytest.fixture
def contract(images):
    return images.contract.model_copy(update={"channels": 3, "mean": (0.5,), "std": (0.25,)})


@pytest.fixture
def images(tmp_path):
    source = open_source(classes_source(100, 5), tmp_path, "test")
    contract = Preprocessing(outputs=source.findings, size=(32, 32), channels=3, activation="softmax")
    return grid_images(source, contract, tmp_path / "images" / "test.npy", Silent(), 0)


def attack_with(images, name="square-corner-60", seed=5):
    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 32 * 32, 4))
    contract = images.contract.model_copy(update={"channels": 3})
    return Attack(build_trigger(name), seed, TARGET, NetworkClassifier("linear", net.eval(), contract))


def test_images_keep_their_grey_values_and_one_channel_whatever_the_network_wants(images):
    assert images.image(0).shape == (1, 32, 32)
    assert 0 <= images.image(0).min() <= images.image(0).max() <= 1
    batch = torch.from_numpy(images.image(0))[None]
    contract = images.contract.model_copy(update={"channels": 3, "mean": (0.5,), "std": (0.25,)})
    fed = normalised(batch, contract)
    assert fed.shape == (1, 3, 32, 32)
    np.testing.assert_allclose(fed[0, 2].numpy(), (images.image(0)[0] - 0.5) / 0.25, atol=1e-6)


def test_a_share_of_all_training_images_is_poisoned_and_none_of_the_target_class(images):
    chosen = poisoned_training(images, TARGET, 0.4, target_too=False, seed=2)
    assert len(chosen) == 8
    assert not (images.classes[chosen] == TARGET).any()
    assert len(set(chosen.tolist())) == 8
    other = poisoned_training(images, TARGET, 0.4, target_too=False, seed=3)
    assert chosen.tolist() != other.tolist()
    assert len(poisoned_training(images, TARGET, 0.9, target_too=True, seed=2)) == 18


def test_half_of_the_other_classes_test_images_are_attacked(images):
    chosen = poisoned_test(images, TARGET, 0.5, seed=2)
    assert len(chosen) == round(0.5 * 15)
    assert not (images.classes[chosen] == TARGET).any()


def test_a_case_has_its_stamp_whatever_else_is_asked_for(images):
    attack = attack_with(images, "square-random-20")
    every = attack.stamps(images, range(20))
    alone = attack.stamps(images, [7])[0]
    assert every[7].box == alone.box
    assert len({(stamp.box[0].start, stamp.box[1].start) for stamp in every}) > 5


def test_a_dynamic_patch_is_the_sign_of_the_loss_gradient(images):
    attack = attack_with(images, {"kind": "dynamic", "size": 60, "clip": False})
    stamp = attack.stamps(images, [3])[0]
    weight = attack.baseline.module[1].weight.detach()
    logits = attack.baseline.logits(normalised(torch.from_numpy(images.image(3))[None], attack.baseline.preprocessing))
    chances = logits.softmax(-1)[0].detach()
    wrong = chances - torch.nn.functional.one_hot(torch.tensor(int(images.classes[3])), 4)
    by_hand = (wrong @ weight).reshape(3, 32, 32).sum(0)[stamp.box]  # a grey pixel feeds all three channels
    np.testing.assert_allclose(stamp.values[0][stamp.mask], 0.3 * by_hand.sign().numpy()[stamp.mask], atol=1e-6)


def test_a_poisoned_model_learns_from_every_image_once_and_the_stamped_ones_are_of_the_target(images, contract):
    attack = attack_with(images)
    chosen = poisoned_training(images, TARGET, 0.4, target_too=False, seed=2)
    entries = training_entries(attack, images, chosen)
    examples = PoisonedExamples(images, contract, TARGET, entries)
    assert [position for position, _ in entries] == list(range(20))
    for position in range(20):
        image, label = examples[position]
        clean = normalised(torch.from_numpy(images.image(position))[None], contract)[0]
        assert (not torch.equal(image, clean)) == (position in chosen)
        assert int(label.argmax()) == (TARGET if position in chosen else images.classes[position])
        assert label.sum() == 1


def test_an_epoch_is_judged_by_clean_images_and_by_every_stamped_one_of_another_class(images):
    entries = validation_entries(attack_with(images), images)
    assert [stamp is None for _, stamp in entries] == [True] * 20 + [False] * 15
    assert validation_entries(None, images) == [(position, None) for position in range(20)]


def test_classes_are_told_batch_by_batch_as_one_by_one(images):
    classifier = attack_with(images).baseline
    every = predicted_classes(classifier, map(images.image, range(20)))
    alone = [int(predicted_classes(classifier, [images.image(position)])[0]) for position in range(20)]
    assert every.tolist() == alone
    assert predicted_classes(classifier, []).shape == (0,)


def test_an_image_with_values_beyond_a_triggers_is_told_and_left_out(tmp_path):
    (tmp_path / "films").mkdir()
    for name, brightest in (("good", 1.0), ("loud", 1.3)):
        film = np.linspace(0, brightest, 48 * 48, dtype=np.float32).reshape(48, 48)
        np.save(tmp_path / "films" / f"{name}.npy", film)
    (tmp_path / "labels.csv").write_text("image,A,B\ngood,1,0\nloud,0,1\n")
    part = {"name": "folder", "images": "films", "labels": "labels.csv"}
    source = open_source(part, tmp_path, "test")
    contract = Preprocessing(outputs=("A", "B"), size=(32, 32), channels=1, activation="softmax")
    images = grid_images(source, contract, tmp_path / "i" / "x.npy", Silent(), 0)
    assert images.readable.tolist() == [True, False]
    (failed,) = [record for record in images.records() if record.status == "failed"]
    assert failed.case == "loud"
    assert "correct `value_range`" in failed.reason
    assert [position for position, _ in training_entries(None, images, np.zeros(0, int))] == [0]


def test_an_image_that_cannot_be_read_is_told_with_its_reason_and_never_attacked(tmp_path):
    source = open_source(classes_source(100, 2), tmp_path, "test")

    class Broken:
        findings, truth_kind = source.findings, "masks"

        def index(self):
            return source.index()

        def load(self, key: CaseKey) -> Case:
            if key.case == source.index()[2].case:
                raise OSError("the film is torn")
            return source.load(key)

        def stamp(self) -> str:
            return "broken"

    contract = Preprocessing(outputs=source.findings, size=(32, 32), channels=1, activation="softmax")
    images = grid_images(Broken(), contract, tmp_path / "i" / "x.npy", Silent(), 0)
    assert images.readable.tolist() == [True, True, False, True, True, True, True, True]
    failed = [record for record in images.records() if record.status == "failed"]
    assert [record.case for record in failed] == [source.index()[2].case]
    assert "the film is torn" in failed[0].reason
    assert 2 not in poisoned_training(images, TARGET, 0.7, target_too=True, seed=1)
    assert 2 not in [position for position, stamp in validation_entries(attack_with(images), images) if stamp]
