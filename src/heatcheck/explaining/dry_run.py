"""Before the first case: methods are tried out, and what they need from the study is gathered."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch

from heatcheck.core.contracts import Classifier, Method, Source
from heatcheck.core.errors import InputError, SpecError
from heatcheck.core.records import CaseKey
from heatcheck.core.tensors import Images
from heatcheck.explaining.donors import gather_donors
from heatcheck.explaining.extra_inputs import ExtraInput
from heatcheck.explaining.methods import MethodChoice, Skipped
from heatcheck.explaining.priors import LocationPriors, gather_priors
from heatcheck.methods import METHODS
from heatcheck.methods.checks import naming_errors, require_fit
from heatcheck.methods.covering.masking import best_batch, needs_batch_size, with_batch
from heatcheck.methods.registry import Access
from heatcheck.models import NetworkClassifier, explained
from heatcheck.running.progress import Watcher
from heatcheck.runs.store import RunFolder


class ModelWithMethods(Protocol):
    """A model with its methods, as far as it is needed before the first case."""

    @property
    def classifier(self) -> Classifier:
        """The model; of an ensemble, the member that represents it."""

    @property
    def findings(self) -> tuple[str, ...]:
        """The findings to be explained."""

    @property
    def methods(self) -> Mapping[str, Method]:
        """The methods by name."""

    @property
    def seed(self) -> int:
        """The seed of the run."""


Check = Callable[[str, Method], None]  # raises where a method does not do on this model


def tried_on(
    choice: MethodChoice, classifier: Classifier, *key_lists: Sequence[CaseKey], also: Check | None = None
) -> MethodChoice:
    """The choice without the methods that cannot explain this model: one map is made with each, before any work.

    A method that the spec names stops the run if the choice is strict, if its settings are what does not fit the
    model, or if the cases are what it lacks.
    """
    if not isinstance(classifier, NetworkClassifier):
        return choice
    contract = classifier.preprocessing
    affordable = choice.affordable((contract.channels, *contract.size))
    skipped = []
    for name, method in affordable.methods.items():
        try:
            _require_other_patients(name, key_lists)
            _try_out(name, method, classifier, also)
        except InputError as error:
            if name in choice.named and (choice.strict or not _models_fault(name, classifier, also)):
                raise
            skipped.append(Skipped(name, classifier.name, _reason(name, error)))
    return affordable.without(skipped)


def _try_out(name: str, method: Method, classifier: NetworkClassifier, also: Check | None) -> None:
    """Make one map with the method."""
    facts = METHODS[name]
    if facts.wants_priors:
        return
    image = _black_image(classifier)
    ready = replace(method, donors=(image,)) if facts.wants_donors else method  # type: ignore[type-var]
    require_fit(name, ready, classifier, image)
    if facts.needs is not Access.PREDICTIONS:
        target = torch.zeros(1, 1, dtype=torch.long, device=image.device)
        with naming_errors(name, classifier):
            ready(explained(classifier), image, target, [0])
    if also is not None:
        also(name, method)


def _require_other_patients(name: str, key_lists: Sequence[Sequence[CaseKey]]) -> None:
    """Refuse a method that needs images of other patients if there is only one patient."""
    if METHODS[name].wants_donors and any(len({key.patient for key in keys}) < 2 for keys in key_lists):
        raise SpecError(f"method {name} needs images of other patients, and all cases are of one; leave it out")


def _models_fault(name: str, classifier: NetworkClassifier, also: Check | None) -> bool:
    """Whether the method with its usual settings cannot explain the model either."""
    try:
        _try_out(name, METHODS[name].settings(), classifier, also)
    except InputError:
        return True
    return False


def _reason(name: str, error: InputError) -> str:
    """What is wrong, without the method's name and the remedy, which is to leave it out."""
    reason, _, _ = str(error).partition("; ")
    return reason.removeprefix(f"method {name}: ").removeprefix(f"method {name} ")


def extra_inputs_for(
    explainer: ModelWithMethods,
    source: Source,
    keys: Sequence[CaseKey],
    watcher: Watcher,
    priors: LocationPriors | None = None,
) -> tuple[ExtraInput, ...]:
    """The extra inputs that the methods need; `priors` are reused if they were gathered for another model."""

    def gathered() -> Iterator[ExtraInput]:
        wanted = [METHODS[name] for name in explainer.methods]
        if any(facts.wants_priors for facts in wanted):
            yield priors or gather_priors(source, keys, explainer.findings, watcher)
        if any(facts.wants_donors for facts in wanted):
            yield gather_donors(source, keys, explainer.classifier, len(explainer.findings), explainer.seed)

    return tuple(gathered())


def methods_with_batch(explainer: ModelWithMethods, folder: RunFolder, fact: str = "max_batch") -> Mapping[str, Method]:
    """The methods, with the fastest batch of masked copies for those that do not fix it.

    The size is measured once and recorded in the manifest as `fact`: another size would change the last digits of a
    continued run.
    """
    classifier = explainer.classifier
    if not any(map(needs_batch_size, explainer.methods.values())) or not isinstance(classifier, NetworkClassifier):
        return explainer.methods
    if fact not in folder.manifest:
        folder.record(**{fact: best_batch(classifier, _black_image(classifier))})
    size = folder.manifest[fact]
    return {name: with_batch(method, size) for name, method in explainer.methods.items()}


def _black_image(classifier: NetworkClassifier) -> Images:
    """A black image, prepared for the model."""
    wanted = classifier.preprocessing
    if wanted.scaling == "nonzero":  # black stays 0 there, and its standard deviation is 0
        return torch.zeros(1, wanted.channels, *wanted.size, device=classifier.device)
    return classifier.prepare([np.zeros((wanted.channels, *wanted.size), np.float32)])
