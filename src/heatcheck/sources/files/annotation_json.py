"""Reads annotations in JSON: CheXlocalize's polygons, run-length codes and points, and COCO."""

import difflib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from heatcheck.core.errors import InputError
from heatcheck.core.findings import CHEXPERT, canonical, spellings
from heatcheck.sources.files.marks import Boxes, Marks, Outlines, Polygon, Runs, Several
from heatcheck.sources.files.reading import without_ending
from heatcheck.sources.files.rle import run_lengths

Size = tuple[int, int]  # rows, columns
Images = dict[str, dict[str, Marks]]  # by image, then by finding
Sizes = dict[str, Size | None]
Entry = Mapping[str, Any]  # one JSON object
_FARTHEST = 1e6  # no image has coordinates beyond this
_MOST = 10**9  # pixels per image
_KNOWN = {name.lower(): name for finding in CHEXPERT for name in spellings(finding)}


def read_json(path: Path) -> dict[str, Any]:
    """The object in a file; a name used twice in one object is an error, where json would keep the last."""
    try:
        content = json.loads(path.read_text(encoding="utf-8-sig"), object_pairs_hook=_unique)
    except (OSError, ValueError, RecursionError) as error:  # damaged text and damaged JSON raise ValueError
        why = " ".join(str(error).split())
        raise InputError(f"{path} is not readable JSON ({why}); copy or export it again") from error
    if not isinstance(content, dict):
        raise InputError(f"{path} is not a JSON object with image names as keys; export it again")
    return content


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"{twice!r} occurs twice in one object")
    return content


def finding_name(name: str, where: str) -> str:
    """The canonical name of a finding; a name that is nearly one of CheXpert's is taken for a typing error."""
    if not name.strip() or not name.isprintable():
        raise InputError(f"{where}: the name of a finding is {name!r}; use printable text")
    if canonical(name) in CHEXPERT:
        return canonical(name)
    near = difflib.get_close_matches(name.strip().lower().replace("_", " "), _KNOWN, n=1, cutoff=0.85)
    if near:
        raise InputError(f"{where}: unknown finding {name!r}; did you mean {_KNOWN[near[0]]!r}?")
    return name


def _where(path: Path, image: str) -> str:
    """How errors name an image; raises InputError if its name cannot be printed."""
    if not image.isprintable():
        raise InputError(f"{path}: the name of an image is {image!r}; use printable text")
    return f"{path}, image {image}"


def chexlocalize_marks(content: Entry, path: Path) -> tuple[Images, Sizes]:
    """Marks and image sizes of a file in CheXlocalize's format: polygons or run-length codes."""
    images: Images = {}
    sizes: Sizes = {}
    for image, entry in content.items():
        where = _where(path, image)
        if not isinstance(entry, dict):
            raise InputError(f"{where}: expected an object with finding names as keys; export it again")
        sizes[image] = _entry_size(entry, where)
        named = _by_finding(entry, where)
        images[image] = {finding: _marks(value, sizes[image], f"{where}, {finding}") for finding, value in named}
    return images, sizes


def _by_finding(entry: Entry, where: str) -> list[tuple[str, Any]]:
    named = [(finding_name(name, where), value) for name, value in entry.items() if name != "img_size"]
    names = [name for name, _ in named]
    twice = next((name for name in names if names.count(name) > 1), None)
    if twice:
        raise InputError(f"{where}: two names mean {twice} ({', '.join(spellings(twice))}); keep one")
    return sorted(named, key=lambda pair: pair[0])


def _entry_size(entry: Entry, where: str) -> Size | None:
    """The size of the image: stated once for polygons, in each mask for run-length codes."""
    codes = [value for name, value in entry.items() if name != "img_size" and isinstance(value, dict)]
    stated = [entry["img_size"]] if "img_size" in entry else [code.get("size") for code in codes]
    if not stated and len(entry) > 0:
        raise InputError(f"{where}: img_size is missing; add it as [rows, columns]")
    sizes = {_size(value, where) for value in stated}
    if len(sizes) > 1:
        raise InputError(f"{where}: its masks have different sizes {sorted(sizes)}; export it again")
    return sizes.pop() if sizes else None


def _size(value: object, where: str) -> Size:
    match value:
        case [int(rows), int(columns)] if min(rows, columns) > 0 and rows * columns <= _MOST:
            return rows, columns
    raise InputError(f"{where}: its size is {_short(value)}, not two whole numbers above 0; give [rows, columns]")


