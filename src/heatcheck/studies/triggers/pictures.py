"""Pictures of the user's own that a spec names as triggers: read and checked before the run starts."""

from dataclasses import replace
from pathlib import Path

import numpy as np

from heatcheck.core.errors import CaseError, SpecError
from heatcheck.core.records import Map
from heatcheck.sources.files.reading import read_alpha, read_image, read_mask
from heatcheck.triggers import Trigger
from heatcheck.triggers.picture import OpenedPicture, Picture


def with_picture(trigger: Trigger, folder: Path, where: str) -> Trigger:
    """The trigger with its picture read, where it has one; files are relative to the folder."""
    picture = trigger.patch
    if not isinstance(picture, Picture):
        return trigger
    if not picture.image:
        raise SpecError(f"{where}: trigger {trigger.name}: name its file, as in {{kind: picture, image: sticker.png}}")
    try:
        pixels = _pixels(picture, folder)
        alpha = _alpha(picture, folder, pixels.shape)
    except CaseError as error:
        raise SpecError(f"{where}: trigger {trigger.name}: {error}") from error
    return replace(trigger, patch=picture.with_pixels(pixels, alpha))


def picture_digests(triggers: tuple[Trigger, ...]) -> list[str]:
    """A text for each picture, which changes with its pixels."""
    return [trigger.patch.digest for trigger in triggers if isinstance(trigger.patch, OpenedPicture)]


def _pixels(picture: Picture, folder: Path) -> Map:
    values = read_image(folder / picture.image, picture.image, value_range=picture.value_range)
    if values.ndim != 3:
        raise CaseError(f"{picture.image} is a volume; save one slice of it")
    low, high = float(values.min()), float(values.max())
    if picture.value_range is None and not (low >= 0 and high <= 1):
        raise CaseError(
            f"{picture.image} has values from {low:g} to {high:g}; say which are black and white, as in "
            f"`value_range: [{low:g}, {high:g}]`"
        )
    return np.asarray(values.mean(0).clip(0, 1), np.float32)


def _alpha(picture: Picture, folder: Path, shape: tuple[int, ...]) -> Map:
    """The mask where one is named, else the picture's alpha, else 1."""
    if picture.mask:
        alpha = read_mask(folder / picture.mask, picture.mask, shape).astype(np.float32)
        if not alpha.any():
            raise CaseError(f"{picture.mask} is 0 everywhere; mark the pixels of the picture")
        return alpha
    stored = read_alpha(folder / picture.image, picture.image)
    if stored is None:
        return np.ones(shape, np.float32)
    if not stored.any():
        raise CaseError(f"{picture.image} is transparent everywhere; save it with what is to be seen")
    return stored
