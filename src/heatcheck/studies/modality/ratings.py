"""Readers' ratings of maps: a table of ratings, read, checked and summarised, and an empty one to fill in."""

import csv
import math
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from jaxtyping import Float

from heatcheck.core.atomic_files import replaced
from heatcheck.core.errors import InputError
from heatcheck.core.records import ALL_FINDINGS as ALL
from heatcheck.core.records import Estimate
from heatcheck.core.registry import suggest
from heatcheck.core.vocabulary import CORRELATION, MEAN, condition
from heatcheck.estimating.estimates import fill
from heatcheck.estimating.score_table import pivoted
from heatcheck.sources.files.tables import read_csv
from heatcheck.stats.correlation import correlations
from heatcheck.stats.krippendorff import krippendorff_alpha
from heatcheck.stats.resampling.clusters import cluster_totals
from heatcheck.stats.resampling.studentised import (
    FEW_PATIENTS,
    FEWEST_PATIENTS,
    linearised_ratios,
    simultaneous_intervals,
)
from heatcheck.stats.spearman import ranks, spearman
from heatcheck.studies.modality.estimating.means import studentised_means
from heatcheck.studies.modality.estimating.score_tables import of_metric, read_scores
from heatcheck.studies.modality.settings import ModalitySettings
from heatcheck.studies.modality.vocabulary import (
    ALL_MAPS,
    ALPHA,
    EACH_CASE,
    RATING,
    RATING_COLUMNS,
    RATINGS_FILE,
    SINGLE_MAPS,
    ModalityEntry,
    ModalityManifest,
    RatingsEntry,
)

HIGHEST = 100.0
FEW_MAPS = "no case has three rated methods whose ratings and MSFI differ"


@dataclass(frozen=True, slots=True)
class Rating:
    """One reader's rating of one map."""

    reader: str
    case: str
    method: str
    rating: float  # from 0, of no use, to 100
    comment: str = ""


@dataclass(frozen=True)
class Ratings:
    """All ratings."""

    rows: tuple[Rating, ...]

    @property
    def counts(self) -> RatingsEntry:
        """The numbers of readers, ratings and comments."""
        readers, comments = {row.reader for row in self.rows}, [row for row in self.rows if row.comment]
        return RatingsEntry(readers=len(readers), rows=len(self.rows), comments=len(comments))

    @property
    def facts(self) -> dict[str, Any]:
        """What the manifest says of them."""
        return ModalityManifest(ratings=self.counts).facts()

    @property
    def table(self) -> pd.DataFrame:
        """The rows as a table."""
        return pd.DataFrame(self.rows)

    def renamed(self, names: Mapping[str, str]) -> "Ratings":
        """The same with other names of the cases."""
        return Ratings(tuple(replace(row, case=names[row.case]) for row in self.rows))

    def only(self, cases: Collection[str]) -> "Ratings":
        """The ratings of some cases."""
        return Ratings(tuple(row for row in self.rows if row.case in cases))

    def save(self, folder: Path) -> Path:
        """The file in the run's folder to which the ratings are written, sorted."""
        ordered = sorted(self.rows, key=lambda row: (row.case, row.method, row.reader))
        rows = ((row.reader, row.case, row.method, f"{row.rating:g}", row.comment) for row in ordered)
        return write_rows(folder / RATINGS_FILE, rows)


def read_ratings(path: Path, cases: Collection[str], methods: Collection[str]) -> Ratings:
    """The ratings in a CSV file, without lines that have no rating: a reader need not rate every map."""
    if not path.is_file():
        raise InputError(f"{path} does not exist; write an empty table to fill in with heatcheck rate RUN --sheet FILE")
    header, lines = read_csv(path)
    missing = [name for name in RATING_COLUMNS[:4] if name not in header]
    if missing:
        raise InputError(f"{path} has no column {', '.join(missing)}; its columns must be {','.join(RATING_COLUMNS)}")
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
                "keep one of the two lines"
            )
        first[key] = number
        rows.append(row)
    if not rows:
        raise InputError(f"{path} has no rating; fill in the column rating with numbers from 0 to {HIGHEST:g}")
    return Ratings(tuple(rows))


def _rating(line: Mapping[str, str], known: Mapping[str, Collection[str]], where: str) -> Rating | None:
    """The rating in one line; None where there is none."""
    cells = {name: line.get(name, "").strip() for name in RATING_COLUMNS}
    if not cells["rating"]:
        return None
    try:
        value = float(cells["rating"])
    except ValueError:
        value = -1.0
    if not 0 <= value <= HIGHEST:  # also refuses NaN
        raise InputError(f"{where}: the rating must be a number from 0 to {HIGHEST:g}, got {cells['rating']!r}")
    if not cells["reader"]:
        raise InputError(f"{where}: the reader is missing; give each reader a name or a number")
    for name, names in known.items():
        if cells[name] not in names:
            raise InputError(f"{where}: the run has no {name} {cells[name]!r}; {_near(cells[name], names)}")
    return Rating(cells["reader"], cells["case"], cells["method"], value, cells["comment"])


def _near(name: str, known: Collection[str]) -> str:
    """A suggestion; hundreds of case ids would not fit on a line."""
    phrase = suggest(name, known)
    return phrase if phrase.startswith("did you") or len(known) <= 20 else f"it has {len(known)} others"


def write_sheet(path: Path, entries: Iterable[ModalityEntry], methods: Sequence[str]) -> int:
    """The number of rows of a new table with one empty row per map in the gallery."""
    if path.exists():
        raise InputError(f"{path} exists already and may hold ratings; choose another name")
    if not path.parent.is_dir():
        raise InputError(f"{path.parent} is not a folder; choose a file in a folder that exists")
    rows = [["", entry.case, maps.method, "", ""] for entry in entries for maps in entry.maps if maps.method in methods]
    if not rows:
        raise InputError("the gallery of the run has no map to rate; run the study again with a gallery")
    write_rows(path, rows)
    return len(rows)


