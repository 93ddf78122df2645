"""What is done before the first case: methods tried out, and what they ask of the study."""

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
from heatcheck.methods.checks import in_one_sentence, require_fit
from heatcheck.methods.covering.masking import best_batch, leaves_batch_open, with_batch
from heatcheck.methods.registry import Access
from heatcheck.models import NetworkClassifier, explained
from heatcheck.running.progress import Watcher
from heatcheck.runs.store import RunFolder


class ModelWithMethods(Protocol):
    """A model with the methods to be judged on it, as far as what comes before the first case is concerned."""

    @property
    def classifier(self) -> Classifier:
        """The model; of an ensemble, the member that stands for all."""

    @property
    def findings(self) -> tuple[str, ...]:
        """The findings that are explained."""

    @property
    def methods(self) -> Mapping[str, Method]:
        """The methods by name."""

    @property
    def seed(self) -> int:
        """The seed of the run."""


def try_out(explainer: ModelWithMethods) -> None:
    """Ask each method for one map, so that a setting that does not fit the model is known before any work."""
    classifier = explainer.classifier
    if not isinstance(classifier, NetworkClassifier):
        return
    blank = _blank(classifier)
    target = torch.zeros(1, 1, dtype=torch.long, device=blank.device)
    for name, method in explainer.methods.items():
        facts = METHODS[name]
        if facts.wants_priors:
            continue
        asked = replace(method, donors=(blank,)) if facts.wants_donors else method  # type: ignore[type-var]
        require_fit(name, asked, classifier, blank)
        if facts.needs is not Access.PREDICTIONS:
            with in_one_sentence(name, classifier):
                asked(explained(classifier), blank, target, [0])


def require_other_patients(explainer: ModelWithMethods, keys: Sequence[CaseKey]) -> None:
    """Refuse a method that works with other patients' images where all are of one."""
    asking = [name for name in explainer.methods if METHODS[name].wants_donors]
    if asking and len({key.patient for key in keys}) < 2:
        raise SpecError(f"method {asking[0]} needs images of other patients, and all cases are of one; leave it out")


def extra_inputs_for(
    explainer: ModelWithMethods,
    source: Source,
    keys: Sequence[CaseKey],
    watcher: Watcher,
    priors: LocationPriors | None = None,
) -> tuple[ExtraInput, ...]:
    """Everything that some method of the study asks for; `priors` were gathered for another model on these cases."""

    def gathered() -> Iterator[ExtraInput]:
        wanted = [METHODS[name] for name in explainer.methods]
        if any(facts.wants_priors for facts in wanted):
            yield priors or gather_priors(source, keys, explainer.findings, watcher)
        if any(facts.wants_donors for facts in wanted):
            yield gather_donors(source, keys, explainer.classifier, len(explainer.findings), explainer.seed)

    return tuple(gathered())


def methods_with_batch(explainer: ModelWithMethods, folder: RunFolder, fact: str = "max_batch") -> Mapping[str, Method]:
    """The methods, with the best number of masked copies at a time where they leave it open.

    It is found when the model's turn comes first and recorded as that fact: another number would change the last
    digits of a resumed run.
    """
    classifier = explainer.classifier
    if not any(map(leaves_batch_open, explainer.methods.values())) or not isinstance(classifier, NetworkClassifier):
        return explainer.methods
    if fact not in folder.manifest:
        folder.record(**{fact: best_batch(classifier, _blank(classifier))})
    size = folder.manifest[fact]
    return {name: with_batch(method, size) for name, method in explainer.methods.items()}


def _blank(classifier: NetworkClassifier) -> Images:
    """A black image as the model wants it."""
    wanted = classifier.preprocessing
    if wanted.scaling == "nonzero":  # there black stays 0 and has no spread to be scaled by
        return torch.zeros(1, wanted.channels, *wanted.size, device=classifier.device)
    return classifier.prepare([np.zeros((wanted.channels, *wanted.size), np.float32)])
