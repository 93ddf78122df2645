"""`heatcheck explain` and `heatcheck preflight` as a newcomer types them."""

import json
from pathlib import Path
from types import SimpleNamespace

import nibabel
import numpy as np
import pytest
import yaml
from PIL import Image
from tests.sources.files.test_reading_dicom import written

from heatcheck.cli.explain import _error
from heatcheck.models import ModelSettings, NetworkClassifier, load_classifier, save_classifier
from heatcheck.sources.files.reading import image_affine
from heatcheck.sources.phantoms.phantom_chest import PhantomChest, PhantomChestSettings

NETS = """
from torch import nn

class Volume(nn.Module):
    def __init__(self):
        super().__init__()
        self.look, self.head = nn.Conv3d(1, 3, 3, stride=2), nn.Linear(3, 2)
    def forward(self, x):
        return self.head(self.look(x).relu().mean((2, 3, 4)))
"""
CONTRACT = {
    "outputs": ["Tumour, left", "None"],
    "size": [12, 14, 10],
    "channels": 1,
    "mean": [0.0],
    "std": [100.0],
    "activation": "softmax",
}
FILM = np.random.default_rng(4).integers(0, 4096, (64, 64)).astype(np.uint16)
AFFINE = np.array([[-2.0, 0, 0, 9], [0, 2.5, 0, 8], [0, 0, 3, 7], [0, 0, 0, 1]])


@pytest.fixture(scope="module")
def film(tmp_path_factory):
    """A drawn chest film with a finding, as a PNG."""
    source = PhantomChest(PhantomChestSettings(patients=4, size=96))
    key = next(key for key in source.index() if 1 in key.labels.values())
    path = tmp_path_factory.mktemp("film") / "film.png"
    Image.fromarray((source.load(key).image[0] * 255).astype(np.uint8)).save(path)
    return path


