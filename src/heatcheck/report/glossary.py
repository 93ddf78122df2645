"""Explanations that several pages share; those of terms come from the glossary."""

from heatcheck.core.glossary import meaning
from heatcheck.report.evidence import Entrant


def _sentence(beginning: str, term: str) -> str:
    text = meaning(term)
    return f"{beginning} {text[0].lower()}{text[1:]}"


INTERVAL = _sentence("An interval is", "interval") + " Where a dot has none, the tables say why."
FLOOR = _sentence("A floor is", "floor")
READERS = _sentence("Human readers are", "human readers")
SIMULATED_READERS = (
    "Simulated readers stand in for people: outlines a little off the true ones, some missing, made by the program "
    "that drew the images."
)
TEST = (
    "Intervals and p-values allow for all comparisons made together, so that an interval excludes 0 exactly where p is "
    "below 0.05."
)
SMALLER = (
    "To save time, some methods were given less to work with than usual: fewer samples, steps or segments. Their maps "
    "are coarser or noisier than they could be."
)
CHANGED = "These settings differ from the method’s defaults."
DECREASE = (
    "How much lower the method scores than the readers, in percent of the readers\u2019 score; it swings wildly where "
    "that score is near 0."
)

_FLOORS = {
    "random": "a random picture",
    "center_prior": "simply pointing at the centre of the image",
    "edge": "a plain edge filter",
    "location_prior": "simply pointing where this finding usually is",
}


def floor_phrase(floor: Entrant) -> str:
    """The floor in plain words, to follow the verb "beat"."""
    return _FLOORS.get(floor.name, f"the floor \u201c{floor.label}\u201d")
