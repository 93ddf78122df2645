"""Whose fault a low score is, by model, method and finding: what the map shows and what the model uses."""

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from markupsafe import Markup

from heatcheck.core.records import Estimate
from heatcheck.judging.sizes import Sizes
from heatcheck.report.blocks.block import Block, Drawn, Heading, Legend, Prose, Table, Terms, fold, prose, tables
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SHARE, count, listed, number
from heatcheck.report.page import Section
from heatcheck.studies.alignment.report import strip as strips
from heatcheck.studies.alignment.report.facts import ARM_LABELS, Pipeline, interval_words, manifest
from heatcheck.studies.alignment.report.readings import Blame, blames, pooled, without_floors
from heatcheck.studies.alignment.report.scale import against_truth, scale_of
from heatcheck.studies.alignment.report.sections.blame_labels import EVERY
from heatcheck.studies.alignment.report.sections.blame_tables import (
    CHECK,
    NULLS,
    counts,
    floors,
    nulls,
    numbers,
    reliance,
    scaled,
)
from heatcheck.studies.alignment.vocabulary import RELIANCE, SEPARATION

OPEN = 24  # rows that are shown unfolded; more are folded by model
# furthest limits of the axes, so that one extreme row does not compress the others
_SCORE_ENDS, _RELIANCE_ENDS = (-1.0, 1.5), (-3.0, 5.0)
_TITLE = "Whose fault is a low score?"
PASSES = (
    "These maps were made without the model, so they cannot show what it uses, and nothing here is a method\u2019s "
    "fault. The check passes where the rule takes none of them for a map that does."
)


@dataclass(frozen=True, slots=True)
class BlameRow:
    """A row as the page shows it."""

    row: Blame
    score: Markup
    reliance: Markup


def blame(evidence: Evidence) -> Section | None:
    """The section with a row for each model, method and finding; None when the run judged nothing."""
    rows = blames(evidence)
    if not rows:
        return None
    shown = _shown(evidence, rows)
    methods = [each for each in shown if each.row.pipeline.method.kind != "floor"]
    made_without = [each for each in shown if each.row.pipeline.method.kind == "floor"]
    blocks = (
        Prose(f"{CAUSES} {_sizes(evidence)}"),
        Legend(strips.arm_keys()),
        *_rows_of(methods),
        *fold(CHECK, (Prose(PASSES), _rows(made_without)) if made_without else ()),
        Table(counts(rows)),
        *_pooled(evidence),
        *_measured(evidence, rows),
        Heading("How to read it"),
        Terms(tuple(_terms(rows))),
        *fold(
            "The numbers", (*tables([numbers(evidence, rows), floors(evidence)]), Table(nulls(evidence), note=NULLS))
        ),
    )
    return Section("blame", _TITLE, "Blame", blocks, _summary(rows), printed=True)


def _summary(rows: Sequence[Blame]) -> str:
    """How often each reading was made of the base models."""
    own = without_floors(rows)
    counted = Counter(row.label.words for row in own)
    parts = [f"{words} in {n}" for words, n in counted.most_common()]
    return f"Of {count(len(own), 'combination')} of network, method and finding: {listed(parts)}." if own else ""


SINGLY = "Each reading is made by itself: its intervals are not widened for how many readings are made."
CAUSES = (
    "A low score can have two causes: the map fails to show what the model uses, or the model does not use the region "
    "and the map shows that. Each row has the map score beside the model\u2019s reliance on the region, which is "
    "measured without any map."
)


def _measured(evidence: Evidence, rows: Sequence[Blame]) -> tuple[Block, ...]:
    """How reliance and map scores were measured."""
    readers = f"the {evidence.readers.label.lower()}\u2019 masks"
    upper = "the mask itself, a perfect map" if against_truth(evidence) else readers
    scale = (
        f"Map scores ({evidence.label_of(manifest(evidence).blame_metric)}) are on a common scale on which 0 is a "
        f"random map and 1 is {upper}. Lines are 95 % intervals; a mark beyond an axis stops at its end, while the "
        "number beside it is the true one."
    )
    intervals = f"{interval_words(evidence)} {SINGLY}"
    return (Heading("How it was measured"), *_reliance_words(evidence, rows), *prose(scale, intervals))


def _reliance_words(evidence: Evidence, rows: Sequence[Blame]) -> tuple[Block, ...]:
    fills, films = _fills(evidence), manifest(evidence).reliance.films
    replaced = (
        f"The region was replaced{f' by {fills}' if fills else ''}, and so were regions of the same shape elsewhere"
    )
    without = ", and the same regions on images without the finding" if films else ""
    beyond = ", beyond what the same comparison gives without the finding" if films else ""
    full = (
        ", and a second dashed line (\u201cfull separation\u201d) marks how much higher the base model scores images "
        "with the finding than images without it"
        if any(_separation_mark(evidence, row) for row in rows)
        else ""
    )
    meaning = (
        f" is how much more the model\u2019s answer drops when it is the region itself{beyond}, in units of how much "
        f"that answer varies between images: 0 is none{full}."
    )
    return (Prose(Markup("{}. <b>Reliance</b>{}").format(f"{replaced}{without}", meaning)),)


