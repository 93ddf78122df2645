"""The maps of one method for some images: as values, as pictures and as files."""

import io
import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heatcheck.core.errors import InputError
from heatcheck.core.geometry import Cells, Placement
from heatcheck.core.tensors import Images, Logits, MapErrors, MapValues, Targets
from heatcheck.maps.channels import CHANNEL_RULES
from heatcheck.maps.files import nifti_bytes, npz_bytes, write_atomically
from heatcheck.maps.resize import to_image
from heatcheck.methods import METHODS
from heatcheck.report.one_image.explanation import ImageTiles, Sheet, Tile, as_html, as_picture
from heatcheck.report.one_image.overlays import bare, draw

NOTEBOOK_ROWS = 8  # images that a notebook shows, since each picture is stored in its file
_ERROR_MEANING = "error: how far the sum of the map is from the score it should explain"


@dataclass(frozen=True, slots=True)
class ShownImages:
    """The images as they are shown, and the position of the model's grid on them."""

    images: Float[np.ndarray, "batch channel *space"]
    placement: Placement
    names: tuple[str, ...]
    affine: Float[np.ndarray, "4 4"] | None = None  # from voxels to millimetres in the patient


@dataclass(frozen=True, eq=False, repr=False)  # tensors cannot be compared with ==, and are too long to print
class Explanation:
    """One method's maps of some images; a notebook shows it as pictures.

    `values` are signed and on the grid of the method; `on_image` resizes them to the images.
    """

    method: str
    settings: Mapping[str, Any]
    model: str
    outputs: tuple[str, ...]
    values: MapValues
    errors: MapErrors  # completeness or conservation error; NaN if the method has none
    targets: Targets
    scores: Logits  # of the targets, before sigmoid or softmax
    probabilities: Logits | None  # if the model defines how its scores become probabilities
    shown: ShownImages
    cells: Cells | None = None  # where the grid of `values` lies; None where it spans the model's
    note: str = ""
    seed: int = 0
    seconds: float = 0.0

    def __repr__(self) -> str:
        images, targets = self.targets.shape
        return f"<{self.method} on {self.model}: {images} images, {targets} targets each>"

    def __len__(self) -> int:
        """The number of images."""
        return len(self.values)

    def __getitem__(self, number: int) -> "Explanation":
        """The explanation of one image."""
        if not isinstance(number, int):
            raise TypeError(f"the index must be the number of an image, got {number!r}; use a loop for several")
        index = range(len(self))[number]
        rows = slice(index, index + 1)
        shown = replace(self.shown, images=self.shown.images[rows], names=self.shown.names[rows])
        return replace(self._part(rows, slice(None)), shown=shown)

    def __iter__(self) -> Iterator["Explanation"]:
        """One explanation per image."""
        return (self[number] for number in range(len(self)))

    def only(self, target: int) -> "Explanation":
        """The explanation of the target in that column alone."""
        return self._part(slice(None), slice(target, target + 1))

    def _part(self, rows: slice, columns: slice) -> "Explanation":
        """The explanation of some images and targets, still with all images in `shown`."""
        return replace(
            self,
            values=self.values[rows, columns],
            errors=self.errors[rows, columns],
            targets=self.targets[rows, columns],
            scores=self.scores[rows, columns],
            probabilities=None if self.probabilities is None else self.probabilities[rows, columns],
        )

    @property
    def image(self) -> Images:
        """The images as they are shown, [batch, channel, *space]."""
        return torch.from_numpy(self.shown.images)

    def on_image(self, channels: str = "positive") -> Float[np.ndarray, "batch target *space"]:
        """The maps on the images' grid, with one value per position.

        Args:
            channels: "positive" keeps positive values, "absolute" takes absolute values; both are means over the
                channels.
        """
        flat = CHANNEL_RULES[channels](self.values)
        return np.stack([to_image(maps, self.shown.placement, self.cells) for maps in flat])

    def save(self, path: Path | str) -> Path:
        """Write a complete file of the format that its ending names, and return its path.

        .npz: all data, without pickles (`settings` is JSON). .nii and .nii.gz: the map of one image with the grid and
        affine of that image; several targets form the fourth axis, in the order of `targets`. .png: the pictures.
        """
        path = Path(path)
        name = path.name.lower()
        if name.endswith(".npz"):
            content = self._as_npz()
        elif name.endswith((".nii", ".nii.gz")):
            content = self._as_nifti(compressed=name.endswith(".gz"))
        elif name.endswith(".png"):
            buffer = io.BytesIO()
            as_picture(self._sheet()).save(buffer, "png", optimize=True)
            content = buffer.getvalue()
        else:
            raise InputError(f"{path.name}: the ending selects the file format; use .npz, .nii, .nii.gz or .png")
        write_atomically(path, content)
        return path

    def _as_npz(self) -> bytes:
        optional = {} if self.probabilities is None else {"probabilities": self.probabilities.numpy()}
        return npz_bytes(
            values=self.values.numpy(),
            on_image=self.on_image(),
            targets=self.targets.numpy(),
            scores=self.scores.numpy(),
            errors=self.errors.numpy(),
            image=self.shown.images,
            outputs=self.outputs,
            method=self.method,
            settings=json.dumps(dict(self.settings), sort_keys=True),
            model=self.model,
            note=self.note,
            seed=self.seed,
            **optional,
        )

    def _as_nifti(self, *, compressed: bool) -> bytes:
        if len(self) != 1:
            raise InputError(f"NIfTI holds one image, got {len(self)}; save them one by one: explanation[0].save")
        maps = np.moveaxis(self.on_image()[0], 0, -1)
        if maps.ndim == 3:
            maps = maps[:, :, None]
        maps = maps[..., 0] if maps.shape[-1] == 1 else maps
        return nifti_bytes(maps, self.shown.affine, compressed=compressed, about=f"heatcheck {self.method}")

    def _repr_html_(self) -> str:
        return as_html(self._sheet(NOTEBOOK_ROWS))

    def _sheet(self, most: int | None = None) -> Sheet:
        maps = self.on_image()
        remarks = [self.note, _ERROR_MEANING if self.errors.isfinite().any() else ""]
        if most is not None and len(self) > most:
            remarks.append(f"The first {most} of {len(self)} images are shown; select others by number.")
        remarks = [remark for remark in remarks if remark]
        strips = [self._strip(number, maps[number]) for number in range(len(self))[:most]]
        return Sheet(METHODS[self.method].label, self.model, tuple(strips), tuple(remarks))

    def _strip(self, number: int, maps: np.ndarray) -> ImageTiles:
        grey = self.shown.images[number].mean(0)
        tiles = []
        for column, values in enumerate(maps):
            drawn = draw(grey, values, self.shown.affine)
            facts = [*self._facts(number, column), "no evidence for it" if drawn.is_empty else "", drawn.slices]
            facts = [fact for fact in facts if fact]
            title = self.outputs[int(self.targets[number, column])]
            tiles.append(Tile(title, tuple(facts), drawn.picture, f"{drawn.words}; {'; '.join(facts)}"))
        return ImageTiles(self.shown.names[number], bare(grey, self.shown.affine), tuple(tiles))

    def _facts(self, number: int, column: int) -> list[str]:
        score = float(self.scores[number, column])
        facts = [f"score {score:+.2f}"]
        if self.probabilities is not None:
            facts = [f"probability {float(self.probabilities[number, column]):.2f} (score {score:+.2f})"]
        error = float(self.errors[number, column])
        return [*facts, f"error {error:.3g}"] if np.isfinite(error) else facts


@dataclass(frozen=True, eq=False)
class Explanations(Mapping[str, Explanation]):
    """Several methods on the same images, by name; a notebook shows them one below the other."""

    by_method: Mapping[str, Explanation]

    def __getitem__(self, method: str) -> Explanation:
        """The explanation by one method."""
        return self.by_method[method]

    def __iter__(self) -> Iterator[str]:
        """The names of the methods, in the order requested."""
        return iter(self.by_method)

    def __len__(self) -> int:
        """The number of methods."""
        return len(self.by_method)

    def _repr_html_(self) -> str:
        return "\n".join(as_html(each._sheet(NOTEBOOK_ROWS)) for each in self.by_method.values())  # noqa: SLF001


def stacked(parts: list[Tensor]) -> Tensor:
    """The batches joined into one, in main memory."""
    return torch.cat([part.detach().cpu() for part in parts])
