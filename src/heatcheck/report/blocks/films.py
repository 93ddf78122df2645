"""One image with several maps beside it, the truth outlined on each: the picture that all pages and galleries share."""

from dataclasses import dataclass
from typing import ClassVar


@dataclass(frozen=True, slots=True)
class Outline:
    """A line over an image: path data in the image's pixels, and the class of its style (truth, readers, region …)."""

    style: str
    path: str


@dataclass(frozen=True, slots=True)
class Film:
    """The image once more, with a map over it."""

    label: str  # whose map it is; what the picture shows, where it has none
    described: str  # for those who cannot see it
    heat: str = ""  # the map as a data link; empty for the image alone
    outlines: tuple[Outline, ...] = ()
    sign: str = ""  # ✓, ✕ or ◐, with `caption` saying what it means
    caption: str = ""


@dataclass(frozen=True, slots=True)
class FilmStrip:
    """One case: its image, held once, and a film for each method."""

    anchor: str  # unique on the page
    title: str
    case: str  # the line below the title: case, probability, orientation
    size: tuple[float, float]
    image: str  # data link; empty where another strip holds it
    films: tuple[Film, ...]
    note: str = ""  # why this case is shown
    link: str = ""  # the anchor of the gallery
    image_of: str = ""  # the anchor of the strip that holds the image, where another one does
    kind: ClassVar[str] = "films"  # as a block of a section

    @property
    def holder(self) -> str:
        """The anchor of the strip that holds the image."""
        return self.image_of or self.anchor

    @property
    def weight(self) -> int:
        """About how many bytes the strip adds to a page."""
        paths = sum(len(line.path) for film in self.films for line in film.outlines)
        return len(self.image) + sum(len(film.heat) + 400 for film in self.films) + paths
