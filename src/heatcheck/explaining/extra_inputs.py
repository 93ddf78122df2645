"""What a study knows beyond an image and provides to the methods that need it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from heatcheck.core.contracts import Classifier, Method
from heatcheck.core.records import Case
from heatcheck.methods import MethodFacts


@dataclass(frozen=True, slots=True)
class ExtraValues:
    """A method's fields for a batch of cases, and the maps that must not be used because some input is missing."""

    settings: Mapping[str, Any]
    missing: Sequence[Mapping[int, str]]  # for each case: the positions of findings without a map, and why

    def filled_in(self, method: Method) -> Method:
        """The method with these values in its fields."""
        return replace(method, **self.settings) if self.settings else method  # type: ignore[type-var]


class ExtraInput(Protocol):
    """One kind of extra input, gathered before the first case."""

    def wanted_by(self, facts: MethodFacts) -> bool:
        """Whether the method needs it."""

    def for_batch(self, cases: Sequence[Case], classifier: Classifier) -> ExtraValues:
        """The values for these cases, none of which come from the case's own patient."""
