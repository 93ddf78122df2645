import sys
from dataclasses import replace
from types import ModuleType

import pytest

from heatcheck.core.errors import InputError
from heatcheck.core.study_packages import specs_folder, study_packages
from heatcheck.running.registry import STUDIES, _register


def test_heatchecks_own_studies_are_found_by_their_packages():
    assert [f"heatcheck.studies.{name}" for name in STUDIES] == study_packages()


@pytest.mark.parametrize("name", STUDIES)
def test_a_study_names_parts_that_exist_and_ships_a_spec(name):
    study = STUDIES[name]
    for address in filter(None, (study.plan, study.page, study.compare)):
        module, _, function = address.partition(":")
        __import__(module)
        assert callable(getattr(sys.modules[module], function))
    assert list(specs_folder(f"heatcheck.studies.{name}").glob("*.yaml"))


@pytest.mark.parametrize("address", ["not_installed.page:page", "heatcheck.report.page:no_such_page", "no address"])
def test_a_part_that_cannot_be_loaded_is_named(address):
    study = replace(STUDIES["triggers"], page=address)
    with pytest.raises(InputError, match=f"{address}, cannot be loaded .*update its package"):
        study.make_page(None)


def test_every_demo_has_a_place_and_a_spec():
    shown = [name for name in STUDIES if STUDIES[name].demo]
    assert sorted(STUDIES[name].demo for name in shown) == list(range(1, len(shown) + 1))
    for name in shown:
        assert (specs_folder(f"heatcheck.studies.{name}") / f"{name}-demo.yaml").exists()


def test_a_study_of_somebody_else_that_does_not_load_is_named_and_left_out():
    with pytest.warns(UserWarning, match="the study in not_installed cannot be used .*update or uninstall it"):
        _register("not_installed")
    assert specs_folder("not_installed") is None
    assert specs_folder("not_installed.deeper") is None


def test_a_study_of_somebody_else_cannot_replace_one_of_heatchecks(monkeypatch):
    twin = ModuleType("twin.study")
    twin.STUDY = STUDIES["triggers"]
    monkeypatch.setitem(sys.modules, "twin", ModuleType("twin"))
    monkeypatch.setitem(sys.modules, "twin.study", twin)
    with pytest.warns(UserWarning, match="registered twice"):
        _register("twin")


def test_an_own_study_that_does_not_load_is_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "heatcheck.studies.broken", ModuleType("heatcheck.studies.broken"))
    with pytest.raises(ModuleNotFoundError):
        _register("heatcheck.studies.broken")
