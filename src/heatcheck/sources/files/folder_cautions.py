"""What a user should know of a folder of images before any of them is read."""

from collections.abc import Collection, Sequence
from pathlib import Path

from heatcheck.core.errors import CaseError
from heatcheck.sources.files.reading import lacks_window

HEADERS = 200  # DICOM headers that are read, which takes well below a second
NO_WINDOW = (
    "pixels are spread from the smallest to the largest value of each image, so the same grey may mean another density "
    "in the next one, and a model that was trained with fixed values sees other images"
)


def without_rows(images: Collection[str], listed: Collection[str], folder: Path, labels: Path) -> str:
    """How many images of the folder the labels do not list; empty where they list all."""
    missing = sorted(set(images) - set(listed))
    if not missing:
        return ""
    have, take = ("has", "takes") if len(missing) == 1 else ("have", "take")
    return (
        f"{len(missing):,} of {len(images):,} images in {folder.name}/ {have} no row in {labels.name} and {take} no "
        "part; add rows if they belong to the study."
    )


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
