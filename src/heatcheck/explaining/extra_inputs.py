"""What a study knows beyond an image and hands to the methods that ask for it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from heatcheck.core.contracts import Classifier, Method
from heatcheck.core.records import Case
from heatcheck.methods import MethodFacts


@dataclass(frozen=True, slots=True)
class ExtraValues:
    """A method's fields for a batch of cases, and the maps that must not be used because something was missing."""

    settings: Mapping[str, Any]
    missing: Sequence[Mapping[int, str]]  # for each case: the places of findings without a map, and why

    def filled_in(self, method: Method) -> Method:
        """The method with these fields."""
        return replace(method, **self.settings) if self.settings else method  # type: ignore[type-var]


class ExtraInput(Protocol):
    """One kind of knowledge, gathered before the first case."""

    def wanted_by(self, facts: MethodFacts) -> bool:
        """Whether the method asks for it."""

    def for_batch(self, cases: Sequence[Case], classifier: Classifier) -> ExtraValues:
        """The values for these cases; none of them come from a case's own patient."""