def _marks(value: object, size: Size | None, where: str) -> Marks:
    if isinstance(value, dict):
        return _runs(value, size, where)
    if not isinstance(value, list):
        raise InputError(f"{where}: expected polygons or a run-length code, got {_short(value)}; export it again")
    if not value:
        raise InputError(f"{where}: the finding has no polygon; draw one or remove the finding")
    return Outlines(tuple(polygon(points, size, where) for points in value))


def _runs(code: Entry, size: Size | None, where: str, instances: int | None = None) -> Runs:
    counts = code.get("counts")
    if not isinstance(counts, (str, list)):
        raise InputError(f"{where}: the run-length code has no counts; export it again")
    rows, columns = _size(code.get("size"), where)
    if size is not None and size != (rows, columns):
        raise InputError(f"{where}: the mask is {rows}×{columns}, its image {size[0]}×{size[1]}; export it again")
    try:
        covered = int(run_lengths(counts).sum())
        if covered != rows * columns:
            raise ValueError(f"its counts cover {covered} pixels, not {rows}×{columns} = {rows * columns}")  # noqa: TRY301
    except ValueError as error:
        raise InputError(f"{where}: the run-length code is damaged ({error}); copy or export it again") from error
    return Runs(counts, instances)


def polygon(points: object, size: Size | None, where: str) -> Polygon:
    """The points as an array of x and y; raises InputError unless they form a polygon that overlaps the image."""
    try:
        array = np.asarray(points)
    except ValueError:  # rows of different lengths
        array = np.empty(0)
    if array.dtype.kind not in "iuf" or array.ndim != 2 or array.shape[1] != 2:
        raise InputError(f"{where}: expected a polygon [[x, y], …], got {_short(points)}; export it again")
    array = array.astype(np.float64)
    if len(array) < 3:
        raise InputError(f"{where}: a polygon has {len(array)} points; draw at least 3 or remove it")
    if not (np.abs(array) < _FARTHEST).all():  # also refuses NaN
        raise InputError(f"{where}: a polygon has a point that cannot be a pixel position; correct it")
    if size is not None and ((array.max(0) < 0) | (array.min(0) >= size[::-1])).any():
        raise InputError(
            f"{where}: a polygon lies outside the image of {size[0]}×{size[1]}; correct its points or size"
        )
    return array


def box(values: object, size: Size | None, where: str) -> tuple[float, float, float, float]:
    """The box as x, y, width and height; raises InputError unless it has an area and overlaps the image."""
    if not isinstance(values, list) or len(values) != 4 or not all(type(value) in (int, float) for value in values):
        raise InputError(f"{where}: expected a box [x, y, width, height], got {_short(values)}; correct it")
    if not all(abs(value) < _FARTHEST for value in values):
        raise InputError(f"{where}: the box {_short(values)} cannot be a position in an image; correct it")
    x, y, width, height = (float(value) for value in values)
    if not (width > 0 and height > 0):
        raise InputError(f"{where}: the box is {width:g} wide and {height:g} high; give it a size above 0 or remove it")
    if x + width <= 0 or y + height <= 0 or (size is not None and (x >= size[1] or y >= size[0])):
        raise InputError(f"{where}: the box {_short(values)} lies outside the image; correct it")
    return x, y, width, height


