"""Lists in a spec, of which a single item may stand without brackets: `metrics: iou`."""

from typing import Annotated, Literal, TypeVar

from pydantic import BeforeValidator

Item = TypeVar("Item")


def listed(value: object) -> object:
    """The list, or one item as a list of one; nothing at all stays nothing."""
    return value if value is None or isinstance(value, list | tuple) else [value]


def _all_or_listed(value: object) -> object:
    return value if value == "all" else listed(value)


Several = Annotated[tuple[Item, ...], BeforeValidator(listed)]
AllOrSeveral = Annotated[Literal["all"] | tuple[str, ...], BeforeValidator(_all_or_listed)]
