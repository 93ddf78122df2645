"""How many threads one operation may use."""

import cv2
import torch


def use_threads(threads: int) -> None:
    """So many threads for one operation; a run keeps its number: sums in another order differ in the last digits."""
    torch.set_num_threads(threads)
    cv2.setNumThreads(threads)
