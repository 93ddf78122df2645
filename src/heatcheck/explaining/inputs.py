"""Converts what a user may pass to `explain` into what the methods expect."""

from collections.abc import Callable, Sequence
from contextlib import nullcontext
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from heatcheck.core.answer_shapes import remedy_for_answers
from heatcheck.core.contracts import Classifier
from heatcheck.core.errors import InputError, ModelError, briefly
from heatcheck.core.registry import suggest
from heatcheck.core.tensors import Images, Logits, Targets
from heatcheck.methods.checks import require_images, require_targets
from heatcheck.methods.passes import evaluation_mode
from heatcheck.models import BlackBox, NetworkClassifier, Preprocessing

ALL_UP_TO = 20  # outputs; of more, only the highest-scoring one is explained if no targets are named
AnyTargets = int | str | Sequence[int | str] | Tensor | np.ndarray | None


def as_classifier(model: object, images: Images, outputs: Sequence[str] | None) -> Classifier:
    """The model as a classifier on the grid of the images, which are already normalised.

    The outputs of a network or a function are named by `outputs`, or numbered. A classifier stays as it is.
    """
    if isinstance(model, nn.Module):
        return NetworkClassifier(type(model).__name__, model, _contract(model, images, outputs))
    if hasattr(model, "logits") and hasattr(model, "module") and hasattr(model, "outputs"):
        if outputs is not None:
            raise InputError("this classifier has named outputs; leave out outputs=")
        classifier: Any = model
        return classifier
    if callable(model):
        predict = _on_arrays(model)
        return BlackBox(getattr(model, "__name__", type(model).__name__), predict, _contract(predict, images, outputs))
    raise InputError(f"model is a {type(model).__name__}; pass a torch.nn.Module, a classifier, or a function")


def _on_arrays(predict: Callable[[np.ndarray], Any]) -> Callable[[Images], Tensor]:
    """The function of arrays as a function of tensors."""

    def scores(images: Images) -> Tensor:
        return torch.as_tensor(np.asarray(predict(images.detach().cpu().numpy())))

    return scores


def _contract(
    predict: nn.Module | Callable[[Images], Tensor], images: Images, outputs: Sequence[str] | None
) -> Preprocessing:
    names = tuple(outputs) if outputs is not None else tuple(map(str, range(_count_outputs(predict, images))))
    if not names or len(set(names)) < len(names):
        raise InputError(f"outputs must have at least one name, and none twice, got {', '.join(names) or 'none'}")
    return Preprocessing(outputs=names, size=tuple(images.shape[2:]), channels=images.shape[1], mean=(0.0,), std=(1.0,))


def _count_outputs(predict: nn.Module | Callable[[Images], Tensor], images: Images) -> int:
    """The number of outputs of the model; 1 if it fails, since the check that follows says why."""
    try:
        with evaluation_mode(predict) if isinstance(predict, nn.Module) else nullcontext(), torch.no_grad():
            answer: object = predict(images[:1])
    except Exception:  # noqa: BLE001 - the check of the logits raises it again with its name
        return 1
    if not isinstance(answer, Tensor) or answer.ndim != 2:
        if isinstance(answer, Tensor):
            got, remedy = str(tuple(answer.shape)), remedy_for_answers(tuple(answer.shape), 1, 1)
        else:
            got, remedy = f"a {type(answer).__name__}", "wrap it accordingly"
        name = type(predict).__name__
        raise ModelError(f"model {name} returns {got} for one image, expected [1, outputs]; {remedy}")
    return answer.shape[1]


def as_images(images: Tensor | np.ndarray, model: object) -> Images:
    """The images with a batch axis, on the model's device."""
    if isinstance(images, np.ndarray):
        try:
            images = torch.from_numpy(np.ascontiguousarray(images))
        except TypeError as error:
            raise InputError(f"images cannot be used ({briefly(error)}); pass float32 numbers") from error
    if not isinstance(images, Tensor):
        raise InputError(f"images are a {type(images).__name__}; pass a tensor or array of [batch, channel, *space]")
    module = model if isinstance(model, nn.Module) else getattr(model, "module", None)
    if images.ndim == _space_axes(model, module) + 1:
        images = images[None]
    weights = next(module.parameters(), None) if isinstance(module, nn.Module) else None
    return require_images(images if weights is None else images.to(weights.device)).detach()


def _space_axes(model: object, module: nn.Module | None) -> int:
    contract = getattr(model, "preprocessing", None)
    if contract is not None:
        return len(contract.size)
    return 3 if module is not None and any(isinstance(part, nn.Conv3d) for part in module.modules()) else 2


def as_targets(targets: AnyTargets, classifier: Classifier, logits: Logits) -> Targets:
    """The targets of every image; None: all outputs, or the highest of each image if there are over `ALL_UP_TO`."""
    if targets is None:
        if logits.shape[1] > ALL_UP_TO:
            return logits.argmax(1, keepdim=True)
        targets = list(range(logits.shape[1]))
    if isinstance(targets, np.ndarray | Tensor):
        numbers = torch.as_tensor(targets)
    else:
        listed = list(targets) if isinstance(targets, list | tuple | range) else [targets]
        numbers = torch.tensor([_number(each, classifier) for each in listed], dtype=torch.long)
    numbers = numbers.reshape(1, -1) if numbers.ndim < 2 else numbers
    if len(numbers) not in (1, len(logits)):
        raise InputError(f"targets are for {len(numbers)} images, there are {len(logits)}; pass one row per image")
    checked = require_targets(numbers, classifier)
    return checked.long().expand(len(logits), -1).to(logits.device)


def _number(target: object, classifier: Classifier) -> int:
    if isinstance(target, str):
        if target not in classifier.outputs:
            raise InputError(f"model {classifier.name} has no output {target!r}; {suggest(target, classifier.outputs)}")
        return classifier.outputs.index(target)
    if isinstance(target, bool) or not isinstance(target, int | np.integer):
        raise InputError(f"target {target!r} is neither the number nor the name of an output; pass one of them")
    return int(target)
