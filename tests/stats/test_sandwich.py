"""Errors of rows in clusters: against the full matrices, by hand, and where one cluster decides."""

import math

import numpy as np
import pytest
from scipy import linalg, stats

from heatcheck.stats.sandwich import Precision, clustered_precision, joint_p_value, joint_reach


def by_full_matrices(design, column, outcome, clusters):
    """CR2 and Bell and McCaffrey's degrees of freedom as they are written down, with matrices over all rows."""
    inverse = np.linalg.inv(design.T @ design)
    residual_maker = np.eye(len(design)) - design @ inverse @ design.T
    residuals = residual_maker @ outcome
    weights = []
    for cluster in np.unique(clusters):
        rows = clusters == cluster
        root = np.linalg.inv(linalg.sqrtm(residual_maker[np.ix_(rows, rows)]).real)
        of_rows = np.zeros(len(design))
        of_rows[rows] = root @ design[rows] @ inverse[:, column]
        weights.append(of_rows)
    weights = np.array(weights)
    form = weights @ residual_maker @ weights.T
    return float(np.sum((weights @ residuals) ** 2)), np.trace(form) ** 2 / np.sum(form**2)


def fitted(design, column, outcome):
    """The basis, direction and residuals of a regression."""
    basis, triangle = np.linalg.qr(design)
    return basis, np.linalg.inv(triangle)[column], outcome - basis @ (basis.T @ outcome)


def test_precision_is_that_of_the_full_matrices():
    generator = np.random.default_rng(1)
    clusters = np.repeat(np.arange(8), generator.integers(1, 6, 8))
    design = np.column_stack([np.ones(len(clusters)), generator.normal(size=(len(clusters), 2))])
    outcome = generator.normal(size=8)[clusters] + generator.normal(size=len(clusters))
    for column in range(3):
        found = clustered_precision(*fitted(design, column, outcome), clusters)
        assert (found.variance, found.freedom) == pytest.approx(by_full_matrices(design, column, outcome, clusters))


def test_differences_within_clusters_are_a_paired_t_test():
    generator = np.random.default_rng(2)
    first, second = generator.normal(size=(2, 9))
    design = np.column_stack([np.ones(18), np.repeat([0.0, 1.0], 9)])
    outcome = np.concatenate([first, second])
    found = clustered_precision(*fitted(design, 1, outcome), np.tile(np.arange(9), 2))
    judge = stats.ttest_rel(second, first)
    assert found.freedom == pytest.approx(8)
    assert (second - first).mean() / found.error == pytest.approx(judge.statistic)


def test_a_level_that_one_cluster_alone_has_gives_no_precision_and_spoils_no_other():
    generator = np.random.default_rng(3)
    clusters = np.repeat(np.arange(3), 10)
    design = np.column_stack([np.ones(30), clusters == 1, clusters == 2, np.tile([0.0, 1.0], 15)])
    outcome = generator.normal(size=30)
    assert clustered_precision(*fitted(design, 1, outcome), clusters) is None
    within = clustered_precision(*fitted(design, 3, outcome), clusters)
    assert within.freedom == pytest.approx(2)


def test_two_sources_reach_as_far_as_their_squares_add_and_the_p_value_is_the_intervals():
    sources = [Precision(0.04, 2), Precision(0.01, 50)]
    reach = math.hypot(stats.t.ppf(0.975, 2) * 0.2, stats.t.ppf(0.975, 50) * 0.1)
    assert joint_reach(sources, 0.95) == pytest.approx(reach)
    assert joint_p_value(sources, reach) == pytest.approx(0.05)
    assert joint_p_value(sources, 0.0) == pytest.approx(1)
    assert joint_p_value([Precision(1e-8, 100)], 1.0) < 1e-9
