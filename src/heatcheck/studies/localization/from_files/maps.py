"""One image with maps that were made elsewhere: its case without pixels, and each map on the image's grid."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from heatcheck.core.errors import CaseError, InputError
from heatcheck.core.geometry import place
from heatcheck.core.records import HUMAN, Case, CaseKey, Image, Map, Mask, Point, Reading
from heatcheck.maps.resize import to_image
from heatcheck.sources.files.map_files import MapFile, StoredMap, UnnamedVectors, read_map
from heatcheck.studies.localization.from_files.inputs import ScoreInputs

AGREE = 1e-4  # probabilities of one finding that differ by more are not one model's


@dataclass(frozen=True)
class StoredMaps:
    """The maps of one image, by method and finding, and what is known of the image."""

    case: Case
    maps: Mapping[str, Mapping[str, StoredMap]]
    probabilities: Mapping[str, float]  # by finding; NaN where no file says it

    def on_image(self, method: str, finding: str) -> Map | None:
        """The map on the image's grid; None where there is none."""
        stored = self.maps.get(method, {}).get(finding)
        if stored is None:
            return None
        shape = self.case.image.shape[1:]
        resized: Map = to_image(torch.from_numpy(stored.values)[None], place(shape, stored.values.shape, "stretch"))[0]
        return resized


def is_sized(inputs: ScoreInputs, image: str) -> bool:
    """Whether anything may tell the image's size: the truth, or a map."""
    return inputs.truth.size(image) is not None or any(image in maps for maps in inputs.maps.values())


def read_stored(
    inputs: ScoreInputs, key: CaseKey, findings: Sequence[str] | None = None, *, with_picture: bool = False
) -> StoredMaps:
    """The maps of one image, of some findings or of all, checked against what is known of the image."""
    chosen = inputs.findings if findings is None else tuple(findings)
    vectors: UnnamedVectors = "unknown" if inputs.given.allow_missing else "refuse"
    if inputs.rules.probability_order == "reference":
        vectors = "reference order"
    files = {method: by_image.get(key.case, {}) for method, by_image in inputs.maps.items()}
    wanted = {m: {f: file for f, file in found.items() if f in chosen} for m, found in files.items()}
    maps = {
        m: {f: read_map(file, vectors, with_picture=with_picture) for f, file in found.items()}
        for m, found in wanted.items()
    }
    shape = _shape(inputs, key.case, wanted, maps)
    picture = _picture(maps, shape) if with_picture else None
    blank = np.broadcast_to(np.float32(0), (1, *shape))  # the scores need the grid, not the pixels
    truth = _masks(inputs, key.case, chosen, shape)
    instances = {f: n for f in truth if (n := inputs.truth.instances(key.case, f)) is not None}
    labelled, image = _labelled(inputs, key, maps), blank if picture is None else picture
    case = Case(labelled, image, truth, _readings(inputs, key.case, shape), instances=instances)
    return StoredMaps(case, maps, _probabilities(inputs, wanted, maps))


def _labelled(inputs: ScoreInputs, key: CaseKey, maps: Mapping[str, Mapping[str, StoredMap]]) -> CaseKey:
    """The image with its labels; without a table of them, what the map files say of findings that nobody marked."""
    if key.case in inputs.labelled:
        return key
    told = {f: stored.label for found in maps.values() for f, stored in found.items() if not math.isnan(stored.label)}
    open_ = {f: label for f, label in told.items() if key.labels.get(f) != 1}
    return replace(key, labels={**key.labels, **open_})


def _shape(
    inputs: ScoreInputs,
    image: str,
    files: Mapping[str, Mapping[str, MapFile]],
    maps: Mapping[str, Mapping[str, StoredMap]],
) -> tuple[int, int]:
    """The image's rows and columns, on which the truth and every map must agree."""
    known = inputs.truth.size(image)
    source = inputs.given.truth
    for method, found in maps.items():
        for finding, stored in found.items():
            if stored.shape is None:
                continue
            path = files[method][finding].path
            if known is not None and stored.shape != known:
                swapped = stored.shape == known[::-1]
                told = "one of them is swapped: 'cxr_dims' is (width, height), a truth's size [height, width]"
                hint = told if swapped else "correct one of them"
                sizes = f"{_by(stored.shape)} (height × width), but {source} says {_by(known)}"
                raise InputError(f"{path} is for an image of {sizes}; {hint}")
            known, source = stored.shape, path
    if known is None:
        raise InputError(
            f"the size of {image} is not known: neither {inputs.given.truth} nor its maps say it; "
            "store 'cxr_dims' (width, height) with a map"
        )
    return known


def _by(shape: tuple[int, int]) -> str:
    return f"{shape[0]} × {shape[1]}"


def _masks(inputs: ScoreInputs, image: str, findings: Sequence[str], shape: tuple[int, int]) -> dict[str, Mask]:
    marked = (f for f in findings if not inputs.truth.is_empty(image, f))
    try:
        return {finding: inputs.truth.mask(image, finding, shape) for finding in marked}
    except CaseError as error:
        raise InputError(str(error)) from error


def _readings(inputs: ScoreInputs, image: str, shape: tuple[int, int]) -> tuple[Reading, ...]:
    """The readers' marks as one reading; what was not given for the image is not known, rather than a miss."""
    if inputs.human is None and inputs.points is None:
        return ()
    masks: dict[str, Mask] = {}
    outlined = inputs.human is not None and image in inputs.human.images
    if inputs.human is not None and outlined:
        try:
            masks = {f: inputs.human.mask(image, f, shape) for f in inputs.human.findings_of(image)}
        except CaseError as error:
            raise InputError(str(error)) from error
    marked = (inputs.points or {}).get(image, {})
    points = {f: tuple(Point((float(y), float(x))) for x, y in drawn) for f, drawn in marked.items()}
    drawn = {f: mask for f, mask in masks.items() if mask.any()}
    return (Reading(HUMAN, drawn, points, outlined, inputs.points is not None),)


def _probabilities(
    inputs: ScoreInputs, files: Mapping[str, Mapping[str, MapFile]], maps: Mapping[str, Mapping[str, StoredMap]]
) -> dict[str, float]:
    """What the model thinks of each finding; several methods must be of one model."""
    found: dict[str, float] = {}
    first: dict[str, MapFile] = {}
    for method, of_method in maps.items():
        for finding, stored in of_method.items():
            file = files[method][finding]
            if math.isnan(stored.probability):
                continue
            if abs(found.setdefault(finding, stored.probability) - stored.probability) > AGREE:
                raise InputError(
                    f"{first[finding].path} and {file.path} hold different probabilities, so they are of two models; "
                    "score them in two calls"
                )
            first.setdefault(finding, file)
    return {finding: found.get(finding, math.nan) for finding in inputs.findings}


def _picture(maps: Mapping[str, Mapping[str, StoredMap]], shape: tuple[int, int]) -> Image | None:
    """The image as the model saw it, stretched to its own proportions."""
    pictures = (stored.picture for found in maps.values() for stored in found.values() if stored.picture is not None)
    seen = next(pictures, None)
    if seen is None:
        return None
    grey = torch.from_numpy(seen.mean(0, keepdims=True))
    return to_image(grey, place(shape, grey.shape[1:], "stretch"))
