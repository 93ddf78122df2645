"""The first screen: a status for each question, what to show and what not, one case and one chart."""

import math
from collections.abc import Sequence
from dataclasses import replace

from heatcheck.judging.judgement import judgement_of, opposite_of
from heatcheck.report.blocks.films import FilmStrip
from heatcheck.report.charts.panels import Panel
from heatcheck.report.evidence import Evidence
from heatcheck.report.first_screen import FirstScreen, Light, Status
from heatcheck.report.numbers import SCORE, SHARE, count, few, listed, number, spread
from heatcheck.report.verdict import FEW_PATIENTS
from heatcheck.studies.alignment.report.advice import advice
from heatcheck.studies.alignment.report.facts import images_behind, manifest, pipelines, trained_once
from heatcheck.studies.alignment.report.gallery import MASS_AND_RANK, AlignmentGallery, StripCard, telling_card
from heatcheck.studies.alignment.report.readings import (
    Blame,
    Use,
    blames,
    map_score,
    named,
    reliance_share,
    uses,
    without_floors,
)
from heatcheck.studies.alignment.report.scale import Scale, scale_of, score_name
from heatcheck.studies.alignment.report.sections.blame import score_strip
from heatcheck.studies.alignment.report.sections.robustness import Pushed, pushed, visible
from heatcheck.studies.alignment.report.strip import arm_keys
from heatcheck.studies.alignment.report.verdict import lay_at, names_of

FEW_NAMED = 1  # networks that a status names for each party, with the methods on each
_UNIT = SCORE.rounded(2)
_PERCENT = SHARE.rounded(0)
FEWEST_TRAININGS = 3  # as in the paper's protocol


def answer(evidence: Evidence, gallery: AlignmentGallery) -> FirstScreen | None:
    """The first screen; None while nothing was judged and no score was pushed."""
    rows, ranked = blames(evidence), pushed(evidence)
    if not rows and not ranked:
        return None
    own = without_floors(rows)
    card = telling_card(gallery, ranked[0].pipeline if ranked else None)
    return FirstScreen(
        statuses=(
            _use(evidence, rows),
            _show(evidence, own),
            _fault(own),
            _resists(evidence, ranked),
            _enough(evidence, ranked),
        ),
        recommendation=advice(evidence, own, ranked),
        picture=_picture(card),
        chart=_chart(evidence, card, ranked),
        chart_keys=arm_keys(),
    )


def _use(evidence: Evidence, rows: Sequence[Blame]) -> Status:
    """Whether the base models use the outlined region."""
    question = "Does the model use the outlined region?"
    found = uses(rows)
    if not found:
        return Status(question, Light.OPEN, "Not judged", "What the networks use was not measured.")
    used, unused = ([key for key, use in found.items() if use is wanted] for wanted in (Use.USED, Use.UNUSED))
    shares = [share for key in used if not math.isnan(share := reliance_share(evidence, *key))]
    which = f"in {len(used)} of {count(len(found), 'pair')} of network and finding"
    sentence = f"It does {which}; it hardly does in {len(unused)}."
    if shares:
        takes = f"Hiding it takes {_range(shares)} of what separates images with the finding from images without it"
        sentence = f"{takes}."
    if len(used) == len(found):
        return Status(question, Light.YES, "Yes", sentence)
    if used:
        word = f"In {len(used)} of {len(found)} pairs of network and finding"
        return Status(question, Light.PARTLY, word, sentence)
    if len(unused) == len(found):
        return Status(question, Light.NO, "No", f"It hardly does in any of {count(len(found), 'pair')} of network and "
                      "finding.")  # fmt: skip
    return Status(question, Light.OPEN, "Not shown", sentence)


def _range(values: Sequence[float]) -> str:
    low, high = (number(end, _PERCENT) for end in (min(values), max(values)))
    return low if low == high else f"{low} to {high}"


