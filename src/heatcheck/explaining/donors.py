"""Images of other patients, whose pixels replace a segment in feature permutation.

A few are drawn with the run's seed and prepared once; a case never gets an image of its own patient.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from heatcheck.core.contracts import Classifier, Source
from heatcheck.core.errors import SpecError
from heatcheck.core.records import Case, CaseKey
from heatcheck.core.seeds import generator_for
from heatcheck.core.tensors import Images
from heatcheck.explaining.extra_inputs import ExtraValues
from heatcheck.methods import MethodFacts

MOST = 4  # donors of a case
NO_DONOR = "there is no image of another patient"


@dataclass(frozen=True)
class Donors:
    """One prepared image per patient, of some patients."""

    patients: tuple[str, ...]
    images: Images
    findings: int

    def wanted_by(self, facts: MethodFacts) -> bool:
        """Whether the method asks for donors."""
        return facts.wants_donors

    def for_batch(self, cases: Sequence[Case], classifier: Classifier) -> ExtraValues:  # noqa: ARG002 - are prepared
        """The donors of every case; without any, the first image stands in for a map that is not used."""
        by_case = [self.for_patient(case.key.patient) for case in cases]
        no_map = dict.fromkeys(range(self.findings), NO_DONOR)
        donors = tuple(images if len(images) else self.images[:1] for images in by_case)
        return ExtraValues({"donors": donors}, [{} if len(images) else no_map for images in by_case])

    def for_patient(self, patient: str) -> Images:
        """The first MOST images of other patients."""
        others = [index for index, donor in enumerate(self.patients) if donor != patient]
        return self.images[others[:MOST]]


def gather_donors(source: Source, keys: Sequence[CaseKey], classifier: Classifier, findings: int, seed: int) -> Donors:
    """One image per patient, of patients drawn with the seed: one more than a case needs, since one may be its own."""
    by_patient: dict[str, list[CaseKey]] = {}
    for key in keys:
        by_patient.setdefault(key.patient, []).append(key)
    generator = generator_for(seed, "donors")
    patients, images = [], []
    for number in generator.permutation(len(by_patient)):
        patient = list(by_patient)[number]
        image = _prepared(source, by_patient[patient][int(generator.integers(len(by_patient[patient])))], classifier)
        if image is not None:
            patients.append(patient)
            images.append(image)
        if len(images) > MOST:
            break
    if not images:
        raise SpecError("no case can be read, but feature_permutation needs images of other patients; leave it out")
    return Donors(tuple(patients), torch.cat(images), findings)


def _prepared(source: Source, key: CaseKey, classifier: Classifier) -> Images | None:
    """The case's image on the model's grid; None if it cannot be used, which the run records."""
    try:
        image = classifier.prepare([source.load(key).image])
    except Exception:  # noqa: BLE001 - whatever is wrong with one file must not stop the others
        return None
    return image if image.isfinite().all() else None
