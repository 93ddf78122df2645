from pathlib import Path

import pytest
from pydantic import ValidationError

from heatcheck.core.errors import UnknownNameError
from heatcheck.sources import SOURCES
from heatcheck.sources.registry import SourceSettings

# the required settings of each source
REQUIRED = {
    "brats": {"root": "."},
    "phantom_brain": {},
    "phantom_chest": {},
    "phantom_classes": {},
    "folder": {"images": "images"},
    "chexlocalize": {"root": "."},
    "covid_radiography": {"folder": "."},
}


def test_every_source_is_tested_here():
    assert set(REQUIRED) == set(SOURCES)


@pytest.mark.parametrize("name", SOURCES)
def test_source_has_the_texts_of_lists(name):
    facts = SOURCES[name]
    assert facts.name == name
    assert facts.summary
    assert not facts.summary.endswith(".")
    assert facts.needs
    assert issubclass(facts.settings, SourceSettings)


@pytest.mark.parametrize("name", SOURCES)
def test_settings_refuse_a_key_they_do_not_know(name):
    SOURCES[name].settings.model_validate(REQUIRED[name])
    with pytest.raises(ValidationError, match="Extra inputs are not permitted"):
        SOURCES[name].settings.model_validate({**REQUIRED[name], "colours": 1})


@pytest.mark.parametrize("name", SOURCES)
def test_settings_cannot_be_changed_afterwards(name):
    settings = SOURCES[name].settings.model_validate(REQUIRED[name])
    with pytest.raises(ValidationError, match="frozen"):
        setattr(settings, next(iter(type(settings).model_fields)), 1)


def test_settings_without_paths_resolve_to_themselves():
    settings = SOURCES["phantom_chest"].settings()
    assert settings.resolved(Path("/somewhere")) is settings


def test_unknown_source_gets_a_suggestion():
    with pytest.raises(UnknownNameError, match="unknown source 'phantom_chst'; did you mean 'phantom_chest'"):
        SOURCES["phantom_chst"]
