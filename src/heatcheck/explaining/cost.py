"""How long a network's passes and a source's images take on this machine, measured in a moment."""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import torch

from heatcheck.core.contracts import Method, Source
from heatcheck.core.errors import HeatcheckError
from heatcheck.core.records import Case, CaseKey
from heatcheck.core.tensors import Images, Logits
from heatcheck.explaining.ensemble import EnsembleExplainer
from heatcheck.explaining.study_models import CaseExplainer
from heatcheck.methods.covering.masking import OUTSIDE_A_STUDY as COPIES
from heatcheck.methods.covering.masking import evaluating
from heatcheck.methods.passes import evaluation_mode, input_gradients
from heatcheck.methods.registry import Passes, passes_of
from heatcheck.models import NetworkClassifier, explained

EVERY_KIND = Passes(1, 1, 1)
ENOUGH = 0.5  # seconds of one measurement
LONG = 2.0  # seconds of a call that is made once, though it sets things up as well
SHORTEST = 1e-9  # seconds; no clock tells less apart


@dataclass(frozen=True, slots=True)
class PassSeconds:
    """The seconds of one image's forward pass and of its backward pass, in a batch."""

    forward: float
    backward: float = 0.0
    covered: float = 0.0  # of a forward pass of covered copies

    def of(self, passes: Passes) -> float:
        """The seconds of these passes."""
        plain = (passes.forward + passes.extra) * self.forward
        return plain + passes.backward * self.backward + passes.covered * self.covered


def pass_seconds(classifier: NetworkClassifier, batch: int, needed: Passes = EVERY_KIND) -> PassSeconds:
    """The seconds of the network's passes, as far as they are of a kind that is needed."""
    contract = classifier.preprocessing
    noise = torch.rand(batch, contract.channels, *contract.size, generator=torch.Generator().manual_seed(0))
    images = noise.to(classifier.device)
    network = explained(classifier)

    def forward(some: Images) -> None:
        with torch.no_grad():
            network.logits(some)

    def both(some: Images) -> None:
        input_gradients(network, some, torch.zeros(len(some), 1, dtype=torch.long, device=some.device))

    with evaluation_mode(classifier.module):
        alone = seconds_per_image(forward, images)
        together = seconds_per_image(both, images) if needed.backward else alone
    with evaluating(classifier, COPIES) as evaluate:
        copies = images[:COPIES]
        covered = seconds_per_image(lambda some: _ignored(evaluate.scores(some)), copies) if needed.covered else 0.0
    return PassSeconds(alone, max(0.0, together - alone), covered)


def _ignored(_: Logits) -> None:
    """Nothing: only the time is of interest."""


def seconds_per_image(run: Callable[[Images], None], images: Images, least: int = 1) -> float:
    """The seconds per image of a function of at least so many images, after a call that sets things up.

    A call that takes very long is the only one. Else more images are tried, of which each may take less.
    """
    first = _seconds(run, images[:least])
    if first >= LONG:
        return first / least
    each = _seconds(run, images[:least]) / least
    size = min(len(images), max(2 * least, int(ENOUGH / max(each, SHORTEST))))
    calls = 1 if size * each >= ENOUGH else 2
    return min(each, *(_seconds(run, images[:size]) / size for _ in range(calls)))


def _seconds(run: Callable[[Images], None], images: Images) -> float:
    begun = time.perf_counter()
    run(images)
    if images.is_cuda:
        torch.cuda.synchronize()
    return time.perf_counter() - begun


def passes_for(methods: Mapping[str, Method], shape: tuple[int, ...], targets: int) -> Passes:
    """The passes of all methods for one image of this shape, and the one that answers."""
    return sum((passes_of(name, method, shape, targets) for name, method in methods.items()), Passes(1))


def seconds_to_explain(explainer: CaseExplainer, batch: int) -> float:
    """The seconds that a case's answers and maps take; an ensemble's members each explain their findings."""
    classifier = explainer.classifier
    if not isinstance(classifier, NetworkClassifier):
        raise TypeError("only a network's passes can be measured")
    targets = [len(explainer.findings)]
    if isinstance(explainer, EnsembleExplainer):
        targets = [len(set(member.findings) & set(explainer.findings)) for member in explainer.members]
    shape = (classifier.preprocessing.channels, *classifier.preprocessing.size)
    passes = sum((passes_for(explainer.methods, shape, number) for number in targets), Passes())
    return pass_seconds(classifier, batch, passes).of(passes)


@dataclass(frozen=True, slots=True)
class ReadCase:
    """A case of the source, and the seconds that reading it took."""

    case: Case
    seconds: float


def read_one(source: Source, keys: Sequence[CaseKey]) -> ReadCase | None:
    """The first of the cases that can be read; None where the first few cannot."""
    for key in keys[:3]:
        begun = time.perf_counter()
        try:
            case = source.load(key)
        except (HeatcheckError, OSError, ValueError):  # recorded when its turn comes
            continue
        return ReadCase(case, time.perf_counter() - begun)
    return None
