"""All methods at a glance: the criterion applied to every method, against random boxes and against the baseline."""

from collections.abc import Sequence
from dataclasses import dataclass

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import DIFFERENCE, MEAN
from heatcheck.judging.sizes import Sizes
from heatcheck.report.blocks.block import (
    Block,
    Bullets,
    Figures,
    Heading,
    ListCell,
    ListColumn,
    Listing,
    Prose,
    Terms,
    prose,
)
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.numbers import SHARE, number
from heatcheck.report.page import Section
from heatcheck.report.verdict import CLEARLY, NOT_SHOWN, answer
from heatcheck.studies.triggers.report.facts import (
    manifest,
    training_each,
    trainings,
    triggers_of,
)
from heatcheck.studies.triggers.report.plots import detection_keys, overall
from heatcheck.studies.triggers.report.verdict import (
    CRITERION,
    FINDS,
    NO_TRAINING_MORE,
    NOT,
    OPEN,
    TriggerJudgement,
    judged_methods,
    of_these_only,
    overlaps_in_short,
    tally,
)
from heatcheck.studies.triggers.vocabulary import CONTROL, CRITERION_METRICS, HALF, floor_of

_SIGNS = {FINDS: "✓", NOT: "✕", OPEN: "?"}
INTERVAL = (
    "The range in which the true value plausibly lies, given how few or how many trainings and images were seen: first "
    "seeds, then images are resampled. A narrow one means a precise answer."
)
FLOOR = (
    "What a box of the same height and width would score at a random position. A large box overlaps and recovers much "
    "by its size alone; a method must beat the floor that its own boxes have."
)
ON_BASELINE = (
    "The same method explains the baseline on the same images with the trigger. The baseline was never attacked, so "
    "what its maps overlap of it has nothing to do with the attack: an edge, a corner, a bright patch, or a dynamic "
    "patch, which is made from what the baseline is most sensitive to."
)

TERMS = (("Random-box floor", FLOOR), ("Overlap on the baseline", ON_BASELINE), ("Interval", INTERVAL))
COLUMNS = (
    ListColumn("Method"),
    ListColumn("Finds it?"),
    ListColumn("Overlap clearly above random boxes?"),
    ListColumn("Overlap clearly above that on the baseline?"),
    ListColumn("Recovery clearly above random boxes?"),
    ListColumn("More than half of the images recovered?"),
    ListColumn("Box area", numeric=True),
)


@dataclass(frozen=True, slots=True)
class TriggerVerdictRow:
    """A row of the table: outcome and reasons in words."""

    entrant: Entrant
    sign: str
    outcome: str
    aside: str  # more about the outcome, where a few words suffice
    overlap: str
    follows: str
    recovered: str
    half: str
    area: str

    @property
    def cells(self) -> tuple[str | ListCell, ...]:
        """The row of the listing."""
        outcome = ListCell(self.outcome, self.aside, self.sign)
        return (self.entrant.label, outcome, self.overlap, self.follows, self.recovered, self.half, self.area)


def overview(evidence: Evidence) -> Section | None:
    """Every method over all triggers, as plots and by the criterion; None when no trigger was planted."""
    if not triggers_of(evidence):
        return None
    judged = judged_methods(evidence)
    blocks = (*_plots(evidence), *_criterion(evidence, judged), Terms(_terms(evidence)))
    return Section("overview", "All methods at a glance", "Methods", blocks, _summary(evidence, judged), printed=True)


def judged_rows(evidence: Evidence) -> list[TriggerVerdictRow]:
    """The criterion in words, method by method."""
    return [_row(evidence, each) for each in judged_methods(evidence)]


def criterion_words(evidence: Evidence) -> tuple[str, ...]:
    """What "clearly" and "not shown" mean, which size matters, and what one training cannot show."""
    return tuple(filter(None, (CLEARLY, _size(evidence), _one_training(evidence) or NOT_SHOWN)))


def _summary(evidence: Evidence, judged: Sequence[TriggerJudgement]) -> str:
    if not judged:
        return "No method could be judged."
    if trainings(evidence) == 1:
        return f"Here, {overlaps_in_short(evidence, judged)}."
    return tally(judged)