@pytest.fixture
def head(tmp_path, monkeypatch):
    """A volume with a 3D network for it, in the working folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "explain_nets.py").write_text(NETS)
    (tmp_path / "contract.yaml").write_text(yaml.safe_dump(CONTRACT))
    values = np.random.default_rng(1).normal(100, 10, (9, 11, 8)).astype(np.float32)
    nibabel.save(nibabel.Nifti1Image(values, AFFINE), tmp_path / "head.nii.gz")
    return ("head.nii.gz", "--model", "python:explain_nets:Volume", "--contract", "contract.yaml", "--trust-code")


def test_a_film_is_explained_out_of_the_box(heatcheck, film, tmp_path):
    out = tmp_path / "out"
    code, printed, err = heatcheck("explain", film, "--out", out, "--methods", "grad_cam,random")
    assert code == 0
    assert "maps" in err
    assert "probability" in printed
    assert "0.5" in printed
    assert "was trained on drawn images only" in " ".join(printed.split())
    assert sorted(path.name for path in out.iterdir()) == [
        f"film.{method}.{kind}" for method in ("grad_cam", "random") for kind in ("npz", "png")
    ]
    with np.load(out / "film.grad_cam.npz", allow_pickle=False) as file:
        assert "drawn images only" in str(file["note"])
        with Image.open(film) as picture:
            assert file["on_image"].shape[2:] == picture.size[::-1], "on the film's own grid"
        assert file["on_image"].shape[2:] == file["image"].shape[2:]
    with Image.open(out / "film.grad_cam.png") as picture:
        assert picture.width > 600


def test_named_findings_are_explained(heatcheck, film, tmp_path):
    words = ("explain", film, "-o", tmp_path / "out", "--methods", "grad_cam", "--findings")
    assert heatcheck(*words, "Edema, Pneumothorax")[0] == 0
    with np.load(tmp_path / "out" / "film.grad_cam.npz") as file:
        assert [str(file["outputs"][n]) for n in file["targets"][0]] == ["Edema", "Pneumothorax"]
    assert heatcheck(*words, "all", "--overwrite", "-q") == (0, "", "")
    with np.load(tmp_path / "out" / "film.grad_cam.npz") as file:
        assert file["targets"].shape == (1, 10)


def test_nothing_probable_shows_the_most_probable(heatcheck, tmp_path):
    path = tmp_path / "grey.png"
    Image.fromarray(np.full((64, 64), 127, np.uint8)).save(path)
    classifier = load_classifier(ModelSettings(name="phantom_chest_densenet"))
    probable = classifier.probabilities(classifier.logits(classifier.prepare([np.full((1, 64, 64), 127 / 255)])))
    code, printed, _ = heatcheck("explain", path, "-o", tmp_path / "out", "--methods", "grad_cam")
    assert code == 0
    assert ("no finding reaches" in printed) == bool((probable < 0.5).all())


def test_nifti_maps_lie_on_the_volumes_own_grid(heatcheck, head, tmp_path):
    code, printed, _ = heatcheck("explain", *head, "--methods", "grad_cam", "--findings", "all", "--out", "out")
    assert code == 0, printed
    names = sorted(path.name for path in (tmp_path / "out").iterdir())
    assert names == [f"head.grad_cam.{ending}" for ending in ("none.nii.gz", "npz", "png", "tumour-left.nii.gz")]
    file = nibabel.load(tmp_path / "out" / "head.grad_cam.tumour-left.nii.gz")
    assert file.shape == (9, 11, 8)
    np.testing.assert_allclose(file.affine, AFFINE)


def test_several_images_of_several_kinds_go_together(heatcheck, film, tmp_path):
    from pydicom import examples

    code, printed, _ = heatcheck(
        "explain", film, examples.get_path("ct"), "-o", tmp_path / "out", "--methods", "grad_cam", "--findings", "0"
    )
    assert code == 0
    assert "CT_small" in printed
    assert len(list((tmp_path / "out").iterdir())) == 5
    laid = nibabel.load(next((tmp_path / "out").glob("CT_small.*.nii.gz")))  # a slice that says where it lies
    assert laid.shape == (128, 128, 1)
    assert laid.affine == pytest.approx(image_affine(Path(examples.get_path("ct")), "CT_small"), abs=1e-4)


def test_values_far_from_the_training_are_pointed_out(heatcheck, tmp_path):
    np.save(tmp_path / "a.npy", np.random.default_rng(1).random((64, 64)) * 4000)
    words = ("explain", tmp_path / "a.npy", "--methods", "grad_cam", "-o")
    assert "--range" in heatcheck(*words, tmp_path / "one")[1]
    assert "--range" not in heatcheck(*words, tmp_path / "two", "--range", "0", "4000")[1]


def test_existing_files_are_kept_unless_told_otherwise(heatcheck, film, tmp_path):
    words = ("explain", film, "-o", tmp_path, "--methods", "grad_cam")
    (tmp_path / "film.grad_cam.npz").write_text("mine")
    code, out, err = heatcheck(*words)
    assert (code, out) == (2, "")
    assert "exists already; add --overwrite" in err
    assert (tmp_path / "film.grad_cam.npz").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 1
    assert heatcheck(*words, "--overwrite")[0] == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["gone.png"], "gone.png does not exist"),
        (["FILM", "--findings", "Edma"], "did you mean 'Edema'"),
        (["FILM", "--findings", "77"], "has 10 outputs, 0 to 9"),
        (["FILM", "--findings", ","], "names nothing"),
        (["FILM", "--methods", "grad_cm"], "did you mean 'grad_cam'"),
        (["FILM", "--methods", "grad_cam,grad_cam"], "none twice"),
        (["FILM", "--methods", "location_prior"], "truth masks"),
        (["FILM", "FILM"], "two images are named"),
        (["FILM", "--model", "densenet_compact"], "comes without weights; name a file with --weights"),
        (["FILM", "--model", "densenet"], "did you mean"),
        (["FILM", "--range", "2", "1"], "the lower first"),
        (["FILM", "--device", "abacus"], "device 'abacus'"),
        (
            ["FILM", "--contract", "part.yaml"],
            "part.yaml: the preprocessing contract does not say channels, mean, std, activation; add",
        ),
        (["FILM", "--contract", "gone.yaml"], "no such file"),
        (["FILM", "--contract", "bytes.yaml"], "set mean [0.5] and std [0.251]"),
        (
            ["FILM", "--model", "densenet_compact", "--weights", "bare.pt"],
            "write outputs, size, channels, mean, std and",
        ),
        (["head.nii.gz"], "is a volume of 9×11×8, model phantom_chest_densenet takes 2D"),
        (["two.npy"], "two.npy has 2 channels, model phantom_chest_densenet takes 1"),
        (["nan.npy"], "NaN"),
        (["broken.dcm"], "broken.dcm"),
        (["FILM", "--out", "part.yaml/below"], "cannot be written"),
    ],
)
def test_bad_input_is_one_line_and_nothing_written(heatcheck, film, head, tmp_path, words, message):
    import torch

    (tmp_path / "part.yaml").write_text("outputs: [a]\nsize: [8, 8]\n")
    shipped = load_classifier(ModelSettings(name="phantom_chest_densenet")).preprocessing.model_dump(mode="json")
    (tmp_path / "bytes.yaml").write_text(yaml.safe_dump({**shipped, "mean": [127.5], "std": [64.0]}))
    (tmp_path / "broken.dcm").write_bytes(b"\0" * 128 + b"DICM" + b"nonsense" * 9)
    np.save(tmp_path / "two.npy", np.zeros((2, 64, 64), np.float32))
    np.save(tmp_path / "nan.npy", np.full((64, 64), np.nan, np.float32))
    torch.save({"a": torch.zeros(1)}, tmp_path / "bare.pt")
    before = sorted(tmp_path.rglob("*"))
    code, out, err = heatcheck("explain", *(film if word == "FILM" else word for word in words))
    assert (code, out) == (2, "")
    assert err.count("\n") == 1
    assert message in err
    assert sorted(p for p in tmp_path.rglob("*") if "__pycache__" not in str(p)) == before


def test_pixels_of_dicom_without_a_window_are_explained(heatcheck, tmp_path):
    films = [
        written(tmp_path / "bare.dcm", FILM),
        written(tmp_path / "seen.dcm", FILM, WindowCenter=2000, WindowWidth=900),
    ]
    code, printed, _ = heatcheck("explain", *films, "--methods", "random", "-o", tmp_path / "out")
    said = " ".join(printed.split())
    assert code == 0
    assert "bare.dcm: no window is stated, so its pixels are spread from the smallest to the largest value" in said
    assert said.count("no window is stated") == 1


def test_interrupting_leaves_nothing_half_written(heatcheck, film, tmp_path, monkeypatch):
    import heatcheck.explaining.image_files as working

    def interrupt(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(working, "answer", interrupt)
    code, _, err = heatcheck("explain", film, "-o", tmp_path / "out", "-q")
    assert code == 130
    assert "half-written" in err
    assert not (tmp_path / "out").exists()


def test_a_checkpoint_with_its_contract_needs_nothing_else(heatcheck, film, tmp_path):
    shipped = load_classifier(ModelSettings(name="phantom_chest_densenet"))
    save_classifier(NetworkClassifier("mine", shipped.module, shipped.preprocessing), tmp_path / "w.safetensors")
    words = ("--model", "densenet_compact", "--weights", tmp_path / "w.safetensors", "--methods", "grad_cam")
    assert heatcheck("explain", film, *words, "-o", tmp_path / "out")[0] == 0


def test_a_set_of_methods_leaves_out_what_does_not_run(heatcheck, head, tmp_path):
    code, out, _ = heatcheck("explain", *head, "--methods", "recommended", "--out", "maps")
    assert code == 0
    made = {file.name.split(".")[-2] for file in (tmp_path / "maps").glob("*.npz")}
    assert {"grad_cam", "integrated_gradients", "lrp", "occlusion", "random", "edge", "center_prior"} == made
    assert "without Attention rollout (attention_rollout): " in " ".join(out.split())


def test_preflight_prints_and_writes_what_runs(heatcheck, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    file = tmp_path / "p.json"
    code, out, _ = heatcheck("preflight", "densenet_compact", "--size", "32", "--json", file)
    assert code == 0
    assert "random weights" in out
    assert "methods run" in out
    last = yaml.safe_load(out.splitlines()[-1])  # to paste
    assert last["methods"][:4] == ["grad_cam", "integrated_gradients", "lrp", "occlusion"]
    assert "location_prior" in last["methods"]
    facts = json.loads(file.read_text())
    assert facts["size"] == [32, 32]
    assert {row["method"] for row in facts["methods"]} >= {"grad_cam", "occlusion"}
    assert max(map(len, out.splitlines()[:-1])) <= 80
    assert "\nshapley_value_sampling " in out
    assert "\n    the network has no attention" in out  # a reason has lines of its own
    assert "differentiable: " in out
    code, _, err = heatcheck("preflight", "densenet_compct")
    assert (code, err.count("\n")) == (2, 1)
    assert heatcheck("preflight", "densenet_compact", "--json", "p.txt")[0] == 2


def test_settings_are_taken_from_the_command_line(heatcheck, film, tmp_path):
    out = tmp_path / "out"
    words = ("explain", film, "--out", out, "--methods", "lime", "--findings", "0")
    code, _, err = heatcheck(*words, "--set", "lime.samples=4", "--set", "lime.segments={kind: slic, count: 5}")
    assert code == 0, err
    with np.load(out / "film.lime.npz") as saved:
        settings = json.loads(str(saved["settings"]))
    assert (settings["samples"], settings["segments"]["kind"]) == (4, "slic")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("window=3", "must be METHOD.SETTING=VALUE"),
        ("lime.samples=3", "lime, which is not among the methods"),
        ("grad_cam.layr=x", "unknown setting 'layr'"),
        ("grad_cam.layer=[", "is not valid YAML"),
        ("grad_cam.layer=features.nowhere", "no layer 'features.nowhere'"),
    ],
)
def test_a_wrong_setting_is_one_line(heatcheck, film, tmp_path, text, words):
    code, _, err = heatcheck("explain", film, "--out", tmp_path / "out", "--methods", "grad_cam", "--set", text)
    assert code == 2
    assert words in err
    assert not (tmp_path / "out").exists()


@pytest.fixture
def films(film, tmp_path):
    """A folder with two films, one of them in a sub-folder, and files that cannot be used."""
    folder = tmp_path / "films"
    (folder / "second").mkdir(parents=True)
    for place in (folder / "a_long_name_of_a_film_with_its_patient_and_view.png", folder / "second" / "b.png"):
        place.write_bytes(film.read_bytes())
    (folder / "empty.png").touch()
    (folder / "notes.txt").write_text("not an image")
    (folder / ".hidden.png").touch()
    return folder


def test_a_folder_is_explained_and_what_cannot_be_used_is_named(heatcheck, films, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    words = ("--methods", "grad_cam,feature_permutation", "--findings", "0", "-o", tmp_path / "out")
    code, printed, err = heatcheck("explain", films, *words)
    assert code == 3, err
    assert err.endswith("heatcheck: 1 of 3 images could not be used, named above\n")
    long = "a_long_name_of_a_film_with_its_patient_and_view"
    assert {path.name for path in (tmp_path / "out").glob("*.png")} == {
        f"{stem}.{method}.png" for stem in (long, "second_b") for method in ("grad_cam", "feature_permutation")
    }
    last = "1 of 3 images left out:\n- empty.png is empty (0 bytes); copy it again\n"
    assert printed.endswith(last)
    assert "1 other file left out, no format that is read: notes.txt" in " ".join(printed.split())
    assert "hidden" not in printed
    for name in (f"{long}.feature_permutation.png", "Airspace Opacity, probability ", "feature_permutation  "):
        assert name in printed
    assert max(len(line) for line in printed.splitlines() if not line.startswith("Files: ")) <= 80


def test_a_folder_without_a_usable_image_is_one_line(heatcheck, films, tmp_path):
    for path in films.rglob("*.png"):
        path.write_bytes(b"")
    code, out, err = heatcheck("explain", films, "-o", tmp_path / "out")
    assert (code, out, err.count("\n")) == (2, "", 1)
    assert "none of 3 images can be used: " in err
    for path in films.rglob("*.png"):
        path.unlink()
    code, _, err = heatcheck("explain", films)
    assert (code, err.count("\n")) == (2, 1)
    assert "holds no images that can be read (it has files of other formats: 1 .txt)" in err
    assert not (tmp_path / "out").exists()


def test_the_same_remark_on_many_images_is_made_once(heatcheck, films, tmp_path):
    printed = " ".join(heatcheck("explain", films, "--methods", "grad_cam", "-o", tmp_path / "out")[1].split())
    assert printed.count("findings with a probability of 0.5 or more are shown") == 1
    assert "patient_and_view.png and b.png: findings" in printed


def test_undefined_errors_are_a_dash_that_is_explained(heatcheck, film, tmp_path):
    printed = heatcheck("explain", film, "--methods", "grad_cam", "-o", tmp_path / "out")[1]
    assert "nan" not in printed
    assert "  –  " in printed
    assert "error of sum: how far the values of a map" in printed


def test_many_images_are_shown_in_sum_and_few_with_each_file_once(heatcheck, film, tmp_path, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    folder = tmp_path / "many"
    folder.mkdir()
    for number in range(5):
        (folder / f"film{number}.png").write_bytes(film.read_bytes())
    words = ("--methods", "grad_cam,integrated_gradients", "--findings", "0,1,2")
    code, printed, _ = heatcheck("explain", folder, *words, "-o", tmp_path / "sum")
    assert code == 0
    assert "5 images explained by 2 methods" in printed
    assert "film0" not in printed
    assert len(printed.splitlines()) < 16
    code, printed, _ = heatcheck("explain", film, *words, "-o", tmp_path / "one")
    assert printed.count("film.grad_cam.png") == 1
    assert printed.count("Pleural Effusion, probability") <= 1
    assert max(map(len, printed.splitlines())) <= 80 or str(tmp_path) in printed


def test_errors_have_a_plain_format():
    shown = [_error([SimpleNamespace(error=value)]) for value in (0.1632, 0.0316, 0.00004, float("nan"))]
    assert shown == ["0.16", "0.032", "< 0.001", "–"]
    assert _error([SimpleNamespace(error=value) for value in (0.2, 0.5, float("nan"))]) == "0.50"


def test_a_spec_says_what_its_model_is(heatcheck, head, tmp_path):
    """What a study states of its model need not be written again in a file of its own."""
    spec = {"study": "localization", "model": {"name": "python:explain_nets:Volume", "contract": CONTRACT}}
    (tmp_path / "specs").mkdir()
    (tmp_path / "specs" / "mine.yaml").write_text(yaml.safe_dump(spec))
    words = ("explain", "head.nii.gz", "--methods", "random", "--findings", "0")
    by_name = heatcheck(*words, "--model", "specs/mine.yaml", "--trust-code", "-o", "one")
    assert by_name[0] == 0, by_name
    assert "no weights were given: is this the trained network?" in " ".join(by_name[1].split())
    contract = ("--model", "python:explain_nets:Volume", "--contract", "specs/mine.yaml", "--trust-code")
    assert heatcheck(*words, *contract, "-o", "two")[0] == 0
    code, out, _ = heatcheck("preflight", "specs/mine.yaml", "--trust-code")
    assert (code, "12×14×10, 1 channel, 2 outputs" in out) == (0, True)
    (tmp_path / "specs" / "none.yaml").write_text("study: localization\n")
    code, _, err = heatcheck(*words, "--model", "specs/none.yaml")
    assert (code, "none.yaml names no model; name one" in err) == (2, True)


def test_an_assumed_size_of_the_input_is_said(heatcheck, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "flat_net.py").write_text(NETS.replace("Conv3d", "Conv2d").replace("(2, 3, 4)", "(2, 3)"))
    words = ("preflight", "python:flat_net:Volume", "--trust-code")
    said = "no contract was given, so an input of 224×224 with 1 channel was assumed"
    assert said in " ".join(heatcheck(*words)[1].split())
    assert "assumed" not in heatcheck(*words, "--size", "32", "--channels", "1")[1]


def test_all_that_a_model_lacks_is_asked_for_at_once(heatcheck, head):
    _, _, err = heatcheck("explain", "head.nii.gz", "--model", "python:explain_nets:Volume")
    assert "model python:explain_nets:Volume: nothing says how its images are prepared; write outputs, size" in err
    assert "add --contract FILE. It also runs your own code; if you trust it, add --trust-code" in err
