"""How many threads one operation may use, and that the same seed gives the same numbers."""

from collections.abc import Iterator
from contextlib import contextmanager

import cv2
import torch


def use_threads(threads: int) -> None:
    """So many threads for one operation; a run keeps its number: sums in another order differ in the last digits."""
    torch.set_num_threads(threads)
    cv2.setNumThreads(threads)


@contextmanager
def repeatable(threads: int | None) -> Iterator[None]:
    """Torch set so that the same seed gives the same weights; its settings are restored."""
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(threads or before[0])
    torch.use_deterministic_algorithms(True, warn_only=True)  # some GPU kernels have no such form
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        torch.use_deterministic_algorithms(before[1])
