"""One image with maps from files: its case without pixels, and each map on the image's grid."""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch

from heatcheck.core.errors import CaseError, InputError
from heatcheck.core.geometry import place
from heatcheck.core.records import HUMAN, Case, CaseKey, Image, Map, Mask, Point, Reading
from heatcheck.maps.resize import to_image
from heatcheck.sources.files.annotations import Annotations
from heatcheck.sources.files.map_files import MapFile, StoredMap, UnnamedVectors, read_map
from heatcheck.studies.localization.from_files.inputs import ScoreInputs

AGREE = 1e-4  # by how much probabilities of one finding may differ and still be one model's


@dataclass(frozen=True)
class StoredMaps:
    """The maps of one image by method and finding, with the case and the model's probabilities."""

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
    """Whether the truth or a map may hold the image's size."""
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
    wanted = {m: {f: file for f, file in by_finding.items() if f in chosen} for m, by_finding in files.items()}
    maps = {
        m: {f: read_map(file, vectors, with_picture=with_picture) for f, file in by_finding.items()}
        for m, by_finding in wanted.items()
    }
    shape = _shape(inputs, key.case, wanted, maps)
    picture = _picture(maps, shape) if with_picture else None
    black = np.broadcast_to(np.float32(0), (1, *shape))  # the scores need the grid, not the pixels
    marked = (finding for finding in chosen if not inputs.truth.is_empty(key.case, finding))
    truth = _masks(inputs.truth, key.case, marked, shape)
    instances = {f: n for f in truth if (n := inputs.truth.instances(key.case, f)) is not None}
    labelled, image = _labelled(inputs, key, maps), black if picture is None else picture
    case = Case(labelled, image, truth, _readings(inputs, key.case, shape), instances=instances)
    return StoredMaps(case, maps, _probabilities(inputs, wanted, maps))


def _labelled(inputs: ScoreInputs, key: CaseKey, maps: Mapping[str, Mapping[str, StoredMap]]) -> CaseKey:
    """The image with its labels; without a table, those in the map files for findings that the truth does not mark."""
    if key.case in inputs.labelled:
        return key
    stored = [pair for by_finding in maps.values() for pair in by_finding.items()]
    labels = {f: each.label for f, each in stored if not math.isnan(each.label) and key.labels.get(f) != 1}
    return replace(key, labels={**key.labels, **labels})


def _shape(
    inputs: ScoreInputs,
    image: str,
    files: Mapping[str, Mapping[str, MapFile]],
    maps: Mapping[str, Mapping[str, StoredMap]],
) -> tuple[int, int]:
    """The image's rows and columns, on which the truth and every map must agree."""
    known, source = inputs.truth.size(image), inputs.given.truth
    if known is None and inputs.human is not None and inputs.given.human is not None:
        known, source = inputs.human.size(image), inputs.given.human
    for method, by_finding in maps.items():
        for finding, stored in by_finding.items():
            if stored.shape is None:
                continue
            path = files[method][finding].path
            if known is not None and stored.shape != known:
                swapped = stored.shape == known[::-1]
                order = "one of them is swapped: 'cxr_dims' is (width, height), a truth's size [height, width]"
                hint = order if swapped else "correct one of them"
                sizes = f"{_by(stored.shape)} (height × width), but {source} says {_by(known)}"
                raise InputError(f"{path} is for an image of {sizes}; {hint}")
            known, source = stored.shape, path
    plain = (
        stored.values.shape
        for method, by_finding in maps.items()
        for finding, stored in by_finding.items()
        if method in inputs.on_image_grid and files[method][finding].path.suffix == ".npy"
    )
    known = known or next(plain, None)
    if known is None:
        raise InputError(
            f"the size of {image} is not known: neither {inputs.given.truth} nor its maps hold it; store 'cxr_dims' "
            "(width, height) with a map, in place of a .npy by `np.savez('<image>_<finding>_map.npz', map=heat, "
            "cxr_dims=(width, height))`"
        )
    return known


def _by(shape: tuple[int, int]) -> str:
    return f"{shape[0]} × {shape[1]}"


def _masks(annotations: Annotations, image: str, findings: Iterable[str], shape: tuple[int, int]) -> dict[str, Mask]:
    try:
        return {finding: annotations.mask(image, finding, shape) for finding in findings}
    except CaseError as error:
        raise InputError(str(error)) from error


def _readings(inputs: ScoreInputs, image: str, shape: tuple[int, int]) -> tuple[Reading, ...]:
    """The readers' marks as one reading; marks that were not given for the image are unknown, not a miss."""
    if inputs.human is None and inputs.points is None:
        return ()
    masks: dict[str, Mask] = {}
    outlined = inputs.human is not None and image in inputs.human.images
    if inputs.human is not None and outlined:
        masks = _masks(inputs.human, image, inputs.human.findings_of(image), shape)
    marked = (inputs.points or {}).get(image, {})
    points = {f: tuple(Point((float(y), float(x))) for x, y in drawn) for f, drawn in marked.items()}
    drawn = {f: mask for f, mask in masks.items() if mask.any()}
    return (Reading(HUMAN, drawn, points, outlined, inputs.points is not None),)


def _probabilities(
    inputs: ScoreInputs, files: Mapping[str, Mapping[str, MapFile]], maps: Mapping[str, Mapping[str, StoredMap]]
) -> dict[str, float]:
    """The model's probability of each finding; maps of several methods must agree on it."""
    probabilities: dict[str, float] = {}
    first: dict[str, MapFile] = {}
    for method, by_finding in maps.items():
        for finding, stored in by_finding.items():
            file = files[method][finding]
            if math.isnan(stored.probability):
                continue
            if abs(probabilities.setdefault(finding, stored.probability) - stored.probability) > AGREE:
                raise InputError(
                    f"{first[finding].path} and {file.path} hold different probabilities of {finding}, so they are of "
                    "two models; score each model in a call of its own"
                )
            first.setdefault(finding, file)
    return {finding: probabilities.get(finding, math.nan) for finding in inputs.findings}


def _picture(maps: Mapping[str, Mapping[str, StoredMap]], shape: tuple[int, int]) -> Image | None:
    """The image as the model received it, stretched to its original proportions."""
    stored = (each.picture for by_finding in maps.values() for each in by_finding.values())
    picture = next((picture for picture in stored if picture is not None), None)
    if picture is None:
        return None
    grey = torch.from_numpy(picture.mean(0, keepdims=True))
    return to_image(grey, place(shape, grey.shape[1:], "stretch"))
