"""Cross-validation: the patients for training, for choosing the epoch and for testing in each fold."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path

from heatcheck.core.errors import InputError, SpecError
from heatcheck.core.records import CaseKey
from heatcheck.core.seeds import generator_for
from heatcheck.sources.files.tables import read_csv

PUBLISHED_PARTS = ("train", "val", "test")  # the files of a published fold, in the order of a Fold's fields
_TestFolds = Mapping[str, int]  # the fold in which each patient is tested


@dataclass(frozen=True, slots=True)
class Fold:
    """One fold: the positions of its cases among all; the three parts share no patient."""

    number: int  # from 1
    training: tuple[int, ...]
    validation: tuple[int, ...]
    test: tuple[int, ...]

    def moved(self, positions: Sequence[int]) -> "Fold":
        """The same cases in another list, where `positions` has their new position at the former one."""
        training, validation, test = (
            tuple(sorted(positions[former] for former in part)) for part in (self.training, self.validation, self.test)
        )
        return Fold(self.number, training, validation, test)


def stratified_folds(
    keys: Sequence[CaseKey], classes: Sequence[str], folds: int, seed: int, validation: float = 0.2
) -> tuple[Fold, ...]:
    """Folds of similar size, stratified by class; `validation` is a share of the patients not tested."""
    strata = _strata(keys, classes)
    test_folds: dict[str, int] = {}
    for name, patients in strata.items():
        order = generator_for(seed, "folds", name).permutation(len(patients))
        for index in order:  # continued where the last class ended, so that folds differ by one patient at most
            test_folds[patients[index]] = len(test_folds) % folds + 1
    return _folds(keys, strata, test_folds, seed, validation)


def read_folds(
    path: Path, keys: Sequence[CaseKey], classes: Sequence[str], seed: int, validation: float = 0.2
) -> tuple[Fold, ...]:
    """The folds of a CSV with the columns `case` and `fold`, the fold in which a case is tested.

    The file may name more cases than there are. Validation patients are drawn from those not tested in a fold. A folder
    instead of a file holds the folds as Jin et al. published them, with their validation cases (`published_folds`).
    """
    if path.is_dir():
        return published_folds(path, keys, classes)
    tested = _tested(path)
    test_folds: dict[str, int] = {}
    first_case: dict[str, str] = {}  # by patient
    for key in keys:
        if key.case not in tested:
            raise SpecError(f"{path} does not say in which fold case {key.case} is tested; add it")
        number = tested[key.case]
        if test_folds.setdefault(key.patient, number) != number:
            raise SpecError(
                f"{path}: patient {key.patient} is in two folds, with case {first_case[key.patient]} in "
                f"{test_folds[key.patient]} and {key.case} in {number}; put them in one"
            )
        first_case.setdefault(key.patient, key.case)
    return _folds(keys, _strata(keys, classes), test_folds, seed, validation)


def _tested(path: Path) -> dict[str, int]:
    """The fold of each case that the file names."""
    if not path.is_file():
        raise SpecError(f"{path}: no such file of folds; correct `folds` in the spec")
    header, rows = read_csv(path)
    for column in ("case", "fold"):
        if column not in header:
            raise SpecError(f"{path} has no column {column!r}; its columns are {', '.join(header)}")
    tested: dict[str, int] = {}
    for line, row in rows.items():
        case, text = row["case"].strip(), row["fold"].strip()
        if not (text.isascii() and text.isdigit() and int(text) > 0):
            raise InputError(f"{path}, line {line}: fold is {text!r}; folds are numbered from 1")
        if case in tested and tested[case] != int(text):
            raise InputError(f"{path}: case {case} is in two folds, {tested[case]} and {int(text)}; keep one")
        if case in tested:
            raise InputError(f"{path}: case {case} is listed twice; keep one row")
        tested[case] = int(text)
    return tested


def published_folds(folder: Path, keys: Sequence[CaseKey], classes: Sequence[str]) -> tuple[Fold, ...]:
    """The folds of a folder with train_fold_1.csv, val_fold_1.csv, test_fold_1.csv and so on, as they are.

    Each file lists the cases of one part of one fold in its column `case`, or else in its last one, as the table of
    grades of BraTS does. The files may name more cases than there are.
    """
    count = len(list(folder.glob("test_fold_*.csv")))
    if count < 2:
        raise SpecError(f"{folder} needs the files test_fold_1.csv and test_fold_2.csv or more; correct `folds`")
    folds = tuple(_published_fold(folder, number, keys) for number in range(1, count + 1))
    for fold in folds:
        _require_every_class(fold, keys, classes, folder)
    tested: dict[int, int] = {}  # the fold in which a case is tested
    for fold in folds:
        for position in fold.test:
            if tested.setdefault(position, fold.number) != fold.number:
                case, first = keys[position].case, tested[position]
                raise SpecError(f"{folder}: case {case} is tested in two folds, {first} and {fold.number}; keep one")
    for position, key in enumerate(keys):
        if position not in tested:
            raise SpecError(f"{folder}: case {key.case} is tested in no fold; add it to one of the test files")
    return folds


def _published_fold(folder: Path, number: int, keys: Sequence[CaseKey]) -> Fold:
    """The fold of three files; each case must be in one of them, and each patient's cases in the same."""
    listed = {part: _listed(folder / f"{part}_fold_{number}.csv") for part in PUBLISHED_PARTS}
    cases: dict[str, list[int]] = {part: [] for part in PUBLISHED_PARTS}
    parts: dict[str, str] = {}  # by patient
    for position, key in enumerate(keys):
        having = [part for part, names in listed.items() if key.case in names]
        if len(having) != 1:
            where = f"in {' and in '.join(having)}" if having else "in none of its files"
            raise SpecError(f"{folder}: in fold {number} case {key.case} is {where}; put it in one of them")
        if parts.setdefault(key.patient, having[0]) != having[0]:
            both = f"{parts[key.patient]} and {having[0]}"
            raise SpecError(f"{folder}: in fold {number} patient {key.patient} is in {both}; put all cases in one")
        cases[having[0]].append(position)
    return Fold(number, *(tuple(positions) for positions in cases.values()))


