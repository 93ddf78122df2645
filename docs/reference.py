"""Writes docs/reference.md from the registries and docs/glossary.md from the glossary: `python docs/reference.py`."""

from collections.abc import Iterator
from pathlib import Path

from heatcheck.cli.list_parts import Kind, rows_of
from heatcheck.core.glossary import GLOSSARY

HERE = Path(__file__).parent
REFERENCE = """# Everything a spec can name

Written from the registries by `python docs/reference.py`; `heatcheck list KIND` prints the same.
"""
GLOSSARY_HEAD = """# Glossary

One word per idea, in the code, the reports and these pages.
Written from `core/glossary.py` by `python docs/reference.py`.

| word | meaning | instead of |
|---|---|---|
"""


def pages() -> dict[Path, str]:
    """The text of every page that is written from the code."""
    return {HERE / "reference.md": _reference(), HERE / "glossary.md": _glossary()}


def _reference() -> str:
    return "\n".join([REFERENCE, *(line for kind in Kind for line in _section(kind))])


def _glossary() -> str:
    terms = sorted(GLOSSARY.values(), key=lambda term: term.name)
    rows = (f"| **{term.name}** | {term.meaning} | {', '.join(term.instead_of)} |" for term in terms)
    return GLOSSARY_HEAD + "\n".join(rows) + "\n"


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
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
