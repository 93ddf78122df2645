"""The importance of each modality to the network: Shapley values by fold, what they rest on, and their ranking."""

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import product

from heatcheck.core.records import Estimate
from heatcheck.report.blocks.block import Block, Figures, Heading, Table, fold, prose, tables
from heatcheck.report.blocks.footnotes import Footnotes
from heatcheck.report.blocks.matrix import Cell, Column, Matrix, Row, cell_of, labelled
from heatcheck.report.charts.dotplot import DotPlot, Mark, PlotRow, draw
from heatcheck.report.charts.panels import Panel
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, SPACE, count, interval, listed, number, spread
from heatcheck.report.page import Section
from heatcheck.report.published import figure_cell, with_rows
from heatcheck.studies.modality.report import literature
from heatcheck.studies.modality.report.facts import (
    FILLS,
    MEASURES,
    Game,
    first_of,
    known_estimate,
    manifest,
    phi,
    primary_game,
    ranked,
    value_of,
)
from heatcheck.studies.modality.report.reliance import WHOLE_POINTS, reliance_of
from heatcheck.studies.modality.report.sections.plain import plain_networks
from heatcheck.studies.modality.vocabulary import EVERY_FOLD, PHI_LESION, PHI_MODALITY

NAMES = {
    PHI_MODALITY: "Importance of whole modalities (φ)",
    PHI_LESION: "Importance of the lesion in each modality (φ)",
}
SHORT = {PHI_MODALITY: "Whole modalities", PHI_LESION: "Lesion only"}
TIES = (
    "A modality stands before > where it is clearly more important than the next by their difference, patient by "
    "patient; where that is not shown, the order is a tie (=). A modality tied with several that are not tied with "
    "each other is listed after a semicolon."
)
_EMPTY = Cell("")
_TIE = f"{SPACE}={SPACE}"  # what is tied stays on one line


def importance(evidence: Evidence) -> Section | None:
    """How much each modality matters, and its lesion; None when no Shapley value was computed."""
    paper = _is_comparable(evidence)
    primary = [table for metric in NAMES if (table := _table(evidence, primary_game(evidence, metric), paper=paper))]
    if not primary:
        return None
    over = "mean over folds" if manifest(evidence).folds > 1 else "the value"
    panels = tuple(panel for metric in NAMES if (panel := plot(evidence, metric)))
    blocks = (
        *((Figures(panels, layout="pair"),) if panels else ()),
        *prose(_how(evidence)),
        *prose(*rankings(evidence)),
        *prose(
            f"Bars: {over} with its 95 % interval. In the tables, small print is the interval, which holds for all "
            "modalities of a column together; the first place is underlined where it is clear.",
            small=True,
        ),
        *tables(primary),
        *prose(literature.caveat() if paper else "", small=True),
        *_known(evidence),
        *plain_networks(evidence),
        *(each for words, more in _more(evidence) for each in fold(f"The same by {words}", tables(more))),
    )
    return Section("importance", "Which modality matters?", "Importance", blocks, summary(evidence), printed=True)


def summary(evidence: Evidence) -> str:
    """The most important modality with its share of what all contribute, and the order where it is short."""
    reliance = reliance_of(evidence)
    if reliance is None:
        return ""
    of = f"of the {number(reliance.total, WHOLE_POINTS)} percentage points that all modalities add"
    return f"{reliance.top}: {number(reliance.importances[reliance.top].value, WHOLE_POINTS)} {of}."


def _more(evidence: Evidence) -> list[tuple[str, list[Matrix]]]:
    """The tables by every other measure and fill, each pair with its words."""
    more = []
    for filled, measure in product(manifest(evidence).fills, MEASURES):
        games = [replace(primary_game(evidence, metric), measure=measure, filled=filled) for metric in NAMES]
        found = [table for game in games if (table := _table(evidence, game))]
        if found and games[0] != primary_game(evidence, PHI_MODALITY):
            more.append((games[0].words, found))
    return more