def _show(evidence: Evidence, rows: Sequence[Blame]) -> Status:
    """Whether the maps of the base models show what these use: by more than any map made without them."""
    question = "Do the maps show what it uses?"
    if not rows:
        return Status(question, Light.OPEN, "Not judged", "No map was judged.")
    able = [row for row in rows if row.before not in {"model", "redundant", "against"}]
    if not able:
        nothing = "No network is shown to use the outlined region, so no map can show that it does."
        return Status(question, Light.OPEN, "Nothing to show", nothing)
    shown = [row for row in able if row.is_shown]
    poor = [row for row in able if row.before in {"method", "looks_elsewhere", "usual"}]
    combinations = count(len(able), "combination")
    sentence = (
        f"Better than every map made without the network: {len(shown)} of {combinations}."
        f"{_highest(evidence, able)}{_without_room(evidence, able)}"
    )
    if len(poor) == len(able):
        return Status(question, Light.NO, "No", sentence)
    if not shown:
        words = "Cannot be decided" if all(row.has_no_room for row in able) else "Not shown"
        return Status(question, Light.OPEN, words, sentence)
    light, words = (Light.YES, "Yes") if shown == able else (Light.PARTLY, f"In {len(shown)} of {len(able)}")
    return Status(question, light, words, sentence)


def _without_room(evidence: Evidence, rows: Sequence[Blame]) -> str:
    """On which findings no map can be shown to be better, since not even the readers beat the best floor."""
    scales = {row.finding: scale_of(evidence, row.finding) for row in rows}
    places = [f"{finding} ({scale.no_room_in_short})" for finding, scale in scales.items() if scale.no_room]
    if not places:
        return ""
    undecided = sum(row.has_no_room for row in rows)
    left = f": {undecided} of {len(rows)} undecided" if undecided else ""
    return f" Not even {next(iter(scales.values())).top_label} beat those maps on {few(places)}{left}."


def _highest(evidence: Evidence, rows: Sequence[Blame]) -> str:
    """The highest map score of the networks before fine-tuning, and what its scale is."""
    scores = [score for row in rows if not math.isnan(score := map_score(evidence, row.pipeline, row.finding))]
    if not scores:
        return ""
    top = scale_of(evidence, rows[0].finding).top_mark
    return f" Highest map score before fine-tuning: {number(max(scores), _UNIT)} (random map 0, {top} 1)."


def _fault(rows: Sequence[Blame]) -> Status:
    """Whose fault poor maps are, in counts: a word for each party, of how many combinations it is."""
    question = "Whose fault is a poor map?"
    parties = {
        "The method\u2019s": "method",
        "The model\u2019s": "model",
        "Maps flatter a model": "looks_elsewhere",
    }
    found = {words: [row for row in rows if row.before == before] for words, before in parties.items()}
    found = {words: of_party for words, of_party in found.items() if of_party}
    poor = sum(map(len, found.values()))
    if rows and all(row.is_shown for row in rows):
        return Status(question, Light.YES, "No fault found", "Every map shows what its network uses.")
    if not poor:
        return Status(question, Light.OPEN, "Not shown", "No reading puts the fault on a method or on a model.")
    names = {words: named(of_party) for words, of_party in found.items()}
    parts = [f"{_inside(words)} for {listed(of)}" for words, of in names.items() if len(of) <= FEW_NAMED]
    undecided = sum(row.has_no_room for row in rows)
    rest = len(rows) - poor - undecided - sum(row.is_shown for row in rows)
    parts += [f"nothing can be decided in {undecided}"] if undecided else []
    parts += [f"no fault is shown in {rest}"] if rest else []
    sentence = f"Before fine-tuning{': ' if parts else ''}{listed(parts)}."
    whole = poor == len(rows)
    if len(found) == 1:
        (words,) = found
        return Status(question, Light.NO if whole else Light.PARTLY, words + _of(poor, rows), sentence)
    said = [f"{words if i == 0 else _inside(words)} in {len(each)}" for i, (words, each) in enumerate(found.items())]
    return Status(question, Light.NO if whole else Light.PARTLY, f"{listed(said)} of {len(rows)}", sentence)


def _of(n: int, rows: Sequence[Blame]) -> str:
    """Of how many it is said, where it is not said of all."""
    return "" if n == len(rows) else f" in {n} of {len(rows)}"


def _inside(words: str) -> str:
    """The words in the middle of a sentence."""
    return words[:1].lower() + words[1:]


