"""The COVID-19 Radiography Database as it is published: four classes, one a film, and masks of the lungs."""

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
}  # the name of each class (heatcheck writes "Airspace Opacity" for lung opacities), and that of its folder and files
_PERCENT = {"training": 70, "validation": 15}  # of each class, rounded down; the rest is the test's
_COPY = "copy the data set again"


class CovidRadiographySettings(SourceSettings):
    """What a spec may say about the COVID-19 Radiography Database."""

    folder: Path  # COVID-19_Radiography_Dataset, with one folder a class
    split: Split = "all"
    split_seed: int = 0  # of the order in which the films of each class are dealt out

    def resolved(self, folder: Path) -> "CovidRadiographySettings":
        """The same settings with the folder taken from `folder`."""
        return self.model_copy(update={"folder": folder / self.folder})


@dataclass(frozen=True)
class CovidRadiography:
    """The films of one split, or all; every film counts as a patient of its own, because nobody says whose it is.

    Lungs are no finding, so there is no truth; `lungs` has the masks. A film without a mask is therefore as good as
    any other. A mask without its film is refused, because films are missing from such a copy, and the split
    (a draw from all films of a class) would quietly be another one than that of the whole set.
    """

    settings: CovidRadiographySettings

    def __post_init__(self) -> None:
        _require_layout(self.settings.folder)
        self._keys  # noqa: B018 - whatever is wrong with the folders is known before work starts

    @property
    def findings(self) -> tuple[str, ...]:
        """The four classes."""
        return tuple(_CLASSES)

    @property
    def truth_kind(self) -> TruthKind:
        """Masks, if there were any."""
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
        """The films of one class that belong to the split."""
        films = _films(self.settings.folder / _CLASSES[name])
        split = self.settings.split
        if split == "all":
            return films
        order = generator_for(self.settings.split_seed, _CLASSES[name], "split").permutation(len(films))
        chosen = [films[place] for place in order[_share(len(films), split)]]
        if not chosen:
            raise InputError(
                f"{self.settings.folder / _CLASSES[name]} has {len(films)} images, "
                f"too few for one of them to be in the {split} split; add images or say `split: all`"
            )
        return chosen

    def load(self, key: CaseKey) -> Case:
        """The film."""
        return Case(key, read_grey_film(self._path(key.case, "images"), key.case), {})

    def truth(self, key: CaseKey) -> dict[str, Mask]:  # noqa: ARG002 - the same for all
        """Nothing: no finding is marked in this data set."""
        return {}

    def lungs(self, key: CaseKey) -> Mask:
        """The lungs on the film's grid; masks are stored on one of their own, of which the nearest pixel is taken."""
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

    def _path(self, case: str, what: str) -> Path:
        return self.settings.folder / case.rpartition("-")[0] / what / f"{case}.png"

    def stamp(self) -> str:
        """A hash of the names, sizes and dates of all films; the films that are there decide who is in which split."""
        digest = hashlib.sha256()
        for folder in _CLASSES.values():
            with os.scandir(self.settings.folder / folder / "images") as entries:
                files = [(entry.name, entry.stat()) for entry in entries if entry.is_file()]
            for name, facts in sorted(files, key=lambda file: file[0]):
                digest.update(f"{name}\0{facts.st_size}\0{facts.st_mtime_ns}\n".encode())
        return digest.hexdigest()


def _share(count: int, split: Split) -> slice:
    """The part of a class, in the order drawn, that belongs to a split."""
    training, validation = (count * percent // 100 for percent in _PERCENT.values())
    if split == "training":
        return slice(0, training)
    return slice(training, training + validation) if split == "validation" else slice(training + validation, None)


def _require_layout(folder: Path) -> None:
    """Raise unless every class has its folder; one who gave a folder too high or too deep is told the right one."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; correct the folder of the source")
    missing = [name for name in _CLASSES.values() if not (folder / name / "images").is_dir()]
    if not missing:
        return
    near = [*(path for path in sorted(folder.iterdir()) if path.is_dir()), *folder.absolute().parents[:2]]
    right = next((path for path in near if _holds_all_classes(path)), None)
    if right:
        raise InputError(f"{folder} is not the folder that holds the classes; say `folder: {right}`")
    what = f"no folder {missing[0]}" if not (folder / missing[0]).is_dir() else f"no folder images in {missing[0]}"
    raise InputError(f"{folder} has {what}; the data set has {', '.join(_CLASSES.values())}, each with images: {_COPY}")


def _holds_all_classes(folder: Path) -> bool:
    try:
        return all((folder / name / "images").is_dir() for name in _CLASSES.values())
    except OSError:  # a neighbour that may not be looked into
        return False


def _films(folder: Path) -> list[str]:
    """The ids of one class's films by number."""
    films = _numbered(folder / "images", folder.name)
    if not films:
        raise InputError(f"{folder / 'images'} has no images such as {folder.name}-1.png; {_COPY}")
    masks = _numbered(folder / "masks", folder.name) if (folder / "masks").is_dir() else {}
    alone = [case for case in masks if case not in films]
    if alone:
        others = f" and {len(alone) - 1} more have no images" if len(alone) > 1 else " has no image"
        raise InputError(
            f"{folder}: the mask {alone[0]}.png{others}, so that the copy is not complete; "
            "copy the images again, or remove the mask if the image is left out on purpose"
        )
    return list(films)


def _numbered(folder: Path, name: str) -> dict[str, int]:
    """The number of each picture by its id, in the order of the numbers; what is no picture is passed over."""
    form = re.compile(re.escape(name) + r"-([0-9]+)\.png")
    found = {}
    for file in (path.name for path in folder.iterdir()):
        if file.startswith(".") or not file.lower().endswith(IMAGE_SUFFIXES):
            continue  # of file managers
        match = form.fullmatch(file)
        if match is None:
            raise InputError(f"{folder}: {file!r} is not named like {name}-1.png; rename or remove it")
        found[file.removesuffix(".png")] = int(match[1])
    return dict(sorted(found.items(), key=lambda item: (item[1], item[0])))


SOURCES.add(
    "covid_radiography",
    SourceFacts(
        name="covid_radiography",
        settings=CovidRadiographySettings,
        open=CovidRadiography,
        summary="The COVID-19 Radiography Database as published: chest films of four classes, one a film",
        needs="the downloaded folder COVID-19_Radiography_Dataset with one folder a class",
        remark="This data set does not say which films are of one patient: one may be in training and test alike.",
    ),
)
