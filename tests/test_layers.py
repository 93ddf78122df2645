"""Data flows one way: each folder imports only what lies before it, and no study knows another."""

import ast
import json
import re
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import pytest

import heatcheck

SRC = Path(heatcheck.__file__).parent
TESTS = Path(__file__).parent
STAGES = {"sources", "triggers", "models", "training", "methods", "maps", "regions", "metrics", "stats", "judging"}
SHARED = (
    "estimating",
    "running",
    "explaining",
    "scoring",
    "fitting",
)  # each sees those before it, but the last two not each other
ALLOWED: dict[str, set[str]] = {
    "core": set(),
    **{stage: {"core"} for stage in STAGES},
    "runs": {"core"},
    "report": {"core", "runs", "judging"},
    **{name: {"core", "runs", "report", *STAGES, *SHARED[: min(place, 3)]} for place, name in enumerate(SHARED)},
    "studies": {"core", "runs", "report", *STAGES, *SHARED},
    "cli": {"core", "runs", "report", "studies", *STAGES, *SHARED},
}
REPORT_SEES = {"core", "runs", "report", "judging"}
MOST_MODULES = 20  # in one folder
ROLES = {"study", "vocabulary", "spec", "plan", "stage", "scores", "estimates", "gallery"}
REPORT_ROLES = {"page", "verdict", "caveats", "literature", "gallery"}
STUDIES = sorted(path.name for path in (SRC / "studies").iterdir() if (path / "__init__.py").exists())
PUBLIC = {f"heatcheck.{name}": home for name, home in heatcheck._HOMES.items()}
_ADDRESS = re.compile(r"heatcheck(\.\w+){2,}(:\w+)?")  # a module, not a folder of them


def imported(source: str) -> set[str]:
    """The modules of heatcheck that a module's source imports or names in a string, anywhere in it."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            if node.level:
                names.add("heatcheck.relative")
            elif node.module and node.module.split(".")[0] == "heatcheck":
                full = {f"{node.module}.{alias.name}" for alias in node.names}
                names |= {PUBLIC.get(name, name) for name in full}
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id == "heatcheck":
            names.add(PUBLIC.get(f"heatcheck.{node.attr}", ""))
        elif isinstance(node, ast.Call) and ast.unparse(node.func).endswith("import_module"):
            names |= {ast.literal_eval(each) for each in node.args if isinstance(each, ast.Constant)}
        elif isinstance(node, ast.Constant) and isinstance(node.value, str) and _ADDRESS.fullmatch(node.value):
            names.add(node.value.partition(":")[0])
    return {name for name in names if name.startswith("heatcheck.")}


def violations(module: str, names: Iterable[str]) -> list[str]:
    """What is wrong with a module's imports; `module` is its path below heatcheck, "studies/triggers/plan.py" say."""
    place = module.removesuffix(".py").split("/")
    found = []
    for name in sorted(names):
        to = name.split(".")[1:]
        if to[0] != place[0] and to[0] not in ALLOWED[place[0]] and (to[0] in ALLOWED or to[0] == "relative"):
            found.append(f"{module} imports {name}: {place[0]} does not see {to[0]}")
        if place[0] == "studies" and len(place) > 2:
            found += _study_violations(module, place, name)
    return found


def _study_violations(module: str, place: list[str], name: str) -> list[str]:
    study, role = place[1], place[2]
    to = name.split(".")[1:]
    inside = to[:2] == ["studies", study]
    if to[0] == "studies" and not inside:
        return [f"{module} imports {name}: no study imports another"]
    if role == "report" and not (to[0] in REPORT_SEES or (inside and to[2:3] in (["report"], ["vocabulary"]))):
        return [f"{module} imports {name}: a study's report sees core, runs, report and its own vocabulary"]
    if role not in {"report", "study"} and inside and to[2:3] == ["report"]:
        return [f"{module} imports {name}: only the report builds the report"]
    if role == "vocabulary" and to[0] not in {"core", "runs"}:
        return [f"{module} imports {name}: a vocabulary sees core and runs only"]
    return []


def test_every_folder_has_its_rule():
    folders = {path.name for path in SRC.iterdir() if path.is_dir() and any(path.glob("*.py"))}
    assert folders == set(ALLOWED)


@pytest.mark.parametrize("folder", sorted(ALLOWED))
def test_folder_imports_only_what_lies_before_it(folder):
    for path in (SRC / folder).rglob("*.py"):
        assert not violations(path.relative_to(SRC).as_posix(), imported(path.read_text()))


@pytest.mark.parametrize(
    "planted",
    [
        "from heatcheck.models import MODELS",
        "import heatcheck.models.load",
        "from heatcheck import models",
        "def f():\n    from heatcheck.models.load import load_classifier",
        'part = "heatcheck.models.load:load_classifier"',
        "from ..models import MODELS",
        "import heatcheck.models.load as loading",
        'importlib.import_module("heatcheck.models")',
        "from heatcheck import run_study",
        "import heatcheck\nheatcheck.run_study()",
    ],
)
def test_a_planted_import_is_found(planted):
    assert violations("metrics/overlap.py", imported(planted))


