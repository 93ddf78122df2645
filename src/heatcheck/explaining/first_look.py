"""A first look at some of a study's images, before any work: do contract, images and model fit each other?"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from heatcheck.core.contracts import Source
from heatcheck.core.records import Case, CaseKey
from heatcheck.models import Preprocessing
from heatcheck.models.pixel_scale import require_pixel_scale
from heatcheck.running.cases import limited
from heatcheck.running.failed_cases import loaded_or_failed

MOST = {2: 12, 3: 3}  # images that are looked at, by axes: volumes take seconds to read


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

    def cases(self, contract: Preprocessing) -> Iterator[Case]:
        """The readable ones of these cases; the run records why others are not."""
        for key in self.keys_of(MOST[len(contract.size)]):
            case = loaded_or_failed(self.source, key)
            if isinstance(case, Case):
                yield case


def require_fitting_images(sample: Sample, contract: Preprocessing, name: str) -> None:
    """Refuse a contract of the model `name` whose mean and std cannot be those of the images."""
    ranges = [(float(case.image.min()), float(case.image.max())) for case in sample.cases(contract)]
    if ranges:
        lows, highs = zip(*ranges, strict=True)
        require_pixel_scale(contract, min(lows), max(highs), name)
