"""What readers say of maps: a table of ratings, read, checked and summed up, and an empty one to fill in."""

import csv
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pandas as pd

from heatcheck.core.errors import InputError
from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.registry import suggest
from heatcheck.core.vocabulary import condition
from heatcheck.estimating.estimates import fill
from heatcheck.estimating.score_table import pivoted
from heatcheck.runs.tables import replaced
from heatcheck.sources.files.tables import read_csv
from heatcheck.stats.correlation import correlations
from heatcheck.stats.krippendorff import krippendorff_alpha
from heatcheck.stats.resampling.bootstrap import mean_estimates
from heatcheck.stats.spearman import ranks
from heatcheck.studies.modality.means import of_metric, read_scores
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.vocabulary import ModalityEntry

FILE = "ratings.csv"  # its name in a run's folder
COLUMNS = ("reader", "case", "method", "rating", "comment")
HIGHEST = 100.0


@dataclass(frozen=True, slots=True)
class Rating:
    """One reader's opinion of one map."""

    reader: str
    case: str
    method: str
    rating: float  # from 0, of no use, to 100
    comment: str = ""


@dataclass(frozen=True)
class Ratings:
    """Every opinion."""

    rows: tuple[Rating, ...]

    @property
    def facts(self) -> dict[str, int]:
        """How many readers, ratings and comments there are."""
        return {
            "readers": len({row.reader for row in self.rows}),
            "rows": len(self.rows),
            "comments": sum(bool(row.comment) for row in self.rows),
        }

    @property
    def table(self) -> pd.DataFrame:
        """The rows as a table."""
        return pd.DataFrame([[getattr(row, name) for name in COLUMNS] for row in self.rows], columns=list(COLUMNS))

    def renamed(self, names: Mapping[str, str]) -> "Ratings":
        """The same with the cases' other names."""
        return Ratings(tuple(replace(row, case=names[row.case]) for row in self.rows))

    def only(self, cases: Collection[str]) -> "Ratings":
        """Those of some cases."""
        return Ratings(tuple(row for row in self.rows if row.case in cases))

    def save(self, folder: Path) -> Path:
        """Where the ratings now lie in a run's folder, sorted."""
        ordered = sorted(self.rows, key=lambda row: (row.case, row.method, row.reader))
        return write_rows(folder / FILE, ([f"{row.rating:g}" if n == "rating" else getattr(row, n) for n in COLUMNS]
                                          for row in ordered))  # fmt: skip


def read_ratings(path: Path, cases: Collection[str], methods: Collection[str]) -> Ratings:
    """The ratings in a CSV file; one clear sentence where a line cannot be used.

    Lines without a rating are left out: a reader need not have rated everything.
    """
    if not path.is_file():
        raise InputError(f"{path} is not there; write an empty table to fill in with heatcheck rate RUN --sheet FILE")
    header, lines = read_csv(path)
    lost = [name for name in COLUMNS[:4] if name not in header]
    if lost:
        raise InputError(f"{path} has no column {', '.join(lost)}; its columns must be {','.join(COLUMNS)}")
    known: dict[str, Collection[str]] = {"case": frozenset(cases), "method": frozenset(methods)}
    first: dict[tuple[str, str, str], int] = {}
    rows: list[Rating] = []
    for number, line in lines.items():
        row = _rating(line, known, f"{path}, line {number}")
        if row is None:
            continue
        key = (row.reader, row.case, row.method)
        if key in first:
            raise InputError(
                f"{path}, line {number}: {row.reader} rated {row.method} on {row.case} in line {first[key]} already; "
                "keep one of the two"
            )
        first[key] = number
        rows.append(row)
    if not rows:
        raise InputError(f"{path} has no rating; fill in the column rating with numbers from 0 to {HIGHEST:g}")
    return Ratings(tuple(rows))


def _rating(line: Mapping[str, str], known: Mapping[str, Collection[str]], where: str) -> Rating | None:
    """One line's opinion; None where there is no rating."""
    cells = {name: line.get(name, "").strip() for name in COLUMNS}
    if not cells["rating"]:
        return None
    try:
        value = float(cells["rating"])
    except ValueError:
        value = -1.0
    if not 0 <= value <= HIGHEST:  # nor NaN
        raise InputError(f"{where}: the rating must be a number from 0 to {HIGHEST:g}, got {cells['rating']!r}")
    if not cells["reader"]:
        raise InputError(f"{where}: nobody is named as reader; give each reader a name or a number")
    for name, names in known.items():
        if cells[name] not in names:
            raise InputError(f"{where}: the run has no {name} {cells[name]!r}; {_near(cells[name], names)}")
    return Rating(cells["reader"], cells["case"], cells["method"], value, cells["comment"])


def _near(name: str, known: Collection[str]) -> str:
    """A near name; hundreds of case ids would not fit on a line."""
    phrase = suggest(name, known)
    return phrase if phrase.startswith("did you") or len(known) <= 20 else f"it has {len(known)} others"


