"""Reads maps made by other programs, one per file, without running code in the files.

`<image>_<finding>_map.pkl` is the CheXlocalize benchmark's pickle; `.npz` files with the same keys and plain `.npy`
arrays are read too. The finding is the text between the last two underscores.
"""

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import numpy as np
import torch
from torch import Tensor

from heatcheck.core.errors import InputError, briefly
from heatcheck.core.findings import canonical
from heatcheck.core.records import Image, Map
from heatcheck.sources.files.restricted_pickle import read_pickle

ENDINGS = ("_map.pkl", "_map.npz", "_map.npy")
# the order of an unnamed vector of probabilities in the benchmark's files; not the order of CheXpert's columns
VECTOR_ORDER = (
    "No Finding", "Enlarged Cardiomediastinum", "Cardiomegaly", "Lung Lesion", "Airspace Opacity", "Edema",
    "Consolidation", "Pneumonia", "Atelectasis", "Pneumothorax", "Pleural Effusion", "Pleural Other", "Fracture",
    "Support Devices",
)  # fmt: skip
LONGEST_SIDE = 30_000  # pixels; larger than any radiograph, and fits in memory
UnnamedVectors = Literal["reference order", "refuse", "unknown"]  # how to read a vector of probabilities without names


@dataclass(frozen=True, slots=True)
class MapFile:
    """The path of a map, with image and finding from its name."""

    path: Path
    image: str
    finding: str


@dataclass(frozen=True, slots=True)
class StoredMap:
    """The content of a map file; NaN or None for missing entries."""

    values: Map  # on the method's grid
    probability: float
    shape: tuple[int, int] | None  # (height, width) of the image it explains
    label: float = math.nan  # 1 if the finding is present, 0 if absent
    picture: Image | None = None  # the model's input, for display; read on request


def find_maps(folder: Path) -> dict[str, dict[str, MapFile]]:
    """The maps below the folder, by image and then by finding, both sorted."""
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give --maps the folder that holds the *_map.pkl files")
    maps: dict[tuple[str, str], MapFile] = {}
    for path in _below(folder):
        file = _parsed_name(path)
        if (earlier := maps.setdefault((file.image, file.finding), file)) is not file:
            raise InputError(
                f"{earlier.path} and {path} are two maps for {file.finding} on {file.image}; remove one of them"
            )
    if not maps:
        raise InputError(f"{folder} holds no maps; they are named <image>_<finding>{ENDINGS[0]} (or .npz, .npy)")
    by_image: dict[str, dict[str, MapFile]] = {}
    for image, finding in sorted(maps):
        by_image.setdefault(image, {})[finding] = maps[image, finding]
    return by_image


def _below(folder: Path) -> list[Path]:
    paths = (Path(root) / name for root, _, names in os.walk(folder) for name in names if name.endswith(ENDINGS))
    return sorted(paths)


def stray_files(folder: Path) -> list[Path]:
    """Files below the folder with the ending of a map but not its name pattern."""
    names = (Path(root) / name for root, _, files in os.walk(folder) for name in files)
    endings = {Path(ending).suffix for ending in ENDINGS}
    return sorted(path for path in names if path.suffix in endings and not path.name.endswith(ENDINGS))


def _parsed_name(path: Path) -> MapFile:
    image, _, finding = path.name.removesuffix(next(e for e in ENDINGS if path.name.endswith(e))).rpartition("_")
    if not image or not finding.strip():
        raise InputError(f"{path} is not named <image>_<finding>_map{path.suffix}; rename it")
    return MapFile(path, image, canonical(finding.strip()))


def read_map(file: MapFile, vectors: UnnamedVectors = "refuse", *, with_picture: bool = False) -> StoredMap:
    """The map in a file; raises InputError with one sentence that names the file."""
    content = _READERS[file.path.suffix](file.path)
    task = content.get("task")
    if isinstance(task, str) and canonical(task) != file.finding:
        raise InputError(f"{file.path} contains a map for {task!r}; rename the file or make it again")
    return StoredMap(
        _values(content.get("map"), file.path),
        _probability(content.get("prob"), file, vectors),
        _shape(content.get("cxr_dims"), file.path),
        _label(content.get("gt")),
        _picture(content.get("cxr_img")) if with_picture else None,
    )


def _values(stored: object, path: Path) -> Map:
    array = _array(stored)
    if array is None or not array.size or array.dtype.kind not in "fiu":
        raise InputError(f"{path} holds no array of numbers under 'map'; make the map again")
    while array.ndim > 2 and array.shape[0] == 1:
        array = array[0]
    if array.ndim != 2:
        raise InputError(f"{path}: a map must have the shape (1, 1, height, width), got {array.shape}; make it again")
    values: Map = np.ascontiguousarray(array, dtype=np.float32)
    if not np.isfinite(values).all():
        raise InputError(f"{path} holds NaN or infinity; make the map again")
    return values


