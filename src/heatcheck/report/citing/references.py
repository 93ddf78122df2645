"""References: papers by the words that name them, as BibTeX and as a line of a list."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources

import yaml

_YEAR = "2026"  # of heatcheck's version, as CITATION.cff has it
_SIGNS = {"\\'e": "é", '\\"u': "ü", "\\v{S}": "Š"}


@dataclass(frozen=True, slots=True)
class Reference:
    """One entry of a list of references; its fields are written as BibTeX has them."""

    cited_as: str
    kind: str
    key: str
    fields: tuple[tuple[str, str], ...]

    @property
    def bibtex(self) -> str:
        """The entry as it stands in a .bib file."""
        lines = "".join(f"  {name} = {{{value}}},\n" for name, value in self.fields)
        return f"@{self.kind}{{{self.key},\n{lines}}}\n"

    @property
    def line(self) -> str:
        """The entry as one line: authors, title, where it appeared, and its identifier."""
        fields = {name: plain(value) for name, value in self.fields}
        version = f"Version {fields['version']}" if "version" in fields else ""
        where = fields.get("journal") or fields.get("booktitle") or fields.get("howpublished") or version
        place = " ".join(filter(None, (where, fields.get("volume", ""))))
        place = ":".join(filter(None, (place, fields.get("pages", "").replace("--", "\u2013"))))
        doi = f" doi:{fields['doi']}" if "doi" in fields else ""
        dated = " ".join(filter(None, (place, f"({fields['year']})" if "year" in fields else "")))
        parts = (_people(fields.get("author", "")), fields.get("title", ""), dated)
        return " ".join(part if part.endswith("?") else f"{part}." for part in filter(None, parts)) + doi


def software(version: str) -> Reference:
    """The entry for heatcheck itself, as CITATION.cff names it."""
    fields = (
        ("author", "{The heatcheck developers}"),
        ("title", "heatcheck: do the heat maps of a medical-image classifier deserve trust?"),
        ("year", _YEAR),
        *((("version", version),) if version else ()),
        ("note", "Software, Apache License 2.0"),
    )
    return Reference("heatcheck", "misc", "heatcheck", fields)


def papers(names: Iterable[str]) -> tuple[Reference, ...]:
    """The papers that these words name, each once and in this order; several are divided by semicolons."""
    wanted = dict.fromkeys(part.strip() for name in names for part in name.split(";"))
    return tuple(_papers()[name] for name in wanted if name in _papers())


@cache
def _papers() -> Mapping[str, Reference]:
    text = (resources.files("heatcheck") / "reference" / "papers.yaml").read_text(encoding="utf-8")
    return {name: _reference(name, entry) for name, entry in yaml.safe_load(text).items()}


def _reference(name: str, entry: Mapping[str, object]) -> Reference:
    fields = tuple((key, str(value)) for key, value in entry.items() if key not in {"type", "key"})
    return Reference(name, str(entry["type"]), str(entry["key"]), fields)


def plain(text: str) -> str:
    """The text without BibTeX's braces and commands."""
    for command, sign in _SIGNS.items():
        text = text.replace(f"{{{command}}}", sign).replace(command, sign)
    return text.replace("{", "").replace("}", "")


def _people(authors: str) -> str:
    """The authors, at most three of them by name."""
    names = [name.strip() for name in authors.split(" and ")]
    return ", ".join(name.replace(",", "") for name in names[:3]) + (" et al" if len(names) > 3 else "")
