"""Which group of a fact each case belongs to: what a spec may ask for, and how numbers are cut."""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from pydantic import BaseModel, ConfigDict, field_validator

from heatcheck.core.errors import SpecError
from heatcheck.core.findings import canonical
from heatcheck.core.records import CaseKey
from heatcheck.core.registry import suggest
from heatcheck.core.settings.lists import Several, listed
from heatcheck.studies.localization.vocabulary import NOT_STATED

AGE = "age"
AGE_EDGES = (40.0, 60.0, 80.0)
MOST_NUMBERS = 6  # different numbers that are groups themselves, such as those of sites
MOST_GROUPS = 20
_BLANK = {"", "nan", "na", "n/a", "none", "unknown"}
_LABELS = {1.0: "present", 0.0: "absent", -1.0: "uncertain"}
_DICOM_AGE = re.compile(r"(\d{3})([YMWD])")
_PER_YEAR = {"Y": 1.0, "M": 12.0, "W": 52.18, "D": 365.25}


class Subgroup(BaseModel):
    """A column by which cases are divided; numbers are cut at the edges, each of which begins a group."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    column: str
    edges: Several[float] = ()

    @field_validator("edges")
    @classmethod
    def _rising(cls, value: tuple[float, ...]) -> tuple[float, ...]:
        if any(not first < second for first, second in pairwise(value)):
            raise ValueError("edges must rise, e.g. [40, 60, 80]")
        return value


@dataclass(frozen=True, slots=True)
class Groups:
    """The groups of one column in the order in which they are shown, and the group of each case."""

    column: str
    names: tuple[str, ...]
    of_case: Mapping[str, str]


def by_column(value: object) -> object:
    """The subgroups as a spec writes them, a name or {name: edges}, in the form of `Subgroup`."""
    several = listed(value)
    return [_parsed(one) for one in several] if isinstance(several, list | tuple) else several


def _parsed(one: object) -> object:
    if isinstance(one, str):
        return {"column": one}
    if isinstance(one, Mapping) and len(one) == 1 and "column" not in one:
        ((column, edges),) = one.items()
        return {"column": column, "edges": edges}
    return one


def subgroups_of(asked: Sequence[Subgroup], keys: Sequence[CaseKey], where: str) -> tuple[Groups, ...]:
    """The groups of every column asked for; a SpecError names the columns there are where one is not among them."""
    names = [subgroup.column.lower() for subgroup in asked]
    twice = next((name for number, name in enumerate(names) if name in names[:number]), "")
    if twice:
        raise SpecError(f"{where}: `subgroups` names {twice!r} twice; name it once")
    return tuple(_groups(subgroup, keys, where) for subgroup in asked)


def _groups(subgroup: Subgroup, keys: Sequence[CaseKey], where: str) -> Groups:
    column, stated = _stated(subgroup.column, keys, where)
    texts = {case: "" if text.lower() in _BLANK else text for case, text in stated.items()}
    numbers = {text: _number(text) for text in set(texts.values()) if text}
    words = sorted(text for text, number in numbers.items() if math.isnan(number))
    if subgroup.edges and words:
        raise SpecError(f"{where}: subgroup {column!r} has {words[0]!r}, which no number can cut; leave its edges out")
    edges = subgroup.edges or (AGE_EDGES if column == AGE else ())
    if numbers and not words and (edges or len(numbers) > MOST_NUMBERS):
        if not edges:
            raise SpecError(
                f"{where}: subgroup {column!r} has {len(numbers)} different numbers; say where to cut them, e.g. "
                f"`{{{column}: [{_middle(list(numbers.values())):g}]}}`"
            )
        names = _cut_names(edges)
        group_of = {text: names[sum(number >= edge for edge in edges)] for text, number in numbers.items()}
    else:
        group_of = _by_text(numbers)
        names = tuple(sorted(set(group_of.values()), key=lambda name: (_number(name), name)))
        if words:
            names = tuple(sorted(names))
    if len(names) > MOST_GROUPS:
        raise SpecError(
            f"{where}: subgroup {column!r} has {len(names)} different values, e.g. {names[0]!r}; at most {MOST_GROUPS} "
            "groups can be compared: join some of them"
        )
    of_case = {case: group_of.get(text, NOT_STATED) for case, text in texts.items()}
    present = set(of_case.values())
    return Groups(column, tuple(name for name in (*names, NOT_STATED) if name in present), of_case)


def _stated(asked: str, keys: Sequence[CaseKey], where: str) -> tuple[str, dict[str, str]]:
    """The column's name, and what it says of each case: a fact, or else a label in words."""
    facts = {name.lower(): name for key in keys for name in key.facts}
    findings = {name: None for key in keys for name in key.labels}
    if asked.lower() in facts:
        name = facts[asked.lower()]
        return name, {key.case: key.facts.get(name, "").strip() for key in keys}
    finding = canonical(asked)
    if finding in findings:
        return finding, {key.case: _LABELS.get(key.labels.get(finding, math.nan), "") for key in keys}
    known = [*facts.values(), *findings]
    near = suggest(asked, known)
    hint = f"{near} The columns are" if near.endswith("?") else "the columns are"
    raise SpecError(f"{where}: there is no column {asked!r} to divide cases by; {hint} {', '.join(known)}")


def _number(text: str) -> float:
    """The number, or an age in DICOM's form, such as 045Y; NaN for any other text."""
    age = _DICOM_AGE.fullmatch(text)
    if age:
        return int(age[1]) / _PER_YEAR[age[2]]
    try:
        number = float(text)
    except ValueError:
        return math.nan
    return number if math.isfinite(number) else math.nan


def _middle(numbers: list[float]) -> float:
    return sorted(numbers)[len(numbers) // 2]


def _cut_names(edges: Sequence[float]) -> tuple[str, ...]:
    """The groups between the edges, from the lowest; whole edges name the last whole number of their group."""
    whole = all(edge == int(edge) for edge in edges)
    between = [
        f"{first:g}–{second - 1:g}" if whole else f"{first:g} to below {second:g}" for first, second in pairwise(edges)
    ]
    return f"under {edges[0]:g}", *between, f"{edges[-1]:g} and over"


def _by_text(texts: Mapping[str, float]) -> dict[str, str]:
    """One group for spellings that differ in their case only, named by the first of them."""
    names: dict[str, str] = {}
    return {text: names.setdefault(text.casefold(), text) for text in sorted(texts)}
