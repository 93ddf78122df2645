"""What a user should know of a folder of images before any of them is read."""

import hashlib
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from statistics import median

import numpy as np

from heatcheck.core.errors import CaseError
from heatcheck.core.records import CaseKey
from heatcheck.sources.files.annotations import Annotations
from heatcheck.sources.files.reading import lacks_window, read_image, require_openable

HEADERS = 200  # DICOM headers that are read, which takes well below a second
OPENED = 5000  # files of a folder that are opened, of which a second takes some thousand
MASKS = 200  # masks that are read
NAMED = 3  # findings or images that a sentence names
_SMALL = 4  # a compressed picture with one value is many times smaller than the others
_READ = 50_000_000  # bytes of images of equal size that are compared
_COMPRESSED = (".png", ".jpg", ".jpeg", ".tif", ".tiff")
NO_WINDOW = (
    "pixels are spread from the smallest to the largest value of each image, so the same grey may mean another density "
    "in the next one, and a model that was trained with fixed values sees other images"
)


def without_rows(
    images: Collection[str], listed: Collection[str], folder: Path, labels: Path, *, named: bool = True
) -> str:
    """How many images of the folder the labels do not list, and which; empty where they list all."""
    missing = sorted(set(images) - set(listed))
    if not missing:
        return ""
    have, take = ("has", "takes") if len(missing) == 1 else ("have", "take")
    return (
        f"{len(missing):,} of {len(images):,} images in {folder.name}/ {have} no row in {labels.name} and {take} no "
        f"part{f' ({_some(missing)})' if named else ''}; add rows if they belong to the study."
    )


def damaged(paths: Sequence[Path]) -> str:
    """Which of the first files cannot be opened, and why; empty where all can."""
    reasons = [reason for path in paths[:OPENED] if (reason := _damage(path))]
    if not reasons:
        return ""
    among = f"the first {OPENED:,}" if len(paths) > OPENED else f"{len(paths):,}"
    more = f", and {len(reasons) - NAMED:,} more" if len(reasons) > NAMED else ""
    return f"{len(reasons):,} of {among} images cannot be used: {'; '.join(reasons[:NAMED])}{more}."


def _damage(path: Path) -> str:
    try:
        require_openable(path, path.name)
    except CaseError as error:
        return str(error).partition(";")[0]
    return ""


def _some(names: Sequence[str]) -> str:
    """The first of these names, and how many more there are."""
    more = f" and {len(names) - NAMED:,} more" if len(names) > NAMED else ""
    return ", ".join(names[:NAMED]) + more


