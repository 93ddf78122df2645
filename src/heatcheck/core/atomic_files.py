"""Files are written atomically: under a temporary name, and renamed when they are complete."""

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replaced(path: Path) -> Iterator[Path]:
    """A temporary path beside `path`, renamed to it when the block ends without an error."""
    temporary = path.with_name(f"{path.name}.tmp-{secrets.token_hex(4)}")
    try:
        yield temporary
        _onto_disk(temporary)
        temporary.replace(path)
        _onto_disk(path.parent)
    finally:
        temporary.unlink(missing_ok=True)


def _onto_disk(path: Path) -> None:
    """Wait until the file or folder is really written: a renamed file may otherwise be empty after a power cut."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)
