"""A first look at some of a study's images, before any work: do contract, images and model fit each other?"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import torch
from jaxtyping import Float

from heatcheck.core.contracts import Method, Source
from heatcheck.core.records import Case, CaseKey
from heatcheck.core.tensors import Logits
from heatcheck.methods import METHODS
from heatcheck.models import NetworkClassifier, Preprocessing, prepared
from heatcheck.models.pixel_scale import require_pixel_scale
from heatcheck.report.numbers import count, few
from heatcheck.running.cases import limited
from heatcheck.running.failed_cases import loaded_or_failed

MOST = {2: 12, 3: 3}  # images that are looked at, by axes: volumes take seconds to read
FEWEST = 3  # images whose answers say something of all
FAR = 20.0  # standard deviations: the images of a training set are not so far from its mean
_SPREAD = 0.25  # of one output's answers over the images: those of untrained networks hardly differ from image to image
_ONE = 1e-3  # by which the probabilities of all classes may differ from 1


@dataclass(frozen=True, slots=True)
class Sample:
    """The cases of a study, of which a few are looked at, spread over the findings."""

    source: Source
    keys: Sequence[CaseKey]
    findings: Sequence[str]

    def keys_of(self, most: int) -> list[CaseKey]:
        """So many cases at most in their order, of as many patients as possible."""
        near = limited(self.keys, self.findings, most)
        first = {key.patient: key.case for key in reversed(near)}.values()
        rest = [key.case for key in near if key.case not in first]
        wanted = {*first, *rest[: max(0, most - len(first))]}
        return [key for key in near if key.case in wanted]

    def cases(self, contract: Preprocessing, most: int | None = None) -> Iterator[Case]:
        """The readable ones of these cases, of as many as are looked at; the run records why others are not."""
        for key in self.keys_of(most or MOST[len(contract.size)]):
            case = loaded_or_failed(self.source, key)
            if isinstance(case, Case):
                yield case


@dataclass
class _Seen:
    """What is kept of the images that were looked at."""

    lows: list[float] = field(default_factory=list)
    highs: list[float] = field(default_factory=list)
    means: list[float] = field(default_factory=list)  # of the prepared images
    answers: list[np.ndarray] = field(default_factory=list)


def first_look(
    sample: Sample,
    contract: Preprocessing,
    name: str,
    classifier: NetworkClassifier | None = None,
    methods: Mapping[str, Method] = MappingProxyType({}),
) -> tuple[str, ...]:
    """What a reader must know of how images, labels, contract, classifier and methods of the model `name` fit together.

    Without a classifier, which is still to be trained, only images and labels are looked at.

    Raises:
        ModelError: the contract's mean and std cannot be those of the images.
    """
    seen = _Seen()
    for case in sample.cases(contract):
        seen.lows.append(float(case.image.min()))
        seen.highs.append(float(case.image.max()))
        try:
            image = prepared(case.image, contract)
            answer = _answer(classifier, image) if classifier and contract.head == "binary" else None
        except Exception:  # noqa: BLE001, S112 - the run records what is wrong with one image
            continue
        seen.means.append(float(image.mean()))
        seen.answers += [] if answer is None else [answer]
    if not seen.lows:
        return ()
    require_pixel_scale(contract, min(seen.lows), max(seen.highs), name)
    black = black_covers(seen, contract, name, methods)
    far = far_images(seen, contract, name)
    if classifier and classifier.is_random:  # its answers say nothing
        return tuple(filter(None, (random_weights(name), far, black)))
    probabilities = likely_probabilities(np.array(seen.answers), contract, name)
    return tuple(filter(None, (far, probabilities, not_exclusive(sample.keys, contract, name), black)))


@torch.no_grad()
def _answer(classifier: NetworkClassifier, image: torch.Tensor) -> Float[np.ndarray, " output"]:
    logits: Logits = classifier.logits(image[None].to(classifier.device))
    return np.asarray(logits[0].cpu(), np.float64)


def random_weights(name: str) -> str:
    """That a network was not trained: no weights were given, and its function draws them."""
    return (
        f"Model {name}: no weights were given: is this the trained network? Its function returns other weights at "
        "every call, so they are random, and nothing here says anything about a trained model. Name the trained "
        "weights (`weights:` in a spec, --weights in a command), or load them in the function."
    )


def far_images(seen: _Seen, contract: Preprocessing, name: str) -> str:
    """That the pixels are in other units than mean and std; empty where they may be the same."""
    low, high = min(seen.lows), max(seen.highs)
    in_unit_range = low >= -1 and high <= 2
    if in_unit_range or contract.scaling != "fixed" or not seen.means or abs(np.mean(seen.means)) <= FAR:
        return ""
    return (
        f"The images are far from those that model {name} was trained on, if its contract is right: their pixels, from "
        f"{low:g} to {high:g}, lie {abs(np.mean(seen.means)):,.0f} standard deviations from the mean on average. "
        "Set `value_range` of the source to the stored values that mean 0 and 1, or correct mean and std."
    )


def likely_probabilities(answers: Float[np.ndarray, "image output"], contract: Preprocessing, name: str) -> str:
    """That the model's answers look like probabilities instead of logits; empty where they do not."""
    if len(answers) < FEWEST or answers.min() < 0 or answers.max() > 1 or np.ptp(answers) == 0:
        return ""
    softmax = contract.activation == "softmax"
    if softmax and not np.allclose(answers.sum(1), 1, atol=_ONE):
        return ""
    if not softmax and np.ptp(answers, axis=0).max() < _SPREAD:
        return ""
    sums, inverse = (" and add up to 1", "log(p)") if softmax else ("", "log(p / (1 - p))")
    return (
        f"The answers of model {name} look like probabilities, not logits: on {count(len(answers), 'image')} looked at "
        f"they all lie between 0 and 1{sums}. If so, {contract.activation} is applied twice, and probabilities, "
        f"calibration and cutoffs are wrong; return the values before {contract.activation}, or {inverse}."
    )


def not_exclusive(keys: Sequence[CaseKey], contract: Preprocessing, name: str) -> str:
    """On how many images findings occur together that softmax says exclude each other; empty where none do."""
    if contract.activation != "softmax":
        return ""
    together = sum(sum(key.labels.get(output) == 1 for output in contract.outputs) > 1 for key in keys)
    if not together:
        return ""
    have = "has" if together == 1 else "have"
    return (
        f"The contract of model {name} says softmax, by which its outputs exclude each other, but {together:,} of "
        f"{count(len(keys), 'image')} {have} several of them: if each output was trained as a finding of its own, set "
        "`activation: sigmoid`; else probabilities, AUROC and maps are of another question than the labels."
    )


def black_covers(seen: _Seen, contract: Preprocessing, name: str, methods: Mapping[str, Method]) -> str:
    """That what methods cover becomes black, since 0 is black in this model's units; empty where it is not."""
    units = (contract.scaling, set(contract.mean), set(contract.std))
    covering = [
        METHODS[method].label
        for method, settings in methods.items()
        if METHODS[method].family == "masks" and getattr(settings, "baseline", "") == "zero"
    ]
    if not covering or units != ("fixed", {0.0}, {1.0}) or min(seen.lows) < 0 or max(seen.highs) > 1:
        return ""
    cover = "covers" if len(covering) == 1 else "cover"
    return (
        f"Hidden parts are black for model {name}: its contract has mean 0 and std 1, so the 0 with which "
        f"{few(covering)} {cover} parts of an image is the darkest value, not the usual one. If the model normalises "
        "its input itself, set `baseline: mean` or `baseline: blurred` of these methods."
    )
