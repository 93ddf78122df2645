"""Reads pickled map files from untrusted sources without running code in them.

They were written by plain `pickle.dump`, so torch's restricted loader cannot read them. A pickle can call anything
that it can name; here only three names are allowed, and each is replaced by a safe function. The numbers of a tensor
are a file inside the file, which torch's restricted loader reads.
"""

import io
import pickle
import re
import warnings
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from math import prod
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

from heatcheck.core.errors import InputError, briefly


class _RefusedError(Exception):
    """A pickle names something that no map contains."""


def read_pickle(path: Path) -> Mapping[str, Any]:
    """The dictionary in a pickled map file; raises InputError instead of running code."""
    try:
        content = _MapUnpickler(io.BytesIO(path.read_bytes())).load()
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}); check its permissions") from error
    except _RefusedError as error:
        raise InputError(f"{path} would run {error}, which no map needs; it was not opened. Do not trust it") from error
    except Exception as error:  # damaged pickles raise nearly anything
        raise InputError(f"{path} is not a whole map file ({briefly(error)}); make or download it again") from error
    if not isinstance(content, dict):
        raise InputError(f"{path} must hold a dictionary with a 'map', got {type(content).__name__}; make it again")
    return content


class _MapUnpickler(pickle.Unpickler):
    """Reads numbers, texts, containers and tensors, and refuses to call anything else."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - the signature of pickle
        """One of the three functions that rebuild a stored tensor."""
        try:
            return _ALLOWED[module, name]
        except KeyError:
            raise _RefusedError(f"{module}.{name}") from None


def _storage(content: bytes) -> Tensor:
    """The numbers of an inner file as a flat tensor; torch's restricted loader refuses code in it."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns about old formats
            loaded = torch.load(io.BytesIO(content), map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as error:
        match = re.search(r"GLOBAL ([\w.]+)", str(error))
        raise _RefusedError(f"{match[1] if match else 'code'} from inside its tensor") from error
    storage = getattr(loaded, "_untyped_storage", None)
    if storage is None:
        raise ValueError("a tensor's numbers are missing")
    flat = torch.empty(0, dtype=loaded.dtype)
    return flat.set_(storage, 0, (storage.nbytes() // loaded.dtype.itemsize,), (1,))


def _tensor(flat: Tensor, offset: int, size: Sequence[int], stride: Sequence[int], *rest: object) -> Tensor:
    """The stored tensor; refuses a shape that needs more numbers than the file holds."""
    numbers = all(isinstance(n, int) and n >= 0 for n in (offset, *size, *stride))
    if not numbers or prod(size) > flat.numel() - offset:
        raise ValueError("a tensor claims more numbers than the file holds")
    tensor = torch.as_strided(flat, tuple(size), tuple(stride), offset)
    flags = rest[2] if len(rest) > 2 else None  # after the arguments about gradients
    if not flags:
        return tensor
    if flags == {"neg": True}:  # the numbers are stored with the opposite sign
        return -tensor
    raise ValueError("a tensor is stored in an unknown form")


_ALLOWED = {
    ("torch._utils", "_rebuild_tensor_v2"): _tensor,
    ("torch.storage", "_load_from_bytes"): _storage,
    ("collections", "OrderedDict"): OrderedDict,
}
