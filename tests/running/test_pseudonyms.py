import json
import re

import pytest
import yaml
from tests.studies.alignment import squares_material
from tests.studies.modality import brightness_material
from tests.studies.triggers import planted_material

from heatcheck import run_study
from heatcheck.core.errors import RunFolderError
from heatcheck.models import MODELS, NetworkClassifier, Preprocessing
from heatcheck.models.load import save_classifier
from heatcheck.running.pseudonyms import pseudonymous
from heatcheck.running.registry import STUDIES
from heatcheck.running.study import RunOptions
from heatcheck.runs.spec import read_spec
from heatcheck.runs.store import RunFolder
from heatcheck.sources.phantoms.phantom_chest import PhantomChest, PhantomChestSettings

HIDDEN = RunOptions(workers=0, pseudonymise=True)


class Modal(PhantomChest):
    """A source that says what its channels are."""

    modalities = ("film",)


def settings():
    return PhantomChestSettings(patients=2, size=32, second_view=0, readers=0)


def test_source_under_pseudonyms_still_says_what_its_channels_are(tmp_path):
    source = Modal(settings())
    hidden = pseudonymous(source, source.index(), tmp_path / "run")
    assert hidden.modalities == ("film",)
    assert hidden.load(hidden.index()[0]).image.shape[0] == 1
    stated = sorted(sorted(key.facts.items()) for key in source.index())
    without_study = [{name: text for name, text in key.facts.items() if name != "study"} for key in hidden.index()]
    assert sorted(sorted(facts.items()) for facts in without_study) == stated


def test_views_of_one_examination_stay_together_under_its_pseudonym(tmp_path):
    source = PhantomChest(PhantomChestSettings(patients=3, size=32, second_view=1, readers=0))
    hidden = pseudonymous(source, source.index(), tmp_path / "run")
    assert len({key.examination for key in source.index()}) == 3
    pairs = {(hidden.originals[key.case].examination, key.examination) for key in hidden.index()}
    assert len(pairs) == len(dict(pairs)) == 3
    assert not {name for name, _ in pairs} & {word for _, name in pairs for word in name.split()}


def test_source_that_does_not_say_what_its_channels_are_has_no_modalities(tmp_path):
    source = PhantomChest(settings())
    assert pseudonymous(source, source.index(), tmp_path / "run").modalities == ()


def with_absolute_paths(value, folder):
    """The same with absolute paths for every file and folder of this folder."""
    if isinstance(value, dict):
        return {key: with_absolute_paths(inner, folder) for key, inner in value.items()}
    if isinstance(value, list):
        return [with_absolute_paths(inner, folder) for inner in value]
    return str(folder / value) if isinstance(value, str) and (folder / value).exists() else value


def save_network(folder, outputs, channels=1, activation="softmax"):
    """An untrained network with its weights in a file."""
    contract = Preprocessing(
        outputs=outputs, size=(32, 32), channels=channels, mean=(0.0,), std=(1.0,), activation=activation
    )
    module = MODELS["vgg_compact"].build(channels, contract.answers, contract.size)
    save_classifier(NetworkClassifier("network", module, contract), folder / "ward.safetensors")
    return {"name": "vgg_compact", "weights": "ward.safetensors"}


def write_localization(folder):
    model = save_network(folder, squares_material.FINDINGS, activation="sigmoid")
    body = {
        "study": "localization",
        "source": squares_material.write_films(folder, "scored", 8),
        "validation": squares_material.write_films(folder, "tuning", 8),
        "models": [model],
        "methods": ["gradient"],
        "bootstrap_draws": 100,
    }
    (folder / "localization.yaml").write_text(yaml.safe_dump(body))
    return folder / "localization.yaml"


def write_alignment(folder):
    model = save_network(folder, squares_material.FINDINGS, activation="sigmoid")
    return squares_material.write_alignment(folder, models=[model])


def write_triggers(folder):
    save_network(folder, planted_material.FILM_CLASSES)
    return planted_material.write_easy_study(folder, (16, 8, 16), start="ward.safetensors")


def write_modality(folder):
    model = save_network(folder, ("LGG", "HGG"), channels=4)
    known = [{"modality": "T1C", "source": brightness_material.write_pictures(folder, "known")}]
    (folder / "ratings.csv").write_text("reader,case,method,rating\nA,01,gradient,50\n")
    return brightness_material.write_modality(
        folder, model=model, known=known, methods=["gradient"], ratings="ratings.csv"
    )


WRITTEN = {
    "localization": write_localization,
    "triggers": write_triggers,
    "alignment": write_alignment,
    "modality": write_modality,
}


def write_ward(folder, study):
    """The spec of a study that names its data and weights by absolute paths."""
    folder.mkdir()
    path = WRITTEN[study](folder)
    path.write_text(yaml.safe_dump(with_absolute_paths(yaml.safe_load(path.read_text()), folder)))
    return path


def begin(spec, study, out, options=HIDDEN):
    """The text of run.json when the planned run begins, or is continued."""
    plan = STUDIES[study].make_plan(read_spec(str(spec)), options, out)
    with RunFolder.locked(out, plan.identity, plan.facts) as folder:
        return folder.manifest_path.read_text()


@pytest.mark.parametrize("study", sorted(STUDIES))
def test_run_under_pseudonyms_begins_without_absolute_paths(tmp_path, study):
    spec = write_ward(tmp_path / "ward", study)
    text = begin(spec, study, tmp_path / "run")
    assert text.count('"(hidden)"') >= 4
    assert not re.findall(r'"/[^"]*"', text)
    assert str(tmp_path) not in text
    assert begin(spec, study, tmp_path / "run") == text
    assert str(tmp_path / "ward" / "ward.safetensors") in begin(spec, study, tmp_path / "open", RunOptions(workers=0))


def test_run_under_pseudonyms_refuses_data_of_another_folder(tmp_path):
    begin(write_ward(tmp_path / "ward", "localization"), "localization", tmp_path / "run")
    with pytest.raises(RunFolderError, match="differs in paths of the spec"):
        begin(write_ward(tmp_path / "other", "localization"), "localization", tmp_path / "run")


def test_finished_run_under_pseudonyms_has_no_absolute_path_and_can_be_continued(tmp_path):
    spec = write_ward(tmp_path / "ward", "localization")
    run_study(spec, tmp_path / "run", HIDDEN)
    manifest = json.loads((tmp_path / "run" / "run.json").read_text())
    run_study(spec, tmp_path / "run", HIDDEN)
    text = (tmp_path / "run" / "run.json").read_text()
    assert json.loads(text) == manifest
    assert manifest["status"] == "complete"
    assert manifest["spec"]["source"]["images"] == "(hidden)"
    assert not re.findall(r'"/[^"]*"', text)
    assert str(tmp_path) not in text
    assert str(tmp_path) not in (tmp_path / "run" / "report.html").read_text()
