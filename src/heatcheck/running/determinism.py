"""The number of threads, and settings under which the same seed gives the same numbers."""

from collections.abc import Iterator
from contextlib import contextmanager

import cv2
import torch


def use_threads(threads: int) -> None:
    """Set the number of threads, which stays the same for a run: the last digits of sums depend on it."""
    torch.set_num_threads(threads)
    cv2.setNumThreads(threads)


@contextmanager
def repeatable(threads: int | None) -> Iterator[None]:
    """Set torch so that the same seed gives the same weights; its settings are restored at the end."""
    before = torch.get_num_threads(), torch.are_deterministic_algorithms_enabled()
    torch.set_num_threads(threads or before[0])
    torch.use_deterministic_algorithms(True, warn_only=True)  # some GPU kernels have no deterministic version
    try:
        yield
    finally:
        torch.set_num_threads(before[0])
        torch.use_deterministic_algorithms(before[1])