def _sizes(evidence: Evidence) -> str:
    """From which size on something matters, which "hardly" and the other words of the readings rest on."""
    sizes = Sizes(**manifest(evidence).sizes)
    reliance_size, map_size = (number(size, SHARE.rounded(0)) for size in (sizes.reliance, sizes.maps))
    return (
        f"What matters is {reliance_size} of the full separation (reliance), or {map_size} of the room between random "
        "maps and 1 (map score). \u201cHardly\u201d: the whole interval lies below that size; changed \u201cby less "
        "than matters\u201d: it lies within that size on either side of 0. \u201cNot shown\u201d: the interval allows "
        "for both. A map score \u201crose\u201d or \u201cfell\u201d if it changed by that size or more, and the "
        "interval excludes 0; reliance did so \u201cwith it\u201d if its interval excludes 0 and reaches that size."
    )


def _fills(evidence: Evidence) -> str:
    names = {"blur": "a blurred copy", "mean": "the image\u2019s mean", "noise": "noise"}
    return listed([names.get(fill, fill) for fill in manifest(evidence).reliance.fills], "or")


def _rows_of(shown: Sequence[BlameRow]) -> tuple[Block, ...]:
    """The rows of each model under its name; many are folded, all but those of the first model."""
    models = list(dict.fromkeys(each.row.pipeline.base.label for each in shown))
    blocks: list[Block] = []
    for model in models:
        group = _rows([each for each in shown if each.row.pipeline.base.label == model])
        blocks += fold(model, (group,), opened=model == models[0]) if len(shown) > OPEN else (Heading(model), group)
    return tuple(blocks)


def _rows(group: Sequence[BlameRow]) -> Drawn:
    return Drawn("study/blame.html", {"rows": group})


def _pooled(evidence: Evidence) -> tuple[Block, ...]:
    sentences = tuple(
        Prose(Markup('<b>{}: <span aria-hidden="true">{}</span> {}.</b> {}').format(name, each.sign, each.words, words))
        for name, each, words in pooled(evidence)
    )
    return fold("All findings together, each with the same weight", sentences)


def _terms(rows: Sequence[Blame]) -> list[tuple[str, str]]:
    """The readings that were made, each with its meaning."""
    before = [each for each in EVERY if any(row.label is each for row in rows)]
    under = [each for each in EVERY if any(row.under_label is each for row in rows)]
    named = [("Before fine-tuning", each) for each in before] + [("Under fine-tuning", each) for each in under]
    return [(f"{each.sign} {which}: {each.words}", f"{each.meaning}.") for which, each in named]


def _shown(evidence: Evidence, rows: Sequence[Blame]) -> list[BlameRow]:
    """The rows with their strips, all on the same two axes."""
    scores, reliances = ([find(evidence, row) for row in rows] for find in (scaled, reliance))
    marks_of = {row.finding: scale_of(evidence, row.finding).marks for row in rows}
    ends = (0.0, 1.0, *(value for marks in marks_of.values() for value in marks))
    score_limits = strips.limits_of([each for row in scores for each in row], ends, _SCORE_ENDS)
    always = (0, 0.2, *(value for row in rows for value in _separation_mark(evidence, row)))
    reliance_limits = strips.limits_of([each for row in reliances for each in row], always, _RELIANCE_ENDS)
    shown = []
    for row, score, used in zip(rows, scores, reliances, strict=True):
        subject = f"{row.pipeline.label}, {row.finding}"
        of_map = _strip(f"Map score: {subject}", score, score_limits, marks_of[row.finding])
        marks = {0.0: "none", **_separation_mark(evidence, row)}
        shown.append(BlameRow(row, of_map, _strip(f"Reliance: {subject}", used, reliance_limits, marks)))
    return shown


def score_strip(evidence: Evidence, pipeline: Pipeline, finding: str) -> Markup | None:
    """The map scores of a pipeline's four networks on one finding; None where none is known."""
    row = next((each for each in blames(evidence) if (each.pipeline, each.finding) == (pipeline, finding)), None)
    rows = scaled(evidence, row) if row else []
    if not any(each and not math.isnan(each.value) for each in rows):
        return None
    marks = scale_of(evidence, finding).marks
    limits = strips.limits_of(rows, (0.0, *marks), _SCORE_ENDS)
    return _strip(f"Map score: {pipeline.label}, {finding}", rows, limits, marks)


def _separation_mark(evidence: Evidence, row: Blame) -> dict[float, str]:
    """The base model's separation as a mark of the axis, where it is above 0."""
    separation = evidence.under(row.pipeline.base.name, arm="base").find(SEPARATION, RELIANCE, row.finding)
    return {separation.value: "full separation"} if separation and separation.value > 0 else {}


def _strip(
    title: str, rows: Sequence[Estimate | None], limits: tuple[float, float], marks: Mapping[float, str]
) -> Markup:
    lines = tuple(strips.Line(arm, label, row) for (arm, label), row in zip(ARM_LABELS.items(), rows, strict=True))
    return strips.draw(strips.ScoreStrip(title, lines, limits, marks))
