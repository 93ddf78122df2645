"""The docs say what the code does."""

import importlib.util
import re
from pathlib import Path

import numpy as np
import pytest
import yaml
from PIL import Image

from heatcheck.cli.main import app
from heatcheck.core.settings.described import described
from heatcheck.fitting.spec import TrainingBody
from heatcheck.methods import METHODS
from heatcheck.models import MODELS, Preprocessing
from heatcheck.models.contract import PARTS
from heatcheck.runs.spec import Envelope, shipped_specs
from heatcheck.sources import SOURCES
from heatcheck.studies.alignment.report.sections.blame_labels import BEFORE, UNDER
from heatcheck.studies.alignment.spec import AlignmentBody
from heatcheck.studies.localization.plan import LocalizationBody
from heatcheck.triggers import TRIGGERS

ROOT = Path(__file__).parent.parent
SOURCE = ROOT / "src" / "heatcheck"
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]


def load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_reference_and_glossary_are_written_from_the_code():
    for path, text in load(ROOT / "docs" / "reference.py").pages().items():
        assert path.read_text(encoding="utf-8") == text, "run `python docs/reference.py`"


@pytest.mark.parametrize("name", ["phantom", "phantom-classes", "phantom-brain", "triggers"])
def test_the_drawn_pictures_show_what_is_drawn_today(name):
    pictures = load(ROOT / "docs" / "pictures.py")
    stored, drawn = (np.asarray(each.convert("RGB"), int) for each in (
        Image.open(pictures.IMAGES / f"{name}.png"), pictures.DRAWN[name]()))  # fmt: skip
    assert stored.shape == drawn.shape, "run `make pictures`"
    assert np.abs(stored - drawn).mean() < 1, "run `make pictures`"  # grey levels: processors round differently


@pytest.mark.parametrize("name", ["report", "methods"])
def test_the_pictures_of_a_run_are_as_old_as_the_first_screen(name):
    pictures = load(ROOT / "docs" / "pictures.py")
    with Image.open(pictures.IMAGES / f"{name}.png") as picture:
        assert picture.info.get("made from") == pictures.first_screen_source(), "run `make pictures`"


def test_every_setting_and_key_of_the_reference_says_what_it_means():
    reference = load(ROOT / "docs" / "reference.py")
    bodies = [
        *reference.SPECS.values(),
        *(facts.settings for kind in (METHODS, SOURCES, TRIGGERS) for facts in kind.values()),
    ]
    every, waiting = set(), bodies
    while waiting:
        every |= set(waiting)
        waiting = [part for body in waiting for each in described(body) for part in each.parts if part not in every]
    silent = [f"{body.__name__}.{each.name}" for body in every for each in described(body) if not each.meaning]
    assert not silent, "write a comment beside the field, or a line into core/settings/meanings.py"
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    assert {
        name for body in every for each in described(body) if f"`{each.name}`" not in text for name in [each.name]
    } == set()
    assert not re.search(r"\b(None|nan|PydanticUndefined)\b", text.partition("## Settings of methods")[2])


def test_the_links_within_the_reference_lead_to_its_headings():
    text = (ROOT / "docs" / "reference.md").read_text(encoding="utf-8")
    headings = re.findall(r"^#+ (.+)$", text, re.MULTILINE)
    anchors = {re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-") for heading in headings}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= anchors


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)#]+)(?:#[^)]*)?\)", page.read_text(encoding="utf-8")):
        assert (page.parent / target).exists(), target


def test_every_verb_stands_in_the_readme():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    for command in app.registered_commands:
        assert f"`heatcheck {command.name}" in text


def test_the_how_to_shows_a_valid_spec():
    text = (ROOT / "docs" / "how-to" / "your-own-model-and-data.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    values = yaml.safe_load(block)
    body = {key: value for key, value in values.items() if key not in {"study", "title"}}
    checked = LocalizationBody.model_validate(body)
    assert isinstance(checked.model.contract, Preprocessing)


def test_the_how_to_of_training_shows_a_valid_study_of_what_was_trained():
    text = (ROOT / "docs" / "how-to" / "train.md").read_text(encoding="utf-8")
    blocks = [yaml.safe_load(block) for block in re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)]
    (values,) = [block for block in blocks if block.get("study") == "localization"]
    body = {key: value for key, value in values.items() if key not in {"study", "title", "seed"}}
    checked = LocalizationBody.model_validate(body)
    assert [model.key for model in checked.models] == ["ensemble", "single"]
    assert checked.validation


