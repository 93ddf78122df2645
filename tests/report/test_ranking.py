"""What `estimating/ranks.py` stores of a comparison of ranks is what a page reads back."""

import numpy as np
import pytest

from heatcheck.core.records import ALL_FINDINGS, Estimate
from heatcheck.core.vocabulary import FRIEDMAN, MEAN_RANK, PLAIN, RANK_PAIR
from heatcheck.estimating.ranks import rank_estimates
from heatcheck.report.evidence import Entrant, Evidence
from heatcheck.report.ranking import ranking_of
from heatcheck.runs.manifest import ModelEntry
from heatcheck.stats.ranks import among_best, compare_ranks


def stored(scores, methods):
    """The comparison, its estimates, and the evidence of a run that has nothing else."""
    comparison = compare_ranks(scores, higher_is_better=True)
    template = Estimate(FRIEDMAN, "iou", ALL_FINDINGS, model="net", n_cases=comparison.n_blocks)
    rows = list(rank_estimates(comparison, methods, template))
    estimates = {(row.statistic, row.metric, row.finding, row.method, row.other_method): row for row in rows}
    entrants = tuple(Entrant(name, name.title(), "method") for name in methods)
    models, slices = (ModelEntry(name="net"),), {("net", PLAIN): estimates}
    return comparison, rows, Evidence(None, entrants, (), (), {}, estimates, models, slices)


def test_a_comparison_is_read_back_as_it_was():
    scores = np.random.default_rng(0).random((20, 4)) + np.array([0.6, 0.4, 0, 0])
    comparison, rows, evidence = stored(scores, ("a", "b", "c", "d"))
    ranking = ranking_of(evidence, "iou")
    assert (ranking.test.value, ranking.test.p_value) == (comparison.chi_squared, comparison.p_value)
    assert list(ranking.mean_ranks.values()) == comparison.mean_ranks.tolist()
    assert ranking.critical == comparison.critical_difference
    assert ranking.pairs[frozenset("bd")] == comparison.p_values[1, 3]
    assert [row.statistic for row in rows].count(MEAN_RANK) == 4
    assert [row.statistic for row in rows].count(RANK_PAIR) == 6
    assert {row.n_cases for row in rows} == {20}
    assert ranking_of(evidence, "hit") is None


@pytest.mark.parametrize("seed", range(12))
def test_the_best_are_those_that_the_comparison_marks(seed):
    generator = np.random.default_rng(seed)
    n, k = int(generator.integers(5, 40)), int(generator.integers(3, 9))
    methods = [f"m{number}" for number in range(k)]
    comparison, _, evidence = stored(generator.random((n, k)) + generator.random(k), methods)
    ranking = ranking_of(evidence, "iou")
    for tops, found in ((1, ranking.best), (2, ranking.best_as_published)):
        marked = {name for name, top in zip(methods, among_best(comparison, tops=tops), strict=True) if top}
        assert found == (marked if comparison.p_value < 0.05 else set())


def test_without_a_test_there_are_a_reason_and_no_diagram():
    _, rows, evidence = stored(np.ones((4, 3)), ("a", "b", "c"))
    ranking = ranking_of(evidence, "iou")
    assert {row.reason for row in rows} == {"every block ranks all methods alike"}
    assert ranking.outcome == "The test is undefined: every block ranks all methods alike."
    assert not ranking.is_defined
    assert not ranking.best
    assert not ranking.best_as_published
    assert ranking.diagram("ranks", str.upper) is None
