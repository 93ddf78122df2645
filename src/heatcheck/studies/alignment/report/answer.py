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
from heatcheck.studies.alignment.report.gallery import AlignmentGallery, StripCard, telling_card
from heatcheck.studies.alignment.report.readings import (
    Blame,
    Use,
    blames,
    map_score,
    reliance_share,
    uses,
    without_floors,
)
from heatcheck.studies.alignment.report.sections.blame import score_strip
from heatcheck.studies.alignment.report.sections.blame_tables import against_truth
from heatcheck.studies.alignment.report.sections.robustness import Pushed, pushed, visible
from heatcheck.studies.alignment.report.strip import arm_keys
from heatcheck.studies.alignment.report.verdict import from_to, names_of

_UNIT = SCORE.rounded(2)
_PERCENT = SHARE.rounded(0)
SCORES = {"mass": "the share of heat inside the outline"}
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
        sentence = f"{takes} ({which})."
    if len(used) == len(found):
        return Status(question, Light.YES, "Yes", sentence)
    if used:
        return Status(question, Light.PARTLY, f"In {len(used)} of {len(found)}", sentence)
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
        f"Better than every map made without the network: {len(shown)} of {combinations} of network, method and "
        f"finding.{_highest(evidence, able)}"
    )
    if len(shown) == len(able):
        return Status(question, Light.YES, "Yes", sentence)
    if shown:
        return Status(question, Light.PARTLY, f"In {len(shown)} of {len(able)}", sentence)
    if len(poor) == len(able):
        return Status(question, Light.NO, "No", sentence)
    return Status(question, Light.OPEN, "Not shown", sentence)


def _highest(evidence: Evidence, rows: Sequence[Blame]) -> str:
    """The highest map score of these, and what its scale is."""
    scores = [score for row in rows if not math.isnan(score := map_score(evidence, row.pipeline, row.finding))]
    if not scores:
        return ""
    top = "the outline itself" if against_truth(evidence) else f"the {evidence.readers.label.lower()}"
    return f" Highest map score {number(max(scores), _UNIT)} (0: random map, 1: {top})."


def _fault(rows: Sequence[Blame]) -> Status:
    """Whose fault poor maps are, in counts."""
    question = "Whose fault is a poor map?"
    methods, models = ([row for row in rows if row.before == each] for each in ("method", "model"))
    flattering = [row for row in rows if row.before == "looks_elsewhere"]
    poor = len(methods) + len(models) + len(flattering)
    if rows and all(row.is_shown for row in rows):
        return Status(question, Light.YES, "No fault found", "Every map shows what its network uses.")
    if not poor:
        return Status(question, Light.OPEN, "Not shown", "No reading puts the fault on a method or on a model.")
    parts = [
        f"{words} in {len(found)} ({few(_named(found))})"
        for words, found in (
            ("the method\u2019s", methods),
            ("the model\u2019s", models),
            ("a map flatters its model", flattering),
        )
        if found
    ]
    rest = len(rows) - poor - sum(row.is_shown for row in rows)
    undecided = f"; cannot be said in {rest}" if rest else ""
    sentence = f"Of {count(len(rows), 'combination')}: {listed(parts)}{undecided}."
    words = {(True, True): "Of both", (True, False): "The method\u2019s", (False, True): "The model\u2019s"}
    word = words.get((bool(methods), bool(models)), "Maps flatter a model")
    return Status(question, Light.NO, word, sentence)


def _named(rows: Sequence[Blame]) -> list[str]:
    return list(dict.fromkeys(f"{row.pipeline.method.label} on {row.pipeline.base.label}" for row in rows))


def _resists(evidence: Evidence, ranked: Sequence[Pushed]) -> Status:
    """Whether the score stays where it is when only the model is tuned."""
    question = "Does the score hold when a model is tuned?"
    if not ranked:
        return Status(question, Light.OPEN, "Not tested", "No aligned and misaligned networks could be compared.")
    what = SCORES.get(manifest(evidence).blame_metric, evidence.label_of(manifest(evidence).blame_metric).lower())
    went = f"{what} went {from_to(evidence, ranked[0])} ({names_of(ranked[0])})"
    if trained_once(evidence):
        return Status(question, Light.OPEN, "Not shown", f"With these networks, each trained once, {went}; another "
                      "training may differ.")  # fmt: skip
    yes = [each for each in ranked if judgement_of(each.row).is_yes]
    against = [each for each in ranked if opposite_of(each.row).is_yes]
    if yes or against:
        moved = len(yes) + len(against)
        pairs = f"{moved} of {count(len(ranked), 'pair')} of model and method"
        return Status(question, Light.NO, "No", f"Tuning the model alone clearly moved it in {pairs}: "
                      f"{'at most, ' if moved > 1 else ''}{went}.")  # fmt: skip
    if all(judgement_of(each.row).is_no for each in ranked):
        return Status(question, Light.YES, "Yes", f"In no pair of {len(ranked)} does it move by a size that matters.")
    return Status(question, Light.OPEN, "Not shown", f"At most {went}, which may be chance.")


def _enough(evidence: Evidence, ranked: Sequence[Pushed]) -> Status:
    """Whether there are enough trainings and images to speak of methods."""
    question = "Enough trainings and images?"
    seeds, images = len(manifest(evidence).seeds), list(images_behind(evidence).values())
    maps = f"Map scores rest on {spread(images)} images per finding." if images else ""
    if trained_once(evidence):
        return Status(question, Light.NO, "One training each", f"These numbers speak of these networks only. {maps}")
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
        note=f"Outlined: where the experts see it. {'' if math.isnan(card.apart) else chosen}Base: before fine-tuning; "
        "control: tuned without maps; aligned: maps tuned towards outlines; misaligned: away from them.",
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
            return Panel(f"Mean map score: {shown.method.label} on {shown.base.label}, {finding}", drawn)
    return None
