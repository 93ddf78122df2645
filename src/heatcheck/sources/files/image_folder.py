"""The images below a folder, found in one walk and never opened for it."""

import os
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

from heatcheck.core.errors import InputError
from heatcheck.sources.files.reading import IMAGE_SUFFIXES, is_image, without_ending


@dataclass(frozen=True)
class ImageFolder:
    """Every image by its id: the path below the folder, without its ending."""

    root: Path

    @cached_property
    def endings(self) -> dict[str, str]:
        """The ending of each image's file by the image's id, sorted; a path each would take far more room."""
        found: dict[str, str] = {}
        for name in sorted(self._names()):
            case = without_ending(name)
            if case in found:
                first, second = (PurePosixPath(case + end).name for end in sorted((found[case], name[len(case) :])))
                raise InputError(f"{first} and {second} are two images with one id; rename one")
            found[case] = name[len(case) :]
        return dict(sorted(found.items()))

    def _names(self) -> Iterator[str]:
        for place, folders, files in os.walk(self.root):
            folders[:] = [name for name in folders if not name.startswith(".")]  # of file managers and notebooks
            below = place[len(str(self.root)) :].replace(os.sep, "/").strip("/")
            before = f"{below}/" if below else ""
            for name in files:
                if name.startswith("."):
                    continue
                # a file without an ending must say itself that it is DICOM
                if name.lower().endswith(IMAGE_SUFFIXES) or ("." not in name and is_image(Path(place, name))):
                    yield before + name

    def path(self, case: str) -> Path:
        """The file of an image; of one that is not there, the place where it is missed."""
        return self.root / f"{case}{self.endings.get(case, '')}"

    @cached_property
    def _by_name(self) -> dict[str, str]:
        """The ids by their last part; "" where several end in it."""
        found: dict[str, str] = {}
        for case in self.endings:
            name = case.rpartition("/")[2]
            found[name] = "" if name in found else case
        return found

    def id_of(self, name: str) -> str:
        """The id of the image a file names: with or without ending, and without its folders where one image fits."""
        case = without_ending(name)
        if case in self.endings or "/" in case:
            return case
        return self._by_name.get(case) or case

    def depth_of(self, names: list[str]) -> int:
        """How many folders stand in front of the ids in a list of paths; 0 where no path leads to an image."""
        for name in names:
            parts = without_ending(name).split("/")
            depth = next((n for n in range(len(parts)) if "/".join(parts[n:]) in self.endings), None)
            if depth is not None:
                return depth
        return 0
