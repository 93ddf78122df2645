"""Cross-validation: who is trained on, who chooses the epoch and who is tested in each fold, patient by patient."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from heatcheck.core.errors import InputError, SpecError
from heatcheck.core.records import CaseKey
from heatcheck.core.seeds import generator_for
from heatcheck.sources.files.tables import read_csv

Dealt = Mapping[str, int]  # the fold in which each patient is tested


@dataclass(frozen=True, slots=True)
class Fold:
    """One fold: the places of its cases among all; they share no patient."""

    number: int  # from 1
    training: tuple[int, ...]
    validation: tuple[int, ...]
    test: tuple[int, ...]

    def moved(self, places: Sequence[int]) -> "Fold":
        """The same cases where each of them now stands at `places[its former place]`."""
        training, validation, test = (
            tuple(sorted(places[place] for place in part)) for part in (self.training, self.validation, self.test)
        )
        return Fold(self.number, training, validation, test)


def stratified_folds(
    keys: Sequence[CaseKey], classes: Sequence[str], folds: int, seed: int, validation: float = 0.2
) -> tuple[Fold, ...]:
    """Folds of about the same size, each with its share of every class; `validation` is of the cases not tested."""
    strata = _strata(keys, classes)
    dealt: dict[str, int] = {}
    for name, patients in strata.items():
        order = generator_for(seed, "folds", name).permutation(len(patients))
        for place in order:  # on from where the last class ended, so that no fold gets every odd patient
            dealt[patients[place]] = len(dealt) % folds + 1
    return _folds(keys, strata, dealt, seed, validation)


def read_folds(
    path: Path, keys: Sequence[CaseKey], classes: Sequence[str], seed: int, validation: float = 0.2
) -> tuple[Fold, ...]:
    """The folds of a CSV with the columns `case` and `fold`, which says where each case is tested.

    It may speak of more cases than there are. Who chooses the epoch is drawn from the rest of each fold.
    """
    tested = _tested(path)
    dealt: dict[str, int] = {}
    said_by: dict[str, str] = {}
    for key in keys:
        if key.case not in tested:
            raise SpecError(f"{path} does not say in which fold case {key.case} is tested; add it")
        number = tested[key.case]
        if dealt.setdefault(key.patient, number) != number:
            raise SpecError(
                f"{path}: patient {key.patient} is in two folds, with case {said_by[key.patient]} in "
                f"{dealt[key.patient]} and {key.case} in {number}; put them in one"
            )
        said_by.setdefault(key.patient, key.case)
    return _folds(keys, _strata(keys, classes), dealt, seed, validation)


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


def _strata(keys: Sequence[CaseKey], classes: Sequence[str]) -> dict[str, list[str]]:
    """The patients of each class; one whose cases differ in class stands with that of the first."""
    strata: dict[str, list[str]] = {name: [] for name in classes}
    known: set[str] = set()
    for key in keys:
        if key.patient not in known:
            known.add(key.patient)
            own = next((name for name in classes if key.labels.get(name) == 1), None)
            if own is None:
                raise SpecError(
                    f"case {key.case} has none of the classes {', '.join(classes)}; folds need one for each"
                )
            strata[own].append(key.patient)
    return strata


def _folds(
    keys: Sequence[CaseKey], strata: Mapping[str, Sequence[str]], dealt: Dealt, seed: int, validation: float
) -> tuple[Fold, ...]:
    numbers = sorted(set(dealt.values()))
    if len(numbers) < 2 or numbers != list(range(1, len(numbers) + 1)):
        found = ", ".join(map(str, numbers)) or "none"
        raise SpecError(f"there must be two folds or more, numbered from 1 without a gap, got {found}; correct `folds`")
    if not 0 < validation < 1:
        raise SpecError(f"`validation_share` must lie between 0 and 1, got {validation}")
    places: dict[str, list[int]] = defaultdict(list)
    for place, key in enumerate(keys):
        places[key.patient].append(place)
    made = []
    for number in numbers:
        parts: dict[str, list[str]] = {"test": [], "validation": [], "training": []}
        for name, patients in strata.items():
            test = [patient for patient in patients if dealt[patient] == number]
            rest = [patient for patient in patients if dealt[patient] != number]
            if not test or len(rest) < 2:
                raise SpecError(
                    f"fold {number} of {len(numbers)} has {len(test)} patients of class {name} to test and {len(rest)} "
                    "for training and validation, and needs one and two; choose another number of `folds` or add cases"
                )
            drawn = generator_for(seed, "validation", number, name).permutation(len(rest))
            count = min(max(1, round(validation * len(rest))), len(rest) - 1)
            chosen = {rest[place] for place in drawn[:count]}
            parts["test"] += test
            parts["validation"] += [patient for patient in rest if patient in chosen]
            parts["training"] += [patient for patient in rest if patient not in chosen]
        whole = {part: tuple(sorted(at for each in those for at in places[each])) for part, those in parts.items()}
        made.append(Fold(number, whole["training"], whole["validation"], whole["test"]))
    return tuple(made)
