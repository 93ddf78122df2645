"""Maps of single images, without a study around them."""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, overload

import numpy as np
import torch
from torch import Tensor

from heatcheck.core.contracts import Classifier, Method
from heatcheck.core.errors import InputError, ModelError
from heatcheck.core.geometry import place
from heatcheck.core.tensors import Images, Logits, Targets
from heatcheck.explaining.batch import MapRequest
from heatcheck.explaining.inputs import AnyTargets, as_classifier, as_images, as_targets
from heatcheck.explaining.result import Explanation, Explanations, ShownImages, stacked
from heatcheck.methods import METHODS, build_method
from heatcheck.methods.checks import naming_errors, require_fit, require_logits, require_supplied
from heatcheck.methods.registry import plain_settings

AT_ONCE = 4  # images per call of a method, which limits the memory


@dataclass(frozen=True, slots=True)
class Question:
    """The targets of some images that each method explains, with the classifier."""

    classifier: Classifier
    images: Images
    targets: Targets
    logits: Logits
    shown: ShownImages
    seed: int = 0
    donors: Images | None = None
    calibrated: bool = False  # the classifier defines how its scores become probabilities


@overload
def explain(
    model: object,
    images: Tensor | np.ndarray,
    method: str = ...,
    targets: AnyTargets = ...,
    *,
    settings: Mapping[str, Any] | None = ...,
    outputs: Sequence[str] | None = ...,
    donors: Tensor | np.ndarray | None = ...,
    affine: np.ndarray | None = ...,
    seed: int = ...,
) -> Explanation: ...


@overload
def explain(
    model: object,
    images: Tensor | np.ndarray,
    method: list[str] | tuple[str, ...],
    targets: AnyTargets = ...,
    *,
    settings: Mapping[str, Any] | None = ...,
    outputs: Sequence[str] | None = ...,
    donors: Tensor | np.ndarray | None = ...,
    affine: np.ndarray | None = ...,
    seed: int = ...,
) -> Explanations: ...


def explain(  # noqa: PLR0913 - what differs from call to call in a notebook, all but two with a default
    model: object,
    images: Tensor | np.ndarray,
    method: str | list[str] | tuple[str, ...] = "grad_cam",
    targets: AnyTargets = None,
    *,
    settings: Mapping[str, Any] | None = None,
    outputs: Sequence[str] | None = None,
    donors: Tensor | np.ndarray | None = None,
    affine: np.ndarray | None = None,
    seed: int = 0,
) -> Explanation | Explanations:
    """The maps of one method, or of several methods by name; a notebook shows them as pictures.

    The model runs in evaluation mode and is left as it was. Results are on the CPU.

    Args:
        model: any `torch.nn.Module` that returns `[batch, outputs]` scores before sigmoid or softmax; a classifier of
            heatcheck; or, for methods that need predictions only, a function from an array of images to scores.
        images: `[batch, channel, *space]` or `[channel, *space]`, 2D or 3D, float32, normalised as for training.
        method: a name that `heatcheck list methods` shows, or several.
        targets: outputs by number or name, one or a list for all images, or one row per image as `[batch, target]`.
            None: all outputs if there are at most 20, otherwise the highest-scoring one of each image.
        settings: the method's settings by name; for several methods, a mapping from method to settings.
        outputs: names of the model's outputs, in order.
        donors: other images, normalised in the same way, for methods that replace parts of an image.
        affine: from voxels to millimetres, to show and save a volume in the patient's orientation.
        seed: of everything random.

    Raises:
        InputError: an argument cannot be used; the message says which and what to do.
    """
    batch = as_images(images, model)
    classifier = as_classifier(model, batch, outputs)
    logits = require_logits(classifier, batch)
    others = None if donors is None else as_images(donors, model)
    if affine is not None and np.shape(affine) != (4, 4):
        raise InputError(f"affine must be a 4 × 4 matrix, got {np.shape(affine)}; pass that of the volume")
    shape = tuple(batch.shape[2:])
    names = tuple(f"Image {number + 1}" for number in range(len(batch)))
    shown = ShownImages(batch.cpu().numpy(), place(shape, shape, "stretch"), names, affine)
    wanted = as_targets(targets, classifier, logits)
    question = Question(classifier, batch, wanted, logits, shown, seed, others, calibrated=classifier is model)
    if isinstance(method, str):
        return answer(question, method, prepared(question, method, settings or {}))
    by_method = dict(settings or {})
    for name in by_method:
        if name not in method:
            raise InputError(f"settings are for {name!r}, which is not among the methods; pass {{method: settings}}")
    # every method is checked before the first map
    ready = {name: prepared(question, name, by_method.get(name, {})) for name in method}
    return Explanations({name: answer(question, name, built) for name, built in ready.items()})


def prepared(question: Question, name: str, settings: Mapping[str, Any]) -> Method:
    """The method with its settings, checked before any work."""
    method: Any = build_method(name, settings)
    if METHODS[name].wants_donors and question.donors is not None:
        method = replace(method, donors=(question.donors,) * len(question.images))
    require_supplied(name, method)
    require_fit(name, method, question.classifier, question.images)
    checked: Method = method
    return checked


def answer(question: Question, name: str, method: Method) -> Explanation:
    """The maps of a prepared method."""
    start = time.perf_counter()
    batches = []
    with naming_errors(name, question.classifier):
        for first in range(0, len(question.images), AT_ONCE):
            part = slice(first, first + AT_ONCE)
            names, images, targets = question.shown.names[part], question.images[part], question.targets[part]
            request = MapRequest(question.classifier, names, images, targets, question.seed)
            batches.append(request.made_by(name, _of_part(method, part)))
    values = stacked([batch.values for batch in batches])
    if not values.isfinite().all():
        raise ModelError(f"the map of {name} on model {question.classifier.name} is not finite; use another method")
    scores = question.logits.gather(1, question.targets).cpu()
    return Explanation(
        method=name,
        settings=plain_settings(method),
        model=question.classifier.name,
        outputs=question.classifier.outputs,
        values=values,
        errors=stacked([batch.error for batch in batches]),
        targets=question.targets.cpu(),
        scores=scores,
        probabilities=_probabilities(question),
        shown=question.shown,
        cells=batches[0].cells if batches else None,
        note="; ".join(dict.fromkeys(batch.note for batch in batches if batch.note)),
        seed=question.seed,
        seconds=time.perf_counter() - start,
    )


def _of_part(method: Any, part: slice) -> Method:  # noqa: ANN401 - a frozen dataclass, whose fields differ
    """The method with the donors of these images."""
    donors = getattr(method, "donors", ())
    with_donors: Method = replace(method, donors=donors[part]) if donors else method
    return with_donors


def _probabilities(question: Question) -> Logits | None:
    """The targets' probabilities, if the classifier defines them."""
    if not question.calibrated:
        return None
    with torch.no_grad():
        return question.classifier.probabilities(question.logits).gather(1, question.targets).cpu()