def coco_marks(content: Entry, path: Path) -> tuple[str, Images, Sizes]:
    """Kind of truth, marks and image sizes of a COCO file; outlines and masks take precedence over their boxes."""
    categories = _table(content, "categories", path)
    pictures = _table(content, "images", path)
    names = {number: _image_name(entry, f"{path}, image {number}") for number, entry in pictures.items()}
    if len(set(names.values())) < len(names):
        raise InputError(f"{path}: two images have the same file_name; keep one")
    sizes: Sizes = {
        names[number]: _coco_size(entry, f"{path}, image {names[number]}") for number, entry in pictures.items()
    }
    annotations = list(_table(content, "annotations", path).values())
    outlined = [bool(entry.get("segmentation")) for entry in annotations]
    if any(outlined) and not all(outlined):
        raise InputError(f"{path}: some annotations have a segmentation and some only a box; keep one kind per file")
    parts: dict[str, dict[str, list[Marks]]] = {name: {} for name in names.values()}
    for entry in annotations:
        where = f"{path}, annotation {entry['id']}"
        numbers = [number if isinstance(number, int) else -1 for number in map(entry.get, ("image_id", "category_id"))]
        image, category = names.get(numbers[0]), categories.get(numbers[1])
        if image is None or category is None:
            raise InputError(f"{where}: its image_id or category_id is not in the file; export it again")
        finding = finding_name(str(category.get("name", "")), where)
        parts[image].setdefault(finding, []).append(_coco_part(entry, sizes[image], f"{where} of image {image}"))
    images = {
        image: {name: _joined(marks) for name, marks in sorted(of_image.items())} for image, of_image in parts.items()
    }
    only_codes = all(isinstance(entry.get("segmentation"), dict) for entry in annotations)
    return ("masks" if only_codes else "outlines") if any(outlined) else "boxes", images, sizes


def _table(content: Entry, name: str, path: Path) -> dict[int, Entry]:
    """The entries of one of COCO's lists by id."""
    entries = content.get(name)
    if not isinstance(entries, list) or not all(isinstance(entry, dict) for entry in entries):
        raise InputError(f"{path}: {name} is not a list of objects; export it again as COCO")
    numbers = [entry.get("id") for entry in entries]
    if not all(isinstance(number, int) for number in numbers) or len(set(numbers)) < len(numbers):
        raise InputError(f"{path}: {name} must have unique whole numbers as id; export it again as COCO")
    return dict(zip(numbers, entries, strict=True))


def _image_name(entry: Entry, where: str) -> str:
    name = entry.get("file_name")
    if not isinstance(name, str) or not name or not name.isprintable():
        raise InputError(f"{where}: file_name is missing or not printable; export it again as COCO")
    return without_ending(name)


def _coco_size(entry: Entry, where: str) -> Size | None:
    stated = [entry.get("height"), entry.get("width")]
    return None if stated == [None, None] else _size(stated, where)


def _coco_part(entry: Entry, size: Size | None, where: str) -> Marks:
    drawn = entry.get("segmentation")
    if not drawn:
        return Boxes((box(entry.get("bbox"), size, where),))
    if isinstance(drawn, dict):
        return _runs(drawn, size, where, instances=1)
    if not isinstance(drawn, list) or not all(isinstance(flat, list) and len(flat) % 2 == 0 for flat in drawn):
        raise InputError(f"{where}: its segmentation is not a list of [x, y, x, y, …]; export it again as COCO")
    pairs = [list(zip(flat[::2], flat[1::2], strict=True)) for flat in drawn]
    return Outlines(tuple(polygon(points, size, where) for points in pairs), drawn=1)


def _joined(parts: list[Marks]) -> Marks:
    """All marks of one finding as one."""
    if all(isinstance(part, Boxes) for part in parts):
        return Boxes(tuple(box for part in parts if isinstance(part, Boxes) for box in part.boxes))
    if all(isinstance(part, Outlines) for part in parts):
        return Outlines(tuple(outline for part in parts for outline in part.polygons), drawn=len(parts))
    return Several(tuple(parts)) if len(parts) > 1 else parts[0]


def points_by_image(path: Path) -> dict[str, dict[str, list[list[float]]]]:
    """The points that readers marked, as lists of [x, y], by image and finding."""
    images: dict[str, dict[str, list[list[float]]]] = {}
    for image, entry in read_json(path).items():
        where = _where(path, image)
        if not isinstance(entry, dict):
            raise InputError(f"{where}: expected an object with finding names as keys; export it again")
        images[image] = {name: _positions(value, f"{where}, {name}") for name, value in _by_finding(entry, where)}
    return images


def _positions(value: object, where: str) -> list[list[float]]:
    if not isinstance(value, list) or not all(map(_is_position, value)):
        raise InputError(f"{where}: expected points [[x, y], …], got {_short(value)}; correct them")
    return [[float(x), float(y)] for x, y in value]


def _is_position(point: object) -> bool:
    if not isinstance(point, list) or len(point) != 2:
        return False
    return all(type(value) in (int, float) and abs(value) < _FARTHEST for value in point)


def _short(value: object) -> str:
    text = " ".join(repr(value).split())
    return text if len(text) <= 60 else f"{text[:60]}…"
