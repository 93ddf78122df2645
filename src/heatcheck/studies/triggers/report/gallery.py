"""Cases to look at: a poisoned image with every method's map and box, and the images that the boxes recover."""

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path

from heatcheck.judging.sizes import Sizes
from heatcheck.report.blocks.block import Drawn, prose
from heatcheck.report.blocks.films import Film, FilmStrip, Outline
from heatcheck.report.blocks.gallery import Gallery, by_name, gallery_of, likely, number_or_dash, orientation
from heatcheck.report.blocks.pictures import image_uri, map_uri
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, count
from heatcheck.report.page import Section
from heatcheck.studies.triggers.report.facts import LARGE_BOX, manifest, triggers_of
from heatcheck.studies.triggers.vocabulary import Corners, TriggerEntry, TriggerMapEntry

ANCHOR = "pictures"
BRIGHTEST = 99.5  # percentile of a map at which its colour scale ends: one hot pixel cannot hide the others
EDGE = 0.007  # of the picture's longer side: about half the width of a line
AS_GIVEN = "left and right as in the image file"
RECOVERED = "recovered"
BY_SIZE = "recovered by its size"  # where the box covers a large part of the image
_TELLING = "usual"  # why the case of the first screen was chosen for the gallery


@dataclass(frozen=True, slots=True)
class Rectangle:
    """A box in pixels of the image: left, top, width and height."""

    x: float
    y: float
    width: float
    height: float

    def outline(self, style: str, size: tuple[float, float]) -> Outline:
        """The line around the box; where it lies on the picture's edge, it is moved in so far that all of it shows."""
        inside = EDGE * max(size)
        left, top = max(self.x, inside), max(self.y, inside)
        right, bottom = (
            min(end, side - inside) for end, side in zip((self.x + self.width, self.y + self.height), size, strict=True)
        )
        width, height = right - left, bottom - top
        return Outline(style, f"M{left:.4g} {top:.4g}h{width:.4g}v{height:.4g}h{-width:.4g}Z")


@dataclass(frozen=True, slots=True)
class MethodOutcome:
    """What became of one poisoned image once clean pixels were pasted into one method's box."""

    label: str
    box: Rectangle | None
    overlap: float  # with the trigger's box; NaN where it is unknown
    sign: str  # of the overlap alone: a large box recovers by its size
    word: str
    sentence: str

    @property
    def is_recovered(self) -> bool:
        """Whether the model returned to its answer for the clean image, by whatever box."""
        return self.word in {RECOVERED, BY_SIZE}


@dataclass(frozen=True, slots=True)
class TriggerCard:
    """One poisoned image as the page shows it."""

    case: str
    trigger: str  # the trigger's name
    finding: str  # the trigger's label
    why: str  # it was chosen
    strip: FilmStrip  # of the poisoned image, with a film per method
    clean: str
    outcomes: tuple[MethodOutcome, ...]
    baseline: tuple[tuple[str, str], ...]  # label and map of the clean image
    baseline_says: str

    @property
    def group(self) -> str:
        """Why it was chosen."""
        return self.why

    @property
    def weight(self) -> int:
        """About how many bytes the card adds to the page."""
        recovered = 600 * len(self.outcomes)
        return self.strip.weight + len(self.clean) + sum(len(uri) + 500 for _, uri in self.baseline) + recovered + 2500

    @property
    def spread(self) -> float:
        """How far apart the methods' overlaps are."""
        known = [each.overlap for each in self.outcomes if not math.isnan(each.overlap)]
        return max(known) - min(known) if known else -1.0


TriggerGallery = Gallery[TriggerCard]


def trigger_gallery(evidence: Evidence, budget: int) -> TriggerGallery:
    """As many cards as fit into `budget` bytes, in the order the study chose them."""
    names = {method.name: method.label for method in evidence.methods}
    names |= {floor.name: f"{floor.label} (floor)" for floor in evidence.floors}
    names |= {trigger.name: trigger.label for trigger in triggers_of(evidence)}
    least = least_overlap(evidence)
    return gallery_of(evidence, TriggerEntry, lambda entry, folder: _card(entry, folder, names, least), budget)


def least_overlap(evidence: Evidence) -> float:
    """The smallest overlap with which a method can find triggers."""
    return Sizes(**manifest(evidence).sizes).above_floor(0.0, 1.0)


def in_signs(evidence: Evidence) -> str:
    """What the signs of single images stand for."""
    return f"✓ stands for an overlap of at least {least_overlap(evidence):g}, without which no method finds a trigger"


def pictures(evidence: Evidence, gallery: TriggerGallery) -> Section | None:
    """The section with the cards; None when no trigger was planted."""
    if not triggers_of(evidence):
        return None
    title = "Cases to look at"
    if not gallery.cards:
        none = "This run kept no pictures, so there is no gallery."
        return Section(ANCHOR, title, "Pictures", (*prose(none), *prose(*gallery.left_out, small=True)), none)
    triggers = f" with {count(len(gallery.findings), 'trigger')}" if len(gallery.findings) > 1 else ""
    summary = f"{count(len(gallery.cards), 'poisoned image')}{triggers}, each with the map of every method."
    drawn = Drawn("study/cases.html", {"gallery": gallery, "signs": in_signs(evidence)})
    return Section(ANCHOR, title, "Pictures", (drawn,), summary)


