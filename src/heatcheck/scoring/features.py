"""The rows of what a map looks like without the truth."""

import math
from collections.abc import Iterator, Mapping

from heatcheck.core.records import Case, Map, Score
from heatcheck.metrics.features import AGREEMENT, CONCENTRATION, agreements, concentration


def feature_rows(case: Case, finding: str, small_maps: Mapping[str, Map], model: str) -> Iterator[Score]:
    """The features of every method's map of a finding; none where it is unknown whether the finding is there."""
    known = finding in case.truth or case.key.labels.get(finding) in (0, 1)
    agree = agreements(small_maps) if known else {}
    for method in agree:
        features = {CONCENTRATION: concentration(small_maps[method]), AGREEMENT: agree[method]}
        for metric, value in features.items():
            if not math.isnan(value):
                yield Score(case.key.case, case.key.patient, finding, method, model, metric, value)
