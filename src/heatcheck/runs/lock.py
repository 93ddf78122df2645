"""One writer for a folder at a time, also when a process that held it was killed."""

import fcntl
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TextIO

from heatcheck.core.errors import RunFolderError

_held: set[TextIO] = set()  # the lock files of this process


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Lock the folder against other writers while the block runs."""
    with (path / ".lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RunFolderError(f"another process is writing {path}; wait for it, or choose another --out") from error
        _held.add(handle)
        try:
            yield
        finally:
            _held.discard(handle)


def _let_go() -> None:
    """Close what a forked process inherited: a worker that outlives its killed parent must not keep the lock."""
    for handle in _held:
        handle.close()
    _held.clear()


os.register_at_fork(after_in_child=_let_go)
