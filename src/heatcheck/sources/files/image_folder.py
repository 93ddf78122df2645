"""Lists the images below a folder in one walk, without opening them."""

import os
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from heatcheck.core.errors import InputError
from heatcheck.sources.files.reading import FORMATS, IMAGE_SUFFIXES, is_image, without_ending


def no_images(folder: Path) -> str:
    """One sentence that says which other files the folder has, most first."""
    names = (Path(name) for _, _, files in os.walk(folder) for name in files if not name.startswith("."))
    endings = Counter(name.suffix.lower() or "without an ending" for name in names)
    has = ", ".join(f"{n} {ending}" for ending, n in endings.most_common(3))
    found = f" (it has files of other formats: {has})" if has else " (it is empty)"
    return f"{folder} holds no images that can be read{found}; give a folder of {FORMATS}"


@dataclass(frozen=True)
class ImageFolder:
    """The images below a folder; an image's id is its path below the folder without the ending."""

    root: Path

    @cached_property
    def endings(self) -> dict[str, str]:
        """File endings by image id, sorted; storing whole paths would take far more memory."""
        endings: dict[str, str] = {}
        for name in sorted(self._names()):
            case = without_ending(name)
            if case in endings:
                first, second = (PurePosixPath(case + end).name for end in sorted((endings[case], name[len(case) :])))
                raise InputError(f"{first} and {second} are two images with the same id; rename one")
            endings[case] = name[len(case) :]
        return dict(sorted(endings.items()))

    def _names(self) -> Iterator[str]:
        for folder, subfolders, files in os.walk(self.root):
            subfolders[:] = [name for name in subfolders if not name.startswith(".")]  # skips hidden folders
            below = folder[len(str(self.root)) :].replace(os.sep, "/").strip("/")
            prefix = f"{below}/" if below else ""
            for name in files:
                if name.startswith("."):
                    continue
                # a file without an ending must have the DICOM signature
                if name.lower().endswith(IMAGE_SUFFIXES) or ("." not in name and is_image(Path(folder, name))):
                    yield prefix + name

    def path(self, case: str) -> Path:
        """The file of an image; for a missing image, the path where it is expected."""
        return self.root / f"{case}{self.endings.get(case, '')}"

    @cached_property
    def _by_name(self) -> dict[str, str]:
        """The ids by their last part; "" if several share it."""
        ids: dict[str, str] = {}
        for case in self.endings:
            name = case.rpartition("/")[2]
            ids[name] = "" if name in ids else case
        return ids

    def id_of(self, name: str) -> str:
        """The id for an image name with or without ending; folders may be left out if only one image fits."""
        case = without_ending(name)
        if case in self.endings or "/" in case:
            return case
        return self._by_name.get(case) or case

    @cached_property
    def _by_likeness(self) -> dict[str, str]:
        return {case.casefold(): case for case in reversed(self.endings)}

    def near(self, case: str) -> str:
        """The id that differs in capitals or an ending alone; empty where none does."""
        known = self._by_likeness
        return known.get(case.casefold()) or known.get(case.rpartition(".")[0].casefold(), "")

    def depth_of(self, names: list[str]) -> int:
        """How many leading folders of these paths are not part of the ids; 0 if no path leads to an image."""
        for name in names:
            parts = without_ending(name).split("/")
            depth = next((n for n in range(len(parts)) if "/".join(parts[n:]) in self.endings), None)
            if depth is not None:
                return depth
        return 0
