"""The COVID-19 Radiography Database as published: four classes, one per film, and masks of the lungs."""

import hashlib
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Literal

import numpy as np

from heatcheck.core.errors import CaseError, InputError
from heatcheck.core.records import Case, CaseKey, Mask, TruthKind
from heatcheck.core.seeds import generator_for
from heatcheck.sources.files.reading import IMAGE_SUFFIXES, image_shape, read_grey_film, read_mask
from heatcheck.sources.registry import SOURCES, SourceFacts, SourceSettings

Split = Literal["training", "validation", "test", "all"]
_CLASSES = {
    "COVID": "COVID",
    "Airspace Opacity": "Lung_Opacity",
    "Normal": "Normal",
    "Viral Pneumonia": "Viral Pneumonia",
}  # class ("Airspace Opacity" stands for lung opacities) and the name of its folder and files
_PERCENT = {"training": 70, "validation": 15}  # of each class, rounded down; the rest is the test split
_COPY = "copy the data set again"


class CovidRadiographySettings(SourceSettings):
    """The settings of the COVID-19 Radiography Database in a spec."""

    folder: Path  # COVID-19_Radiography_Dataset, with one folder per class
    split: Split = "all"
    split_seed: int = 0  # for the order in which the films of each class are assigned to splits

    def resolved(self, folder: Path) -> "CovidRadiographySettings":
        """The settings with the folder relative to `folder`."""
        return self.model_copy(update={"folder": folder / self.folder})