def _plots(evidence: Evidence) -> tuple[Block, ...]:
    panels = tuple(panel for metric in CRITERION_METRICS if (panel := overall(evidence, metric)))
    if not panels:
        return prose(f"There are no scores to show{'' if evidence.finished else ' yet'}.")
    return (
        Prose(
            "Each row is the mean over all triggers, every trigger weighted equally. Further right is better, and a "
            "dot should lie to the right of its own tick; the table below says where this is clear."
        ),
        Figures(panels, detection_keys(panels), "pair"),
    )


def _criterion(evidence: Evidence, judged: Sequence[TriggerJudgement]) -> tuple[Block, ...]:
    if not judged:
        return ()
    rows = tuple(_row(evidence, each).cells for each in judged)
    return (
        Heading("What counts as finding a trigger"),
        Prose("A method finds triggers when all of this holds:"),
        Bullets(CRITERION),
        *(Prose(sentence) for sentence in criterion_words(evidence)),
        Listing("The criterion, method by method", COLUMNS, rows),
    )


def _terms(evidence: Evidence) -> tuple[tuple[str, str], ...]:
    rule = manifest(evidence).detection.main_rule
    measures = [evidence.metrics[metric] for metric in CRITERION_METRICS if metric in evidence.metrics]
    box = (("Detected box", f"How a map becomes a box: {rule}."),) if rule else ()
    return (*((measure.label, measure.summary) for measure in measures), *box, *TERMS)


def _size(evidence: Evidence) -> str:
    """The size that matters in a comparison with random boxes."""
    share = Sizes(**manifest(evidence).sizes).maps
    return (
        f"The size that matters here is {number(share, SHARE.rounded(0))} of the room between random boxes, or the "
        f"baseline, and a perfect score, so a method that finds triggers has a mean IoU of at least {share:g}. It does "
        "not find them where the whole interval of one of its three differences lies below that size."
    )


def _one_training(evidence: Evidence) -> str:
    return (
        f"Methods were judged with {training_each(evidence)}, so nothing is shown: {of_these_only(evidence)}. Other "
        "trainings (seeds) would decide it, not more patients."
        if trainings(evidence) == 1
        else ""
    )


def _row(evidence: Evidence, judgement: TriggerJudgement) -> TriggerVerdictRow:
    entrant = judgement.entrant
    area = evidence.value(MEAN, "box_area", ALL_FINDINGS, entrant.name)
    half = evidence.find(DIFFERENCE, "recovered", ALL_FINDINGS, entrant.name, HALF)
    return TriggerVerdictRow(
        entrant,
        _SIGNS[judgement.outcome],
        _of_one_training(evidence, judgement.outcome),
        _aside(judgement),
        _against(evidence, judgement.overlaps, "trigger_iou", floor_of("trigger_iou")),
        _against(evidence, judgement.follows, "trigger_iou", CONTROL),
        _against(evidence, judgement.recovers, "recovered", floor_of("recovered")),
        _of_one_training(evidence, answer(half)),
        number(area, SHARE),
    )


def _of_one_training(evidence: Evidence, words: str) -> str:
    """An open answer with its reason, where that is the number of trainings and not of patients."""
    return NO_TRAINING_MORE if words == OPEN and trainings(evidence) == 1 else words


def _aside(judgement: TriggerJudgement) -> str:
    if judgement.only_recovers:
        return "recovers, but its boxes do not show where the trigger is"
    if judgement.outcome == NOT and judgement.ignores_the_attack:
        return "overlaps the trigger as much on the baseline, which was never attacked"
    return judgement.would_decide


def _against(evidence: Evidence, row: Estimate | None, metric: str, control: str) -> str:
    if row is None:
        return answer(row)
    mean, floor = (evidence.value(MEAN, name, ALL_FINDINGS, row.method) for name in (metric, control))
    unit = evidence.metrics[metric].unit
    unit = unit.rounded(unit.decimals - 1)
    return f"{_of_one_training(evidence, answer(row))}: {number(mean, unit)} against {number(floor, unit)}"
