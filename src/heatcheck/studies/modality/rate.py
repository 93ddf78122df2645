"""Readers' opinions added to a finished modality run: checked, kept beside its tables, estimated and reported."""

from dataclasses import dataclass
from pathlib import Path

from heatcheck.core.errors import InputError
from heatcheck.core.records import Estimate
from heatcheck.running.reporting import build_report
from heatcheck.runs.gallery import items_of, read_entry
from heatcheck.runs.store import RunFolder, locked, read_manifest, read_run
from heatcheck.studies.modality.estimates import known_cases, rated_cases
from heatcheck.studies.modality.ratings import RATING, opinion_rows, read_ratings, write_sheet
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.vocabulary import ModalityEntry


@dataclass(frozen=True, slots=True)
class Rated:
    """What became of the ratings."""

    report: Path
    readers: int
    rows: int
    comments: int
    estimates: tuple[Estimate, ...]


def rate_run(run: Path, ratings: Path) -> Rated:
    """The run with these ratings instead of any earlier ones, and its report built again.

    Nothing is changed unless every line can be used.
    """
    settings = _settings(run)
    cases = rated_cases(run, settings)
    read = read_ratings(ratings, cases | known_cases(run), settings.methods).only(cases)
    if not read.rows:
        raise InputError(f"{ratings} speaks only of cases that failed in {run} and have no maps; rate others")
    with locked(run):
        folder = RunFolder(run)
        rows = list(opinion_rows(run, read, settings))
        others = [row for row in folder.read_estimates() if row.metric != RATING]
        read.save(run)
        folder.write_estimates([*others, *rows])
        folder.record(ratings=read.facts)
    return Rated(build_report(run), **read.facts, estimates=tuple(rows))


def sheet_for(run: Path, target: Path) -> int:
    """How many rows an empty table of ratings has, for every map that the run's gallery shows."""
    methods = _settings(run).methods
    entries = (read_entry(ModalityEntry, item) for item in items_of(read_run(run).gallery))
    return write_sheet(target, entries, methods)


def _settings(run: Path) -> ModalitySettings:
    """The settings of a finished modality run; others are refused."""
    manifest = read_manifest(run)
    if manifest.get("study") != "modality":
        raise InputError(f"{run} is a run of the study {manifest.get('study')!r}; only modality runs take ratings")
    if manifest.get("status") != "complete":
        raise InputError(f"{run} is not finished; repeat the command that began it, then rate")
    return ModalitySettings.of_run(manifest)
