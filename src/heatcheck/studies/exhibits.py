"""A case worth looking at, with every method's map of one finding."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

from heatcheck.core.records import Case, Map
from heatcheck.explaining.study_models import CaseExplainer
from heatcheck.methods import METHODS


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One case with the maps of one finding, by method, and how likely the model thinks that finding."""

    case: Case
    maps: Mapping[str, Map]
    probability: float


def explained_exhibit(explainer: CaseExplainer, case: Case, finding: str) -> Exhibit:
    """The maps made anew, of the methods that have one, in the study's order.

    A method that looks at the model is asked for that finding alone. Floors cost nothing and draw by the place of a
    finding among all, so they are asked for all.
    """
    floors = {name: method for name, method in explainer.methods.items() if METHODS[name].is_floor}
    others = {name: method for name, method in explainer.methods.items() if name not in floors}
    alone = replace(explainer, methods=others, findings=(finding,))([case])[0][0]
    among_all = replace(explainer, methods=floors)([case])[0][0]
    maps = {
        name: among_all.map_of(name, explainer.findings.index(finding)) if name in floors else alone.map_of(name, 0)
        for name in explainer.methods
    }
    return Exhibit(case, {name: values for name, values in maps.items() if values is not None}, alone.probabilities[0])
