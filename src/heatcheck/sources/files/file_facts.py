"""Files of a source: whether they are there, and names, sizes and dates, by which a run knows that they changed."""

import os
from collections.abc import Callable, Collection
from pathlib import Path

from heatcheck.core.errors import InputError
from heatcheck.sources.files.reading import without_ending


def file_facts(path: Path) -> list[tuple[str, str, int, int]]:
    """Folder, name, size and date of a file, or of every file below a folder, sorted."""
    if path.is_file():
        facts = path.stat()
        return [("", path.name, facts.st_size, facts.st_mtime_ns)]
    files = []
    folders = [str(path)]
    while folders:
        folder = folders.pop()
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_dir(follow_symlinks=False):
                    folders.append(entry.path)
                elif entry.is_file():
                    facts = entry.stat()
                    files.append((folder, entry.name, facts.st_size, facts.st_mtime_ns))
    return sorted(files)


def is_named_after(path: Path, names: Collection[str]) -> bool:
    """Whether a file is of one of these images, whatever folder of a finding or reader it lies in."""
    parts = without_ending(path.as_posix()).split("/")
    return any("/".join(parts[start:]) in names for start in range(len(parts)))


def require_paths(is_valid: Callable[[Path], bool], problem: str, *paths: Path | None) -> None:
    """Raise InputError for a path that is not what is wanted."""
    for path in filter(None, paths):
        if not is_valid(path):
            raise InputError(f"{path}: {problem}; correct the source in the spec")
