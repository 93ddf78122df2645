"""How much each modality counts for the network: Shapley values by fold, what they rest on, and their ranking."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product

from heatcheck.core.records import Estimate
from heatcheck.report.charts.dotplot import DotPlot, Mark, PlotRow, draw
from heatcheck.report.charts.panels import Panel
from heatcheck.report.evidence import Evidence
from heatcheck.report.footnotes import Footnotes
from heatcheck.report.matrix import Cell, Column, Matrix, Row, cell_of, labelled
from heatcheck.report.numbers import SCORE, SPACE, count, interval, listed, number
from heatcheck.report.published import figure_cell, with_rows
from heatcheck.studies.modality.report import literature
from heatcheck.studies.modality.report.facts import (
    EVERY,
    FILLS,
    KINDS,
    MEASURES,
    Game,
    fills_of,
    first_of,
    folds_of,
    game,
    known_estimate,
    known_of,
    modalities_of,
    of_brats,
    phi,
    primary,
    ranked,
    value_of,
)

NAMES = {
    "phi_modality": "Importance of whole modalities (φ)",
    "phi_lesion": "Importance of the lesion in each modality (φ)",
}
SHORT = {"phi_modality": "Whole modalities", "phi_lesion": "Lesion only"}
TIES = (
    "Where intervals overlap or there is none, the order is a tie (=). A modality whose interval reaches several that "
    "are not tied with each other stands behind a semicolon."
)
_EMPTY = Cell("")
_TIE = f"{SPACE}={SPACE}"  # what is tied stays on one line


def importance(evidence: Evidence) -> Mapping[str, object] | None:
    """What the section on importance shows; None when no Shapley value was computed."""
    paper = of_brats(evidence) and _is_comparable(evidence)
    tables = [table for metric in KINDS if (table := _table(evidence, game(evidence, metric), published=paper))]
    if not tables:
        return None
    return {
        "sentences": [_how(evidence), *_rankings(evidence)],
        "folds": len(folds_of(evidence)),
        "panels": [panel for metric in KINDS if (panel := plot(evidence, metric))],
        "tables": tables,
        "more": _more(evidence),
        "published": literature.caveat() if paper else "",
        "known": _known(evidence),
    }


def _more(evidence: Evidence) -> list[tuple[str, list[Matrix]]]:
    """The tables by every other measure and fill, each pair under its words."""
    made = []
    for filled, measure in product(fills_of(evidence), MEASURES):
        games = [replace(game(evidence, metric), measure=measure, filled=filled) for metric in KINDS]
        tables = [table for each in games if (table := _table(evidence, each))]
        if tables and games[0] != game(evidence, KINDS[0]):
            made.append((games[0].words, tables))
    return made


def plot(evidence: Evidence, metric: str) -> Panel | None:
    """The mean over folds of every modality's value as bars with intervals."""
    rows = []
    for name in modalities_of(evidence):
        row = phi(evidence, _shown(evidence, metric), name)
        if row is None:
            continue
        between = interval(row.low, row.high)
        aside = number(row.value) + (f" ({between})" if between else "")
        rows.append(PlotRow(name, aside, (Mark("bar", name, row.value, row.low, row.high),)))
    if not rows:
        return None
    plotted = DotPlot(NAMES[metric], "Shapley value (φ)", tuple(rows), SCORE, _limits(evidence))
    return Panel(SHORT[metric], draw(plotted))


def _shown(evidence: Evidence, metric: str) -> Game:
    """The game over all folds, or of the only one."""
    folds = folds_of(evidence)
    own = game(evidence, metric)
    only = len(folds) == 1 and not any(phi(evidence, own, name) for name in modalities_of(evidence))
    return own.of_fold(folds[0]) if only else own


def _limits(evidence: Evidence) -> tuple[float, float]:
    """One scale for both plots, so that bars can be compared."""
    games = [_shown(evidence, metric) for metric in KINDS]
    rows = [row for each in games for name in modalities_of(evidence) if (row := phi(evidence, each, name))]
    ends = [value for row in rows for value in (row.value, row.low, row.high) if not math.isnan(value)]
    low, high = min([0.0, *ends]), max([0.1, *ends])
    step = 0.1 if high - low < 1 else 0.2
    return math.floor(low / step + 1e-9) * step, math.ceil(high / step - 1e-9) * step


def _how(evidence: Evidence) -> str:
    manifest, modalities, own = evidence.run.manifest, modalities_of(evidence), primary(evidence)
    measure, filled = MEASURES.get(own.measure, own.measure), FILLS.get(own.filled, own.filled)
    subsets = f"every one of the {2 ** len(modalities):,} subsets"
    if manifest.get("exact") is False:
        subsets = f"{int(manifest.get('subsets') or 0):,} subsets, drawn by chance,"
    return (
        f"The network was shown the test cases with {subsets} of "
        f"{count(len(modalities), 'modality', 'modalities')}, the others replaced by {filled}. A modality\u2019s "
        f"Shapley value φ is the {measure} that it adds, averaged over all orders in which the modalities could be "
        "shown; together the values make up the distance from no modality to all of them. Then the same with the "
        "lesion alone taken away, which says where in the image that information lies."
    )


def _rankings(evidence: Evidence) -> list[str]:
    told = []
    for metric in KINDS:
        order = ranked(evidence, game(evidence, metric))
        if order:
            whole = ", over all folds" if len(folds_of(evidence)) > 1 else ""
            told.append(f"{SHORT[metric]}{whole}: {order}{_agreeing(evidence, metric)}.")
    return [" ".join([*told, TIES])] if told else []