def plot(evidence: Evidence, metric: str) -> Panel | None:
    """The mean over folds of every modality's value as bars with intervals."""
    rows = []
    for name in manifest(evidence).modalities:
        row = phi(evidence, _shown(evidence, metric), name)
        if row is None:
            continue
        between = interval(row.low, row.high)
        aside = number(row.value) + (f" ({between})" if between else "")
        rows.append(PlotRow(name, aside, (Mark("bar", name, row.value, row.low, row.high),)))
    if not rows:
        return None
    plotted = DotPlot(
        NAMES[metric].removesuffix(" (φ)"),
        f"added to {MEASURES[_shown(evidence, metric).measure]}",
        tuple(rows),
        SCORE,
        _limits(evidence),
    )
    return Panel(SHORT[metric], draw(plotted))


def _shown(evidence: Evidence, metric: str) -> Game:
    """The game over all folds, or of the only one."""
    run, game = manifest(evidence), primary_game(evidence, metric)
    only = run.folds == 1 and not any(phi(evidence, game, name) for name in run.modalities)
    return game.of_fold(1) if only else game


def _limits(evidence: Evidence) -> tuple[float, float]:
    """One scale for both plots, so that bars can be compared."""
    games = [_shown(evidence, metric) for metric in NAMES]
    rows = [row for game in games for name in manifest(evidence).modalities if (row := phi(evidence, game, name))]
    ends = [value for row in rows for value in (row.value, row.low, row.high) if not math.isnan(value)]
    low, high = min([0.0, *ends]), max([0.1, *ends])
    step = 0.1 if high - low < 1 else 0.2
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def _how(evidence: Evidence) -> str:
    run = manifest(evidence)
    modalities = len(run.modalities)
    subsets = f"every one of the {2**modalities:,}" if run.exact else f"{run.subsets:,}"
    return (
        f"The network was shown the test cases with {subsets} subsets{'' if run.exact else ', drawn at random,'} of "
        f"{count(modalities, 'modality', 'modalities')}, the others replaced by {FILLS[run.primary.filled]}. A "
        f"modality\u2019s importance, its Shapley value (φ), is the {MEASURES[run.primary.measure]} that it adds, "
        "averaged over all orders in which the modalities could be shown; together the values make up the distance "
        "from no modality to all of them. Then the same with only the lesion removed, which says where in the image "
        "that information lies."
    )


def rankings(evidence: Evidence) -> list[str]:
    """The order of the modalities, and of their lesions, with how to read it; nothing where neither is known."""
    sentences = []
    for metric in NAMES:
        order = ranked(evidence, primary_game(evidence, metric))
        if order:
            folds = ", over all folds" if manifest(evidence).folds > 1 else ""
            sentences.append(f"{SHORT[metric]}{folds}: {order}{_agreeing(evidence, metric)}.")
    return [" ".join([*sentences, TIES])] if sentences else []


def _agreeing(evidence: Evidence, metric: str) -> str:
    """In how many folds the same modality is alone in the first place."""
    game, folds = primary_game(evidence, metric), manifest(evidence).fold_numbers
    first = first_of(evidence, game)
    if len(folds) < 2 or len(first) != 1:
        return ""
    same = sum(first_of(evidence, game.of_fold(fold)) == first for fold in folds)
    return f"; {first[0]} alone is first in {same} of {len(folds)} folds"


def _columns(evidence: Evidence) -> list[int | str]:
    folds = manifest(evidence).fold_numbers
    return [EVERY_FOLD, *folds] if len(folds) > 1 else list(folds)


def _heads(evidence: Evidence, only: str = "φ") -> tuple[Column, ...]:
    """One column per fold; a single one is named after its content."""
    return tuple(
        Column("All folds", main=True)
        if fold == EVERY_FOLD
        else Column(f"Fold {fold}" if EVERY_FOLD in _columns(evidence) else only)
        for fold in _columns(evidence)
    )


def _table(evidence: Evidence, game: Game, *, paper: bool = False) -> Matrix | None:
    """One row per modality and one column per fold; below them what the values rest on, and the ranking."""
    games, notes = [game.of_fold(fold) for fold in _columns(evidence)], Footnotes()
    values = {name: [phi(evidence, each, name) for each in games] for name in manifest(evidence).modalities}
    if not any(any(each) for each in values.values()):
        return None
    firsts = [first_of(evidence, each) for each in games]
    rows = [
        labelled(name, [replace(cell_of(row, SCORE, notes), strong=first == (name,))
                        for row, first in zip(each, firsts, strict=True)])
        for name, each in values.items()
    ]  # fmt: skip
    groups = (("Modalities", tuple(rows)), ("What they rest on", tuple(_basis(evidence, games, notes))))
    caption = f"{NAMES[game.metric]}: {game.words}"
    table = Matrix(caption, _heads(evidence), groups, tuple(notes.reasons), "Modality")
    return _with_published(evidence, table, game.metric, notes) if paper else table


