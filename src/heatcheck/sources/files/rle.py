"""Masks as COCO's run-length codes: alternating runs of absent and present pixels, column by column.

The compressed form is not read with pycocotools, which trusts the text: damaged counts make it read beyond its memory
or return a wrong mask.
"""

from collections.abc import Sequence

import numpy as np
from jaxtyping import Bool, Int

_FIRST, _LAST = 48, 48 + 0x3F  # a character holds six bits above '0': five of the number and a continuation bit
_LONGEST = 7  # characters per number: no image has 2³⁵ pixels


def run_lengths(counts: str | Sequence[int]) -> Int[np.ndarray, " run"]:
    """The lengths of the runs; raises ValueError if the counts are damaged."""
    if isinstance(counts, str):
        return _uncompressed(counts)
    if not all(isinstance(count, int) and not isinstance(count, bool) and 0 <= count < 2**40 for count in counts):
        raise ValueError("its counts are not all whole numbers of 0 or more")
    return np.array(counts, np.int64)


def _uncompressed(text: str) -> Int[np.ndarray, " run"]:
    codes = np.frombuffer(text.encode("utf-8", "replace"), np.uint8).astype(np.int64)
    if ((codes < _FIRST) | (codes > _LAST)).any():
        raise ValueError("its counts contain invalid characters")
    bits = codes - _FIRST
    ends = np.flatnonzero(bits & 0x20 == 0)
    if len(bits) and (not len(ends) or ends[-1] != len(bits) - 1):
        raise ValueError("its counts end in the middle of a number")
    starts = np.concatenate([[0], ends[:-1] + 1])[: len(ends)]
    if len(ends) and (ends - starts).max() >= _LONGEST:
        raise ValueError("its counts contain a number that is too large")
    position = np.arange(len(bits)) - np.repeat(starts, ends - starts + 1)
    numbers = np.add.reduceat((bits & 0x1F) << 5 * position, starts) if len(bits) else np.zeros(0, np.int64)
    negative = bits[ends] & 0x10 != 0
    numbers = numbers - np.where(negative, np.int64(1) << 5 * (ends - starts + 1), 0)
    # from the fourth on, numbers are stored as differences from the last but one
    numbers[1::2] = np.cumsum(numbers[1::2])
    numbers[2::2] = np.cumsum(numbers[2::2])
    if (numbers < 0).any():
        raise ValueError("its counts contain a negative run")
    return numbers


def decode(counts: str | Sequence[int], shape: tuple[int, int]) -> Bool[np.ndarray, "row column"]:
    """The mask of `shape`; raises ValueError if the counts are damaged or belong to another image."""
    runs = run_lengths(counts)
    if runs.sum() != shape[0] * shape[1]:
        raise ValueError(f"its counts cover {runs.sum()} pixels, not {shape[0]}×{shape[1]} = {shape[0] * shape[1]}")
    present = np.arange(len(runs)) % 2 == 1
    return np.ascontiguousarray(np.repeat(present, runs).reshape(shape, order="F"))


def encode(mask: Bool[np.ndarray, "row column"]) -> str:
    """The compressed counts of a mask, as pycocotools writes them."""
    pixels = mask.ravel(order="F")
    changes = np.flatnonzero(pixels[1:] != pixels[:-1]) + 1
    edges = np.concatenate([[0] if not pixels[0] else [0, 0], changes, [pixels.size]])
    runs = np.diff(edges)
    numbers = runs.copy()
    numbers[3:] -= runs[1:-2]
    width = np.ones(len(numbers), np.int64)  # characters per number
    for size in range(1, _LONGEST):
        width[(numbers < -(1 << 5 * size - 1)) | (numbers >= 1 << 5 * size - 1)] = size + 1
    position = np.arange(width.sum()) - np.repeat(np.cumsum(width) - width, width)
    more = position < np.repeat(width, width) - 1
    codes = (np.repeat(numbers, width) >> 5 * position & 0x1F) + 0x20 * more + _FIRST
    return codes.astype(np.uint8).tobytes().decode("ascii")
