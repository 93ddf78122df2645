"""Readers' ratings added to a finished modality run: checked, stored with its tables, estimated and reported."""

from dataclasses import dataclass
from pathlib import Path

from heatcheck.core.errors import InputError
from heatcheck.core.records import Estimate
from heatcheck.running.reporting import build_report
from heatcheck.runs.gallery import items_of, read_entry
from heatcheck.runs.lock import locked
from heatcheck.runs.store import RunFolder, read_run
from heatcheck.studies.modality.estimates import known_cases, rated_cases
from heatcheck.studies.modality.ratings import rating_rows, read_ratings, write_sheet
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.vocabulary import RATING, ModalityEntry, ModalityManifest


@dataclass(frozen=True, slots=True)
class Rated:
    """The result of adding ratings to a run."""

    report: Path
    readers: int
    rows: int
    comments: int
    estimates: tuple[Estimate, ...]


def rate_run(run: Path, ratings: Path) -> Rated:
    """The run with these ratings instead of any earlier ones, and its report built again.

    Nothing changes unless every line is valid.
    """
    settings = _settings(run)
    cases = rated_cases(run, settings)
    read = read_ratings(ratings, cases | known_cases(run), settings.methods).only(cases)
    if not read.rows:
        raise InputError(f"{ratings} rates only cases that failed in {run} and have no maps; rate other cases")
    with locked(run):
        folder = RunFolder(run)
        rows = list(rating_rows(run, read, settings))
        others = [row for row in folder.read_estimates() if row.metric != RATING]
        read.save(run)
        folder.write_estimates([*others, *rows])
        folder.record(**read.facts)
    counts = read.counts
    return Rated(build_report(run), counts.readers, counts.rows, counts.comments, tuple(rows))


def sheet_for(run: Path, target: Path) -> int:
    """The number of rows of an empty table of ratings, written with one row per map in the run's gallery."""
    methods = _settings(run).methods
    entries = (read_entry(ModalityEntry, item) for item in items_of(read_run(run).gallery))
    return write_sheet(target, entries, methods)


def _settings(run: Path) -> ModalitySettings:
    """The settings of a finished modality run; others are refused."""
    manifest = read_run(run).manifest_as(ModalityManifest)
    if manifest.study != "modality":
        raise InputError(f"{run} is a run of the study {manifest.study!r}; only modality runs take ratings")
    if manifest.status != "complete":
        raise InputError(f"{run} is not finished; repeat the command that started it, then rate its maps")
    return ModalitySettings.of_run(manifest)