def _require_every_class(fold: Fold, keys: Sequence[CaseKey], classes: Sequence[str], folder: Path) -> None:
    for part, positions in zip(PUBLISHED_PARTS, (fold.training, fold.validation, fold.test), strict=True):
        for name in classes:
            if not any(keys[position].labels.get(name) == 1 for position in positions):
                file = f"{folder}/{part}_fold_{fold.number}.csv"
                raise SpecError(f"{file} names no case of class {name}; correct it or add cases")


def _listed(path: Path) -> frozenset[str]:
    """The cases of one file."""
    if not path.is_file():
        raise SpecError(f"{path}: no such file; a fold has a train, a val and a test file")
    header, rows = read_csv(path)
    column = "case" if "case" in header else header[-1] if header else ""
    names = [name for row in rows.values() if (name := row[column].strip()) not in ("", "NA")]
    repeated = next((name for name in names if names.count(name) > 1), "")
    if repeated:
        raise InputError(f"{path}: case {repeated} is listed twice; keep one row")
    return frozenset(names)


def _strata(keys: Sequence[CaseKey], classes: Sequence[str]) -> dict[str, list[str]]:
    """The patients of each class; if the cases of a patient differ in class, the first case counts."""
    strata: dict[str, list[str]] = {name: [] for name in classes}
    known: set[str] = set()
    for key in keys:
        if key.patient not in known:
            known.add(key.patient)
            label = next((name for name in classes if key.labels.get(name) == 1), None)
            if label is None:
                raise SpecError(f"case {key.case} has none of the classes {', '.join(classes)}; give each case a class")
            strata[label].append(key.patient)
    return strata


def _folds(
    keys: Sequence[CaseKey], strata: Mapping[str, Sequence[str]], test_folds: _TestFolds, seed: int, validation: float
) -> tuple[Fold, ...]:
    numbers = sorted(set(test_folds.values()))
    if len(numbers) < 2 or numbers != list(range(1, len(numbers) + 1)):
        got = ", ".join(map(str, numbers)) or "none"
        raise SpecError(f"there must be two folds or more, numbered from 1 without a gap, got {got}; correct `folds`")
    if not 0 < validation < 1:
        raise SpecError(f"`validation_share` must be between 0 and 1, got {validation}; correct it")
    positions: dict[str, list[int]] = defaultdict(list)  # of each patient's cases
    for position, key in enumerate(keys):
        positions[key.patient].append(position)
    folds = []
    for number in numbers:
        parts: dict[str, list[str]] = {"test": [], "validation": [], "training": []}
        for name, patients in strata.items():
            test = [patient for patient in patients if test_folds[patient] == number]
            rest = [patient for patient in patients if test_folds[patient] != number]
            if not test or len(rest) < 2:
                raise SpecError(
                    f"fold {number} of {len(numbers)} has {len(test)} patients of class {name} to test and {len(rest)} "
                    "for training and validation, but needs one and two; choose another number of `folds` or add cases"
                )
            drawn = generator_for(seed, "validation", number, name).permutation(len(rest))
            count = min(max(1, round(validation * len(rest))), len(rest) - 1)
            chosen = {rest[index] for index in drawn[:count]}
            parts["test"] += test
            parts["validation"] += [patient for patient in rest if patient in chosen]
            parts["training"] += [patient for patient in rest if patient not in chosen]
        cases = {part: tuple(sorted(chain(*(positions[one] for one in those)))) for part, those in parts.items()}
        folds.append(Fold(number, **cases))
    return tuple(folds)
