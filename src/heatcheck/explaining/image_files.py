"""Overlays and map files from image files."""

import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from heatcheck.core.errors import CaseError, InputError, RunFolderError
from heatcheck.core.records import Image
from heatcheck.core.tensors import Images
from heatcheck.explaining.donors import MOST
from heatcheck.explaining.dry_run import tried_on
from heatcheck.explaining.first_look.look import random_weights
from heatcheck.explaining.inputs import as_targets
from heatcheck.explaining.listed_images import ListedImage, listed_images, others_in
from heatcheck.explaining.methods import MethodRules, chosen_methods
from heatcheck.explaining.one_image import Question, answer, prepared
from heatcheck.explaining.result import Explanation, ShownImages
from heatcheck.methods import METHODS, MethodFacts
from heatcheck.methods.checks import require_logits
from heatcheck.methods.sets import SETS
from heatcheck.models import MODELS, NetworkClassifier
from heatcheck.models.pixel_scale import require_pixel_scale
from heatcheck.report.numbers import count, few
from heatcheck.running.progress import Silent, Watcher
from heatcheck.sources.files.folder_cautions import NO_WINDOW
from heatcheck.sources.files.reading import Range, image_affine, lacks_window, read_image

DEFAULT_METHODS = ("grad_cam", "integrated_gradients", "occlusion")  # one of each family that suits most networks
PRESENT = 0.5  # the probability from which a finding is shown if none are named
_FAR = 20.0  # standard deviations: no training image is so far from the mean of the training set


@dataclass(frozen=True, slots=True)
class Order:
    """Image files with what to do with them."""

    images: tuple[Path, ...]
    methods: tuple[str, ...] = DEFAULT_METHODS
    settings: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)  # by method
    findings: tuple[str, ...] = ()  # empty: the probable ones; "all": every output
    out: Path = Path("explained")
    seed: int = 0
    value_range: Range | None = None  # stored values that correspond to 0 and 1
    overwrite: bool = False


@dataclass(frozen=True, slots=True)
class MapRow:
    """One row of the table: a map and its file."""

    image: str
    finding: str
    probability: float
    method: str
    seconds: float  # for all findings of the image together
    error: float
    file: Path


@dataclass(frozen=True, slots=True)
class ExplainedFiles:
    """The maps that were written, and remarks for the user."""

    rows: tuple[MapRow, ...]
    remarks: tuple[str, ...]
    left_out: tuple[str, ...] = ()  # the images of a folder that could not be used, each with the reason

    @property
    def n_images(self) -> int:
        """The number of images that were explained."""
        return len({row.image for row in self.rows})


def explain_files(classifier: NetworkClassifier, order: Order, watcher: Watcher | None = None) -> ExplainedFiles:
    """Write maps and overlays of every image; the input is checked before the first map is made.

    Images may be files or folders. A file that cannot be used stops the work; an image of a folder is left out.

    For each image and method: an overlay (.png) and all data (.npz); of NIfTI images also one .nii.gz per finding.
    """
    watcher = watcher or Silent()
    warning = _warning(classifier)
    remarks = _Remarks([warning] if warning else [])
    order = replace(order, methods=_chosen(classifier, order, remarks.general))
    for name in order.settings:
        if name not in order.methods:
            raise InputError(f"there are settings for {name}, which is not among the methods; add it with --methods")
    checked = _checked(classifier, order, remarks)
    rows: list[MapRow] = []
    watcher.start("maps", len(checked.images) * len(order.methods))
    for image in checked.images:
        question = replace(_question(classifier, image, order, _Remarks()), donors=checked.donors_of(image))
        methods = {name: prepared(question, name, order.settings.get(name, {})) for name in order.methods}
        explanations = []
        for name, method in methods.items():
            explanation = answer(question, name, method)
            note = "; ".join(filter(None, (explanation.note, warning)))
            explanations.append(replace(explanation, note=note))  # pictures are shared without the table
            watcher.advance(note=name)
        order.out.mkdir(parents=True, exist_ok=True)
        for explanation in explanations:
            rows += _written(order.out, image.stem, question, explanation)
    return ExplainedFiles(tuple(rows), remarks.sentences(), tuple(checked.left_out))


