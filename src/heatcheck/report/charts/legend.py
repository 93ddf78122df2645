"""The key to the marks of plots: what each mark looks like and what it stands for."""

from dataclasses import dataclass

from markupsafe import Markup

from heatcheck.report.charts import svg

_MIDDLE = 8.0


@dataclass(frozen=True, slots=True)
class Key:
    """A mark, and what it stands for."""

    drawing: Markup
    meaning: str


def key(meaning: str, *marks: Markup, width: int = 38, class_: str = "plot") -> Key:
    """The marks, drawn into a box of 16 pixels' height."""
    return Key(svg.tag("svg", *marks, viewBox=f"0 0 {width} 16", class_=class_, aria_hidden="true"), meaning)


METHOD = key(
    "method, with its 95 % interval",
    svg.line(2, _MIDDLE, 36, _MIDDLE, "whisker method"),
    svg.circle(19, _MIDDLE, 4.2, "point method"),
)


def readers(meaning: str = "human readers") -> Key:
    """The diamond of the human readers."""
    return key(
        meaning, svg.line(2, _MIDDLE, 36, _MIDDLE, "whisker human"), svg.diamond(19, _MIDDLE, 5.2, "point human")
    )


def readers_line(meaning: str = "human readers") -> Key:
    """The dashed line of the human readers across all rows."""
    return key(meaning, svg.line(2, _MIDDLE, 36, _MIDDLE, "human-line"))


def floor_tick(meaning: str) -> Key:
    """The stroke of a floor."""
    return key(meaning, svg.line(19, 1, 19, 15, "floor-tick"))


def floor_square(meaning: str = "floor, a picture made without the model") -> Key:
    """The hollow square of a floor that has an interval of its own."""
    return key(meaning, svg.square(19, _MIDDLE, 3.6, "point family-floor"))


def published(source: str, what: str = "for this method") -> Key:
    """The cross of a published figure."""
    strokes = svg.path([(15, 4), (23, 12)], "published-mark"), svg.path([(15, 12), (23, 4)], "published-mark")
    return key(f"published {what} ({source})", *strokes)


def coloured_dot(meaning: str, colour: str) -> Key:
    """A dot in the colour of a family."""
    return key(meaning, svg.circle(8, _MIDDLE, 5, f"point {colour}"), width=16, class_="plot key")


def coloured_square(meaning: str, colour: str) -> Key:
    """A square in the colour of a family or of floors."""
    return key(meaning, svg.square(8, _MIDDLE, 4, f"point {colour}"), width=16, class_="plot key")


LETTER_VALUES = key(
    "letter values: median; boxes around half of the cases, three quarters, seven eighths and so on, as far as their "
    "number allows",
    *(
        svg.tag("rect", x=x, y=y, width=38 - 2 * x, height=16 - 2 * y, class_="middle-half")
        for x, y in ((2, 6), (6, 5), (10, 4))
    ),
    svg.line(17, 1, 17, 15, "median"),
)
CHOSEN = key(
    "chosen: the highest on validation data",
    svg.path([(14, 3), (24, 13)], "chosen"),
    svg.path([(14, 13), (24, 3)], "chosen"),
)
AS_PREDICTED = key(
    "as the model predicts",
    svg.path([(2, _MIDDLE), (36, _MIDDLE)], "curve"),
    svg.circle(19, _MIDDLE, 5, "point method soft"),
)
AFTER_SCALING = key(
    "after temperature scaling",
    svg.path([(2, _MIDDLE), (36, _MIDDLE)], "curve after"),
    svg.diamond(19, _MIDDLE, 5.2, "point after"),
)