def _array(stored: object) -> np.ndarray | None:
    if isinstance(stored, Tensor):
        plain = stored.detach().resolve_conj().resolve_neg()
        return (plain.float() if plain.dtype == torch.bfloat16 else plain).numpy()
    return stored if isinstance(stored, np.ndarray) else None


def _probability(stored: object, file: MapFile, vectors: UnnamedVectors) -> float:
    """The finding's probability from a number, a mapping by finding, or a vector in the benchmark's order."""
    if isinstance(stored, Mapping):
        named = {canonical(str(name)): value for name, value in stored.items()}
        stored = named.get(file.finding)
    array = _array(stored)
    listed = stored if isinstance(stored, list | tuple) else array.ravel().tolist() if array is not None else [stored]
    stored = _from_vector(listed, file, vectors) if len(listed) > 1 else next(iter(listed), None)
    if stored is None:
        return math.nan
    if isinstance(stored, bool) or not isinstance(stored, int | float) or not 0 <= stored <= 1:
        raise InputError(f"{file.path}: a probability must lie between 0 and 1, got {stored!r}; correct it")
    return float(stored)


def _from_vector(listed: Sequence[object], file: MapFile, vectors: UnnamedVectors) -> object:
    if vectors == "unknown":
        return None
    if vectors == "refuse":
        raise InputError(
            f"{file.path} holds {len(listed)} probabilities without names, so the one of {file.finding} is unknown; "
            "store that one alone, accept it as missing with --allow-missing, or use --preset chexlocalize for the "
            "benchmark's order"
        )
    if len(listed) != len(VECTOR_ORDER) or file.finding not in VECTOR_ORDER:
        raise InputError(
            f"{file.path}: the benchmark's vector of {len(VECTOR_ORDER)} probabilities does not fit "
            f"{len(listed)} values and the finding {file.finding!r}; store its probability alone"
        )
    return listed[VECTOR_ORDER.index(file.finding)]


def _shape(stored: object, path: Path) -> tuple[int, int] | None:
    """(height, width) from the stored (width, height)."""
    if stored is None:
        return None
    array = _array(stored)
    listed = array.ravel().tolist() if array is not None else stored
    if not isinstance(listed, list | tuple) or len(listed) != 2 or not all(_is_count(side) for side in listed):
        raise InputError(f"{path}: 'cxr_dims' must be (width, height) in pixels, got {listed!r}; correct it")
    width, height = listed
    return int(height), int(width)


def _is_count(side: object) -> bool:
    is_number = isinstance(side, int | float) and not isinstance(side, bool) and math.isfinite(side)
    return is_number and side % 1 == 0 and 0 < side <= LONGEST_SIDE  # type: ignore[operator]


def _label(stored: object) -> float:
    array = _array(stored)
    value = array.item() if array is not None and array.size == 1 else stored
    return float(value) if isinstance(value, int | float) and value in (0, 1) else math.nan


def _picture(stored: object) -> Image | None:
    """The image as [channel, row, column]; None if it is missing, flat or too small to show."""
    array = _array(stored)
    if array is None or array.ndim < 2 or array.dtype.kind not in "fiu" or not np.isfinite(array).all():
        return None
    while array.ndim > 3 and array.shape[0] == 1:
        array = array[0]
    planes = array[None] if array.ndim == 2 else array
    if planes.ndim != 3 or min(planes.shape[1:]) < 32 or planes.min() == planes.max():
        return None
    return np.ascontiguousarray(planes, dtype=np.float32)


def _read_npy(path: Path) -> Mapping[str, Any]:
    return {"map": _load_numpy(path)}


def _read_npz(path: Path) -> Mapping[str, Any]:
    loaded = _load_numpy(path)
    try:
        content = {name: loaded[name] for name in loaded.files}
    except Exception as error:
        raise InputError(f"{path} cannot be read as .npz ({briefly(error)}); make the map again") from error
    return {name: value.item() if value.ndim == 0 else value for name, value in content.items()}


def _load_numpy(path: Path) -> Any:  # noqa: ANN401 - an array or an archive of them
    try:
        return np.load(path, allow_pickle=False)
    except Exception as error:
        raise InputError(f"{path} cannot be read ({briefly(error)}); make the map again") from error


_READERS = {".pkl": read_pickle, ".npz": _read_npz, ".npy": _read_npy}
