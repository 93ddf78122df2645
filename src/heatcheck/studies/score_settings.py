"""How `score` cuts regions out of maps: one threshold for all, or tuned ones per finding out of a table."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from heatcheck.core.errors import InputError
from heatcheck.core.findings import canonical
from heatcheck.regions.rule import RegionRule
from heatcheck.sources.tables import read_csv
from heatcheck.studies.presets import Rules

Slice = Literal["true-positive", "full"]
TUNING_RECORD = "tuning.json"  # beside the tables that `tune` writes: whose images they were tuned on


@dataclass(frozen=True, slots=True)
class Tables:
    """A table of tuned values, and the patients it was tuned on, where that is known."""

    path: Path
    values: Mapping[str, float]  # by finding
    patients: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class RegionSettings:
    """What the flags say about regions."""

    threshold: Literal["otsu"] | float | Tables = "otsu"
    cutoffs: Tables | None = None
    smooth: float = 0.0
    colours: int = 0
    slice: Slice = "true-positive"
    notes: tuple[str, ...] = field(default=())

    def rule(self, finding: str) -> RegionRule:
        """How the maps of that finding become regions."""
        threshold = self.threshold
        if isinstance(threshold, Tables):
            threshold = _of(threshold, finding)
        return RegionRule(threshold, self.smooth, self.colours)

    def cutoff(self, finding: str) -> float:
        """The probability below which the region is empty."""
        return _of(self.cutoffs, finding) if self.cutoffs else 0.0

    @property
    def label(self) -> str:
        """A short name of the regions, as the benchmark's files carry it."""
        if self.cutoffs:
            return "prob"
        if self.threshold != "otsu":
            return "thr"
        return f"smooth{self.colours or self.smooth:g}" if self.colours or self.smooth else "otsu"

    @property
    def tuned_on(self) -> frozenset[str]:
        """The patients whose maps chose thresholds or cutoffs."""
        tables = [t for t in (self.threshold, self.cutoffs) if isinstance(t, Tables)]
        return frozenset().union(*(table.patients for table in tables))


def _of(table: Tables, finding: str) -> float:
    try:
        return table.values[finding]
    except KeyError:
        raise InputError(f"{table.path} has no value for {finding}; tune it again with maps of that finding") from None


def region_settings(threshold: str, cutoffs: Path | None, smooth: float, kind: Slice, rules: Rules) -> RegionSettings:
    """The settings the flags describe, or one sentence on what is wrong with them."""
    found: Literal["otsu"] | float | Tables = "otsu"
    if threshold != "otsu":
        found = _number(threshold) or read_thresholds(Path(threshold))
    if found != "otsu" and smooth:
        raise InputError("--smooth goes with Otsu's threshold only; leave one of --smooth and --threshold out")
    fraction, kernel = smoothing(smooth, rules)
    return RegionSettings(found, read_cutoffs(cutoffs) if cutoffs else None, fraction, kernel, kind)


def smoothing(smooth: float, rules: Rules) -> tuple[float, int]:
    """The fraction of the image's side, or the benchmark's pixels."""
    if rules.smoothing == "map":
        if not 0 <= smooth < 1:
            raise InputError(
                f"--smooth is a fraction of the image's side (0.025 for 50 pixels of 2000), got {smooth:g}; "
                "pixels go with --preset chexlocalize"
            )
        return smooth, 0
    if smooth != int(smooth) or smooth < 0:
        raise InputError(f"--smooth is a number of pixels with --preset chexlocalize, got {smooth:g}")
    return 0.0, int(smooth)


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    if not 0 < value < 1:
        raise InputError(f"--threshold is 'otsu', a table of `heatcheck tune` or a number between 0 and 1, got {text}")
    return value


def read_thresholds(path: Path) -> Tables:
    """The threshold of each finding: columns `threshold` and `task`."""
    rows = _rows(path, ("threshold", "task"))
    values: dict[str, float] = {}
    for number, row in rows.items():
        finding = canonical(row["task"].strip())
        if finding in values:
            raise InputError(f"{path}, line {number}: {finding} is given twice; keep one line")
        values[finding] = _value(row["threshold"], f"{path}, line {number}: threshold")
    return Tables(path, values, _tuned_on(path))


def read_cutoffs(path: Path) -> Tables:
    """The cutoff of each finding: where the mean overlap (`mIoU`) is first the highest among its `prob_threshold`s."""
    rows = _rows(path, ("prob_threshold", "mIoU", "task"))
    best: dict[str, tuple[float, float]] = {}
    for number, row in rows.items():
        where = f"{path}, line {number}"
        finding = canonical(row["task"].strip())
        if not row["mIoU"].strip():
            continue
        overlap = _value(row["mIoU"], f"{where}: mIoU")
        if finding not in best or overlap > best[finding][1]:
            best[finding] = _value(row["prob_threshold"], f"{where}: prob_threshold"), overlap
    return Tables(path, {finding: cutoff for finding, (cutoff, _) in best.items()}, _tuned_on(path))


def _rows(path: Path, columns: tuple[str, ...]) -> dict[int, dict[str, str]]:
    if not path.is_file():
        raise InputError(f"{path}: no such file; `heatcheck tune` writes it")
    header, rows = read_csv(path)
    if lacking := [name for name in columns if name not in header]:
        raise InputError(f"{path} has no column {lacking[0]!r}; give the table that `heatcheck tune` writes")
    if not rows:
        raise InputError(f"{path} has no rows; give the table that `heatcheck tune` writes")
    return rows


def _value(text: str, where: str) -> float:
    try:
        value = float(text)
    except ValueError:
        value = math.nan
    if not 0 <= value <= 1:
        raise InputError(f"{where} must be a number between 0 and 1, got {text!r}; correct it")
    return value


def _tuned_on(path: Path) -> frozenset[str]:
    """The patients the table was tuned on, as far as a record beside it tells."""
    record = path.parent / TUNING_RECORD
    if not record.is_file():
        return frozenset()
    try:
        return frozenset(map(str, json.loads(record.read_text())["patients"]))
    except (ValueError, KeyError, TypeError, OSError) as error:
        raise InputError(f"{record} cannot be read ({error}); tune again, or remove it") from error