def write_rows(path: Path, rows: Iterable[Sequence[str]]) -> Path:
    """The file, written as a table with these rows."""
    with replaced(path) as temporary, temporary.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(RATING_COLUMNS)
        writer.writerows(rows)
    return path


def rating_rows(folder: Path, ratings: Ratings, settings: ModalitySettings) -> Iterator[Estimate]:
    """Every estimate from ratings; a map's rating is the mean over its readers."""
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
    """The mean rating of each method."""
    table = pivoted(maps, ["case", "patient"], "method", "rating")
    rated = [method for method in settings.methods if method in table.columns]
    patients = table.index.get_level_values("patient").to_numpy()
    generator = settings.generator("mean", RATING)
    means = studentised_means(table[rated].to_numpy(float), patients, settings.draws, generator)
    for method, mean in zip(rated, means, strict=True):
        row = fill(Estimate(MEAN, RATING, ALL, method, settings.model), mean)
        # a case that was not rated is not undefined
        yield _within(replace(row, n_undefined=0), 0.0, HIGHEST)


def _within(row: Estimate, lowest: float, highest: float) -> Estimate:
    """The estimate with its interval within the values that are possible."""
    low, high = np.clip([row.low, row.high], lowest, highest).tolist()  # NaN stays NaN
    return replace(row, low=low, high=high)


def _correlations(both: pd.DataFrame, settings: ModalitySettings) -> Iterator[Estimate]:
    """Spearman's correlation of rating and MSFI over all maps, and over those of each method; then as the paper has it.

    Interval and p-value come from the same draws of patients, each with all their maps.
    """
    rated = [method for method in settings.methods if method in set(both["method"])]
    for method in ("", *rated):
        rows = both[both["method"] == method] if method else both
        values, patients = rows[["rating", "value"]].to_numpy(float), rows["patient"].to_numpy()
        result = correlations(values, patients, settings.draws, settings.generator("correlation", RATING, method))
        template = Estimate(
            CORRELATION, RATING, ALL, method, settings.model, condition=condition(with_metric="msfi", within=ALL_MAPS),
            n_cases=result.n_cases, n_patients=result.n_patients, n_undefined=result.n_undefined,
        )  # fmt: skip
        rho = result.spearman[0]
        yield _of_enough(replace(fill(template, rho), p_value=rho.p_at_zero))
        yield _as_published(values, template)


def _as_published(values: Float[np.ndarray, "maps 2"], template: Estimate) -> Estimate:
    """The same correlation with Fisher's interval and the p-value of Student's t, each map counted as independent."""
    plain = spearman(values[:, 0], values[:, 1])
    text = condition(with_metric="msfi", within=SINGLE_MAPS)
    return replace(fill(replace(template, condition=text), plain), n_patients=template.n_patients)


def _within_cases(both: pd.DataFrame, settings: ModalitySettings) -> Estimate:
    """The mean over cases of Spearman's correlation over a case's methods: does MSFI predict the preferred map?"""
    by_case = both.groupby("case", sort=True)
    values = np.array([_of_case(rows) for _, rows in by_case])[:, None]
    patients = by_case["patient"].first().to_numpy()
    totals, defined = cluster_totals(values, patients), ~np.isnan(values)
    generator = settings.generator("correlation", RATING, "within")
    found = simultaneous_intervals(linearised_ratios(totals.sums, totals.counts), settings.draws, generator)
    mean = found.intervals[0]
    template = Estimate(
        CORRELATION, RATING, ALL, model=settings.model, condition=condition(with_metric="msfi", within=EACH_CASE),
        p_value=float(found.p_values[0]), n_cases=int(defined.sum()), n_patients=int((totals.counts > 0).sum()),
        n_undefined=int((~defined).sum()),
    )  # fmt: skip
    return _within(fill(template, mean, FEW_MAPS if np.isnan(mean.value) else None), -1.0, 1.0)


def _of_case(rows: pd.DataFrame) -> float:
    """Spearman's correlation of a case's ratings and scores; NaN below three maps, or where one is constant."""
    complete = rows.dropna(subset=["rating", "value"])
    if len(complete) < 3:
        return float("nan")
    one, other = (ranks(complete[name].to_numpy(float)) for name in ("rating", "value"))
    one, other = one - one.mean(), other - other.mean()
    size = float(np.sqrt((one @ one) * (other @ other)))
    return float(one @ other) / size if size > 0 else float("nan")


def _agreement(each: pd.DataFrame, settings: ModalitySettings) -> Estimate:
    """Krippendorff's alpha of the readers over all maps."""
    table = pivoted(each, ["case", "patient", "method"], "reader", "rating")
    patients = table.index.get_level_values("patient").to_numpy()
    alpha = krippendorff_alpha(table.to_numpy(float), patients, settings.draws, settings.generator("alpha", RATING))
    paired = (table.notna().sum(axis=1) >= 2).to_numpy()
    template = Estimate(
        ALPHA, RATING, ALL, model=settings.model, n_cases=int(paired.sum()),
        n_patients=len(np.unique(patients[paired])),
    )  # fmt: skip
    return _of_enough(fill(template, alpha))


def _of_enough(row: Estimate) -> Estimate:
    """The estimate without its interval where too few patients were rated."""
    if row.n_patients >= FEWEST_PATIENTS or math.isnan(row.low):
        return row
    return replace(row, low=math.nan, high=math.nan, p_value=math.nan, reason=FEW_PATIENTS)
