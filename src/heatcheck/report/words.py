"""What every measure, interval and floor means, in words for a reader who has never seen a paper."""

from dataclasses import dataclass

from heatcheck.report.evidence import Entrant, Evidence, Measure
from heatcheck.report.numbers import SCORE, SHARE, Unit


@dataclass(frozen=True, slots=True)
class Plain:
    """A measure's short name, its unit and one sentence on what it means."""

    name: str
    unit: Unit
    sentence: str

    @property
    def axis_title(self) -> str:
        """The name with the unit's sign, for an axis whose numbers go without."""
        return self.name + (f" ({self.unit.sign.strip()})" if self.unit.sign else "")


# Measures that the page's own sentences speak of, or that a run adds by itself; the run explains every other.
# Names are those of the metrics' registry, which the report cannot import; a test compares the two.
_OWN = {
    "iou": Plain(
        "Overlap (IoU)",
        SCORE,
        "The area that the map\u2019s region and the radiologists\u2019 outline share, divided by the area either "
        "covers: 1 is a perfect match, 0 is no overlap.",
    ),
    "hit": Plain(
        "Hit rate",
        SHARE,
        "Hit: the hottest pixel of the map lies inside the radiologists\u2019 outline; the rate is the share of cases "
        "with a hit.",
    ),
    "precision": Plain("Pixel precision", SHARE, "The share of the region\u2019s pixels that lie inside the outline."),
    "recall": Plain("Pixel sensitivity", SHARE, "The share of the outline\u2019s pixels that the region covers."),
    "specificity": Plain("Pixel specificity", SHARE, "The share of pixels outside the outline that the region spares."),
    "auroc": Plain(
        "AUROC",
        SCORE,
        "The chance that the model gives a random image with the finding a higher probability than a random image "
        "without it: 1 is perfect, 0.5 is guessing.",
    ),
    "trigger_iou": Plain(
        "Overlap with the box (IoU)",
        SCORE,
        "The area that the detected box and the box around the trigger share, divided by the area either covers: 1 is "
        "a perfect match; 0 is no overlap, or nothing detected.",
    ),
    "trigger_mask_iou": Plain(
        "Overlap with the pixels (mask IoU)",
        SCORE,
        "The same, with the trigger\u2019s own pixels in place of the box around them: of a circle or a letter, a box "
        "can never cover these alone.",
    ),
    "recovered": Plain(
        "Recovered (TDR)",
        SHARE,
        "The share of images on which the poisoned model returns to its answer for the clean image once the clean "
        "pixels are pasted back inside the detected box (trigger detection rate).",
    ),
    "recovered_by_baseline": Plain(
        "Recovered, by the baseline (TDR as printed)",
        SHARE,
        "The paper\u2019s formula as printed asks the baseline, which was never poisoned and so answers much the same "
        "with or without the trigger: it says little about the box.",
    ),
    "overlap_difference": Plain(
        "Overlap difference (OD)",
        Unit(1, 4),
        "The pixels that still differ from the clean image after pasting, divided by all pixels of the image: 0 is "
        "best, and a larger trigger can leave more.",
    ),
    "uncovered": Plain(
        "Uncovered share",
        SHARE,
        "The share of the trigger\u2019s pixels that lie outside the detected box: 0 is best, whatever the "
        "trigger\u2019s size.",
    ),
    "box_area": Plain(
        "Box area", SHARE, "The share of the image that the detected box covers; 0 where nothing was detected."
    ),
    "msfi": Plain(
        "MSFI",
        SCORE,
        "Modality-specific feature importance: the share of a modality\u2019s heat that lies inside the lesion, "
        "averaged over modalities by how much each counts for the network. 1 means that all heat of the modalities "
        "that count lies on the lesion. It does not see how heat is shared between modalities: the modality "
        "correlation does.",
    ),
    "mi_correlation": Plain(
        "Modality correlation",
        SCORE,
        "Do the modalities that count get the heat? Kendall\u2019s \u03c4 between the modalities\u2019 importances for "
        "the network and the sums of their heat, case by case: 1 is the same order, 0 none, \u22121 the reverse (the "
        "MI correlation of Jin et al.).",
    ),
    "lesion_share": Plain(
        "Share in the lesion",
        SHARE,
        "The share of all heat, over all modalities, that lies inside the lesion.",
    ),
    "median_iou": Plain(
        "Overlap at the median (IoU)",
        SCORE,
        "The overlap of the lesion with the hotter half of a map (from the median of its values that are not 0 on), "
        "over all modalities: 1 is a perfect match.",
    ),
    "delta_aupc": Plain(
        "Faithfulness (\u0394AUPC)",
        SCORE,
        "How much sooner the network goes wrong when the hottest voxels are taken away first than when random ones "
        "are: above 0, the map marks what the network uses.",
    ),
    "rating": Plain("Reader rating", Unit(1, 0), "What readers gave the map, from 0 to 100."),
    "ece": Plain(
        "Calibration error (ECE)",
        SCORE,
        "How far, on average, the model\u2019s stated probability is from how often the finding is really there: 0 is "
        "perfect.",
    ),
}

INTERVAL = (
    "An interval is the range in which the true value plausibly lies, given how few or how many patients were seen; "
    "a narrow one means a sure answer. Where a dot has none, the tables say why."
)
FLOOR = (
    "A floor is a picture made without asking the model, and mostly without looking at the image: noise, the centre, "
    "edges, the place where the finding usually is. A useful method must beat it."
)
READERS = "Human readers are people who marked the same images by hand: the level that a map should come near."
TEST = (
    "A method beats a floor when their difference is too large to be chance: p below 0.05 after correcting for the "
    "number of tests made together (Holm)."
)
SMALLER = (
    "To save time, some methods were given less to work with than usual: fewer samples, steps or segments. Their maps "
    "are coarser or noisier than they could be."
)
CHANGED = "These settings are not what the method has when nothing is said."
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


def plain(measure: Measure) -> Plain:
    """The measure in plain words."""
    unit = SHARE if measure.name.startswith("hit") else SCORE
    return _OWN.get(measure.name) or Plain(measure.label, unit, measure.summary)


def floor_phrase(floor: Entrant) -> str:
    """What the floor amounts to, to follow the word "beat"."""
    return _FLOORS.get(floor.name, f"the floor \u201c{floor.label}\u201d")


def speaks_of(evidence: Evidence) -> str:
    """Which of several models the page speaks of, and why that one; nothing where there is only one."""
    if len(evidence.models) < 2:
        return ""
    why = "chosen on the validation data for overlap" if evidence.primary_chosen else "the first one named"
    return f"{evidence.models[0].label}, {why}"
