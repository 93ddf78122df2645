"""Maps in a notebook: any network, any spelling of the targets, files that others can read."""

import json
import re
from html.parser import HTMLParser

import nibabel
import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn
from torch.nn import functional

import heatcheck
from heatcheck.core.errors import InputError, ModelError
from heatcheck.core.seeds import seed_for
from heatcheck.explaining.inputs import ALL_UP_TO
from heatcheck.methods import METHODS, build_method
from heatcheck.models import MODELS


class Blob(nn.Module):
    """Output 0 rises with what is bright; output 1 with what is dark; functional ReLU, dropout."""

    def __init__(self, outputs=2, axes=2):
        super().__init__()
        conv = nn.Conv2d if axes == 2 else nn.Conv3d
        self.look = conv(1, 4, 3, padding=1, bias=False)
        self.drop = nn.Dropout(0.5)
        self.head = nn.Linear(4, outputs)
        with torch.no_grad():
            self.look.weight.fill_(1 / 9)
            self.head.weight.copy_(torch.linspace(1, -1, outputs)[:, None].expand(outputs, 4))
            self.head.bias.zero_()

    def forward(self, images):
        return self.head(self.drop(functional.relu(self.look(images)).flatten(2).mean(2)))


def blob_at(row, column, shape=(24, 36)):
    image = torch.zeros(1, 1, *shape)
    image[0, 0, row - 2 : row + 3, column - 2 : column + 3] = 1.0
    return image


IMAGES = torch.cat([blob_at(6, 30), blob_at(18, 8)])


def test_any_network_is_explained_and_left_as_it_was():
    network = Blob().train()
    before = {name: value.clone() for name, value in network.state_dict().items()}
    explained = heatcheck.explain(network, IMAGES)
    assert explained.method == "grad_cam"
    assert explained.values.shape[:3] == (2, 2, 1)
    assert explained.targets.tolist() == [[0, 1], [0, 1]]
    assert network.training
    assert network.drop.training
    assert all(torch.equal(value, before[name]) for name, value in network.state_dict().items())
    with torch.no_grad():
        assert torch.allclose(explained.scores, network.eval()(IMAGES))


@pytest.mark.parametrize("method", ["grad_cam", "integrated_gradients", "occlusion"])
def test_the_map_is_hot_where_the_evidence_is(method):
    settings = {"window": 6, "stride": 6} if method == "occlusion" else {}
    maps = heatcheck.explain(Blob(), IMAGES, method, targets=0, settings=settings).on_image()
    assert maps.shape == (2, 1, 24, 36)
    for values, (row, column) in zip(maps[:, 0], [(6, 30), (18, 8)], strict=True):
        peak = np.unravel_index(values.argmax(), values.shape)
        assert abs(peak[0] - row) <= 6
        assert abs(peak[1] - column) <= 6


def test_it_says_what_the_method_says():
    network = Blob().eval()
    explained = heatcheck.explain(network, IMAGES, "smooth_grad", targets=[1], settings={"samples": 3}, seed=4)
    from heatcheck.models import NetworkClassifier, Preprocessing

    contract = Preprocessing(outputs=("0", "1"), size=(24, 36), channels=1, mean=(0.0,), std=(1.0,))
    seeds = [seed_for(4, name, "smooth_grad") for name in ("Image 1", "Image 2")]
    method = build_method("smooth_grad", {"samples": 3})
    expected = method(NetworkClassifier("n", network, contract), IMAGES, torch.tensor([[1], [1]]), seeds)
    assert torch.equal(explained.values, expected.values)
    assert explained.settings == {"samples": 3, "noise": 0.1, "noise_is": "relative"}


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        (1, [[1], [1]]),
        ("dark", [[1], [1]]),
        ([1, "bright"], [[1, 0], [1, 0]]),
        (np.int64(1), [[1], [1]]),
        (torch.tensor([[0], [1]]), [[0], [1]]),
        (np.array([1]), [[1], [1]]),
        (None, [[0, 1], [0, 1]]),
    ],
)
def test_targets_may_be_numbers_names_or_one_row_per_image(targets, expected):
    explained = heatcheck.explain(Blob(), IMAGES, targets=targets, outputs=["bright", "dark"])
    assert explained.targets.tolist() == expected


