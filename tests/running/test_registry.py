import sys
from dataclasses import replace
from types import ModuleType

import pytest

from heatcheck.core.errors import HeatcheckWarning, InputError
from heatcheck.core.study_packages import specs_folder, study_packages
from heatcheck.running.registry import STUDIES, _register
from heatcheck.runs.spec import shipped_specs


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
    with pytest.raises(InputError, match=f"{address}, a part of the study, cannot be loaded .*update its package"):
        study.make_page(None)


def test_every_demo_has_a_position_and_a_spec():
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


def test_a_study_that_is_none_or_leaves_the_program_is_left_out(monkeypatch, tmp_path):
    module = ModuleType("odd.study")
    module.STUDY = "bright"
    monkeypatch.setitem(sys.modules, "odd", ModuleType("odd"))
    monkeypatch.setitem(sys.modules, "odd.study", module)
    with pytest.warns(HeatcheckWarning, match="its STUDY is no"):
        _register("odd")
    (tmp_path / "leaver").mkdir()
    (tmp_path / "leaver" / "__init__.py").touch()
    (tmp_path / "leaver" / "study.py").write_text("raise SystemExit('no licence')")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.warns(HeatcheckWarning, match="SystemExit: no licence"):
        _register("leaver")


def brought_by(folder, monkeypatch, **values):
    """Distributions on the path whose entry points have these values; by name of the package that each needs."""
    for package, value in values.items():
        facts = folder / f"{package}-1.0.dist-info"
        facts.mkdir(parents=True)
        (facts / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        (facts / "entry_points.txt").write_text(f"[heatcheck.studies]\n{package} = {value}\n")
    monkeypatch.syspath_prepend(folder)


def test_an_entry_point_may_name_the_package_its_module_or_extras(tmp_path, monkeypatch):
    brought_by(tmp_path, monkeypatch, one="one", two="two.study:STUDY", three="three [fast]", four="four.study")
    assert {"one", "two", "three", "four"} < set(study_packages())


def test_nobody_replaces_a_shipped_spec_and_a_broken_package_has_none(tmp_path, monkeypatch):
    shipped = shipped_specs()
    brought_by(tmp_path, monkeypatch, taker="taker", broken="broken.inner")
    (tmp_path / "taker" / "specs").mkdir(parents=True)
    (tmp_path / "taker" / "__init__.py").touch()
    for name in ("localization-demo", "taker-demo"):
        (tmp_path / "taker" / "specs" / f"{name}.yaml").write_text("study: taker\n")
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken" / "__init__.py").write_text("this is no Python")
    specs = shipped_specs()
    assert specs.pop("taker-demo") == tmp_path / "taker" / "specs" / "taker-demo.yaml"
    assert specs == shipped


def test_a_spec_of_others_that_cannot_be_read_is_listed_with_its_fault(tmp_path, monkeypatch):
    from heatcheck.cli.list_parts import Kind, rows_of

    brought_by(tmp_path, monkeypatch, other="other")
    (tmp_path / "other" / "specs").mkdir(parents=True)
    (tmp_path / "other" / "__init__.py").touch()
    (tmp_path / "other" / "specs" / "other-demo.yaml").write_text("study: [other\n")
    rows = {row["name"]: row for row in rows_of(Kind.SPECS)}
    assert rows["localization-demo"]["study"] == "localization"
    assert rows["other-demo"]["study"] == "unreadable"
    assert "other-demo.yaml is not valid YAML" in rows["other-demo"]["title"]


def test_the_command_says_a_warning_of_ours_in_one_line():
    from heatcheck.cli.main import _one_line

    assert _one_line("a study cannot be used", HeatcheckWarning, "file.py", 3) == "heatcheck: a study cannot be used\n"
    assert "file.py:3" in _one_line("something else", UserWarning, "file.py", 3)


def test_an_own_study_that_does_not_load_is_an_error(monkeypatch):
    monkeypatch.setitem(sys.modules, "heatcheck.studies.broken", ModuleType("heatcheck.studies.broken"))
    with pytest.raises(ModuleNotFoundError):
        _register("heatcheck.studies.broken")
