"""How `score` cuts regions out of maps: one threshold for all, or tuned ones per finding from a table."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from heatcheck.core.errors import InputError
from heatcheck.core.findings import canonical
from heatcheck.regions.rule import RegionRule
from heatcheck.scoring.presets import Rules
from heatcheck.sources.files.tables import read_csv

Slice = Literal["true-positive", "full"]
TUNING_RECORD = "tuning.json"  # next to the tables that `tune` writes: the patients they were tuned on


@dataclass(frozen=True, slots=True)
class TunedTable:
    """A table of tuned values, and the patients it was tuned on, where they are recorded."""

    path: Path
    values: Mapping[str, float]  # by finding
    patients: frozenset[str] = frozenset()

    def value(self, finding: str) -> float:
        """The value of the finding; an InputError where the table lacks it."""
        try:
            return self.values[finding]
        except KeyError:
            raise InputError(
                f"{self.path} has no value for {finding}; tune it again with maps of that finding"
            ) from None


@dataclass(frozen=True, slots=True)
class RegionSettings:
    """How maps become regions, as given by the flags."""

    threshold: Literal["otsu"] | float | TunedTable = "otsu"
    cutoffs: TunedTable | None = None
    smoothing: float | TunedTable = 0.0  # a fraction of the side, or pixels of the map's colours
    of_colours: bool = False
    slice: Slice = "true-positive"

    def rule(self, finding: str) -> RegionRule:
        """How the maps of that finding become regions."""
        threshold = self.threshold.value(finding) if isinstance(self.threshold, TunedTable) else self.threshold
        smooth = self.smoothing.value(finding) if isinstance(self.smoothing, TunedTable) else self.smoothing
        return RegionRule(threshold, *((0.0, int(smooth)) if self.of_colours else (smooth, 0)))

    def cutoff(self, finding: str) -> float:
        """The probability below which the region is empty."""
        return self.cutoffs.value(finding) if self.cutoffs else 0.0

    @property
    def label(self) -> str:
        """A short name of the regions, as the benchmark's files carry it."""
        if self.cutoffs:
            return "prob"
        if self.threshold != "otsu":
            return "thr"
        if isinstance(self.smoothing, TunedTable):
            return "smooth"
        return f"smooth{self.smoothing:g}" if self.smoothing else "otsu"

    @property
    def tables(self) -> tuple[TunedTable, ...]:
        """The tables of tuned values."""
        return tuple(t for t in (self.threshold, self.cutoffs, self.smoothing) if isinstance(t, TunedTable))

    @property
    def tuned_on(self) -> frozenset[str]:
        """The patients whose maps chose thresholds or cutoffs."""
        return frozenset().union(*(table.patients for table in self.tables))


def region_settings(threshold: str, cutoffs: Path | None, smooth: str, kind: Slice, rules: Rules) -> RegionSettings:
    """The settings that the flags describe, checked; an InputError says which flag is wrong."""
    cut: Literal["otsu"] | float | TunedTable = "otsu"
    if threshold != "otsu":
        cut = _number(threshold) or read_thresholds(Path(threshold))
    number = _as_float(smooth)
    tuned = read_best(Path(smooth), "smooth", most=math.inf) if number is None else None
    if cut != "otsu" and (tuned or number):
        raise InputError("--smooth works with Otsu's threshold only; leave out --smooth or --threshold")
    for each in tuned.values.values() if tuned else (number or 0.0,):
        smoothing(each, rules)  # raises where pixels and fractions are mixed up
    of_colours = rules.smoothing == "colours"
    chosen = read_best(cutoffs, "prob_threshold") if cutoffs else None
    return RegionSettings(cut, chosen, tuned or number or 0.0, of_colours, kind)


def smoothing(smooth: float, rules: Rules) -> tuple[float, int]:
    """The fraction of the image's side, or the benchmark's pixels."""
    if rules.smoothing == "map":
        if not 0 <= smooth < 1:
            raise InputError(
                f"--smooth must be a fraction of the image's side (0.025 for 50 pixels of 2000), got {smooth:g}; "
                "pixels need --preset chexlocalize"
            )
        return smooth, 0
    if not smooth >= 0 or smooth % 1:
        raise InputError(f"--smooth must be a whole number of pixels with --preset chexlocalize, got {smooth:g}")
    return 0.0, int(smooth)


def _as_float(text: str) -> float | None:
    try:
        return float(text)
    except ValueError:
        return None


def _number(text: str) -> float | None:
    value = _as_float(text)
    if value is not None and not 0 < value < 1:
        raise InputError(
            f"--threshold must be 'otsu', a table of `heatcheck tune` or a number between 0 and 1, got {text}"
        )
    return value


def read_thresholds(path: Path) -> TunedTable:
    """The threshold of each finding: columns `threshold` and `task`."""
    rows = _rows(path, ("threshold", "task"))
    values: dict[str, float] = {}
    for number, row in rows.items():
        finding = canonical(row["task"].strip())
        if finding in values:
            raise InputError(f"{path}, line {number}: {finding} is given twice; keep one line")
        values[finding] = _value(row["threshold"], f"{path}, line {number}: threshold")
    return TunedTable(path, values, _tuned_on(path))


def read_best(path: Path, name: str, most: float = 1.0) -> TunedTable:
    """Each finding's value in the column of that name where its mean overlap (`mIoU`) is first the highest."""
    rows = _rows(path, (name, "mIoU", "task"))
    best: dict[str, tuple[float, float]] = {}
    for number, row in rows.items():
        where = f"{path}, line {number}"
        finding = canonical(row["task"].strip())
        if not row["mIoU"].strip():
            continue
        overlap = _value(row["mIoU"], f"{where}: mIoU")
        if finding not in best or overlap > best[finding][1]:
            best[finding] = _value(row[name], f"{where}: {name}", most), overlap
    return TunedTable(path, {finding: value for finding, (value, _) in best.items()}, _tuned_on(path))


def _rows(path: Path, columns: tuple[str, ...]) -> dict[int, dict[str, str]]:
    if not path.is_file():
        raise InputError(f"{path}: no such file; `heatcheck tune` writes it")
    header, rows = read_csv(path)
    if lacking := [name for name in columns if name not in header]:
        raise InputError(f"{path} has no column {lacking[0]!r}; give the table that `heatcheck tune` writes")
    if not rows:
        raise InputError(f"{path} has no rows; give the table that `heatcheck tune` writes")
    return rows


def _value(text: str, where: str, most: float = 1.0) -> float:
    value = _as_float(text)
    if value is None or not 0 <= value <= most:
        upto = f"between 0 and {most:g}" if math.isfinite(most) else "from 0 up"
        raise InputError(f"{where} must be a number {upto}, got {text!r}; correct it")
    return value


def _tuned_on(path: Path) -> frozenset[str]:
    """The patients in the record next to the table; none without a record."""
    record = path.parent / TUNING_RECORD
    if not record.is_file():
        return frozenset()
    try:
        return frozenset(map(str, json.loads(record.read_text())["patients"]))
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise InputError(f"{record} cannot be read ({error}); tune again, or remove it") from error
