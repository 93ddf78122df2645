"""A sheet of small pictures with captions, the experts' marks outlined."""

import io
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

import cv2
import numpy as np
from jaxtyping import Bool, Float, UInt8
from PIL import Image, ImageDraw, ImageFont

SIDE = 224  # pixels of the longer side of a tile
ACROSS = 4  # tiles in a row, or as many as one image has pictures
MOST_ACROSS = 6
GAP = 8
_SMALL, _LARGE = 13, 16  # of letters
_BACK, _TEXT, _FAINT, _MARK, _HALO = "#1c1c1e", "#f2f2f2", "#b8b8bd", (255, 214, 0), (0, 0, 0)


@dataclass(frozen=True, slots=True)
class Tile:
    """One picture in colours from 0 to 1, the mask that is outlined on it, and two lines below."""

    picture: Float[np.ndarray, "row column rgb"]
    mask: Bool[np.ndarray, "row column"]
    name: str
    words: str


@dataclass(frozen=True, slots=True)
class Block:
    """The tiles of one model with a caption; `pictures` tiles belong to each image."""

    title: str
    lines: tuple[str, ...]
    tiles: tuple[Tile, ...]
    pictures: int = 1

    @property
    def across(self) -> int:
        """The number of tiles in a row."""
        return min(self.pictures, MOST_ACROSS) if self.pictures > 1 else ACROSS


def contact_sheet(
    blocks: Sequence[Block], title: str = "What the network is given"
) -> UInt8[np.ndarray, "row column rgb"]:
    """The blocks below one another; the same blocks give the same pixels."""
    width = GAP + max(block.across for block in blocks) * (SIDE + GAP)
    parts = [_text_part([(title, _LARGE, _TEXT)], width)]
    for block in blocks:
        lines = [(block.title, _LARGE, _TEXT)] if block.title else []
        parts.append(_text_part([*lines, *((line, _SMALL, _FAINT) for line in block.lines)], width))
        parts += [
            _row(block.tiles[start : start + block.across], width) for start in range(0, len(block.tiles), block.across)
        ]
    sheet = Image.new("RGB", (width, sum(part.height for part in parts) + GAP), _BACK)
    top = 0
    for part in parts:
        sheet.paste(part, (0, top))
        top += part.height
    return np.asarray(sheet)


def _text_part(lines: Sequence[tuple[str, int, str]], width: int) -> Image.Image:
    """Lines of text of these sizes and colours, broken where they are too long."""
    broken = [(part, size, colour) for text, size, colour in lines for part in _broken(text, _font(size), width)]
    part = Image.new("RGB", (width, GAP + sum(size + 5 for _, size, _ in broken)), _BACK)
    draw, top = ImageDraw.Draw(part), GAP
    for text, size, colour in broken:
        draw.text((GAP, top), text, fill=colour, font=_font(size))
        top += size + 5
    return part


def _broken(text: str, font: ImageFont.FreeTypeFont, width: int) -> list[str]:
    lines = [""]
    for word in text.split():
        longer = f"{lines[-1]} {word}".strip()
        if font.getlength(longer) <= width - 2 * GAP or not lines[-1]:
            lines[-1] = longer
        else:
            lines.append(word)
    return lines


def _row(tiles: Sequence[Tile], width: int) -> Image.Image:
    pictures = [_picture(tile) for tile in tiles]
    tall = max(picture.height for picture in pictures)
    row = Image.new("RGB", (width, GAP + tall + 2 * (_SMALL + 5)), _BACK)
    draw, font = ImageDraw.Draw(row), _font(_SMALL)
    for number, (tile, picture) in enumerate(zip(tiles, pictures, strict=True)):
        left = GAP + number * (SIDE + GAP)
        row.paste(picture, (left + (SIDE - picture.width) // 2, GAP + (tall - picture.height) // 2))
        for line, (text, colour) in enumerate(
            ((_last_part(tile.name, font), _TEXT), (_first_part(tile.words, font), _FAINT))
        ):
            draw.text((left, GAP + tall + 3 + line * (_SMALL + 4)), text, fill=colour, font=font)
    return row


def _picture(tile: Tile) -> Image.Image:
    """The picture with its longer side at `SIDE` and the outlines of its mask; small grids keep their pixels."""
    rows, columns = tile.mask.shape
    factor = SIDE / max(rows, columns)
    size = (max(1, round(columns * factor)), max(1, round(rows * factor)))
    way = cv2.INTER_AREA if factor < 1 else cv2.INTER_NEAREST if factor >= 2 else cv2.INTER_CUBIC
    colours = np.round(np.clip(cv2.resize(tile.picture.astype(np.float32), size, interpolation=way), 0, 1) * 255)
    drawn = np.ascontiguousarray(colours, np.uint8)
    mask = cv2.resize(tile.mask.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST)
    outlines, _ = cv2.findContours(mask, cv2.RETR_LIST, cv2.CHAIN_APPROX_NONE)
    around = cv2.drawContours(drawn.copy(), outlines, -1, _HALO, 3)  # so that they are seen on white, too
    faint = cv2.addWeighted(drawn, 0.5, around, 0.5, 0)
    return Image.fromarray(cv2.drawContours(faint, outlines, -1, _MARK, 1))


def _last_part(text: str, font: ImageFont.FreeTypeFont) -> str:
    """The end of a name that fits below a tile: that is where names of images differ."""
    shown = text
    while font.getlength(shown) > SIDE and len(shown) > 2:
        shown = f"\N{HORIZONTAL ELLIPSIS}{shown.removeprefix(chr(0x2026))[1:]}"
    return shown


def _first_part(text: str, font: ImageFont.FreeTypeFont) -> str:
    shown = text
    while font.getlength(shown) > SIDE and len(shown) > 2:
        shown = f"{shown.removesuffix(chr(0x2026))[:-1]}\N{HORIZONTAL ELLIPSIS}"
    return shown


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    """DejaVu Sans, which comes with Matplotlib and has the letters of most languages."""
    file = resources.files("matplotlib") / "mpl-data" / "fonts" / "ttf" / "DejaVuSans.ttf"
    return ImageFont.truetype(io.BytesIO(file.read_bytes()), size)
