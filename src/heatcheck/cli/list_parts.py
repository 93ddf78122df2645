"""`heatcheck list`: what a spec can name."""

import json
from collections.abc import Callable
from enum import StrEnum
from typing import Annotated, Any

import typer

from heatcheck.cli.options import AsJson, Debug
from heatcheck.core.errors import SpecError

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
    kind: Annotated[Kind, typer.Argument(help="What to list.")], as_json: AsJson = False, debug: Debug = False
) -> None:
    """List the methods, metrics, sources and other parts that a spec can name, with a short description of each."""
    rows = rows_of(kind)
    if as_json:
        typer.echo(json.dumps(rows, indent=1))
        return
    from rich.console import Console
    from rich.padding import Padding
    from rich.text import Text

    console = Console(highlight=False)
    for row in rows:
        facts = [
            f"{_PREFIXES.get(name, '')}{value}"
            for name, value in row.items()
            if name not in _LONG and name != "name" and value
        ]
        console.print(Text.assemble((str(row["name"]), "bold"), "  ", ("  ".join(facts), "dim")), soft_wrap=True)
        for name in _LONG:
            if name in row:
                console.print(Padding(Text(str(row[name])), (0, 0, 0, 4)))


def rows_of(kind: Kind) -> Rows:
    """One row for each registered part of that kind."""
    return _READERS[kind]()


def _methods() -> Rows:
    from heatcheck.methods import METHODS

    return [
        {
            "name": name,
            "family": facts.family,
            "needs": facts.needs.value,
            "models": facts.models,
            "forward_passes": facts.cost,
            "speed": facts.group.speed,
            "differentiable": "yes" if facts.differentiable else "no",
            "summary": facts.summary,
            "paper": facts.paper,
        }
        for name, facts in METHODS.items()
    ]


def _metrics() -> Rows:
    from heatcheck.metrics import METRIC_FACTS

    return [
        {"name": name, "compares": facts.needs.value, "summary": facts.summary, "reference": facts.reference}
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
            "settings": ", ".join(f"{name}={value}" for name, value in default_settings(kind).items()),
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


_LONG = ("question", "summary", "title")  # facts printed on a line of their own
_PREFIXES = {  # for facts that need a word of explanation
    "forward_passes": "forward passes: ",
    "differentiable": "differentiable: ",
    "needs": "needs ",
    "models": "models: ",
    "size": "size: ",
    "smallest": "smallest side: ",
    "weights": "weights: ",
    "written": "written ",
    "settings": "settings: ",
}
_READERS: dict[Kind, Callable[[], Rows]] = {
    Kind.METHODS: _methods,
    Kind.METRICS: _metrics,
    Kind.SOURCES: _sources,
    Kind.TRIGGERS: _triggers,
    Kind.MODELS: _models,
    Kind.STUDIES: _studies,
    Kind.SPECS: _specs,
}
