"""Before the first case: methods are tried out, and what they need from the study is gathered."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Protocol

import numpy as np
import torch

from heatcheck.core.contracts import Classifier, Method, Source
from heatcheck.core.errors import SpecError
from heatcheck.core.records import CaseKey
from heatcheck.core.tensors import Images
from heatcheck.explaining.donors import gather_donors
from heatcheck.explaining.extra_inputs import ExtraInput
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


def try_out(explainer: ModelWithMethods) -> None:
    """Make one map with each method, so that settings that do not fit the model are refused before any work."""
    classifier = explainer.classifier
    if not isinstance(classifier, NetworkClassifier):
        return
    image = _black_image(classifier)
    target = torch.zeros(1, 1, dtype=torch.long, device=image.device)
    for name, method in explainer.methods.items():
        facts = METHODS[name]
        if facts.wants_priors:
            continue
        ready = replace(method, donors=(image,)) if facts.wants_donors else method  # type: ignore[type-var]
        require_fit(name, ready, classifier, image)
        if facts.needs is not Access.PREDICTIONS:
            with naming_errors(name, classifier):
                ready(explained(classifier), image, target, [0])


def require_other_patients(explainer: ModelWithMethods, keys: Sequence[CaseKey]) -> None:
    """Refuse a method that needs images of other patients if there is only one patient."""
    needing = [name for name in explainer.methods if METHODS[name].wants_donors]
    if needing and len({key.patient for key in keys}) < 2:
        raise SpecError(f"method {needing[0]} needs images of other patients, and all cases are of one; leave it out")


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