def _agreeing(evidence: Evidence, metric: str) -> str:
    """In how many folds the same modality is alone in the first place."""
    own, folds = game(evidence, metric), folds_of(evidence)
    first = first_of(evidence, own)
    if len(folds) < 2 or len(first) != 1:
        return ""
    same = sum(first_of(evidence, own.of_fold(fold)) == first for fold in folds)
    return f"; {first[0]} alone is first in {same} of {len(folds)} folds"


def _columns(evidence: Evidence) -> list[int | str]:
    folds = folds_of(evidence)
    return [EVERY, *folds] if len(folds) > 1 else list(folds)


def _heads(evidence: Evidence, only: str = "φ") -> tuple[Column, ...]:
    """The columns of the folds; that of the only one is called by what it holds."""
    return tuple(
        Column("All folds", main=True)
        if fold == EVERY
        else Column(f"Fold {fold}" if EVERY in _columns(evidence) else only)
        for fold in _columns(evidence)
    )


def _table(evidence: Evidence, played: Game, *, published: bool = False) -> Matrix | None:
    """Modalities down, folds across; below them what the values rest on, and the ranking."""
    games, notes = [played.of_fold(fold) for fold in _columns(evidence)], Footnotes()
    found = {name: [phi(evidence, each, name) for each in games] for name in modalities_of(evidence)}
    if not any(any(row) for row in found.values()):
        return None
    firsts = [first_of(evidence, each) for each in games]
    rows = [
        labelled(name, [replace(cell_of(row, SCORE, notes), strong=first == (name,))
                        for row, first in zip(each, firsts, strict=True)])
        for name, each in found.items()
    ]  # fmt: skip
    groups = (("Modalities", tuple(rows)), ("What they rest on", tuple(_basis(evidence, games, notes))))
    caption = f"{NAMES[played.metric]}: {played.words}"
    table = Matrix(caption, _heads(evidence), groups, tuple(notes.reasons), "Modality")
    return _beside(evidence, table, played.metric, notes) if published else table


def _basis(evidence: Evidence, games: Sequence[Game], notes: Footnotes) -> list[Row]:
    """The values of none and of all modalities, and the ranking."""
    what = "modality" if games[0].metric == "phi_modality" else "lesion"
    rows = []
    for label, shown in ((f"No {what}, v(∅)", ()), (f"Every {what}, v(all)", modalities_of(evidence))):
        found = [value_of(evidence, each, shown) for each in games]
        rows.append(labelled(label, [_value(found, i, notes) for i in range(len(games))]))
    rows.append(labelled("Ranking, = is a tie", [Cell(ranked(evidence, each).replace(" = ", _TIE)) for each in games]))
    return rows


def _value(found: Sequence[Estimate | None], place: int, notes: Footnotes) -> Cell:
    """The value of a fold; over all folds their mean, which needs no interval beside those of φ."""
    if found[place] is None and len(found) > 1 and place == 0:
        each = [row.value for row in found if row and not math.isnan(row.value)]
        return Cell(number(sum(each) / len(each)), title="mean of the folds") if each else _EMPTY
    return cell_of(found[place], SCORE, notes)


def _is_comparable(evidence: Evidence) -> bool:
    """Whether ours has the paper's modalities and number of folds."""
    return literature.has_modalities(modalities_of(evidence)) and folds_of(evidence) == literature.FOLDS


def _beside(evidence: Evidence, table: Matrix, metric: str, notes: Footnotes) -> Matrix:
    """The table with what the paper printed."""
    rows = [
        labelled(name, [_EMPTY, *(figure_cell(literature.importance(metric, name, fold), SCORE, notes)
                                  for fold in literature.FOLDS)], kind="published")
        for name in modalities_of(evidence)
    ]  # fmt: skip
    if metric == "phi_modality":
        mean = literature.scalar("accuracy", "five folds")
        spread = f"± {mean.high - mean.value:.3f}" if mean else ""
        cells = [figure_cell(literature.accuracy(fold), SCORE, notes) for fold in literature.FOLDS]
        cells.insert(0, replace(figure_cell(mean, SCORE, notes), interval=spread))
        rows.append(labelled("Accuracy, all shown", cells, kind="published"))
    return with_rows(table, rows, notes, literature.SOURCE)


def _known(evidence: Evidence) -> Mapping[str, object] | None:
    """The accuracies on sets in which one modality alone tells the truth; None where there are none."""
    columns, notes = _columns(evidence), Footnotes()
    rows = [
        labelled(name, [cell_of(known_estimate(evidence, name, fold), SCORE, notes) for fold in columns])
        for name in known_of(evidence)
        if any(known_estimate(evidence, name, fold) for fold in columns)
    ]
    if not rows:
        return None
    title, heads = "Accuracy where only this modality tells the truth", _heads(evidence, "accuracy")
    table = Matrix(title, heads, (("", tuple(rows)),), tuple(notes.reasons), "Modality")
    return {"table": table, "sentence": _known_sentence(evidence), "published": _known_published(evidence)}


def _known_sentence(evidence: Evidence) -> str:
    names = listed([*known_of(evidence)])
    return (
        f"On these test images the lesion of one modality ({names}) is right and that of the other misleads, without a "
        "brain around it. A network that relies on a modality is right where that modality is, so the accuracy is the "
        "modality\u2019s importance by construction, known without any ablation."
    )


def _known_published(evidence: Evidence) -> str:
    found = {name: literature.scalar("known_importance", name) for name in known_of(evidence)}
    told = [f"{figure.value:g} for {name}" for name, figure in found.items() if figure]
    return (
        f"The paper\u2019s network, on other synthetic tumours: {listed(told)} ({literature.SOURCE})." if told else ""
    )
