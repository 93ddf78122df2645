"""What is wrong with a setting, in plain words instead of those of the library that checks it."""

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import ValidationError

_ASKED: Mapping[str, str] = {  # by the library's kinds of error
    "string": "text",
    "int": "a whole number",
    "float": "a number",
    "finite": "a finite number",
    "bool": "true or false",
    "tuple": "a list, such as [1, 2]",
    "list": "a list, such as [1, 2]",
    "mapping": "names with values",
    "dict": "names with values",
    "model": "names with values",
}
_OF_LIBRARY = re.compile(r"(constrained-|function-|.*\[)|(float|int|str|bool)$")  # its name for one of several types
_BOUNDS: Mapping[str, tuple[str, str]] = {
    "greater_than": ("above", "gt"),
    "greater_than_equal": ("at least", "ge"),
    "less_than": ("below", "lt"),
    "less_than_equal": ("at most", "le"),
}


def in_plain_words(problem: Mapping[str, Any]) -> str:
    """What one error of a `ValidationError` asks for, such as "must be at least 1, got 0"."""
    kind, given = str(problem["type"]), problem["input"]
    limits = problem.get("ctx", {})
    if kind in _BOUNDS:
        word, limit = _BOUNDS[kind]
        message = f"must be {word} {_short(limits[limit])}"
    elif kind == "literal_error":
        message = f"must be {limits['expected']}"
    elif kind == "too_short":
        message = f"needs at least {limits['min_length']} {_values(limits['min_length'])}"
    elif kind in {"too_long", "tuple_too_long"}:
        message = f"takes at most {limits['max_length']} {_values(limits['max_length'])}"
    elif kind == "missing":
        return "is missing; add it"
    elif kind.split("_", maxsplit=1)[0] in _ASKED:
        message = f"must be {_ASKED[kind.split('_', maxsplit=1)[0]]}"
    else:
        message = str(problem["msg"]).removeprefix("Value error, ").replace("Input should be", "must be")
    is_short = isinstance(given, str | float | int | list | tuple)  # a whole part would bury the sentence
    return (
        f"{message}, got {given!r}" if is_short and not (isinstance(given, str) and repr(given) in message) else message
    )


def key_of(problem: Mapping[str, Any]) -> str:
    """Where the setting stands, such as "model.contract.size"."""
    return ".".join(str(part) for part in problem["loc"] if not _OF_LIBRARY.match(str(part)))


def blank_keys(error: ValidationError) -> Sequence[str]:
    """The settings behind whose colon nothing is written, each once."""
    blank = [key_of(each) for each in error.errors() if each["type"] != "missing" and each["input"] is None]
    return list(dict.fromkeys(filter(None, blank)))


def of_value(error: ValidationError) -> str:
    """The first error of a single value or part, with the setting that it is about, if it has several."""
    problem = error.errors()[0]
    return ": ".join(filter(None, (key_of(problem), in_plain_words(problem))))


def _short(limit: object) -> str:
    return f"{limit:g}" if isinstance(limit, float) else str(limit)


def _values(number: int) -> str:
    return "value" if number == 1 else "values"