def test_the_how_to_of_alignment_shows_a_valid_spec_and_names_what_is_there():
    text = (ROOT / "docs" / "how-to" / "alignment.md").read_text(encoding="utf-8")
    blocks = list(map(yaml.safe_load, re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)))
    (values,) = [block for block in blocks if block.get("study") == "alignment"]
    (training,) = [block for block in blocks if block.get("study") == "training"]
    body = {key: value for key, value in values.items() if key not in Envelope.model_fields}
    checked = AlignmentBody.model_validate(body)
    *_, starts = blocks  # the others show a part each
    for block in (block for block in blocks if block is not training):
        AlignmentBody.model_validate({**body, **{key: block[key] for key in block if key in body}})
    assert TrainingBody.model_validate({key: training[key] for key in training if key not in Envelope.model_fields})
    base = {"training": {}, "validation": {}}
    named = AlignmentBody.model_validate({**body, "models": ["densenet201"], "base": base, **starts})
    assert [part.channels for part in named.initialisations] == [3, 3]
    for model in re.findall(r"\"(\w+)\": \"\w+\.\w+in2\dk\"", text):
        assert model in MODELS
    usual = AlignmentBody.model_validate({key: body[key] for key in ("finetune", "evaluation", "models", "methods")})
    for name in ("alpha", "seeds", "fit"):  # it shows the defaults
        assert getattr(checked, name) == getattr(usual, name)
    assert checked.selection == pytest.approx(usual.selection, abs=1e-4)
    for part in (*checked.methods, *checked.judged):
        assert METHODS[part["name"]].differentiable == (part in checked.methods)
    networks = len(checked.findings) * checked.seeds * (1 + 2 * len(checked.methods))
    assert f"that is {networks} a model" in " ".join(text.split())
    assert set(re.findall(r"heatcheck run (\S+)", text)) | set(re.findall(r"--from ([\w-]+)", text)) <= set(
        shipped_specs()
    )
    for reading in (*BEFORE.values(), *UNDER.values()):  # the report's own words
        words = reading.words.replace("\u2019", "'")
        assert f"\n| {words} |" in text


def test_the_how_to_of_chexlocalize_names_what_is_there():
    text = (ROOT / "docs" / "how-to" / "chexlocalize.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    values = yaml.safe_load(block)["source"]
    settings = SOURCES[values.pop("name")].settings
    assert settings.model_validate(values) == settings(root=".")  # it shows the defaults
    named = set(re.findall(r"heatcheck run (\S+)", text)) | set(re.findall(r"--from ([\w-]+)", text))
    trained = dict(re.findall(r"heatcheck train (\S+) --out (\S+)", text))
    assert named | set(trained) <= set(shipped_specs())
    study = yaml.safe_load(shipped_specs()["localization-chexlocalize"].read_text(encoding="utf-8"))
    assert {model["ensemble"].removesuffix("/best_single.json") for model in study["models"]} == set(trained.values())


def test_the_notebook_of_the_how_to_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (ROOT / "docs" / "how-to" / "explain-one-image.md").read_text(encoding="utf-8")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", text, re.DOTALL):
        exec(compile(block, "explain-one-image.md", "exec"), names)  # noqa: S102 - our own page
    assert {path.name for path in tmp_path.iterdir()} == {"maps.npz", "maps.png", "one.nii.gz"}
    assert names["explained"].on_image().shape == (2, 2, 64, 64)


def test_the_contract_of_the_how_to_says_every_fact():
    text = (ROOT / "docs" / "how-to" / "explain-one-image.md").read_text(encoding="utf-8")
    (block,) = re.findall(r"```yaml\n(.*?)```", text, re.DOTALL)
    values = yaml.safe_load(block)
    assert set(values) == set(PARTS)
    Preprocessing.model_validate(values)


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_files_that_a_page_names_exist(page):
    """Paths such as `methods/passes.py`, below src/heatcheck or the project's folder."""
    named = set(re.findall(r"`((?:[\w.-]+/)+[\w-]+\.py)`", page.read_text()))
    made_up = {name for name in named if "/my_" in name or name.startswith("report/")}  # in a recipe, or of any study
    lost = [
        name for name in named - made_up if not any((base / name).exists() for base in (ROOT, SOURCE, SOURCE.parent))
    ]
    assert not lost
