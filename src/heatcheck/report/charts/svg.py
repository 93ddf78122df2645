"""Inline SVG by hand: escaped tags, and pictures that a screen reader can announce. Colours come from CSS classes."""

from collections.abc import Iterable

from markupsafe import Markup, escape

Attribute = str | float


def tag(name: str, *children: str, **attributes: Attribute) -> Markup:
    """One element; `class_` gives the attribute class, an underscore inside a name becomes a hyphen."""
    pairs = (f' {key.rstrip("_").replace("_", "-")}="{escape(_text(value))}"' for key, value in attributes.items())
    inner = Markup("").join(children)
    return Markup(f"<{name}{''.join(pairs)}>{inner}</{name}>")  # noqa: S704 - every part was escaped above


def _text(value: Attribute) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".") if isinstance(value, float) else str(value)


def picture(size: tuple[float, float], title: str, description: str, children: Iterable[Markup]) -> Markup:
    """An SVG image that scales with the page and says what it shows."""
    width, height = size
    words = tag("title", title), tag("desc", description)
    box = f"0 0 {_text(float(width))} {_text(float(height))}"
    return tag("svg", *words, *children, viewBox=box, role="img", class_="plot")


def line(x1: float, y1: float, x2: float, y2: float, class_: str) -> Markup:
    """A straight stroke."""
    return tag("line", x1=float(x1), y1=float(y1), x2=float(x2), y2=float(y2), class_=class_)


def words(x: float, y: float, text: str, class_: str = "", anchor: str = "start") -> Markup:
    """A line of text."""
    return tag("text", text, x=float(x), y=float(y), class_=class_, text_anchor=anchor)


def circle(x: float, y: float, radius: float, class_: str) -> Markup:
    """A disc."""
    return tag("circle", cx=float(x), cy=float(y), r=float(radius), class_=class_)


def path(points: Iterable[tuple[float, float]], class_: str, *, closed: bool = False) -> Markup:
    """A line through the points."""
    route = "L".join(f"{_text(float(x))} {_text(float(y))}" for x, y in points)
    return tag("path", d=f"M{route}{'Z' if closed else ''}", class_=class_)


def diamond(x: float, y: float, radius: float, class_: str) -> Markup:
    """A square on its corner."""
    return path([(x, y - radius), (x + radius, y), (x, y + radius), (x - radius, y)], class_, closed=True)


def square(x: float, y: float, half: float, class_: str) -> Markup:
    """A square around its centre."""
    return path([(x - half, y - half), (x + half, y - half), (x + half, y + half), (x - half, y + half)],
                class_, closed=True)  # fmt: skip


def dots(positions: Iterable[tuple[float, float]], class_: str) -> Markup:
    """Many dots as one path of strokes without length: a tenth of the bytes of as many circles."""
    return tag("path", d="".join(f"M{x:.1f} {y:.1f}h0" for x, y in positions), class_=class_)


def group(title: str, *children: Markup) -> Markup:
    """Marks that belong together, with a title that appears when pointed at."""
    return tag("g", tag("title", title), *children)


def shortened(text: str, length: int) -> str:
    """The text, cut with an ellipsis when it is longer than there is room for."""
    return text if len(text) <= length else text[: length - 1].rstrip() + "…"