def test_of_many_outputs_the_highest_is_explained():
    explained = heatcheck.explain(Blob(outputs=ALL_UP_TO + 1), IMAGES)
    assert explained.targets.tolist() == [[0], [0]]


@pytest.mark.parametrize("kind", [lambda x: x, lambda x: x.numpy(), lambda x: x.numpy()[:, :, ::-1]])
def test_tensors_and_arrays_with_or_without_a_batch(kind):
    assert len(heatcheck.explain(Blob(), kind(IMAGES))) == 2
    assert len(heatcheck.explain(Blob(), kind(IMAGES)[0])) == 1
    volume = torch.rand(1, 8, 9, 10, generator=torch.Generator().manual_seed(1))
    assert heatcheck.explain(Blob(axes=3), volume).on_image().shape == (1, 2, 8, 9, 10)


def test_several_methods_come_by_name():
    explained = heatcheck.explain(Blob(), IMAGES, ["grad_cam", "occlusion"], settings={"occlusion": {"window": 50}})
    assert list(explained) == ["grad_cam", "occlusion"]
    assert explained["occlusion"].settings["window"] == 50
    assert explained._repr_html_().count("<table>") == 2
    with pytest.raises(InputError, match="settings are for 'window'"):
        heatcheck.explain(Blob(), IMAGES, ["occlusion"], settings={"window": 50})


def test_more_images_than_go_through_together_give_the_same_maps():
    many = heatcheck.explain(Blob(), IMAGES[[0, 1, 0, 1, 0, 1]], "gradient")
    assert torch.allclose(many.values[:2], many.values[4:], atol=1e-6)


def test_a_plain_function_is_explained_by_its_predictions():
    kinds = []

    def predict(images):
        kinds.append(type(images))
        return np.stack([images.sum((1, 2, 3)), -images.sum((1, 2, 3))], 1)

    explained = heatcheck.explain(predict, IMAGES, "occlusion", settings={"window": 6, "stride": 6})
    assert explained.model == "predict"
    assert set(kinds) == {np.ndarray}
    assert np.unravel_index(explained.on_image()[0, 0].argmax(), (24, 36))[1] >= 24
    with pytest.raises(
        ModelError, match="grad_cam looks inside the model, but only predictions of predict are available"
    ):
        heatcheck.explain(predict, IMAGES)


