"""What a user should know of a folder of images before any of them is read."""

from collections.abc import Collection, Sequence
from pathlib import Path

from heatcheck.core.errors import CaseError
from heatcheck.sources.files.reading import lacks_window, require_openable

HEADERS = 200  # DICOM headers that are read, which takes well below a second
OPENED = 5000  # files of a folder that are opened, of which a second takes some thousand
NAMED = 3  # that a sentence lists
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
        f"part ({_some(missing)}); add rows if they belong to the study."
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
