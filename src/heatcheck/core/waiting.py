"""How the threads of a computation wait for each other: briefly awake, then asleep.

By default OpenMP's threads stay awake for milliseconds in case more work comes. Where other programs want the cores,
a waiting thread then holds the core that its partner needs, and a study takes many times as long.

The OpenMP libraries read these settings once, when torch is loaded; so `wait_briefly` comes first and loads no torch.
"""

import os
from collections.abc import MutableMapping

_BRIEFLY = {
    "GOMP_SPINCOUNT": "1000",  # GCC's library, which torch uses on Linux: turns of a loop
    "KMP_BLOCKTIME": "1",  # LLVM's and Intel's, which torch uses on macOS: milliseconds
}
_CHOICES = ("OMP_WAIT_POLICY", *_BRIEFLY)


def wait_briefly(environment: MutableMapping[str, str] = os.environ) -> None:
    """Make waiting threads fall asleep soon, also in processes started later; a user's own choice is kept."""
    if not any(name in environment for name in _CHOICES):
        environment.update(_BRIEFLY)
