"""Writing on the film: text burned in by a workstation, and the lead letter of the patient's side."""

from dataclasses import dataclass
from typing import Annotated, Literal

import numpy as np
from jaxtyping import Float
from pydantic import AfterValidator

from heatcheck.core.records import Image
from heatcheck.triggers.dots import HEIGHT, KNOWN, WIDTH, dot_matrix
from heatcheck.triggers.ink import FINE, Layer, Stroke, curve, downsampled, drawn, stamp_of
from heatcheck.triggers.placing import Corner, Size, corner_box, scaled
from heatcheck.triggers.registry import trigger
from heatcheck.triggers.stamp import Stamp

ANY_DIGIT = "#"


def _writable(text: str) -> str:
    unknown = sorted(set(text) - KNOWN - {ANY_DIGIT})
    if unknown or not text.strip():
        raise ValueError(
            f"text must be capitals, digits, spaces, : - / . and # for any digit, not {''.join(unknown)!r}"
        )
    return text


@trigger(
    "text",
    label="Burned-in text",
    summary="White letters and digits that an old workstation wrote into the image, such as a patient's number",
)
@dataclass(frozen=True)
class BurnedInText:
    """One line of dot letters in a corner, white with a dark shadow so that it is legible on any background."""

    text: Annotated[str, AfterValidator(_writable)] = "ID ####"  # each # is a random digit on every image
    size: Size = 14  # height of the letters
    corner: Corner = "top_left"

    def describe(self) -> str:
        """Kind and text."""
        return f"Burned-in text, {self.text}"

    def extent(self, shape: tuple[int, int]) -> tuple[int, int]:
        """Letters, shadow and the margins."""
        height, width = self._text_size(shape)
        return height + 1 + 2 * self._margin(shape), width + 1 + 2 * self._margin(shape)

    def draw(self, image: Image, generator: np.random.Generator, gradient: Image | None) -> Stamp:  # noqa: ARG002
        """The text with random digits."""
        shape = (image.shape[1], image.shape[2])
        digits = iter(generator.integers(10, size=len(self.text)).tolist())
        text = "".join(str(next(digits)) if sign == ANY_DIGIT else sign for sign in self.text)
        height, width = self._text_size(shape)
        dot = -(-FINE * height // HEIGHT)
        letters = downsampled(np.kron(dot_matrix(text), np.full((dot, dot), 255, np.uint8)), (height, width))
        box = corner_box(self.corner, (height + 1, width + 1), shape, self._margin(shape))
        light, dark = np.zeros(shape, np.float32), np.zeros(shape, np.float32)
        light[box][:-1, :-1] = letters
        dark[box][1:, 1:] = 0.75 * letters
        return stamp_of(image, Layer(dark, 0.0), Layer(light, 1.0))

    def _text_size(self, shape: tuple[int, int]) -> tuple[int, int]:
        """Height and width of the line of letters."""
        height = scaled(self.size, shape)
        return height, max(1, round((len(self.text) * (WIDTH + 1) - 1) * height / HEIGHT))

    @staticmethod
    def _margin(shape: tuple[int, int]) -> int:
        return scaled(8, shape)


@trigger(
    "letter",
    label="Laterality letter",
    summary="The lead letter that marks the patient's left or right side, placed on the cassette by hand",
)
@dataclass(frozen=True)
class LateralityLetter:
    """A white letter in the lower part of its side of the image, slightly rotated and moved on every image.

    Most films already have such a letter in an upper corner, which a planted one there could cover.
    """

    letter: Literal["L", "R"] = "L"
    size: Size = 20  # its height

    def describe(self) -> str:
        """Kind and letter."""
        return f"Laterality letter {self.letter}"

    def extent(self, shape: tuple[int, int]) -> tuple[int, int]:
        """The square in which the letter is rotated and moved."""
        side = -(-scaled(self.size, shape) * 3 // 2)
        return side, side

    def draw(self, image: Image, generator: np.random.Generator, gradient: Image | None) -> Stamp:  # noqa: ARG002
        """The letter, rotated by at most 10°."""
        shape = (image.shape[1], image.shape[2])
        side, height = self.extent(shape)[0], scaled(self.size, shape)
        corner = np.array([0.78 * (shape[0] - side), shape[1] - side if self.letter == "L" else 0])
        middle = corner + side / 2 + generator.uniform(-0.1, 0.1, 2) * height
        strokes = _rotated_letter(self.letter, height, middle, np.radians(generator.uniform(-10, 10)))
        return stamp_of(image, Layer(drawn(strokes, shape), 1.0))


def _rotated_letter(letter: str, height: int, middle: Float[np.ndarray, "2"], angle: float) -> list[Stroke]:
    """The strokes of a letter of that height around a point."""
    width = 0.18 * height
    rotation = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return [Stroke((path - (0.5, 0.32)) * (height - width) @ rotation.T + middle, width) for path in _LETTERS[letter]]


# centre lines of the strokes, (row, column) in a letter of height 1
_STEM = np.array([(0.0, 0.0), (1.0, 0.0)])
_BOWL = curve(np.array([(0.0, 0.32), (0.06, 0.54), (0.26, 0.64), (0.46, 0.54), (0.52, 0.32)]), 24)
_LETTERS = {
    "L": [_STEM, np.array([(1.0, 0.0), (1.0, 0.64)])],
    "R": [
        _STEM,
        np.concatenate([[(0.0, 0.0)], _BOWL, [(0.52, 0.0)]]),
        np.array([(0.52, 0.3), (1.0, 0.64)]),
    ],
}