def test_a_loaded_classifier_has_probabilities():
    from heatcheck.models import ModelSettings, load_classifier

    classifier = load_classifier(ModelSettings(name="phantom_chest_densenet"))
    image = np.random.default_rng(1).random((1, 64, 64)).astype(np.float32)
    explained = heatcheck.explain(classifier, classifier.prepare([image]), targets="Edema")
    assert torch.allclose(explained.probabilities, explained.scores.sigmoid())
    assert "probability" in explained._repr_html_()
    assert heatcheck.explain(classifier.module, classifier.prepare([image])).probabilities is None


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"images": IMAGES.half()}, r"float16.*images.float\(\)"),
        ({"images": IMAGES.expand(-1, 3, -1, -1)}, "3 channels, its first convolution takes 1"),
        ({"images": IMAGES / 0}, "NaN or infinity"),
        ({"images": [[1.0]]}, "images are a list"),
        ({"images": IMAGES.numpy().astype(object)}, "images cannot be used"),
        ({"model": "densenet"}, "model is a str"),
        ({"model": nn.Identity()}, r"gives \(2, 1, 24, 36\), expected"),
        ({"model": nn.Identity(), "outputs": None}, r"returns \(1, 1, 24, 36\) for one image"),
        ({"targets": 2}, "has 2 outputs, 0 to 1"),
        ({"targets": "drak"}, "did you mean 'dark'"),
        ({"targets": 0.5}, "neither the number nor the name"),
        ({"targets": torch.zeros(3, 1, dtype=torch.long)}, "for 3 images, there are 2"),
        ({"outputs": ["a", "a"]}, "none twice"),
        ({"method": "grad_cm"}, "did you mean 'grad_cam'"),
        ({"method": "location_prior"}, "truth masks"),
        ({"settings": {"layer": "lok"}}, "did you mean 'look'"),
        ({"settings": {"layr": "look"}}, "did you mean 'layer'"),
        (
            {"method": "feature_ablation", "settings": {"segments": {"kind": "grid", "cells": 30}}},
            "do not fit on an axis",
        ),
        ({"method": "occlusion", "settings": {"window": 2, "stride": 3}}, "leaves gaps"),
        ({"affine": np.eye(3)}, "4 × 4"),
    ],
)
def test_what_cannot_be_used_is_said_in_one_sentence(change, words):
    given = {"model": Blob(), "images": IMAGES, "outputs": ["bright", "dark"], **change}
    with pytest.raises(InputError, match=words) as caught:
        heatcheck.explain(given.pop("model"), given.pop("images"), **given)
    assert "\n" not in str(caught.value)


