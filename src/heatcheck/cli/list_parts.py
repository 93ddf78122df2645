"""`heatcheck list`: what a spec can name."""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Annotated, Any

import typer

from heatcheck.cli.layout import columns, width, wrapped
from heatcheck.cli.options import AsJson, Debug
from heatcheck.core.errors import SpecError, UnknownNameError
from heatcheck.core.registry import suggest

Rows = list[dict[str, Any]]


class Kind(StrEnum):
    """What can be listed."""

    METHODS = "methods"
    METRICS = "metrics"
    SOURCES = "sources"
    TRIGGERS = "triggers"
    MODELS = "models"
    STUDIES = "studies"
    SPECS = "specs"


def list_parts(
    kind: Annotated[str, typer.Argument(metavar="KIND", help=f"What to list: {', '.join(Kind)}.")],
    as_json: AsJson = False,
    debug: Debug = False,
) -> None:
    """List the methods, metrics, sources and other parts that a spec can name, with a short description of each."""
    if kind not in [*Kind]:
        raise UnknownNameError(f"nothing to list is called {kind!r}; {suggest(kind, [each.value for each in Kind])}")
    rows = rows_of(Kind(kind))
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    lines = _by_study(rows, _COLUMNS[Kind(kind)]) if kind == Kind.METRICS else table_lines(rows, _COLUMNS[Kind(kind)])
    for line in lines:
        typer.echo(line)


def _by_study(rows: Rows, short: Sequence[str]) -> Iterator[str]:
    """A table for each study, that of localization first: its metrics suit any map of which the truth is known."""
    studies = dict.fromkeys(["localization", *(row["study"] for row in rows)])
    for number, study in enumerate(studies):
        own = [{name: value for name, value in row.items() if name != "study"} for row in rows if row["study"] == study]
        also = ", and wherever maps are compared with the truth" if study == "localization" else ""
        yield "\n" * bool(number) + typer.style(f"The study {study}{also}", bold=True)
        yield from table_lines(own, short)


def table_lines(rows: Rows, short: Sequence[str]) -> Iterator[str]:
    """A table of the short facts; the others stand indented below the part that they belong to."""
    heading, *lines = columns([short, *([str(row[name]) for name in short] for row in rows)])
    yield typer.style(heading, bold=True)
    for line, row in zip(lines, rows, strict=True):
        name = str(row["name"])
        yield typer.style(name, bold=True) + line[len(name) :]
        for text in _below({fact: str(value) for fact, value in row.items() if value and fact not in short}):
            yield from wrapped(text, width(), first=_INDENT, other=_INDENT)


def _below(facts: Mapping[str, str]) -> Iterator[str]:
    """The facts that do not stand in the table: sentences, settings, and the rest in one line."""
    yield from (facts[name] for name in _SENTENCES if name in facts)
    if "settings" in facts:
        yield f"settings: {facts['settings']}"
    others = [f"{name.replace('_', ' ')}: {value}" for name, value in facts.items() if name not in _OWN_LINES]
    if others:
        yield "; ".join(others)


def rows_of(kind: Kind) -> Rows:
    """One row for each registered part of that kind."""
    return _READERS[kind]()


def _methods() -> Rows:
    from heatcheck.methods import METHODS
    from heatcheck.methods.registry import plain_settings

    return [
        {
            "name": name,
            "family": facts.family,
            "needs": facts.needs.value,
            "models": facts.models,
            "forward_passes": facts.cost,
            "speed": facts.group.speed,
            "settings": in_words(plain_settings(facts.settings())),
            "differentiable": "yes" if facts.differentiable else "no",
            "summary": facts.summary,
            "paper": facts.paper,
        }
        for name, facts in METHODS.items()
    ]


def in_words(settings: Mapping[str, Any]) -> str:
    """Each setting with its default, such as "steps=20"; "automatic" is found from model and image."""
    return ", ".join(f"{name}={_value(value)}" for name, value in settings.items())


def _value(value: object) -> str:
    if isinstance(value, Mapping):
        return f"{{{', '.join(f'{name}: {_value(inner)}' for name, inner in value.items())}}}"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return "automatic" if value is None or value == "" else str(value)


def _metrics() -> Rows:
    from heatcheck.metrics import METRIC_FACTS

    return [
        {
            "name": name,
            "study": facts.study,
            "compares": facts.needs.value,
            "summary": facts.summary,
            "reference": facts.reference,
        }
        for name, facts in METRIC_FACTS.items()
    ]


def _sources() -> Rows:
    from heatcheck.sources import SOURCES

    return [{"name": name, "summary": facts.summary, "needs": facts.needs} for name, facts in SOURCES.items()]


def _triggers() -> Rows:
    from heatcheck.triggers import TRIGGERS, default_settings

    return [
        {
            "name": kind,
            "written": "-".join([kind, *(setting.upper() for setting in facts.short)]),
            "settings": in_words(default_settings(kind)),
            "needs": facts.needs,
            "origin": "in the paper" if facts.published else "beyond the paper",
            "summary": facts.summary,
        }
        for kind, facts in TRIGGERS.items()
    ]


def _models() -> Rows:
    from heatcheck.models import MODELS

    yours = {"family": "any", "size": "any", "smallest": "any", "weights": "yours"}
    return [
        {
            "name": name,
            "family": facts.family,
            "size": f"{'×'.join(map(str, facts.size))} px",
            "smallest": f"{facts.smallest} px",
            "weights": "shipped" if facts.weights else "yours",
            "summary": facts.summary,
        }
        for name, facts in MODELS.items()
    ] + [{"name": "python:package.module:factory", **yours, "summary": "Your own network (--trust-code)"}]


def _studies() -> Rows:
    from heatcheck.running.registry import STUDIES

    return [
        {"name": name, "question": facts.question, "summary": facts.summary, "paper": facts.paper}
        for name, facts in STUDIES.items()
    ]


def _specs() -> Rows:
    from heatcheck.runs.spec import shipped_specs

    return [{"name": name, **_spec_facts(name)} for name in shipped_specs()]


def _spec_facts(name: str) -> dict[str, str]:
    """The study and title of a spec; the error if it is invalid, as one shipped by another package may be."""
    from heatcheck.runs.spec import read_spec

    try:
        envelope = read_spec(name).envelope
    except SpecError as error:
        return {"study": "unreadable", "title": str(error)}
    return {"study": envelope.study, "title": envelope.title}


_INDENT = " " * 4
_COLUMNS: dict[Kind, tuple[str, ...]] = {
    Kind.METHODS: ("name", "family", "needs", "speed"),
    Kind.METRICS: ("name", "compares"),
    Kind.SOURCES: ("name",),
    Kind.TRIGGERS: ("name", "written", "origin"),
    Kind.MODELS: ("name", "family", "size", "smallest", "weights"),
    Kind.STUDIES: ("name", "paper"),
    Kind.SPECS: ("name", "study"),
}
_SENTENCES = ("question", "title", "summary")
_OWN_LINES = (*_SENTENCES, "settings")
_READERS: dict[Kind, Callable[[], Rows]] = {
    Kind.METHODS: _methods,
    Kind.METRICS: _metrics,
    Kind.SOURCES: _sources,
    Kind.TRIGGERS: _triggers,
    Kind.MODELS: _models,
    Kind.STUDIES: _studies,
    Kind.SPECS: _specs,
}