def telling_strip(evidence: Evidence, gallery: TriggerGallery) -> FilmStrip | None:
    """The films of the usual case on which the methods differ most; None where no pictures were kept."""
    card = max(gallery.cards, key=lambda each: (each.why == _TELLING, each.spread), default=None)
    if card is None:
        return None
    why = f"Chosen as {card.why} by the mean overlap of all methods. " if card.why else ""
    return replace(
        card.strip,
        anchor="telling-case",
        title=f"One poisoned image: {card.finding}",
        note=f"Dashed: where the trigger is. Solid: the box detected in that map. {in_signs(evidence)}. {why}",
        link=ANCHOR,
    )


def _card(entry: TriggerEntry, folder: Path, names: Mapping[str, str], least: float) -> TriggerCard:
    order, planted = list(names), _rectangle(entry.trigger_box)
    maps = by_name(entry.maps, lambda each: each.method, order)
    can_return = not entry.clean_says or entry.clean_says != entry.target
    height, width = entry.shape
    outcomes = tuple(
        _method_outcome(each, names, _sign(each, least), height * width, can_return=can_return) for each in maps
    )
    finding = names.get(entry.trigger, entry.trigger)
    size = (float(width), float(height))
    marked = planted.outline("planted", size)
    alone = Film(
        "Poisoned image", f"Poisoned image of case {entry.case} with the box around the trigger", "", (marked,)
    )
    drawn = zip(outcomes, maps, strict=True)
    films = [
        _film(outcome, map_uri(folder, each.file, BRIGHTEST), (marked, *_found(outcome, size)), entry.case)
        for outcome, each in drawn
    ]
    return TriggerCard(
        case=entry.case,
        trigger=entry.trigger,
        finding=finding,
        why=entry.why,
        strip=FilmStrip(
            anchor=f"picture-{entry.id}",
            title=finding,
            case=_said(entry),
            size=size,
            image=image_uri(folder, entry.poisoned),
            films=(alone, *films),
            note=f"Why it was chosen: {entry.why}, by the mean overlap of all methods." if entry.why else "",
        ),
        clean=image_uri(folder, entry.clean),
        outcomes=outcomes,
        baseline=tuple(
            (names.get(each.method, each.method), map_uri(folder, each.file, BRIGHTEST))
            for each in by_name(entry.baseline, lambda each: each.method, order)
        ),
        baseline_says=entry.baseline_says,
    )


def _said(entry: TriggerEntry) -> str:
    """The case, its class, the poisoned model's answers without and with the trigger, and which way is right."""
    chance = likely(entry.probability)
    parts = (
        f"Case {entry.case}",
        "" if entry.seed is None else f"network of seed {entry.seed}",
        f"true class {entry.label}" if entry.label else "",
        f"without the trigger the poisoned model says {entry.clean_says}" if entry.clean_says else "",
        f"with it {entry.target}{f' ({chance} likely)' if chance else ''}" if entry.target else "",
        orientation("", AS_GIVEN),
    )
    return " · ".join(filter(None, parts))


def _found(outcome: MethodOutcome, size: tuple[float, float]) -> tuple[Outline, ...]:
    return (outcome.box.outline("found", size),) if outcome.box else ()


def _film(outcome: MethodOutcome, uri: str, outlines: tuple[Outline, ...], case: str) -> Film:
    """One method's map over the poisoned image, with the trigger's box and the detected one."""
    overlap = number_or_dash(outcome.overlap, SCORE.rounded(2))
    said = f"detected box with IoU {overlap}" if outcome.box else "nothing detected"
    return Film(
        label=outcome.label,
        described=f"{outcome.label}: heat map over the poisoned image of case {case}; {said}; {outcome.sentence}",
        heat=uri,
        outlines=outlines,
        sign=outcome.sign,
        caption=f"IoU {overlap} · {outcome.word}",
    )


def _rectangle(box: Corners) -> Rectangle:
    left, top, right, bottom = map(float, box)
    return Rectangle(left, top, right - left, bottom - top)


def _sign(entry: TriggerMapEntry, least: float) -> str:
    """Whether the box overlaps the trigger by enough to show it."""
    if entry.iou is None or math.isnan(entry.iou):
        return "?"
    return "✓" if entry.iou >= least else "✕"


def _method_outcome(
    entry: TriggerMapEntry, names: Mapping[str, str], sign: str, pixels: int, *, can_return: bool
) -> MethodOutcome:
    box = _rectangle(entry.box) if entry.box else None
    large = sign != "✓" and box is not None and box.width * box.height >= LARGE_BOX * pixels
    word, sentence = _outcome(entry.recovered, entry.says, detected=box is not None, large=large)
    if not can_return:  # as in the scores, where recovery is undefined on such an image
        word = "nothing to recover"
        sentence = "nothing to recover: the model gives this answer without the trigger too"
    return MethodOutcome(
        label=names.get(entry.method, entry.method),
        box=box,
        overlap=math.nan if entry.iou is None else entry.iou,
        sign=sign,
        word=word,
        sentence=sentence,
    )


def _outcome(recovered: float | None, says: str, *, detected: bool, large: bool) -> tuple[str, str]:
    """The word and the sentence for what happens once clean pixels are pasted into the box."""
    answer = f": the model says {says}" if says else ""
    if not detected:
        return "nothing detected", "nothing detected, so nothing recovered"
    if recovered is None or math.isnan(recovered):
        return "unknown", "whether the image was recovered is unknown"
    if recovered:
        return (BY_SIZE, f"{BY_SIZE}{answer}") if large else (RECOVERED, f"{RECOVERED}{answer}")
    return "not recovered", f"not recovered{answer}"
