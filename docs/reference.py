"""Writes docs/reference.md, the tables of all that a spec can name, from the registries: `python docs/reference.py`."""

import sys
from collections.abc import Iterator
from pathlib import Path

from heatcheck.cli.list_parts import Kind, rows_of

PAGE = Path(__file__).parent / "reference.md"
HEAD = """# Everything a spec can name

Written from the registries by `python docs/reference.py`; `heatcheck list KIND` prints the same.
"""


def page() -> str:
    """The whole page."""
    return "\n".join([HEAD, *(line for kind in Kind for line in _section(kind))])


def _section(kind: Kind) -> Iterator[str]:
    rows = rows_of(kind)
    yield f"## {kind.value.capitalize()}\n"
    yield "| " + " | ".join(name.replace("_", " ") for name in rows[0]) + " |"
    yield "|" + "---|" * len(rows[0])
    for row in rows:
        cells = [f"`{value}`" if name == "name" else str(value) for name, value in row.items()]
        yield "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
    yield ""


if __name__ == "__main__":
    sys.exit(PAGE.write_text(page(), encoding="utf-8") == 0)