@dataclass
class _Remarks:
    """What the user should know; the same of several images is said once."""

    general: list[str] = field(default_factory=list)
    of_images: dict[str, list[str]] = field(default_factory=dict)  # the images' names, by what is said of them

    def add(self, image: str, text: str) -> None:
        """Remark on one image."""
        self.of_images.setdefault(text, []).append(image)

    def sentences(self) -> tuple[str, ...]:
        """Every remark in its order."""
        return (*self.general, *(f"{few(names)}: {text}" for text, names in self.of_images.items()))


@dataclass(frozen=True)
class _Checked:
    """The images that can be used, and some of them as donors of pixels."""

    images: list[ListedImage]
    pixels: Mapping[str, Images]  # by stem
    left_out: list[str]  # why others cannot be used

    def donors_of(self, image: ListedImage) -> Images | None:
        """A few of the other images."""
        others = [pixels for stem, pixels in self.pixels.items() if stem != image.stem][:MOST]
        return torch.cat(others) if others else None


def _checked(classifier: NetworkClassifier, order: Order, remarks: _Remarks) -> _Checked:
    """The images that can be used, and why others of a folder cannot. Nothing is kept of an image but donors."""
    usable: list[ListedImage] = []
    pixels: dict[str, Images] = {}
    files: list[str] = []
    left_out: list[str] = []
    listed = listed_images(order.images)
    wants_donors = any(METHODS[name].wants_donors for name in order.methods)
    for image in listed:
        try:
            question = _question(classifier, image, order, remarks)
        except CaseError as error:
            if image.folder is None:
                raise
            left_out.append(str(error))
            continue
        _require_methods(replace(question, donors=question.images if len(listed) > 1 else None), order)
        if wants_donors and len(pixels) <= MOST:
            pixels[image.stem] = question.images
        usable.append(image)
        files += [file for name in order.methods for file in _files(image.stem, question, name)]
    if not usable:
        raise InputError(f"none of {count(len(listed), 'image')} can be used: {few(left_out)}")
    _require_free(order, files)
    remarks.general += others_in(order.images)
    return _Checked(usable, pixels, left_out)


def _require_methods(question: Question, order: Order) -> None:
    """Refuse methods that cannot explain this image, or settings that are wrong."""
    for name in order.methods:
        prepared(question, name, order.settings.get(name, {}))


def _chosen(classifier: NetworkClassifier, order: Order, remarks: list[str]) -> tuple[str, ...]:
    """The methods by name; members of sets that cannot explain this model are left out with a remark."""
    if len(set(order.methods)) < len(order.methods) or not order.methods:
        raise InputError("name at least one method, and none twice")
    if not set(order.methods) & set(SETS):
        return order.methods
    donors = len(listed_images(order.images)) > 1  # the other images

    def possible(facts: MethodFacts) -> bool:
        return not facts.wants_priors and (donors or not facts.wants_donors)

    parts = [{"name": name, **order.settings.get(name, {})} for name in order.methods]
    choice = chosen_methods(parts, "--methods", MethodRules(possible, strict=True))
    settled = tried_on(choice, classifier).settled()
    remarks += [f"without {METHODS[each.name].label} ({each.name}): {each.reason}" for each in settled.skipped]
    return tuple(settled.methods)


def _warning(classifier: NetworkClassifier) -> str:
    if classifier.is_random:
        return random_weights(classifier.name)
    if classifier.name not in MODELS or not MODELS[classifier.name].drawn:
        return ""
    return f"{classifier.name} was trained on drawn images only: its answers on other images mean nothing"