class Pictures(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.images = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        if tag == "img":
            self.images.append(dict(attrs))


def test_a_notebook_shows_one_row_per_image_and_one_column_per_target():
    explained = heatcheck.explain(Blob(), IMAGES, "integrated_gradients", outputs=["bright", "<dark>"])
    html = explained._repr_html_()
    assert html.count("<tr>") == 2
    assert "Integrated gradients" in html
    assert "&lt;dark&gt;" in html
    assert re.search(r"score [+-]\d", html)
    assert re.search(r"error \d", html)
    images = Pictures(html).images
    assert len(images) == 2 * 3 + 1, "the bare image, two targets, and one colour scale"
    assert all(each["src"].startswith("data:image/png;base64,") for each in images)
    assert (images[0]["width"], images[0]["height"]) == ("320", "213"), "24 × 36 pixels keep their proportions"
    assert "hottest at row" in images[1]["alt"]
    assert "nothing in the image speaks for it" in images[2]["alt"]
    assert "no evidence for it" in html
    assert html.count("<td") == html.count("</td>")


def test_a_notebook_of_many_images_shows_the_first_and_says_so():
    explained = heatcheck.explain(Blob(), IMAGES[[0] * 10], targets=0)
    html = explained._repr_html_()
    assert html.count("<tr>") == 8
    assert "The first 8 of 10 images are shown" in html
    assert repr(explained) == "<grad_cam on Blob: 10 images, 1 targets each>"


def test_npz_holds_everything_without_pickles(tmp_path):
    explained = heatcheck.explain(Blob(), IMAGES, "integrated_gradients", settings={"steps": 3})
    with np.load(explained.save(tmp_path / "a.npz"), allow_pickle=False) as file:
        np.testing.assert_array_equal(file["values"], explained.values.numpy())
        np.testing.assert_array_equal(file["on_image"], explained.on_image())
        np.testing.assert_array_equal(file["errors"], explained.errors.numpy())
        np.testing.assert_array_equal(file["image"], IMAGES.numpy())
        assert file["targets"].tolist() == [[0, 1], [0, 1]]
        assert str(file["method"]) == "integrated_gradients"
        assert json.loads(str(file["settings"]))["steps"] == 3
        assert file["outputs"].tolist() == ["0", "1"]


@pytest.mark.parametrize("ending", [".nii", ".nii.gz"])
def test_nifti_is_on_the_grid_of_the_image(tmp_path, ending):
    affine = np.array([[0, -2.0, 0, 5], [1.5, 0, 0, 6], [0, 0, 3, 7], [0, 0, 0, 1]])
    volume = torch.rand(1, 1, 8, 9, 10, generator=torch.Generator().manual_seed(2))
    explained = heatcheck.explain(Blob(axes=3), volume, "gradient", affine=affine)
    file = nibabel.load(explained.save(tmp_path / f"a{ending}"))
    np.testing.assert_allclose(file.affine, affine)
    np.testing.assert_allclose(file.get_fdata(), np.moveaxis(explained.on_image()[0], 0, -1), rtol=1e-6)
    one = nibabel.load(explained.only(0).save(tmp_path / f"b{ending}"))
    assert one.shape == (8, 9, 10)


def test_a_flat_map_saved_as_nifti_is_a_single_slice(tmp_path):
    explained = heatcheck.explain(Blob(), IMAGES[:1])
    assert nibabel.load(explained.save(tmp_path / "a.nii")).shape == (24, 36, 1, 2)
    with pytest.raises(InputError, match="NIfTI holds one image"):
        heatcheck.explain(Blob(), IMAGES).save(tmp_path / "b.nii")
    assert not (tmp_path / "b.nii").exists()


def test_png_is_a_picture_of_all_of_it(tmp_path):
    with Image.open(heatcheck.explain(Blob(), IMAGES).save(tmp_path / "a.png")) as picture:
        assert picture.width > 3 * 320
        assert picture.height > 2 * 213
    with pytest.raises(InputError, match=r"use .npz, .nii, .nii.gz or .png"):
        heatcheck.explain(Blob(), IMAGES).save(tmp_path / "a.jpg")
    with pytest.raises(InputError, match="no such folder"):
        heatcheck.explain(Blob(), IMAGES).save(tmp_path / "none" / "a.png")
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_one_image_can_be_selected():
    explained = heatcheck.explain(Blob(), IMAGES)
    assert [len(each) for each in explained] == [1, 1]
    assert torch.equal(explained[-1].values, explained.values[1:])
    assert explained[1].shown.names == ("Image 2",)
    with pytest.raises(IndexError):
        _ = explained[2]


@pytest.mark.parametrize("name", sorted(name for name, facts in METHODS.items() if not facts.wants_priors))
def test_every_method_can_be_explained_with_and_saved(name, tmp_path):
    model, images = Blob(), IMAGES
    if METHODS[name].family == "attention":
        model, images = MODELS["vit_compact"].build(1, 3), torch.rand(2, 1, 64, 64)
    donors = images.flip(0) if METHODS[name].wants_donors else None
    explained = heatcheck.explain(model, images, name, settings=METHODS[name].trial, donors=donors)
    assert explained._repr_html_()
    with np.load(explained.save(tmp_path / "map.npz")) as saved:
        assert set(json.loads(str(saved["settings"]))) >= set(METHODS[name].trial)


MANY = {"kind": "grid", "cells": 99}


@pytest.mark.parametrize(
    ("methods", "settings", "words"),
    [
        (["lime", "grad_cam"], {}, "no spatial feature map"),
        (
            ["kernel_shap", "feature_ablation"],
            {"feature_ablation": {"segments": {"kind": "grid", "cells": 99}}},
            "99 cells",
        ),
        (["lime", "occlusion"], {"occlusion": {"window": 2, "stride": 3}}, "leaves gaps"),
        (["lime", "feature_permutation"], {}, "give some as donors"),
    ],
)
def test_what_does_not_fit_is_known_before_the_first_map(methods, settings, words):
    calls = []

    class Flat(nn.Module):
        def forward(self, images):
            calls.append(len(images))
            return images.flatten(1)[:, :2]

    with pytest.raises(InputError, match=words):
        heatcheck.explain(Flat(), torch.rand(1, 1, 16, 16), methods, settings=settings)
    assert sum(calls) < 8


def test_inference_mode_is_named_as_the_reason():
    with torch.inference_mode(), pytest.raises(InputError, match=r"outside torch\.inference_mode"):
        heatcheck.explain(Blob(), IMAGES)