def _basis(evidence: Evidence, games: Sequence[Game], notes: Footnotes) -> list[Row]:
    """The values of none and of all modalities, and the ranking."""
    what = "modality" if games[0].metric == PHI_MODALITY else "lesion"
    rows = []
    for label, shown in ((f"No {what}, v(∅)", ()), (f"Every {what}, v(all)", manifest(evidence).modalities)):
        values = [value_of(evidence, game, shown) for game in games]
        rows.append(labelled(label, [_value(values, i, notes) for i in range(len(games))]))
    rows.append(labelled("Ranking, = is a tie", [Cell(ranked(evidence, game).replace(" = ", _TIE)) for game in games]))
    return rows


def _value(values: Sequence[Estimate | None], index: int, notes: Footnotes) -> Cell:
    """The value of a fold; over all folds their mean, which needs no interval beside those of φ."""
    if values[index] is None and len(values) > 1 and index == 0:
        each = [row.value for row in values if row and not math.isnan(row.value)]
        return Cell(number(sum(each) / len(each)), title="mean of the folds") if each else _EMPTY
    return cell_of(values[index], SCORE, notes)


def _is_comparable(evidence: Evidence) -> bool:
    """Whether the run has the paper's data, modalities and number of folds."""
    run = manifest(evidence)
    return (
        literature.is_data_of(run)
        and literature.has_modalities(run.modalities)
        and run.fold_numbers == literature.FOLDS
    )


def _with_published(evidence: Evidence, table: Matrix, metric: str, notes: Footnotes) -> Matrix:
    """The table with the published values."""
    rows = [
        labelled(name, [_EMPTY, *(figure_cell(literature.importance(metric, name, fold), SCORE, notes)
                                  for fold in literature.FOLDS)], kind="published")
        for name in manifest(evidence).modalities
    ]  # fmt: skip
    if metric == PHI_MODALITY:
        mean = literature.scalar("accuracy", "five folds")
        spread = f"± {mean.high - mean.value:.3f}" if mean else ""
        cells = [figure_cell(literature.accuracy(fold), SCORE, notes) for fold in literature.FOLDS]
        cells.insert(0, replace(figure_cell(mean, SCORE, notes), interval=spread))
        rows.append(labelled("Accuracy, all shown", cells, kind="published"))
    return with_rows(table, rows, notes, literature.SOURCE)


def _known(evidence: Evidence) -> tuple[Block, ...]:
    """The accuracies on sets in which only one modality is informative; nothing where there are none."""
    columns, notes = _columns(evidence), Footnotes()
    rows = [
        labelled(name, [cell_of(known_estimate(evidence, name, fold), SCORE, notes) for fold in columns])
        for name in manifest(evidence).known
        if any(known_estimate(evidence, name, fold) for fold in columns)
    ]
    if not rows:
        return ()
    title, heads = "Accuracy when only this modality is informative", _heads(evidence, "accuracy")
    table = Matrix(title, heads, (("", tuple(rows)),), tuple(notes.reasons), "Modality")
    return Heading("A check on images made to have one right modality"), *prose(_known_sentence(evidence)), Table(table)


def _known_sentence(evidence: Evidence) -> str:
    names = manifest(evidence).known
    rows = [known_estimate(evidence, name, fold) for name in names for fold in _columns(evidence)]
    cases = [row.n_cases for row in rows if row and row.n_cases]
    number_of = f", {spread(cases)} for each of {listed(names)}" if cases else f" for {listed(names)}"
    return (
        f"A check with images that were made for it{number_of}: there is only the lesion, without a brain around it; "
        "in that modality it shows the true class, and in the other that can show it the wrong one. A network that "
        "relies on the modality answers right, one that relies on the other answers wrong. So the share of right "
        "answers says how much the network relies on it, without anything being taken out of an image."
    )