def write_sheet(path: Path, entries: Iterable[ModalityEntry], methods: Sequence[str]) -> int:
    """How many rows an empty table has, with one for each map of the gallery; a file that is there is not touched."""
    if path.exists():
        raise InputError(f"{path} is there already, and may hold ratings; choose another name")
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} is no folder; choose a file in one that exists")
    rows = [["", entry.case, maps.method, "", ""] for entry in entries for maps in entry.maps if maps.method in methods]
    if not rows:
        raise InputError("the run's gallery shows no map to rate; run the study again with a gallery")
    write_rows(path, rows)
    return len(rows)


def write_rows(path: Path, rows: Iterable[Sequence[str]]) -> Path:
    """The file, now a table with these rows."""
    with replaced(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(COLUMNS)
        writer.writerows(rows)
    return path


RATING = "rating"  # the metric of every row here
FEW_MAPS = "no case has three rated methods whose ratings and MSFI differ"


def opinion_rows(folder: Path, ratings: Ratings, settings: ModalitySettings) -> Iterator[Estimate]:
    """Every estimate that rests on ratings; a map's rating is the mean over its readers."""
    scores = of_metric(read_scores(folder, ["msfi"], settings.model), "msfi", settings)
    each = ratings.table.merge(scores[["case", "patient"]].drop_duplicates(), on="case", how="left")
    each["patient"] = each["patient"].fillna(each["case"])  # a case that failed has no score to name its patient
    maps = each.groupby(["case", "patient", "method"], sort=True)["rating"].mean().reset_index()
    both = maps.merge(scores[["case", "method", "value"]], on=["case", "method"], how="left")
    yield from _means(maps, settings)
    yield from _correlations(both, settings)
    yield _within_cases(both, settings)
    yield _agreement(each, settings)


def _means(maps: pd.DataFrame, settings: ModalitySettings) -> Iterator[Estimate]:
    """What each rated method gets on average."""
    table = pivoted(maps, ["case", "patient"], "method", "rating")
    rated = [method for method in settings.methods if method in table.columns]
    patients = table.index.get_level_values("patient").to_numpy()
    found = mean_estimates(table[rated].to_numpy(float), patients, settings.draws, settings.generator("mean", RATING))
    for method, one in zip(rated, found, strict=True):
        # a case that nobody was asked about is not undefined
        yield replace(fill(Estimate("mean", RATING, ALL, method, settings.model), one), n_undefined=0)


def _correlations(both: pd.DataFrame, settings: ModalitySettings) -> Iterator[Estimate]:
    """Spearman's correlation of rating and MSFI over all maps, and over those of each method."""
    rated = [method for method in settings.methods if method in set(both["method"])]
    for method in ("", *rated):
        own = both[both["method"] == method] if method else both
        values, patients = own[["rating", "value"]].to_numpy(float), own["patient"].to_numpy()
        found = correlations(values, patients, settings.draws, settings.generator("correlation", RATING, method))
        under = condition(**{"with": "msfi", "within": "all"})
        blank = Estimate(
            "correlation", RATING, ALL, method, settings.model, condition=under, n_cases=found.n_cases,
            n_patients=found.n_patients, n_undefined=found.n_undefined,
        )  # fmt: skip
        yield fill(blank, found.spearman[0])


def _within_cases(both: pd.DataFrame, settings: ModalitySettings) -> Estimate:
    """The mean over cases of Spearman's correlation over a case's methods: does MSFI tell which map readers prefer?"""
    cases = [_of_case(rows) for _, rows in both.groupby("case", sort=True)]
    patients = both.groupby("case", sort=True)["patient"].first().to_numpy()
    values = np.array(cases)[:, None]
    (one,) = mean_estimates(values, patients, settings.draws, settings.generator("correlation", RATING, "within"))
    under = condition(**{"with": "msfi", "within": "case"})
    blank = Estimate("correlation", RATING, ALL, model=settings.model, condition=under)
    return fill(blank, one, FEW_MAPS if np.isnan(one.value) else None)


def _of_case(rows: pd.DataFrame) -> float:
    """Spearman's correlation of a case's ratings and scores; NaN below three maps, or where one of the two is flat."""
    whole = rows.dropna(subset=["rating", "value"])
    if len(whole) < 3:
        return float("nan")
    one, other = (ranks(whole[name].to_numpy(float)) for name in ("rating", "value"))
    one, other = one - one.mean(), other - other.mean()
    size = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / size if size > 0 else float("nan")


def _agreement(each: pd.DataFrame, settings: ModalitySettings) -> Estimate:
    """Krippendorff's alpha of the readers over all maps."""
    table = pivoted(each, ["case", "patient", "method"], "reader", "rating")
    patients = table.index.get_level_values("patient").to_numpy()
    found = krippendorff_alpha(table.to_numpy(float), patients, settings.draws, settings.generator("alpha", RATING))
    paired = (table.notna().sum(axis=1) >= 2).to_numpy()
    blank = Estimate(
        "alpha", RATING, ALL, model=settings.model, n_cases=int(paired.sum()),
        n_patients=len(np.unique(patients[paired])),
    )  # fmt: skip
    return fill(blank, found)
