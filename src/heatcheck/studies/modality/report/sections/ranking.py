"""How methods rank: mean ranks over patients, Friedman's test and Nemenyi's pairs, which judge nothing."""

import math
from collections.abc import Mapping, Sequence

from markupsafe import Markup

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import MEAN
from heatcheck.report.blocks.block import Block, Figures, fold, prose
from heatcheck.report.charts.panels import Panel
from heatcheck.report.evidence import Evidence
from heatcheck.report.numbers import SCORE, count, few, listed, number
from heatcheck.report.page import Section
from heatcheck.report.ranking import Ranking, RankingView, ranking_of

METRICS = ("msfi", "mi_correlation", "lesion_share", "median_iou", "delta_aupc")
MAIN = 2  # of these are shown at once
PAPER = "The paper\u2019s mark, for the two best mean ranks and all that differ from neither of them,"
HOW = (
    "For every patient the methods are ranked, 1 for the best; the cases of one patient are averaged first, because "
    "they are not independent. A thick bar on the right joins methods of which Nemenyi\u2019s test (at 5 %) finds no "
    "two different. Ranks say in which order methods stand, not by how much: a small difference that is the same in "
    "most patients ranks differently, too. So they are no judgement, and nothing is claimed from them. By modality "
    "correlation, all patients of a network share its one order of the modalities: p-values count patients, the order "
    "rests on networks. A map that is 0 everywhere counts as 0, and by modality correlation so does one that gives "
    "every modality the same or is one for all modalities; a case in which a method has no score for another reason "
    "is left out for all methods."
)


def ranks(evidence: Evidence) -> Section | None:
    """The mean ranks by every metric; None when no test was made."""
    views = ranking_views(evidence)
    if not views:
        return None
    blocks: tuple[Block, ...] = (
        *prose(HOW),
        _figures(views[:MAIN], "pair"),
        *fold("By the other measures", (_figures(views[MAIN:]),) if views[MAIN:] else ()),
    )
    return Section("ranks", "Which methods differ in rank?", "Ranks", blocks, summary(evidence))


def summary(evidence: Evidence) -> str:
    """How many methods the test joins with the first by MSFI."""
    ranking = ranking_of(evidence, METRICS[0])
    name = evidence.label_of(METRICS[0])
    if ranking is None or not ranking.is_defined:
        return ""
    if not ranking.differ:
        return f"By {name}, the methods\u2019 ranks may be chance."
    joined = len(ranking.best) - 1
    methods = count(joined, "other method") if joined else "no other method"
    return f"By {name}, {methods} of {len(ranking.mean_ranks) - 1} cannot be ranked apart from the first."


def ranking_views(evidence: Evidence) -> list[RankingView]:
    """Test, first places and diagram of every metric that was ranked."""
    return [view for metric in METRICS if (view := _view(evidence, metric))]


def starred(ranking: Ranking | None) -> frozenset[str]:
    """The first in mean rank and those not ranked apart from it; none where that is half of all methods or more."""
    if ranking is None or 2 * len(ranking.best) >= len(ranking.mean_ranks):
        return frozenset()
    return ranking.best


def _figures(views: Sequence[RankingView], layout: str = "") -> Figures:
    panels = tuple(Panel(view.name, view.diagram or Markup(""), " ".join(view.sentences)) for view in views)
    return Figures(panels, layout=layout)


def _view(evidence: Evidence, metric: str) -> RankingView | None:
    ranking = ranking_of(evidence, metric)
    if ranking is None:
        return None
    name = evidence.metrics[metric].label
    if not ranking.is_defined:
        return RankingView(name, (ranking.outcome,), None)
    labels = {entrant.name: entrant.label for entrant in (*evidence.methods, *evidence.floors)}
    stars = starred(ranking)
    diagram = ranking.diagram(f"{name}: mean ranks", lambda method: labels[method] + (" *" if method in stars else ""))
    marks = (*_best(ranking, labels), *_best_as_published(ranking, labels))
    sentences = (ranking.outcome, *marks, *_against_means(evidence, metric, ranking, labels), _cases(ranking.test))
    return RankingView(name, sentences, diagram)


def _best(ranking: Ranking, labels: Mapping[str, str]) -> list[str]:
    """Which methods the test does not rank apart from the first."""
    if ranking.best and not starred(ranking):
        joined, every = len(ranking.best), len(ranking.mean_ranks)
        return [f"By Nemenyi\u2019s test (at 5 %), {joined} of {every} methods may be the first in mean rank."]
    by_rank = sorted(ranking.mean_ranks, key=lambda name: ranking.mean_ranks[name])
    ordered = [labels[name] for name in by_rank if name in ranking.best]
    if not ordered:
        return []
    names = listed(ordered) if len(ordered) <= 6 else few(ordered)
    if len(ordered) == 1:
        return [
            f"By Nemenyi\u2019s test (at 5 %), every other method differs from {names} (*), the first in mean rank."
        ]
    return [f"By Nemenyi\u2019s test (at 5 %), these do not differ from the first in mean rank (*): {names}."]


def _best_as_published(ranking: Ranking, labels: Mapping[str, str]) -> list[str]:
    """Which methods the paper would have marked; nothing where the test marks none."""
    marked = ranking.best_as_published
    if not marked:
        return []
    names = listed([labels[name] for name in sorted(marked, key=lambda name: ranking.mean_ranks[name])])
    return [f"{PAPER} falls on {'the same methods' if marked == ranking.best else names}."]


def _against_means(evidence: Evidence, metric: str, ranking: Ranking, labels: Mapping[str, str]) -> list[str]:
    """That another method has the highest mean than the first in mean rank, and how that can be."""
    means = {name: evidence.find(MEAN, metric, ALL_FINDINGS, name) for name in ranking.mean_ranks}
    known = {name: row for name, row in means.items() if row and not math.isnan(row.value)}
    first = min(ranking.mean_ranks, key=lambda name: ranking.mean_ranks[name])
    if first not in known:
        return []
    highest = max(known, key=lambda name: known[name].value)
    if not known[highest].low > known[first].value:
        return []
    own, most = (number(known[name].value, SCORE.rounded(2)) for name in (first, highest))
    means_apart = (
        f"{labels[first]} is first in mean rank with a mean of {own}; {labels[highest]} has the highest, {most}"
    )
    return [f"{means_apart}: a mean weighs by how much scores differ, a rank only which is higher."]


def _cases(test: Estimate) -> str:
    several = test.n_cases > test.n_patients
    means = f" by the mean of their {count(test.n_cases, 'case')}" if several else ""
    left_out = f"; {count(test.n_undefined, 'case')} without all scores left out" if test.n_undefined else ""
    return f"{count(test.n_patients, 'patient')} ranked{means}{left_out}."
