"""Writes docs/reference.md from the registries and docs/glossary.md from the glossary: `python docs/reference.py`."""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from heatcheck.cli.list_parts import Kind, rows_of
from heatcheck.core.glossary import GLOSSARY
from heatcheck.core.settings.described import Described, described
from heatcheck.fitting.spec import TrainingBody
from heatcheck.maps.channels import CHANNEL_RULES
from heatcheck.methods import METHODS
from heatcheck.regions.detect import PRESETS
from heatcheck.runs.spec import Envelope
from heatcheck.scoring.presets import SWITCHES, Switch
from heatcheck.sources import SOURCES
from heatcheck.studies.alignment.spec import AlignmentBody
from heatcheck.studies.localization.spec import LocalizationBody
from heatcheck.studies.modality.spec import ModalityBody
from heatcheck.studies.triggers.spec import TriggersBody
from heatcheck.training import STRATEGIES
from heatcheck.triggers import TRIGGERS

HERE = Path(__file__).parent
REFERENCE = """# Everything a spec can name

Written from the code by `python docs/reference.py`; `heatcheck list KIND` prints the parts.

- Parts: [methods](#methods), [metrics](#metrics), [sources](#sources), [triggers](#triggers), [models](#models),
  [studies](#studies), [specs](#specs)
- Their settings: [of methods](#settings-of-methods), [of sources](#settings-of-sources),
  [of triggers](#settings-of-triggers); [rules that have a name](#rules-that-have-a-name)
- Keys of a spec: [of every spec](#keys-of-every-spec), and of a study of [localization](#keys-of-localization),
  [triggers](#keys-of-triggers), [alignment](#keys-of-alignment), [modality](#keys-of-modality), or a
  [training](#keys-of-training); [parts of these keys](#parts-of-keys)

A default that is *automatic* is found from the model, the data or the spec; *required* means that there is none.
"""
SPECS: Mapping[str, type[Any]] = {
    "every spec": Envelope,
    "localization": LocalizationBody,
    "triggers": TriggersBody,
    "alignment": AlignmentBody,
    "modality": ModalityBody,
    "training": TrainingBody,
}
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
    kinds = (line for kind in Kind for line in _section(kind))
    return "\n".join([REFERENCE, *kinds, *_settings(), *_rules(), *_keys()])


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


def _settings() -> Iterator[str]:
    """The settings of every method, source and trigger, each kind in one table."""
    for kind, registry in (("methods", METHODS), ("sources", SOURCES), ("triggers", TRIGGERS)):
        yield f"## Settings of {kind}\n"
        rows = [(name, each) for name, facts in registry.items() for each in described(facts.settings)]
        yield from _table([kind.removesuffix("s")], [([f"`{name}`"], each) for name, each in rows])
        parts = {part: None for _, each in rows for part in each.parts}
        for part in parts:
            yield f"### {_heading(part)}\n"
            yield from _table([], [([], each) for each in described(part)])


def _keys() -> Iterator[str]:
    """The keys of every spec, then those of their parts, each part once."""
    waiting: dict[type[Any], None] = {}
    for name, body in SPECS.items():
        rows = list(described(body))
        waiting |= {part: None for each in rows for part in each.parts}
        yield f"## Keys of {name}\n"
        yield from _table([], [([], each) for each in rows])
    yield "## Parts of keys\n"
    done: set[type[Any]] = set()
    while waiting:
        part = next(iter(waiting))
        del waiting[part]
        done.add(part)
        rows = list(described(part))
        waiting |= {inner: None for each in rows for inner in each.parts if inner not in done}
        yield f"### {_heading(part)}\n"
        yield from _table([], [([], each) for each in rows])


def _rules() -> Iterator[str]:
    """Names that settings may have as values."""
    presets = {name: preset.in_words(preset.rule_for("")) for name, preset in PRESETS.items()}
    rules = {
        "channel rule (`channels` of localization)": {name: _first_line(rule) for name, rule in CHANNEL_RULES.items()},
        "detection preset (`detection.preset` of triggers)": presets,
        "label strategy (`uncertainty` of a training)": {name: one.summary for name, one in STRATEGIES.items()},
        "switch (`switches` of localization)": {name: _either(one) for name, one in SWITCHES.items()},
    }
    yield "## Rules that have a name\n"
    yield from ("| kind | name | meaning |", "|---|---|---|")
    for kind, names in rules.items():
        for name, meaning in names.items():
            yield f"| {kind} | `{name}` | {_cell(meaning)} |"
    yield ""


def _table(before: list[str], rows: list[tuple[list[str], Described]]) -> Iterator[str]:
    yield "| " + " | ".join([*before, "setting", "type", "default", "meaning"]) + " |"
    yield "|" + "---|" * (len(before) + 4)
    for cells, each in rows:
        takes = f"{each.takes}: {' or '.join(map(_link, each.parts))}" if each.parts else each.takes
        yield "| " + " | ".join([*cells, f"`{each.name}`", *map(_cell, (takes, each.default, each.meaning))]) + " |"
    yield ""


def _heading(part: type[Any]) -> str:
    return (part.__doc__ or part.__name__).splitlines()[0].rstrip(".")


def _link(part: type[Any]) -> str:
    """A link to the table of a part, by the first words of its heading."""
    heading = _heading(part)
    anchor = "".join(letter for letter in heading.lower() if letter.isalnum() or letter in " -_").replace(" ", "-")
    return f"[{heading.partition(':')[0].partition(';')[0].partition(',')[0].lower()}](#{anchor})"


def _either(switch: Switch) -> str:
    return f"{switch.label}: {switch.recommended} (recommended), or {switch.chexlocalize} (chexlocalize)"


def _first_line(rule: object) -> str:
    return (rule.__doc__ or "").splitlines()[0]


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text, encoding="utf-8")