@dataclass(frozen=True)
class CovidRadiography:
    """The films of one split, or all; every film counts as a separate patient, because the data set does not name them.

    Lungs are not a finding, so there is no truth; `lungs` returns the masks, and a film may lack its mask. A mask
    without its film is refused: films are missing from such a copy, and its splits, which are drawn from all films
    of a class, would differ from those of the complete set.
    """

    settings: CovidRadiographySettings

    def __post_init__(self) -> None:
        _require_layout(self.settings.folder)
        self._keys  # noqa: B018 - reports problems with the folders before work starts

    @property
    def findings(self) -> tuple[str, ...]:
        """The four classes."""
        return tuple(_CLASSES)

    @property
    def truth_kind(self) -> TruthKind:
        """Masks, although this data set has none of findings."""
        return "masks"

    def index(self) -> Sequence[CaseKey]:
        """Every film of the split."""
        return self._keys

    @cached_property
    def _keys(self) -> list[CaseKey]:
        keys = []
        for name in _CLASSES:
            labels = {other: float(other == name) for other in _CLASSES}
            keys += [CaseKey(case, case, labels) for case in self._cases(name)]
        return sorted(keys, key=lambda key: key.case)

    def _cases(self, name: str) -> list[str]:
        """The films of one class in the split."""
        films = _films(self.settings.folder / _CLASSES[name])
        split = self.settings.split
        if split == "all":
            return films
        order = generator_for(self.settings.split_seed, _CLASSES[name], "split").permutation(len(films))
        chosen = [films[index] for index in order[_share(len(films), split)]]
        if not chosen:
            raise InputError(
                f"{self.settings.folder / _CLASSES[name]} has {len(films)} images, "
                f"too few for the {split} split; add images or set `split: all`"
            )
        return chosen

    def load(self, key: CaseKey) -> Case:
        """The film, without truth."""
        return Case(key, read_grey_film(self._path(key.case, "images"), key.case), {})

    def truth(self, key: CaseKey) -> dict[str, Mask]:  # noqa: ARG002 - no case has any
        """Empty: no finding is marked in this data set."""
        return {}

    def lungs(self, key: CaseKey) -> Mask:
        """The lungs on the film's grid, by nearest neighbour from the grid on which masks are stored."""
        path = self._path(key.case, "masks")
        if not path.is_file():
            raise CaseError(f"{key.case} has no lung mask; add {path.name} to the masks of its class")
        stored = read_mask(path, f"the lung mask of {key.case}", None)
        shape = image_shape(self._path(key.case, "images"), key.case)
        rows, columns = (
            ((np.arange(wanted) + 0.5) * size // wanted).astype(int)
            for wanted, size in zip(shape, stored.shape, strict=True)
        )
        return stored[np.ix_(rows, columns)]

    def _path(self, case: str, subfolder: str) -> Path:
        return self.settings.folder / case.rpartition("-")[0] / subfolder / f"{case}.png"

    def stamp(self) -> str:
        """A hash of the names, sizes and dates of all films, since all films together determine the splits."""
        digest = hashlib.sha256()
        for folder in _CLASSES.values():
            with os.scandir(self.settings.folder / folder / "images") as entries:
                files = [(entry.name, entry.stat()) for entry in entries if entry.is_file()]
            for name, facts in sorted(files, key=lambda file: file[0]):
                digest.update(f"{name}\0{facts.st_size}\0{facts.st_mtime_ns}\n".encode())
        return digest.hexdigest()


def _share(count: int, split: Split) -> slice:
    """The part of a class, in random order, that belongs to a split."""
    training, validation = (count * percent // 100 for percent in _PERCENT.values())
    if split == "training":
        return slice(0, training)
    return slice(training, training + validation) if split == "validation" else slice(training + validation, None)


def _require_layout(folder: Path) -> None:
    """Raise InputError unless every class has its folder; suggests a folder above or below that fits."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; correct the folder of the source")
    missing = [name for name in _CLASSES.values() if not (folder / name / "images").is_dir()]
    if not missing:
        return
    candidates = [*(path for path in sorted(folder.iterdir()) if path.is_dir()), *folder.absolute().parents[:2]]
    right = next((path for path in candidates if _holds_all_classes(path)), None)
    if right:
        raise InputError(f"{folder} is not the folder of the classes; set `folder: {right}`")
    problem = f"no folder {missing[0]}" if not (folder / missing[0]).is_dir() else f"no folder images in {missing[0]}"
    raise InputError(
        f"{folder} has {problem}; the data set has {', '.join(_CLASSES.values())}, each with images: {_COPY}"
    )


def _holds_all_classes(folder: Path) -> bool:
    try:
        return all((folder / name / "images").is_dir() for name in _CLASSES.values())
    except OSError:  # no permission to read this folder
        return False


def _films(folder: Path) -> list[str]:
    """The ids of the films of one class, ordered by number."""
    films = _numbered(folder / "images", folder.name)
    if not films:
        raise InputError(f"{folder / 'images'} has no images such as {folder.name}-1.png; {_COPY}")
    masks = _numbered(folder / "masks", folder.name) if (folder / "masks").is_dir() else {}
    unmatched = [case for case in masks if case not in films]
    if unmatched:
        others = f" and {len(unmatched) - 1} more have no images" if len(unmatched) > 1 else " has no image"
        raise InputError(
            f"{folder}: the mask {unmatched[0]}.png{others}, so the copy is incomplete; "
            "copy the images again, or remove the mask if the image is missing on purpose"
        )
    return list(films)


def _numbered(folder: Path, name: str) -> dict[str, int]:
    """The number of each image by id, ordered by number; other files are ignored."""
    pattern = re.compile(re.escape(name) + r"-([0-9]+)\.png")
    numbers = {}
    for file in (path.name for path in folder.iterdir()):
        if file.startswith(".") or not file.lower().endswith(IMAGE_SUFFIXES):
            continue  # hidden files and other formats
        match = pattern.fullmatch(file)
        if match is None:
            raise InputError(f"{folder}: {file!r} is not named like {name}-1.png; rename or remove it")
        numbers[file.removesuffix(".png")] = int(match[1])
    return dict(sorted(numbers.items(), key=lambda item: (item[1], item[0])))


SOURCES.add(
    "covid_radiography",
    SourceFacts(
        name="covid_radiography",
        settings=CovidRadiographySettings,
        open=CovidRadiography,
        summary="The COVID-19 Radiography Database as published: chest films of four classes, one per film",
        needs="the downloaded folder COVID-19_Radiography_Dataset with one folder per class",
        published_as="covid_radiography",
        remark="This data set does not name patients: films of one patient may be in both training and test.",
    ),
)
