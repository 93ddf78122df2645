"""Settings in words: what the reference says of a part or a spec."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from pydantic import BaseModel, Field, PositiveInt

from heatcheck.core.settings.described import described, type_in_words

Share = Annotated[float, Field(ge=0, le=1)]


class Inner(BaseModel):
    """Settings of a setting."""

    rate: float = 0.5  # of everything
    deep: bool = True


class Outer(BaseModel):
    """A spec."""

    source: dict[str, Any]  # what is read
    folder: Path | None = None  # where
    count: int = Field(3, ge=1)  # how often
    choice: Literal["a", "b"] | None = None  # which
    inner: Inner = Inner(rate=0.25)  # more
    several: tuple[Share, ...] = (  # between the brackets
        0.1,
        0.25,
    )
    seed: int = 0


@dataclass(frozen=True)
class Base:
    """Settings that another class extends."""

    first: PositiveInt = 1  # inherited


@dataclass(frozen=True)
class Method(Base):
    """Settings of a method."""

    second: tuple[float, float] = (0.0, 1.0)  # a range
    donors: Any = field(default=None, metadata={"from_study": True})


def rows(settings):
    return {each.name: (each.takes, each.default, each.meaning) for each in described(settings)}


def test_a_spec_is_described_by_its_model_and_the_comments_beside_it():
    assert rows(Outer) == {
        "source": ("mapping", "required", "what is read"),
        "folder": ("path", "none", "where"),
        "count": ("whole number from 1", "3", "how often"),
        "choice": ("`a` or `b`", "automatic", "which"),
        "inner": ("settings", "rate: 0.25", "more"),
        "several": ("list of number from 0 to 1", "[0.1, 0.25]", "between the brackets"),
        "seed": ("whole number", "0", "the random seed"),  # a name that means the same everywhere
    }
    assert next(each.parts for each in described(Outer) if each.name == "inner") == (Inner,)
    assert rows(Inner)["deep"] == ("yes or no", "yes", "")


def test_a_part_is_described_with_what_it_inherits_and_without_what_a_study_supplies():
    assert rows(Method) == {
        "first": ("whole number above 0", "1", "inherited"),
        "second": ("two values, each number", "[0, 1]", "a range"),
    }


@pytest.mark.parametrize(
    ("annotation", "words"),
    [
        (int | tuple[int, ...] | None, "whole number or list of whole number"),
        (str | Literal["all"], "text or `all`"),
        (dict[str, float] | float, "mapping or number"),
        (Any, "anything"),
    ],
)
def test_types_are_plain_words(annotation, words):
    assert type_in_words(annotation) == words
