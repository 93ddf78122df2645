"""Mutual information of probability and label by hand and against scikit-learn."""

import math

import numpy as np
import pytest
from scipy import integrate, stats
from scipy.special import digamma
from sklearn.feature_selection import mutual_info_classif

from heatcheck.metrics.label_information import ONE_OF_A_LABEL, information_terms, mutual_information_label
from heatcheck.metrics.undefined import NO_LABEL, NO_NEGATIVE, NO_POSITIVE


def answers(generator, n, apart=1.5):
    labels = np.zeros(n)
    labels[: max(8, n // 4)] = 1
    return labels, 1 / (1 + np.exp(-generator.normal(size=n) - apart * labels))


def estimated(labels, probabilities):
    return mutual_information_label(np.array(labels, float), np.array(probabilities), np.random.default_rng(1))


def test_five_cases_by_hand():
    # With fewer than four of a label, all others of it are neighbours. 0.1, 0.2, 0.4 lack the finding: the farther of
    # the two others is 0.3, 0.2 and 0.3 away, and strictly nearer lie {.1 .2}, {.1 .2} and {.4 .2 .6}.
    # 0.6 and 0.9 have it: 0.3 apart, and strictly nearer lie {.6 .4} and {.9} alone.
    terms = information_terms(
        np.array([0.0, 0, 0, 1, 1]), np.array([0.1, 0.2, 0.4, 0.6, 0.9]), np.random.default_rng(0)
    )
    without = digamma(5) + digamma(2) - digamma(3) - digamma([2, 2, 3])
    having = digamma(5) + digamma(1) - digamma(2) - digamma([2, 1])
    np.testing.assert_allclose(terms, [*without, *having])


@pytest.mark.parametrize("n", [40, 234, 900])
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_the_value_is_that_of_scikit_learn(n, seed):
    labels, rated = answers(
        np.random.default_rng(seed), n
    )  # it rounds distances where a label has seven cases or fewer
    judge = mutual_info_classif(rated[:, None], labels.astype(int), discrete_features=False, random_state=0)[0]
    assert estimated(labels, rated).value == pytest.approx(judge, abs=1e-12)
    assert judge > 0


def test_cases_without_a_label_take_no_part():
    labels, rated = answers(np.random.default_rng(4), 40)
    unknown = np.where(np.arange(40) % 9 == 0, np.nan, labels)
    known = ~np.isnan(unknown)
    assert estimated(unknown, rated).value == pytest.approx(estimated(labels[known], rated[known]).value)
    terms = information_terms(unknown, rated, np.random.default_rng(0))
    assert (np.isnan(terms) == ~known).all()


def test_many_cases_come_near_the_truth():
    labels, rated = answers(np.random.default_rng(5), 20_000, apart=2.0)

    def density(x):
        with_it, without = stats.norm.pdf(x, 2), stats.norm.pdf(x)
        mixed = 0.25 * with_it + 0.75 * without
        return 0.25 * with_it * np.log(with_it / mixed) + 0.75 * without * np.log(without / mixed)

    assert estimated(labels, rated).value == pytest.approx(integrate.quad(density, -8, 10)[0], abs=0.02)


def test_probabilities_that_tell_nothing_have_none_and_equal_ones_are_parted():
    labels = np.tile([0.0, 1.0], 300)
    assert estimated(labels, np.random.default_rng(6).random(600)).value < 0.05
    assert estimated(labels, np.full(600, 0.5)).value < 0.1
    assert estimated(labels, labels).value == pytest.approx(math.log(2), abs=0.01)


def test_what_cannot_be_told_says_why():
    rated = np.linspace(0, 1, 6)
    assert estimated(np.full(6, np.nan), rated).reason == NO_LABEL
    assert estimated(np.zeros(6), rated).reason == NO_POSITIVE
    assert estimated(np.ones(6), rated).reason == NO_NEGATIVE
    assert estimated([0.0, 1.0, 0.0, 0.0], [0.1, 0.2, 0.3, 0.4]).reason == ONE_OF_A_LABEL
    with pytest.raises(ValueError, match="two lists of the same length"):
        estimated([0.0, 1.0], [0.1])
    with pytest.raises(ValueError, match="has no probability"):
        estimated([0.0, 1.0, 0.0], [0.1, 0.2, math.nan])
