"""Checks before a method runs, for one forward pass: wrong input is refused in one sentence with its remedy."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from heatcheck.core.answer_shapes import remedy_for_answers
from heatcheck.core.contracts import Classifier, Method
from heatcheck.core.errors import HeatcheckError, InputError, ModelError, briefly
from heatcheck.core.geometry import Placement
from heatcheck.core.records import Image
from heatcheck.core.tensors import Images, Logits, Targets
from heatcheck.methods.passes import evaluation_mode, module_of
from heatcheck.methods.registry import METHODS, Access


def require_images(images: Tensor) -> Images:
    """The images unchanged; refused unless they are finite float32 of [batch, channel, *space] in 2D or 3D."""
    shape = tuple(images.shape)
    if images.ndim not in (4, 5) or 0 in shape:
        raise InputError(f"images must be [batch, channel, *space] in 2D or 3D and not empty, got {shape}")
    if images.dtype in (torch.float16, torch.bfloat16):
        raise InputError(f"images are {_dtype(images)}, too coarse for maps; call images.float() and model.float()")
    if not images.is_floating_point():
        raise InputError(f"images are {_dtype(images)}; normalise them as for training and call images.float()")
    if images.dtype != torch.float32:
        raise InputError(f"images are {_dtype(images)}; call images.float()")
    if torch.is_inference_mode_enabled():
        raise InputError("maps need gradients: call this outside torch.inference_mode()")
    bad = [index for index, image in enumerate(images) if not image.isfinite().all()]
    if bad:
        raise InputError(f"images {_first_few(bad)} of {len(images)} contain NaN or infinity; repair or remove them")
    return images


def require_logits(classifier: Classifier, images: Images) -> Logits:
    """The logits of the images in evaluation mode; refused unless finite, with one for each named output."""
    module, name = module_of(classifier), classifier.name
    weights = next(module.parameters(), None) if module else None
    if weights is not None and weights.dtype != images.dtype:
        raise ModelError(
            f"model {name} has weights of {_dtype(weights)}, the images are {_dtype(images)}; call model.float()"
        )
    if weights is not None and weights.device != images.device:
        raise ModelError(f"model {name} is on {weights.device}, the images on {images.device}; move one of them")
    try:
        with evaluation_mode(module) if module else nullcontext(), torch.no_grad():
            logits = classifier.logits(images)
    except HeatcheckError:
        raise
    except Exception as error:
        hint = (_channel_hint(module, images) if module else "") or "give images of the size it was trained on"
        raise ModelError(f"model {name} fails on images of {tuple(images.shape)} ({briefly(error)}); {hint}") from error
    expected = (len(images), len(classifier.outputs))
    if not isinstance(logits, Tensor) or tuple(logits.shape) != expected:
        if isinstance(logits, Tensor):
            got, remedy = str(tuple(logits.shape)), remedy_for_answers(tuple(logits.shape), *expected)
        else:
            got, remedy = type(logits).__name__, "wrap it so that it does"
        raise ModelError(f"model {name} gives {got}, expected [batch, outputs] = {expected}; {remedy}")
    if not logits.isfinite().all():
        raise ModelError(f"model {name} gives NaN or infinite scores; check its weights and the images' range")
    return logits


def require_targets(targets: Tensor, classifier: Classifier) -> Targets:
    """The targets unchanged; refused unless each is the index of an output."""
    count = len(classifier.outputs)
    if targets.is_floating_point() or targets.dtype == torch.bool or targets.ndim != 2 or targets.shape[1] == 0:
        raise InputError(
            f"targets must be integers of shape [batch, target], got {_dtype(targets)} of {tuple(targets.shape)}"
        )
    wrong = sorted({int(target) for target in targets[(targets < 0) | (targets >= count)]})
    if wrong:
        raise InputError(
            f"target {_first_few(wrong)} does not exist: model {classifier.name} has {count} outputs, 0 to {count - 1}"
        )
    return targets


def require_fit(name: str, method: Method, classifier: Classifier, images: Images) -> None:
    """Refuse a method that cannot be used on this model; its own `check` is called too, where it has one."""
    if METHODS[name].needs is Access.INTERNALS and module_of(classifier) is None:
        usable = ", ".join(key for key, facts in METHODS.items() if facts.needs is Access.PREDICTIONS)
        raise ModelError(
            f"method {name} looks inside the model, but only predictions of {classifier.name} are available; "
            f"use one of {usable}"
        )
    check = getattr(method, "check", None)
    if check is not None:
        with naming_errors(name, classifier):
            check(classifier, images)
    if METHODS[name].needs is Access.PREDICTIONS:  # hundreds of passes, so a model that answers at once is used
        donors = getattr(method, "donors", ())
        trial = replace(method, donors=donors[:1]) if donors else method  # type: ignore[type-var]
        target = torch.zeros(1, 1, dtype=torch.long, device=images.device)
        with naming_errors(name, classifier):
            trial(_ZeroModel(classifier), images[:1], target, [0])


@dataclass(frozen=True)
class _ZeroModel:
    """A model that scores every image 0 at once, to find settings that do not fit an image."""

    like: Classifier

    @property
    def name(self) -> str:
        return self.like.name

    @property
    def outputs(self) -> tuple[str, ...]:
        return self.like.outputs

    @property
    def module(self) -> nn.Module:
        raise ModelError(f"the check of settings uses no network of {self.name}")

    def prepare(self, images: Sequence[Image]) -> Images:
        return self.like.prepare(images)

    def placement(self, image: Image) -> Placement:
        return self.like.placement(image)

    def logits(self, images: Images) -> Logits:
        return images.new_zeros(len(images), len(self.outputs))

    def probabilities(self, logits: Logits) -> Logits:
        return self.like.probabilities(logits)


def require_supplied(name: str, method: Method) -> None:
    """Refuse a method that lacks what only its caller can supply: other images, or the usual location of a finding."""
    facts = METHODS[name]
    if facts.wants_priors and getattr(method, "priors", None) is None:
        raise InputError(f"method {name} needs the truth masks of other cases; run it in a study that has masks")
    if facts.wants_donors and not getattr(method, "donors", ()):
        raise InputError(f"method {name} replaces parts of the image by those of other images; give some as donors")


@contextmanager
def naming_errors(name: str, classifier: Classifier) -> Iterator[None]:
    """A block in which a method runs or is checked; an error becomes one sentence that names the method."""
    try:
        yield
    except InputError as error:
        if f"method {name}" in str(error):
            raise
        raise type(error)(f"method {name}: {error}") from error
    except HeatcheckError:
        raise
    except ValueError as error:  # a setting that does not fit these images
        raise InputError(f"method {name}: {briefly(error)}") from error
    except Exception as error:  # a network may fail in any way
        reason = briefly(error) if isinstance(error, RuntimeError) else f"{type(error).__name__}: {briefly(error)}"
        raise ModelError(f"method {name} does not run on model {classifier.name} ({reason})") from error


def _channel_hint(module: nn.Module, images: Images) -> str:
    """How the number of channels differs from what the network takes; empty where it does not."""
    first = next((part for part in module.modules() if isinstance(getattr(part, "in_channels", None), int)), None)
    if first is None or first.in_channels == images.shape[1]:
        return ""
    return f"they have {images.shape[1]} channels, its first convolution takes {first.in_channels}"


def _dtype(tensor: Tensor) -> str:
    return str(tensor.dtype).removeprefix("torch.")


def _first_few(numbers: list[int]) -> str:
    shown = ", ".join(map(str, numbers[:5]))
    return f"{shown} …" if len(numbers) > 5 else shown
