import numpy as np
import pytest

from heatcheck.core.errors import CaseError
from heatcheck.models import Preprocessing
from heatcheck.models.classifier import prepared
from heatcheck.running.progress import Silent
from heatcheck.sources.phantoms.phantom_chest import PhantomChest, PhantomChestSettings
from heatcheck.studies.alignment.bases import BaseNetworks, PlannedBase
from heatcheck.studies.alignment.images import ImageRequest, images_of
from heatcheck.studies.alignment.networks import NetworkCell, cells_of, methods_on, parts_of
from heatcheck.studies.alignment.settings import AlignmentSettings
from heatcheck.studies.alignment.vocabulary import Base

FINDINGS = ("Cardiomegaly", "Pleural Effusion")


def phantom(patients=12):
    return PhantomChest(PhantomChestSettings(patients=patients, size=48, second_view=0.4, readers=0))


def contract(**changes):
    return Preprocessing(outputs=FINDINGS, size=(32, 32), **changes)


def read(folder, source=None, contracts=()):
    wanted = ImageRequest(source or phantom(), FINDINGS, contracts or (contract(),), 1)
    return images_of(wanted, folder, "finetune", Silent())


def rule(**changes):
    facts = {
        "bases": (Base("one", "one", "DenseNet", "given", False),),
        "findings": FINDINGS,
        "methods": ("gradient", "grad_cam"),
        "judged": ("random",),
        "through": "gradient",
        "seeds": (1, 2),
        "metrics": ("mass",),
        "draws": 100,
        "seed": 0,
        "human": "truth",
    }
    return AlignmentSettings(**{**facts, **changes})


def test_images_are_what_the_network_would_prepare_itself(tmp_path):
    source, contracts = phantom(), (contract(), contract(channels=3), contract(fit="pad", mean=(0.4,)))
    contracts += (contract(scaling="nonzero"), contract(mean=(0.0,), std=(1.0,)))
    images = read(tmp_path, source, contracts)
    for each in contracts:
        for row, key in enumerate(images.keys):
            expected = prepared(source.load(key).image, each)
            assert np.array_equal(images.prepared([row], each)[0].numpy(), expected.numpy())


def test_copies_of_grey_are_stored_once(tmp_path):
    read(tmp_path, contracts=(contract(), contract(channels=3)))
    assert len(list((tmp_path / "images" / "finetune").glob("*.npy"))) == 1


def test_masks_come_back_as_they_were(tmp_path):
    source = phantom()
    images = read(tmp_path, source)
    for row, key in enumerate(images.keys):
        truth = source.truth(key)
        for finding in FINDINGS:
            mask = images.mask(row, finding)
            assert (mask is None) == (finding not in truth)
            assert mask is None or np.array_equal(mask, truth[finding])


def test_images_are_read_once_and_again_when_the_data_change(tmp_path):
    class Counting(PhantomChest):
        loads = 0

        def load(self, key):
            Counting.loads += 1
            return super().load(key)

    source = Counting(PhantomChestSettings(patients=3, size=48, second_view=0, readers=0))
    read(tmp_path, source)
    read(tmp_path, source)
    assert Counting.loads == 3
    more = Counting(PhantomChestSettings(patients=4, size=48, second_view=0, readers=0))
    assert len(read(tmp_path, more).keys) == 4


def test_an_image_that_cannot_be_read_is_recorded_and_leaves_no_row(tmp_path):
    class Broken(PhantomChest):
        def load(self, key):
            if key.patient == "phantom000001":
                raise CaseError("torn in two", stage="read")
            return super().load(key)

    images = read(tmp_path, Broken(PhantomChestSettings(patients=4, size=48, second_view=0, readers=0)))
    assert [key.patient for key in images.keys] == ["phantom000000", "phantom000002", "phantom000003"]
    assert [(record.status, record.reason) for record in images.failed] == [("failed", "torn in two")]
    assert len(images.records()) == 4


@pytest.mark.parametrize("seed", range(5))
def test_no_patient_is_in_both_parts_and_each_has_an_outlined_finding(tmp_path, seed):
    images = read(tmp_path, phantom(20))
    for finding in FINDINGS:
        parts = parts_of(images, (finding,), 1 / 3, seed)
        learned, choosing = ({images.keys[row].patient for row in rows} for rows in (parts.learned, parts.choosing))
        assert not learned & choosing
        assert len(parts.learned) + len(parts.choosing) == len(images.keys)
        outlined = {images.keys[row].patient for row in images.positives(finding)}
        assert outlined & learned
        assert outlined & choosing


def test_parts_differ_from_seed_to_seed(tmp_path):
    images = read(tmp_path, phantom(20))
    first, second = (parts_of(images, FINDINGS[:1], 1 / 3, seed).choosing.tolist() for seed in (1, 2))
    assert first != second


def test_the_grid_has_every_arm_once():
    cells = list(cells_of(rule(), several=False))
    assert len({cell.file for cell in cells}) == len(cells) == 1 + 2 * 2 * (1 + 2 * 2)
    assert len(list(cells_of(rule(), several=True))) == 1 + 2 * (1 + 2 * 2)


def test_a_base_and_a_control_show_every_method_and_an_aligned_network_its_own():
    assert list(methods_on(NetworkCell("one", "base", FINDINGS), rule())) == ["gradient", "grad_cam", "random"]
    assert methods_on(NetworkCell("one", "align", FINDINGS, 1, "gradient"), rule()) == {
        "gradient": "",
        "random": "gradient",
    }
    assert methods_on(NetworkCell("one", "align", FINDINGS, 1, "grad_cam"), rule()) == {"grad_cam": ""}


def test_networks_whose_names_differ_in_letters_that_no_file_has_do_not_share_one():
    findings = [NetworkCell("cnn", "control", (name,), 1).file for name in ("结节", "气胸", "Lung Lesion")]
    assert len(set(findings)) == 3
    assert findings[2] == "cnn-Lung_Lesion-control-seed1"
    bases = [NetworkCell(name, "control", ("Edema",), 1).file for name in ("a/b-c", "a-b/c", "a/b/c", "a b/c", "a:b/c")]
    assert len(set(bases)) == 5


def test_bases_whose_names_are_alike_but_for_a_dash_do_not_share_their_weights(tmp_path):
    bases = [called(name) for name in ("a/b-c", "a-b/c", "densenet_compact/random_1_channel")]
    networks = BaseNetworks(tuple(bases), None, None, tmp_path)
    files = [networks.store.path(base.file).name for base in bases]
    assert len(set(files)) == 3
    assert files[2] == "densenet_compact-random_1_channel.safetensors"


def called(key):
    """A base of that name, of which nothing else is known."""
    return PlannedBase(Base(key, "densenet_compact", "DenseNet", "", pretrained=False), None, None)
