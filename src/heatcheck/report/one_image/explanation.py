"""Explanations of single images: as HTML for a notebook, or as one picture."""

import base64
import io
from dataclasses import dataclass

from markupsafe import Markup
from PIL import Image, ImageDraw, ImageFont

from heatcheck.report.charts.svg import tag
from heatcheck.report.one_image.overlays import TOP, scale

_STYLE = """
.heatcheck-explained{font:14px/1.4 system-ui,sans-serif;color:inherit;max-width:100%;overflow-x:auto}
.heatcheck-explained table{border-collapse:separate;border-spacing:12px 8px;margin:0;background:none}
.heatcheck-explained td,.heatcheck-explained th{padding:0;border:0;text-align:left;vertical-align:top;background:none;
font-weight:400}
.heatcheck-explained img{display:block;max-width:none;height:auto;margin:0 0 4px}
.heatcheck-explained b{font-weight:600}
.heatcheck-explained p{margin:4px 12px;max-width:60em}
.heatcheck-explained .few{opacity:.8;font-size:13px}
.heatcheck-explained .scale{display:flex;gap:8px;align-items:center;flex-wrap:wrap}
.heatcheck-explained .scale img{margin:0;width:160px;height:12px}
"""


@dataclass(frozen=True, slots=True)
class Tile:
    """One target's map of one image, with its caption."""

    title: str
    facts: tuple[str, ...]
    picture: Image.Image
    words: str  # for whoever cannot see the picture


@dataclass(frozen=True, slots=True)
class ImageTiles:
    """One image: without a map, then one tile per target."""

    name: str
    bare: Image.Image
    tiles: tuple[Tile, ...]


@dataclass(frozen=True, slots=True)
class Sheet:
    """One method on some images."""

    method: str
    model: str
    strips: tuple[ImageTiles, ...]
    remarks: tuple[str, ...] = ()


_SCALE = ("nothing", f"strongest {100 - TOP:g} %")
_MEANING = (
    "Colours show what speaks for the target. Each map has a scale of its own: two maps' colours cannot be compared."
)


def as_html(sheet: Sheet) -> str:
    """A piece of a page that takes its colours from the page around it, light or dark."""
    rows = [tag("tr", _bare(strip), *(_cell(tile, strip.name) for tile in strip.tiles)) for strip in sheet.strips]
    bar = _image(scale(320, 24), "Colour scale from grey over violet and red to yellow")
    legend = tag("p", tag("span", _SCALE[0]), bar, tag("span", _SCALE[1]), class_="scale")
    remarks = [tag("p", remark, class_="few") for remark in (_MEANING, *sheet.remarks)]
    title = tag("p", tag("b", sheet.method), f" on {sheet.model}")
    style = Markup(f"<style>{_STYLE}</style>")  # noqa: S704 - a constant
    return str(
        tag("div", style, title, tag("table", tag("tbody", *rows)), legend, *remarks, class_="heatcheck-explained")
    )


def _bare(strip: ImageTiles) -> Markup:
    below = tag("div", tag("b", strip.name), style=_no_wider_than(strip.bare))
    return tag("th", _image(strip.bare, f"{strip.name}, without a map"), below, scope="row")


def _cell(tile: Tile, image: str) -> Markup:
    facts = Markup("<br>").join(tile.facts)
    below = tag(
        "div",
        tag("b", tile.title),
        Markup("<br>"),
        tag("span", facts, class_="few"),
        style=_no_wider_than(tile.picture),
    )
    return tag("td", _image(tile.picture, f"Map for {tile.title} over {image}: {tile.words}"), below)


def _no_wider_than(picture: Image.Image) -> str:
    return f"max-width:{picture.width}px;overflow-wrap:anywhere"


def _image(picture: Image.Image, words: str) -> Markup:
    buffer = io.BytesIO()
    picture.save(buffer, "png", optimize=True)
    source = f"data:image/png;base64,{base64.b64encode(buffer.getvalue()).decode()}"
    image = tag("img", src=source, alt=words, width=picture.width, height=picture.height)
    return Markup(image.removesuffix("</img>"))  # noqa: S704 - escaped by tag; an image has no end


_MARGIN, _LINE, _INK, _PAPER, _FAINT = 16, 18, (25, 25, 25), (255, 255, 255), (90, 90, 90)


def as_picture(sheet: Sheet) -> Image.Image:
    """The same as one picture, black on white."""
    columns = max(len(strip.tiles) for strip in sheet.strips) + 1
    pictures = [[strip.bare, *(tile.picture for tile in strip.tiles)] for strip in sheet.strips]
    widths = [max(row[c].width for row in pictures if c < len(row)) for c in range(columns)]
    lines = 2 + max(len(tile.facts) for strip in sheet.strips for tile in strip.tiles)
    heights = [max(picture.height for picture in row) + lines * _LINE for row in pictures]
    width = sum(widths) + _MARGIN * (columns + 1)
    title = _wrapped(f"{sheet.method} on {sheet.model}", width, 16)
    foot = [line for text in (_MEANING, *sheet.remarks) for line in _wrapped(text, width, 13)]
    top = _MARGIN + len(title) * 22
    paper = Image.new("RGB", (width, top + sum(heights) + (len(foot) + 2) * _LINE + _MARGIN), _PAPER)
    pen = ImageDraw.Draw(paper)
    for number, line in enumerate(title):
        pen.text((_MARGIN, _MARGIN // 2 + number * 22), line, _INK, _font(16))
    for row, strip, height in zip(pictures, sheet.strips, heights, strict=True):
        captions = [(strip.name, ()), *((tile.title, tile.facts) for tile in strip.tiles)]
        left, base = _MARGIN, top + height - lines * _LINE
        for picture, (heading, facts), room in zip(row, captions, widths, strict=False):
            paper.paste(picture, (left, base - picture.height))
            for number, line in enumerate((heading, *facts)):
                size, ink = (14, _INK) if number == 0 else (13, _FAINT)
                pen.text((left, base + 2 + number * _LINE), _clipped(line, room, size), ink, _font(size))
            left += room + _MARGIN
        top += height
    room = round(_font(13).getlength(_SCALE[0])) + 8
    pen.text((_MARGIN, top - 3), _SCALE[0], _FAINT, _font(13))
    paper.paste(scale(160, 12), (_MARGIN + room, top))
    pen.text((_MARGIN + room + 168, top - 3), _SCALE[1], _FAINT, _font(13))
    for number, line in enumerate(foot):
        pen.text((_MARGIN, top + _LINE * (number + 1)), line, _FAINT, _font(13))
    return paper


def _font(size: int) -> ImageFont.FreeTypeFont | ImageFont.ImageFont:
    return ImageFont.load_default(size)


def _clipped(text: str, room: int, size: int) -> str:
    """The text, shortened where it would run into its neighbour."""
    font = _font(size)
    while len(text) > 1 and font.getlength(text) > room:
        text = f"{text.rstrip('…')[:-1]}…"
    return text


def _wrapped(text: str, width: int, size: int) -> list[str]:
    font, lines = _font(size), [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if font.getlength(longer) > width - 2 * _MARGIN and lines[-1]:
            lines.append(word)
        else:
            lines[-1] = longer
    return lines
