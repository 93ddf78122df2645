"""Reads maps made by other programs, one per file, without running code in the files.

`<image>_<finding>_map.pkl` is the CheXlocalize benchmark's pickle; `.npz` files with the same keys and plain `.npy`
arrays are read too. The finding is the text between the last two underscores. `<image>.<method>.npz` is what
`heatcheck explain` writes: one method's maps of several findings.
"""

import math
import os
from collections.abc import Iterator, Mapping, Sequence
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

_EXPLAINED = {"on_image", "outputs", "targets", "method"}  # what `heatcheck explain` writes, among others
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
    """The path of a map, with image and finding; `column` is its place in a file of `heatcheck explain`."""

    path: Path
    image: str
    finding: str
    column: int | None = None


@dataclass(frozen=True, slots=True)
class StoredMap:
    """The content of a map file; NaN or None for missing entries."""

    values: Map  # on the method's grid
    probability: float
    shape: tuple[int, int] | None  # (height, width) of the image it explains
    label: float = math.nan  # 1 if the finding is present, 0 if absent
    picture: Image | None = None  # the model's input, for display; read on request


def find_maps(folder: Path, method: str = "") -> dict[str, dict[str, MapFile]]:
    """The maps below the folder, by image and then by finding, both sorted.

    Of what `heatcheck explain` wrote there: the maps of this method, or of the only one.
    """
    if not folder.is_dir():
        raise InputError(f"{folder}: no such folder; give --maps the folder that holds the *_map.pkl files")
    explained = explained_maps(folder)
    only = next(iter(explained.values())) if len(explained) == 1 else []
    named = [_parsed_name(path) for path in _below(folder)]
    maps: dict[tuple[str, str], MapFile] = {}
    for file in explained.get(method, named or only):
        if (earlier := maps.setdefault((file.image, file.finding), file)) is not file:
            raise InputError(
                f"{earlier.path} and {file.path} are two maps for {file.finding} on {file.image}; remove one of them"
            )
    if not maps:
        raise InputError(
            f"{folder} holds no maps; they are named <image>_<finding>{ENDINGS[0]} (or .npz, .npy), or as `heatcheck "
            "explain` names them, <image>.<method>.npz"
        )
    by_image: dict[str, dict[str, MapFile]] = {}
    for image, finding in sorted(maps):
        by_image.setdefault(image, {})[finding] = maps[image, finding]
    return by_image


def methods_in(name: str, folder: Path) -> dict[str, Path]:
    """The folder by the methods whose maps it holds: those that `heatcheck explain` named, or else `name`.

    An empty name stands for one that nobody gave.
    """
    explained = explained_maps(folder) if folder.is_dir() else {}
    if name in explained or (name and len(explained) < 2):
        return {name: folder}
    if name:
        raise InputError(
            f"{folder} holds maps of several methods ({', '.join(explained)}); leave out {name}=, or name one of them"
        )
    return dict.fromkeys([*explained, *(["maps"] if not explained or _below(folder) else [])], folder)


def explained_maps(folder: Path) -> dict[str, list[MapFile]]:
    """What `heatcheck explain` wrote below the folder, by method; both sorted."""
    found: dict[str, list[MapFile]] = {}
    for root, _, names in os.walk(folder):
        for name in names:
            if name.endswith(".npz") and not name.endswith(ENDINGS) and "." in name.removesuffix(".npz"):
                for method, file in _explained(Path(root) / name):
                    found.setdefault(method, []).append(file)
    return {method: sorted(found[method], key=lambda file: (file.path, file.finding)) for method in sorted(found)}


def _explained(path: Path) -> Iterator[tuple[str, MapFile]]:
    """The maps of one image in a file of `heatcheck explain`, with their method; none in another file."""
    try:
        with np.load(path, allow_pickle=False) as stored:
            if not set(stored.files) >= _EXPLAINED or len(stored["targets"]) != 1:
                return
            outputs, method = stored["outputs"].tolist(), str(stored["method"])
            targets = [outputs[number] for number in stored["targets"][0].tolist()]
    except Exception:  # noqa: BLE001 - a file of another program
        return
    if not path.name.endswith(f".{method}.npz"):
        return
    image = path.name.removesuffix(f".{method}.npz")
    for column, finding in enumerate(targets):
        yield method, MapFile(path, image, canonical(finding), column)


def _below(folder: Path) -> list[Path]:
    paths = (Path(root) / name for root, _, names in os.walk(folder) for name in names if name.endswith(ENDINGS))
    return sorted(paths)


def stray_files(folder: Path) -> list[Path]:
    """Files below the folder with the ending of a map but not its name pattern."""
    names = (Path(root) / name for root, _, files in os.walk(folder) for name in files)
    endings = {Path(ending).suffix for ending in ENDINGS}
    explained = {file.path for files in explained_maps(folder).values() for file in files}
    stray = (path for path in names if path.suffix in endings and not path.name.endswith(ENDINGS))
    return sorted(path for path in stray if path not in explained)


def _parsed_name(path: Path) -> MapFile:
    image, _, finding = path.name.removesuffix(next(e for e in ENDINGS if path.name.endswith(e))).rpartition("_")
    if not image or not finding.strip():
        raise InputError(f"{path} is not named <image>_<finding>_map{path.suffix}; rename it")
    return MapFile(path, image, canonical(finding.strip()))


def read_map(file: MapFile, vectors: UnnamedVectors = "refuse", *, with_picture: bool = False) -> StoredMap:
    """The map in a file; raises InputError with one sentence that names the file."""
    content = _READERS[file.path.suffix](file.path)
    if file.column is not None:
        content = _one_of(content, file.column)
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


def _one_of(content: Mapping[str, Any], column: int) -> Mapping[str, Any]:
    """One map of a file of `heatcheck explain`, with the keys of the other files; it is on the image's own grid."""
    on_image, probabilities = content["on_image"][0, column], content.get("probabilities")
    return {
        "map": on_image,
        "prob": None if probabilities is None else float(probabilities[0, column]),
        "cxr_dims": on_image.shape[::-1] if on_image.ndim == 2 else None,
        "cxr_img": content.get("image"),
    }


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
