"""The image files that somebody names, one by one or by their folder."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from heatcheck.core.errors import InputError
from heatcheck.report.numbers import count, few
from heatcheck.sources.files.image_folder import ImageFolder, no_images
from heatcheck.sources.files.reading import without_ending


@dataclass(frozen=True, slots=True)
class ListedImage:
    """An image file with the stem of its maps' names."""

    path: Path
    stem: str
    folder: Path | None = None  # that it was found in: then it may be left out where it cannot be used

    @property
    def name(self) -> str:
        """The file's name in messages: as it was given, or below its folder."""
        return str(self.path) if self.folder is None else self.path.relative_to(self.folder).as_posix()


def listed_images(paths: Sequence[Path]) -> list[ListedImage]:
    """Every file, and every image below every folder, sorted; none has the stem of another."""
    listed = [image for path in paths for image in _below(path)]
    stems = [image.stem for image in listed]
    duplicate = next((stem for stem in stems if stems.count(stem) > 1), None)
    if duplicate is not None:
        raise InputError(
            f"two images are named {duplicate!r}, so their maps would overwrite each other; explain one at a time"
        )
    return listed


def others_in(paths: Sequence[Path]) -> Iterator[str]:
    """A sentence for each folder with files that are no images."""
    for folder in filter(Path.is_dir, paths):
        known = {image.path for image in _below(folder)}
        files = sorted(path for path in folder.rglob("*") if path.is_file() and not _is_hidden(path, folder))
        others = [path.relative_to(folder).as_posix() for path in files if path not in known]
        if others:
            yield f"{folder}: {count(len(others), 'other file')} left out, no format that is read: {few(others)}"


def _below(path: Path) -> list[ListedImage]:
    if not path.is_dir():
        return [ListedImage(path, without_ending(path.name))]
    images = ImageFolder(path)
    if not images.endings:
        raise InputError(no_images(path))
    return [ListedImage(images.path(case), case.replace("/", "_"), path) for case in images.endings]


def _is_hidden(path: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in path.relative_to(folder).parts)