def _question(classifier: NetworkClassifier, listed: ListedImage, order: Order, remarks: _Remarks) -> Question:
    wanted, path, name = classifier.preprocessing, listed.path, listed.name
    image = read_image(path, name, "rgb" if wanted.channels == 3 else "grey", order.value_range)
    _require_suitable(image, name, classifier)
    require_pixel_scale(wanted, float(image.min()), float(image.max()), classifier.name)
    batch = classifier.prepare([image])
    if float(batch.mean().abs()) > _FAR:
        values = f"{image.min():g} to {image.max():g}"
        remarks.add(
            path.name,
            f"its values ({values}) are far from those the model was trained on; use --range to set which values "
            "correspond to 0 and 1",
        )
    logits = require_logits(classifier, batch)
    names = _findings(classifier, logits, path.name, order, remarks)
    if order.value_range is None and lacks_window(path, name):
        remarks.add(path.name, f"no window is stated, so its {NO_WINDOW}; set --range if so")
    affine = image_affine(path, name)
    shown = ShownImages(image[None].astype(np.float32), classifier.placement(image), (path.name,), affine)
    targets = as_targets(names, classifier, logits)
    return Question(classifier, batch, targets, logits, shown, order.seed, calibrated=True)


def _require_suitable(image: Image, name: str, classifier: NetworkClassifier) -> None:
    wanted = classifier.preprocessing
    size = "×".join(map(str, image.shape[1:]))
    if image.ndim - 1 != len(wanted.size):
        what = "a volume" if image.ndim == 4 else "a 2D image"
        raise CaseError(
            f"{name} is {what} of {size}, model {classifier.name} takes {len(wanted.size)}D; use another image"
        )
    if image.shape[0] not in (1, wanted.channels):
        raise CaseError(
            f"{name} has {image.shape[0]} channels, model {classifier.name} takes {wanted.channels}; save only those"
        )


def _findings(
    classifier: NetworkClassifier, logits: torch.Tensor, image: str, order: Order, remarks: _Remarks
) -> list[str | int]:
    """The named findings, or the probable ones, or the most probable one."""
    if order.findings == ("all",):
        return list(classifier.outputs)
    if order.findings:
        known = classifier.outputs
        return [int(name) if name.isdecimal() and name not in known else name for name in order.findings]
    probabilities = classifier.probabilities(logits)[0].tolist()
    likely = [finding for finding, p in zip(classifier.outputs, probabilities, strict=True) if p >= PRESENT]
    if not likely:
        best = int(np.argmax(probabilities))
        remarks.add(image, f"no finding reaches a probability of {PRESENT:g}; the most probable one is shown")
        return [best]
    remarks.add(image, f"findings with a probability of {PRESENT:g} or more are shown; name others with --findings")
    return list(likely)


def _files(stem: str, question: Question, method: str) -> list[str]:
    """The names of the files of one image and method."""
    names = [f"{stem}.{method}.png", f"{stem}.{method}.npz"]
    if question.shown.affine is not None:
        names += [_volume(stem, method, question.classifier.outputs[number]) for number in question.targets[0].tolist()]
    return names


def _volume(stem: str, method: str, finding: str) -> str:
    return f"{stem}.{method}.{re.sub(r'[^0-9A-Za-z]+', '-', finding).strip('-').lower() or 'target'}.nii.gz"


def _require_free(order: Order, names: Sequence[str]) -> None:
    """Refuse a folder that cannot be written, or in which files would be overwritten."""
    parent = next(folder for folder in (order.out, *order.out.absolute().parents) if folder.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise RunFolderError(f"{order.out} cannot be written; choose another --out")
    existing_file = next((name for name in names if (order.out / name).exists()), None)
    if existing_file is not None and not order.overwrite:
        raise RunFolderError(f"{order.out / existing_file} exists already; add --overwrite or choose another --out")


def _written(out: Path, stem: str, question: Question, explanation: Explanation) -> list[MapRow]:
    overlay = explanation.save(out / f"{stem}.{explanation.method}.png")
    explanation.save(out / f"{stem}.{explanation.method}.npz")
    rows = []
    for column, number in enumerate(question.targets[0].tolist()):
        finding, file = explanation.outputs[number], overlay
        if question.shown.affine is not None:
            file = explanation.only(column).save(out / _volume(stem, explanation.method, finding))
        probabilities = explanation.probabilities
        probability = math.nan if probabilities is None else float(probabilities[0, column])
        error = float(explanation.errors[0, column])
        rows.append(MapRow(stem, finding, probability, explanation.method, explanation.seconds, error, file))
    return rows