def without_window(paths: Sequence[Path]) -> str:
    """How many DICOM files state no window, and what their pixels become; empty where all do."""
    step = -(-len(paths) // HEADERS)
    looked_at = paths[:: max(1, step)]
    lacking = sum(map(_lacks_window, looked_at))
    if not lacking:
        return ""
    among = f"the {len(looked_at):,} looked at of {len(paths):,}" if step > 1 else f"{len(paths):,}"
    states = "states" if lacking == 1 else "state"
    return (
        f"{lacking:,} of {among} DICOM files {states} no window: {NO_WINDOW}. If so, set `value_range` of the source."
    )


def _lacks_window(path: Path) -> bool:
    try:
        return lacks_window(path, path.name)
    except (CaseError, OSError):
        return False  # recorded when the case is read


def without_outline(
    keys: Sequence[CaseKey], findings: Sequence[str], marks: Annotations, names: Mapping[str, str]
) -> Iterator[str]:
    """How many images with a finding have no outline of it, and how many an empty one, by the marks' own `names`."""
    lacking, outlined = [], []
    for finding in findings:
        present = [key.case for key in keys if key.labels.get(finding) == 1]
        marked = [case for case in present if finding in marks.findings_of(names.get(case, ""))]
        outlined += [(case, finding) for case in marked]
        if len(marked) < len(present):
            lacking.append(f"{len(present) - len(marked):,} of {_images(len(present))} with {finding}")
    if lacking:
        yield f"{_first(lacking)} {'has' if _is_one(lacking) else 'have'} no outline: {_not_scored(lacking)}."
    read = outlined[:: max(1, -(-len(outlined) // MASKS))]
    empty = [(case, finding) for case, finding in read if _is_empty(marks, names[case], finding)]
    if empty:
        among = (
            f"the {len(read):,} looked at of {len(outlined):,}" if len(read) < len(outlined) else f"{len(outlined):,}"
        )
        of = _first(list(dict.fromkeys(finding for _, finding in empty)))
        mark, they = ("marks", "it is") if len(empty) == 1 else ("mark", "they are")
        yield (
            f"{len(empty):,} of {among} outlines of findings that the labels call present ({of}) {mark} nothing: "
            f"{they} not scored."
        )


def without_use(
    images: Collection[str], findings: Collection[str], marks: Annotations, names: Mapping[str, str]
) -> Iterator[str]:
    """How many marks belong to no image, and which findings have marks and no labels."""
    orphans = len(names.keys() - set(images))
    if orphans:
        name, belong, take = ("name", "belongs", "takes") if orphans == 1 else ("names", "belong", "take")
        yield (
            f"{orphans:,} {name} in {marks.path.name} {belong} to no image and {take} no part; correct or remove what "
            "is called so."
        )
    others = [finding for finding in marks.findings if finding not in findings]
    if others:
        are = "is no column" if len(others) == 1 else "are no columns"
        yield f"{marks.path.name} marks {_first(others)}, which {are} of the labels: these marks are not used."


def constant_images(paths: Mapping[str, Path]) -> list[str]:
    """The images with the same value everywhere, by id, among those whose files are far smaller than the others."""
    sizes = {case: _size(path) for case, path in paths.items() if path.suffix.lower() in _COMPRESSED}
    usual = median(sizes.values()) if sizes else 0
    small = sorted((case for case, size in sizes.items() if 0 < size * _SMALL < usual), key=sizes.__getitem__)
    return sorted(case for case in small[:HEADERS] if _is_constant(paths[case], case))


def equal_images(paths: Mapping[str, Path], patients: Mapping[str, str]) -> list[list[str]]:
    """The ids of images of different patients whose files are equal byte for byte, group by group."""
    by_size: dict[int, list[str]] = defaultdict(list)
    for case, path in paths.items():
        by_size[_size(path)].append(case)
    groups, left = [], _READ
    for size, cases in sorted(by_size.items()):
        if not size or len({patients[case] for case in cases}) < 2 or size * len(cases) > left:
            continue
        left -= size * len(cases)
        alike: dict[bytes, list[str]] = defaultdict(list)
        for case in cases:
            alike[hashlib.sha256(paths[case].read_bytes()).digest()].append(case)
        groups += [same for same in alike.values() if len({patients[case] for case in same}) > 1]
    return groups


def impossible_pictures(paths: Mapping[str, Path], patients: Mapping[str, str], *, named: bool) -> Iterator[str]:
    """What cannot be right about the images: the same value everywhere, or one file for several patients."""
    constant, equal = constant_images(paths), equal_images(paths, patients)
    if constant:
        have, them = ("has", "it") if len(constant) == 1 else ("have", "them")
        which = f" ({_first(constant)})" if named else ""
        yield f"{_images(len(constant))}{which} {have} the same value everywhere; export {them} again or remove {them}."
    if equal:
        cases = [case for group in equal for case in group]
        which = f" ({_first([' = '.join(group[:2]) for group in equal])})" if named else ""
        yield (
            f"{_images(len(cases))} of different patients are equal byte for byte{which}: correct the files or the "
            "column of patients; the same patient twice makes intervals too narrow."
        )


def _is_empty(marks: Annotations, name: str, finding: str) -> bool:
    try:
        return marks.is_empty(name, finding)
    except (CaseError, OSError):
        return False  # recorded when the case is read


def _is_constant(path: Path, case: str) -> bool:
    try:
        return bool(np.ptp(read_image(path, case, "grey", None)) == 0)
    except (CaseError, OSError):
        return False


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _images(number: int) -> str:
    return f"{number:,} image" + ("" if number == 1 else "s")


def _first(names: Sequence[str]) -> str:
    """The first names, and how many more there are."""
    more = [f"{len(names) - NAMED:,} more"] if len(names) > NAMED else []
    *before, last = [*names[:NAMED], *more]
    return f"{', '.join(before)} and {last}" if before else last


def _is_one(lacking: Sequence[str]) -> bool:
    return len(lacking) == 1 and lacking[0].startswith("1 of")


def _not_scored(lacking: Sequence[str]) -> str:
    return "it is not scored" if _is_one(lacking) else "they are not scored"
