"""Reads boxes from a CSV: NIH's BBox_List_2017.csv, or columns image, finding, x, y, w, h."""

import csv
from collections.abc import Iterator
from pathlib import Path

from heatcheck.core.errors import InputError
from heatcheck.sources.files.annotation_json import Images, box, finding_name
from heatcheck.sources.files.marks import Boxes
from heatcheck.sources.files.reading import without_ending

_NIH = ("image index", "finding label")  # then "Bbox [x", "y", "w", "h]" and three columns without a name
_COLUMNS = {"x": ("x",), "y": ("y",), "w": ("w", "width"), "h": ("h", "height")}


def box_marks(path: Path) -> Images:
    """The boxes by image and finding."""
    boxes_by_image: dict[str, dict[str, list[tuple[float, float, float, float]]]] = {}
    for where, image, finding, cells in _rows(path):
        try:
            values = [float(cell) for cell in cells]
        except ValueError:
            raise InputError(
                f"{where}: the box of {image} is {', '.join(cells)}, not four numbers; correct it"
            ) from None
        name = finding_name(finding, where)
        boxes_by_image.setdefault(image, {}).setdefault(name, []).append(box(values, None, f"{where}, {image}"))
    return {
        image: {name: Boxes(tuple(boxes)) for name, boxes in sorted(of_image.items())}
        for image, of_image in boxes_by_image.items()
    }


def _rows(path: Path) -> Iterator[tuple[str, str, str, list[str]]]:
    """For each row: where it is (for errors), image, finding and the cells of the box."""
    try:
        with path.open(newline="", encoding="utf-8-sig") as file:
            lines = csv.reader(file, strict=True)
            columns = _columns(path, next(lines, []))
            for row in lines:
                if any(cell.strip() for cell in row):
                    where = f"{path}, line {lines.line_num}"
                    if len(row) <= max(columns):
                        raise InputError(f"{where}: fewer cells than the header; correct the line")
                    image, finding, *cells = (row[column].strip() for column in columns)
                    yield where, without_ending(image), finding, cells
    except (csv.Error, UnicodeDecodeError, OSError) as error:
        raise InputError(f"{path} is not a readable CSV file ({error}); export it again as UTF-8") from error


def _columns(path: Path, header: list[str]) -> list[int]:
    """The columns of image, finding, x, y, width and height."""
    names = [name.strip().lower() for name in header]
    if tuple(names[:2]) == _NIH and len(names) >= 6:
        return list(range(6))
    wanted = [("image",), ("finding",), *_COLUMNS.values()]
    indices = [next((names.index(name) for name in known if name in names), None) for known in wanted]
    if None in indices:
        raise InputError(
            f"{path}: expected columns image, finding, x, y, w, h, or those of NIH's BBox_List_2017.csv, "
            f"got {', '.join(header) or 'none'}; rename them"
        )
    return [index for index in indices if index is not None]
