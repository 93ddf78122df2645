"""What is done before the first case: methods tried out, and what they ask of the study."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np
import torch

from heatcheck.core.contracts import Method, Source
from heatcheck.core.errors import SpecError
from heatcheck.core.records import CaseKey
from heatcheck.core.tensors import Images
from heatcheck.methods import METHODS
from heatcheck.methods.checks import in_one_sentence, require_fit
from heatcheck.methods.masking import best_batch, leaves_batch_open, with_batch
from heatcheck.methods.registry import Needs
from heatcheck.models import NetworkClassifier
from heatcheck.runs.store import RunFolder
from heatcheck.studies.donors import gather_donors
from heatcheck.studies.explaining import Explainer
from heatcheck.studies.priors import gather_priors
from heatcheck.studies.progress import Watcher
from heatcheck.studies.supplies import Supply


def try_out(explainer: Explainer) -> None:
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
        if facts.needs is not Needs.PREDICTIONS:
            with in_one_sentence(name, classifier):
                asked(classifier, blank, target, [0])


def require_other_patients(explainer: Explainer, keys: Sequence[CaseKey]) -> None:
    """Refuse a method that works with other patients' images where all are of one."""
    asking = [name for name in explainer.methods if METHODS[name].wants_donors]
    if asking and len({key.patient for key in keys}) < 2:
        raise SpecError(f"method {asking[0]} needs images of other patients, and all cases are of one; leave it out")


def supplies_for(explainer: Explainer, source: Source, keys: Sequence[CaseKey], watcher: Watcher) -> tuple[Supply, ...]:
    """Everything that some method of the study asks for."""

    def gathered() -> Iterator[Supply]:
        wanted = [METHODS[name] for name in explainer.methods]
        if any(facts.wants_priors for facts in wanted):
            yield gather_priors(source, keys, explainer.findings, watcher)
        if any(facts.wants_donors for facts in wanted):
            yield gather_donors(source, keys, explainer.classifier, len(explainer.findings), explainer.seed)

    return tuple(gathered())


def methods_with_batch(explainer: Explainer, folder: RunFolder) -> Mapping[str, Method]:
    """The methods, with the best number of masked copies at a time where they leave it open.

    It is found when the run begins and recorded: another number would change the last digits of a resumed run.
    """
    classifier = explainer.classifier
    if not any(map(leaves_batch_open, explainer.methods.values())) or not isinstance(classifier, NetworkClassifier):
        return explainer.methods
    if "max_batch" not in folder.manifest:
        folder.record(max_batch=best_batch(classifier, _blank(classifier)))
    size = folder.manifest["max_batch"]
    return {name: with_batch(method, size) for name, method in explainer.methods.items()}


def _blank(classifier: NetworkClassifier) -> Images:
    """A black image as the model wants it."""
    wanted = classifier.preprocessing
    return classifier.prepare([np.zeros((wanted.channels, *wanted.size), np.float32)])
