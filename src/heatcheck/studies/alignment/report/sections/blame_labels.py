"""The readings of the blame table in a few words."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class BlameLabel:
    """A reading in a few words, with a sign and its meaning."""

    words: str
    sign: str
    meaning: str


UNDECIDED = BlameLabel("not shown", "?", "the intervals allow for both, or a number is missing")
NO_ROOM = BlameLabel(
    "cannot be decided",
    "?",
    "the map may be better than random maps, but it cannot be shown to be better than every map made without the "
    "model, because not even the human marks are",
)
ONCE = BlameLabel(
    "one training cannot tell", "?", "each network was trained once, and another training might do otherwise"
)
LOW = BlameLabel(
    "no fault found, but a low map score",
    "?",
    "the map marks the region better than every map made without the model, but hardly better than a random map: too "
    "little to show anyone",
)
BEFORE = {
    "method": BlameLabel(
        "the method\u2019s fault",
        "✕",
        "the model relies on the region, but the map hardly marks it better than random maps",
    ),
    "model": BlameLabel("the model\u2019s fault", "○", "the model hardly uses the region, and the map shows that"),
    "shows": BlameLabel(
        "no fault found",
        "✓",
        "the model relies on the region, and the map marks it better than every map made without the model",
    ),
    "usual": BlameLabel(
        "no better than the usual place",
        "?",
        "the map marks the region better than random maps, but no better than the best of the maps made without the "
        "model (usual place, centre, edges): that says nothing about map or model",
    ),
    "looks_elsewhere": BlameLabel(
        "the map flatters the model", "✕", "the map marks the region, although the model hardly uses it"
    ),
    "redundant": BlameLabel(
        "the model may use several places",
        "?",
        "hiding the region hardly matters, but the region, put on images without the finding, gives the model\u2019s "
        "score: another place may serve as well, and no fault can be read",
    ),
    "against": BlameLabel(
        "the model counts it against the finding",
        "?",
        "hiding the region raises the model\u2019s score: no fault of the map can be read",
    ),
    "undecided": UNDECIDED,
}
UNDER = {
    "follows": BlameLabel("the map follows the model", "✓", "map and reliance changed together, in proportion"),
    "foolable": BlameLabel(
        "the method is foolable",
        "✕",
        "the map changed while the model\u2019s reliance changed by less than matters, or the other way: no evidence",
    ),
    "unmoved": BlameLabel("the map did not move", "○", "on new patients the map did not change with the model"),
    "failed": BlameLabel(
        "fine-tuning failed", "?", "the map did not even change on the images that the network learned from"
    ),
    "undecided": UNDECIDED,
}

WEAK = BlameLabel(
    "the check fails", "✕", "a map made without the model passes for a good one, so the rule is too weak here"
)
PASSED = BlameLabel(
    "the check passes", "✓", "a map made without the model is not taken for one that shows what the model uses"
)
UNTOLD = BlameLabel("the check tells nothing", "?", "no reading of a map made without the model could be made here")
FLOOR = {  # the readings of maps made without the model, which check the rule and are no fault of a method
    "method": PASSED,
    "model": PASSED,
    "usual": PASSED,
    "shows": WEAK,
    "looks_elsewhere": WEAK,
    "redundant": UNTOLD,
    "against": UNTOLD,
    "undecided": UNTOLD,
}
EVERY = tuple(
    dict.fromkeys((*BEFORE.values(), LOW, NO_ROOM, *UNDER.values(), ONCE, PASSED, WEAK, UNTOLD))
)  # in the order of tables