def _resists(evidence: Evidence, ranked: Sequence[Pushed]) -> Status:
    """Whether the score stays where it is when only the model is tuned."""
    question = "Does the score hold when a model is tuned?"
    if not ranked:
        return Status(question, Light.OPEN, "Not tested", "No aligned and misaligned networks could be compared.")
    what = f"the {score_name(evidence)}"
    lay = f"{what} was {lay_at(evidence, ranked[0])}; {names_of(ranked[0])}"
    if trained_once(evidence):
        return Status(question, Light.OPEN, "One training cannot tell", f"On these networks, each trained once, {lay}. "
                      "Another training may differ.")  # fmt: skip
    yes = [each for each in ranked if judgement_of(each.row).is_yes]
    against = [each for each in ranked if opposite_of(each.row).is_yes]
    if yes or against:
        moved = len(yes) + len(against)
        pairs = f"{moved} of {count(len(ranked), 'pair')} of model and method"
        return Status(question, Light.NO, "No", f"Tuning the model alone clearly moved it in {pairs}: "
                      f"{'at most, ' if moved > 1 else ''}{lay}.")  # fmt: skip
    if all(judgement_of(each.row).is_no for each in ranked):
        return Status(question, Light.YES, "Yes", f"In no pair of {len(ranked)} does it move by a size that matters.")
    return Status(question, Light.OPEN, "Not shown", f"At most, {lay}, which may be chance.")


def _enough(evidence: Evidence, ranked: Sequence[Pushed]) -> Status:
    """Whether there are enough trainings and images to speak of methods."""
    question = "Enough trainings and images?"
    seeds, images = len(manifest(evidence).seeds), list(images_behind(evidence).values())
    maps = f"Map scores rest on {spread(images)} images per finding." if images else ""
    if trained_once(evidence):
        return Status(
            question,
            Light.NO,
            "One training each",
            f"What is said of fine-tuning holds for these networks only. {maps}",
        )
    patients = max((each.row.n_patients for each in ranked), default=0)
    sentence = visible(evidence) or maps
    trainings = count(seeds, "training")
    if seeds < FEWEST_TRAININGS or patients < FEW_PATIENTS:
        return Status(question, Light.PARTLY, "A first impression", sentence or f"{trainings} of each network.")
    return Status(question, Light.YES, f"{trainings} each", sentence)


def _picture(card: StripCard | None) -> FilmStrip | None:
    """The films of the case on which the aligned and misaligned maps of the most moved pair differ most."""
    if card is None:
        return None
    chosen = "Chosen: of the pair whose score moved furthest, the case on which its two tuned maps differ most. "
    return replace(
        card.strip,
        anchor="telling",
        title=f"One case with {card.finding}: {card.pipeline}, four networks",
        note=f"Outlined: where the experts see it. {MASS_AND_RANK} {'' if math.isnan(card.apart) else chosen}Base: "
        "before fine-tuning; control: fine-tuned without maps; aligned: so that its maps go toward the outlines; "
        "misaligned: away from them.",
        link="pictures",
    )


def _chart(evidence: Evidence, card: StripCard | None, ranked: Sequence[Pushed]) -> Panel | None:
    """The map scores of the four networks of the picture's pair and finding; without one, of the most moved."""
    wanted = (card.model, card.method) if card else ()
    own = [each for each in pipelines(evidence) if (each.base.name, each.method.name) == wanted]
    shown = next(iter((*own, *(each.pipeline for each in ranked))), None)
    findings = [card.finding] if card else list(evidence.findings)
    if shown is None:
        return None
    for finding in findings:
        drawn = score_strip(evidence, shown, finding)
        if drawn:
            heading = f"Mean map score: {shown.method.label} on {shown.base.label}, {finding}"
            return Panel(heading, drawn, _ends(evidence, scale_of(evidence, finding)))
    return None


def _ends(evidence: Evidence, scale: Scale) -> str:
    """Which scores the scale of the chart is made of, so that it is not taken for that of the scores themselves."""
    random, best, top = (number(score, _UNIT) for score in (scale.random, scale.best, scale.top))
    floor = f"; the {scale.best_label} has {best}" if scale.best > scale.random else ""
    return (
        f"Map score: the {score_name(evidence)}, on a scale from a random map (0: a share of {random}) to "
        f"{scale.top_label} (1: a share of {top}){floor}."
    )