@pytest.mark.parametrize(
    ("module", "planted"),
    [
        ("studies/triggers/plan.py", "from heatcheck.studies.alignment.spec import AlignmentBody"),
        ("studies/triggers/plan.py", "from heatcheck.studies import alignment"),
        ("studies/triggers/study.py", 'compare = "heatcheck.studies.modality.compare:compare_modality"'),
        ("studies/triggers/estimates.py", "from heatcheck.studies.triggers.report.facts import seeds_of"),
        ("studies/triggers/report/page.py", "from heatcheck.studies.triggers.gate import outcomes"),
        ("studies/triggers/report/sections/attack.py", "from heatcheck.metrics import METRICS"),
        ("studies/triggers/report/page.py", "from heatcheck.running.cases import read_cases"),
        ("studies/triggers/vocabulary.py", "from heatcheck.stats.shapley import shapley"),
        ("running/execute.py", "from heatcheck.studies.triggers.plan import plan_triggers"),
        ("running/execute.py", "from heatcheck.explaining.batch import Explainer"),
        ("fitting/train.py", "from heatcheck.scoring.rows import score_map"),
        ("estimating/score_values.py", "from heatcheck.running.cases import read_cases"),
        ("report/build.py", "from heatcheck.studies.triggers.report.page import triggers_page"),
        ("runs/store.py", "from heatcheck.report.build import render"),
    ],
)
def test_a_planted_shortcut_between_packages_is_found(module, planted):
    assert violations(module, imported(planted))


@pytest.mark.parametrize(
    ("module", "sound"),
    [
        ("studies/triggers/report/page.py", "from heatcheck.studies.triggers.vocabulary import BASELINE"),
        ("studies/triggers/report/page.py", "from heatcheck.report.page import Section"),
        ("studies/triggers/study.py", 'page = "heatcheck.studies.triggers.report.page:triggers_page"'),
        ("running/execute.py", "from heatcheck.report.numbers import count"),
    ],
)
def test_what_is_allowed_is_not_refused(module, sound):
    assert not violations(module, imported(sound))


def folders_of_code() -> list[Path]:
    return sorted({path.parent for path in SRC.rglob("*.py")})


@pytest.mark.parametrize("folder", folders_of_code(), ids=lambda path: path.relative_to(SRC.parent).as_posix())
def test_no_folder_is_a_hall(folder):
    assert len(list(folder.glob("*.py"))) <= MOST_MODULES


@pytest.mark.parametrize("study", STUDIES)
def test_the_same_file_names_play_the_same_roles_in_every_study(study):
    folder = SRC / "studies" / study
    assert {path.stem for path in folder.glob("*.py")} >= ROLES
    assert {path.stem for path in (folder / "report").glob("*.py")} >= REPORT_ROLES
    assert (folder / "report" / "sections").is_dir()


def test_tests_lie_in_the_tree_of_what_they_test():
    apart = {"contracts", "golden", "data"}
    folders = {path.parent.relative_to(TESTS) for path in TESTS.rglob("test_*.py")}
    lost = [
        folder for folder in folders if folder.parts and folder.parts[0] not in apart and not (SRC / folder).is_dir()
    ]
    assert not lost


LIGHT = {  # in this order, in one process: what one of them loads, the next ones have
    "import heatcheck": "torch",
    "import heatcheck.runs.spec, heatcheck.runs.store, heatcheck.runs.engine": "torch",
    "import heatcheck.report.build, heatcheck.running.reporting": "torch",
    "import heatcheck.cli.main": "torch",
    "import heatcheck.running.compare": "torch",
    **{f"import heatcheck.studies.{study}.report.page": "torch" for study in STUDIES},
    "import heatcheck.models, heatcheck.methods, heatcheck.sources": "monai",
    "import heatcheck.running.run": "lightning_fabric",
}
HEAVY = {"import heatcheck.methods": "torch"}


@pytest.fixture(scope="module")
def loaded():
    """Whether each statement has loaded what it should not have."""
    code = f"import json, sys\nfound = {{}}\nfor each, heavy in {[*LIGHT.items(), *HEAVY.items()]!r}:\n"
    code += "    exec(each)\n    found[each] = heavy in sys.modules\nprint(json.dumps(found))"
    return json.loads(subprocess.run([sys.executable, "-c", code], check=True, capture_output=True).stdout)


@pytest.mark.parametrize("statement", LIGHT)
def test_import_stays_light(loaded, statement):
    assert not loaded[statement]


@pytest.mark.parametrize("statement", HEAVY)
def test_the_light_import_test_would_notice(loaded, statement):
    assert loaded[statement]
