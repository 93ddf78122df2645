"""The demonstration: the demo spec of every study in one folder, with a page that links to the reports."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from heatcheck.core.errors import RunFolderError, SpecError
from heatcheck.core.registry import suggest
from heatcheck.report.contents import FILE
from heatcheck.running.execute import Outcome
from heatcheck.running.progress import Watcher
from heatcheck.running.registry import STUDIES
from heatcheck.running.reporting import build_contents
from heatcheck.running.run import run_study
from heatcheck.running.study import RunOptions

TITLE = "heatcheck demonstration"
SECONDS_PER_STUDY = 45  # on two idle cores; the demo specs are kept that small


@dataclass(frozen=True, slots=True)
class Demonstration:
    """The page of the demonstration, and the outcome of each run."""

    page: Path
    outcomes: tuple[Outcome, ...]


def demo_studies() -> tuple[str, ...]:
    """The studies that have a demo, in the order of the demonstration."""
    return tuple(sorted((name for name in STUDIES if STUDIES[name].demo), key=lambda name: STUDIES[name].demo))


def run_demo(out: Path, only: Sequence[str], options: RunOptions, watcher: Watcher) -> Demonstration:
    """Run the demos of the studies in `only`, or of all if it is empty, each in its folder within `out`."""
    known = demo_studies()
    for name in only:
        if name not in known:
            raise SpecError(f"there is no demo of a study {name!r}; {suggest(name, known)}")
    wanted = [name for name in known if not only or name in only]
    _require_usable(out, known)
    watcher.say(f"{_duration(len(wanted))} on two idle cores; you can open each report as soon as its path is shown.")
    outcomes, page = [], out / FILE
    for name in wanted:
        watcher.say(f"{STUDIES[name].question} ({name})")
        outcomes.append(run_study(f"{name}-demo", out / name, options, watcher))
        watcher.say(f"Report: {outcomes[-1].report}")
        finished = [other for other in known if (out / other / "report.html").exists()]
        page = build_contents(out, finished, TITLE)
    return Demonstration(page, tuple(outcomes))


def _duration(studies: int) -> str:
    minutes = round(studies * SECONDS_PER_STUDY / 60)
    return f"This takes about {minutes} minutes" if minutes > 1 else "This takes about a minute"


def _require_usable(out: Path, known: Sequence[str]) -> None:
    """Refuse a folder that holds other files."""
    if out.exists() and not out.is_dir():
        raise RunFolderError(f"{out} is a file; give --out a folder")
    # a killed call may have left an unfinished page
    names = {path.name for path in out.iterdir() if ".tmp-" not in path.name} if out.is_dir() else set()
    foreign = sorted(names - {*known, FILE, *(f"{name}.salt" for name in known)})
    if foreign:
        raise RunFolderError(f"{out} holds other files ({foreign[0]}); choose another --out")
