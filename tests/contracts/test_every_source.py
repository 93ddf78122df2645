"""Promises that every registered source keeps."""

import json

import numpy as np
import pytest
from PIL import Image
from pydantic import ValidationError
from tests.brats_material import write_2020

from heatcheck.core.findings import CHEXPERT, canonical
from heatcheck.core.records import UNCERTAIN
from heatcheck.sources import SOURCES


@pytest.fixture(params=list(SOURCES))
def source(request, tmp_path):
    """A small instance of the source; a source registered without one here fails."""
    return MAKERS[request.param](tmp_path)


def brats(tmp_path):
    write_2020(tmp_path)
    facts = SOURCES["brats"]
    return facts.open(facts.settings.model_validate({"root": "."}).resolved(tmp_path))


def chexlocalize(tmp_path):
    labels = [*CHEXPERT]
    (tmp_path / "CheXlocalize").mkdir()
    rows = ["Path," + ",".join(labels)]
    for patient, said in (("patient2", "0"), ("patient1", "1"), ("patient3", "-1")):
        (tmp_path / f"CheXpert/val/{patient}/study1").mkdir(parents=True)
        film = Image.fromarray(np.arange(48, dtype=np.uint8).reshape(6, 8))
        film.save(tmp_path / f"CheXpert/val/{patient}/study1/view1_frontal.jpg")
        rows.append(f"valid/{patient}/study1/view1_frontal.jpg" + f",{said}" * len(labels))
    (tmp_path / "CheXpert/val_labels.csv").write_text("\n".join(rows))
    drawn = {"patient1_study1_view1_frontal": {"img_size": [6, 8], "Edema": [[[1, 1], [4, 1], [4, 4]]]}}
    for whose in ("gt", "hb"):
        (tmp_path / f"CheXlocalize/{whose}_annotations_val.json").write_text(json.dumps(drawn))
    facts = SOURCES["chexlocalize"]
    return facts.open(facts.settings.model_validate({"root": ".", "split": "val"}).resolved(tmp_path))


def covid_radiography(tmp_path):
    for name in ("COVID", "Lung_Opacity", "Normal", "Viral Pneumonia"):
        (tmp_path / name / "images").mkdir(parents=True)
        for number in (2, 10):
            film = Image.fromarray(np.arange(48, dtype=np.uint8).reshape(6, 8))
            film.save(tmp_path / name / f"images/{name}-{number}.png")
    facts = SOURCES["covid_radiography"]
    return facts.open(facts.settings.model_validate({"folder": "."}).resolved(tmp_path))


def folder(tmp_path):
    for part in ("images", "masks/f"):
        (tmp_path / part).mkdir(parents=True)
    for name in "bac":
        Image.fromarray(np.arange(48, dtype=np.uint8).reshape(6, 8)).save(tmp_path / "images" / f"{name}.png")
    Image.fromarray(np.eye(6, 8, dtype=np.uint8) * 255).save(tmp_path / "masks/f/a.png")
    (tmp_path / "labels.csv").write_text("image,patient,f\nb,p,0\na,p,1\nc,q,\n")
    facts = SOURCES["folder"]
    values = {"images": "images", "labels": "labels.csv", "masks": "masks"}
    return facts.open(facts.settings.model_validate(values).resolved(tmp_path))


def phantom_brain(_):
    facts = SOURCES["phantom_brain"]
    return facts.open(facts.settings(cases=4, size=48))


def phantom_chest(_):
    facts = SOURCES["phantom_chest"]
    return facts.open(facts.settings(patients=6, size=48))


def phantom_classes(_):
    facts = SOURCES["phantom_classes"]
    return facts.open(facts.settings(cases_per_class=2, size=48))


MAKERS = {
    "brats": brats,
    "chexlocalize": chexlocalize,
    "covid_radiography": covid_radiography,
    "folder": folder,
    "phantom_brain": phantom_brain,
    "phantom_chest": phantom_chest,
    "phantom_classes": phantom_classes,
}


def test_the_index_is_sorted_unique_and_speaks_of_its_findings(source):
    keys = source.index()
    names = [key.case for key in keys]
    assert names == sorted(set(names))
    assert keys
    assert all(set(key.labels) == set(source.findings) for key in keys)
    assert all(value in (0, 1, UNCERTAIN) or np.isnan(value) for key in keys for value in key.labels.values())


def test_a_case_is_float32_with_masks_on_its_own_grid(source):
    for key in source.index():
        case = source.load(key)
        assert case.key == key or repr(case.key) == repr(key)  # NaN labels are not equal to themselves
        assert case.image.dtype == np.float32
        assert np.isfinite(case.image).all()
        for mask in [*case.truth.values(), *(m for r in case.readings for m in r.masks.values())]:
            assert mask.dtype == bool
            assert mask.shape == case.image.shape[1:]


def test_the_form_of_the_truth_is_known_and_outlines_are_counted(source):
    assert source.truth_kind in ("outlines", "masks", "boxes")
    for key in source.index():
        case = source.load(key)
        assert set(case.instances) <= set(case.truth)
        assert all(count > 0 for count in case.instances.values())
        if source.truth_kind != "masks":
            assert set(case.instances) == set(case.truth)


def test_truth_alone_equals_the_truth_of_the_case_and_is_never_empty(source):
    for key in source.index():
        alone, whole = source.truth(key), source.load(key).truth
        assert set(alone) == set(whole)
        assert all(np.array_equal(alone[f], whole[f]) and alone[f].any() for f in alone)
        modalities = getattr(source, "modalities", ())
        if modalities:  # each modality has its own mask, whatever the class
            assert set(alone) <= set(modalities)
            assert source.load(key).image.shape[0] == len(modalities)
        else:
            assert all(key.labels[finding] != 0 for finding in alone)


@pytest.mark.parametrize("name", SOURCES)
def test_unknown_settings_are_refused_and_facts_are_there(name):
    facts = SOURCES[name]
    assert facts.summary
    assert facts.needs
    with pytest.raises(ValidationError):
        facts.settings.model_validate({"no_such_setting": 1})


def test_findings_have_the_names_that_heatcheck_writes(source):
    assert tuple(map(canonical, source.findings)) == tuple(source.findings)
