"""Cases to look at: every method's map of a case in one grid, over the modality and the slice that are chosen."""

from heatcheck.report.blocks.block import Drawn
from heatcheck.report.blocks.gallery import Gallery
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import count
from heatcheck.report.page import Section
from heatcheck.studies.modality.report.facts import grades_in_words, manifest
from heatcheck.studies.modality.report.gallery import ModalityCard

ANCHOR = "pictures"
CASES = "Test cases with all their modalities."
ORIENTED = (
    "They are in radiological orientation where the files state theirs: axial slices seen from the feet, the front of "
    "the head up, the patient\u2019s right (R) on the left."
)
SLICED = "Move the slider to go through the slices; all pictures of the case follow."
CHOSEN = "Below are all methods\u2019 maps of the predicted class over one modality; choose another to see its maps."
BELOW = "Below are all methods\u2019 maps of the predicted class over every modality."
ORDER = "The methods with the highest MSFI over all cases come first."


def pictures(evidence: Evidence, gallery: Gallery[ModalityCard]) -> Section:
    """The gallery, or that the run kept no pictures."""
    drawn = Drawn("study/cases.html", content(evidence, gallery))
    return Section(ANCHOR, "Cases to look at", "Pictures", (drawn,), summary(gallery))


def content(evidence: Evidence, gallery: Gallery[ModalityCard]) -> dict[str, object]:
    """What the template of the cards is given."""
    deep = manifest(evidence).space == 3
    labels = [trial.label for card in gallery.cards for trial in card.trials]
    chosen = next((card for card in gallery.cards if card.one_view), None)
    names = tuple(view.modality for view in chosen.views) if chosen else ()
    sided = any(card.sides for card in gallery.cards)
    layers = [("heat", "heat map"), ("truth", "outline"), *([("sides", "letters of the sides")] if sided else [])]
    oriented = "" if manifest(evidence).source.drawn else ORIENTED
    intro = (CASES, oriented, grades_in_words(evidence), SLICED if deep else "", CHOSEN if chosen else BELOW, ORDER)
    return {
        "gallery": gallery,
        "methods": list(dict.fromkeys(labels)),
        "first": 1 if deep else 2,
        "intro": " ".join(sentence for sentence in intro if sentence),
        "layers": layers,
        "modalities": names,
        "chosen": names[chosen.first_view] if chosen else "",
    }


def summary(gallery: Gallery[ModalityCard]) -> str:
    """How many cases can be looked at, and how many of them the network gets wrong."""
    if not gallery.cards:
        return "This run kept no pictures."
    wrong = sum(card.group == "misclassified" for card in gallery.cards)
    methods = max(len(card.trials) for card in gallery.cards)
    misses = f", {wrong} of them misclassified" if wrong else ""
    return f"{count(len(gallery.cards), 'case')}{misses}, each with the maps of {count(methods, 'method')}."
