"""Randomness with a name: every random draw is a function of the run's seed, a case and a purpose."""

import hashlib

import numpy as np


def seed_for(*parts: int | str) -> int:
    """A 63-bit seed that depends on every part and on their order, the same on all machines."""
    text = "\x1f".join(f"{type(part).__name__}:{part}" for part in parts)
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=8).digest(), "big") >> 1


def generator_for(*parts: int | str) -> np.random.Generator:
    """A NumPy generator seeded by `seed_for`."""
    return np.random.default_rng(seed_for(*parts))
