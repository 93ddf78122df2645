"""Information of a model's probability about the label: a score of a data set, the mean of one term per case."""

import numpy as np
from jaxtyping import Bool, Float
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import digamma

from heatcheck.core.records import Measured
from heatcheck.metrics.registry import Needs, study_metric
from heatcheck.metrics.undefined import missing_class, undefined

NEIGHBOURS = 3
ONE_OF_A_LABEL = "only one case has the finding, or only one has not"
NOISE = 1e-10  # relative to the probabilities' spread: enough to separate equal ones

study_metric(
    "mutual_information_label",
    study="alignment",
    label="Mutual information with the label",
    summary="How much the model's probability tells about whether the finding is there, in nats: 0 nothing.",
    higher_is_better=True,
    needs=Needs.PREDICTIONS,
    reference="Ross 2014, PLoS ONE 9:e87357",
)

Cases = Float[np.ndarray, " cases"]


def mutual_information_label(labels: Cases, probabilities: Cases, generator: np.random.Generator) -> Measured:
    """The mutual information of probability and label, estimated from nearest neighbours, never below 0.

    Ross's estimator as in scikit-learn's `mutual_info_classif`. Labels are 1, 0, or NaN where unknown.
    """
    terms = information_terms(labels, probabilities, generator)
    if reason := missing_class(labels):
        return undefined(reason)
    defined = terms[~np.isnan(terms)]
    return Measured(max(0.0, float(defined.mean()))) if len(defined) else undefined(ONE_OF_A_LABEL)


def information_terms(labels: Cases, probabilities: Cases, generator: np.random.Generator) -> Cases:
    """The term of each case, whose mean is the mutual information.

    A term compares how many cases lie nearer than the third nearest case of the same label with how many there would
    be if probability and label were independent. NaN where the label is unknown, and everywhere if a label has fewer
    than two cases (scikit-learn then leaves that label out and returns 0).
    """
    if labels.shape != probabilities.shape or labels.ndim != 1:
        shapes = f"{labels.shape} and {probabilities.shape}"
        raise ValueError(f"labels and probabilities must be two lists of the same length, got {shapes}")
    known = np.isin(labels, (0, 1))
    if np.isnan(probabilities[known]).any():
        raise ValueError("a case with a known label has no probability (NaN); leave it out or record it as failed")
    terms = np.full(len(labels), np.nan)
    if min(np.count_nonzero(labels == label) for label in (0, 1)) > 1:
        terms[known] = _terms(labels[known] == 1, _without_ties(probabilities[known], generator))
    return terms


def _without_ties(values: Cases, generator: np.random.Generator) -> Cases:
    """The values over their standard deviation, with a little noise that separates equal ones."""
    spread = values.std()
    scaled = values / (spread if spread > 0 else 1.0)
    noise = NOISE * max(1.0, float(np.abs(scaled).mean())) * generator.standard_normal(len(values))
    return np.asarray(scaled + noise)


def _terms(has_finding: Bool[np.ndarray, " cases"], values: Cases) -> Cases:
    """ψ(all) + ψ(k) − ψ(cases of the label) − ψ(cases nearer than the k-th neighbour of that label, and itself)."""
    radius, terms = np.empty(len(values)), np.full(len(values), digamma(len(values)))
    for same_label in (has_finding, ~has_finding):
        count = int(np.count_nonzero(same_label))
        k = min(NEIGHBOURS, count - 1)
        radius[same_label] = _distance_to_neighbour(values[same_label], k)
        terms[same_label] += digamma(k) - digamma(count)
    return np.asarray(terms - digamma(_count_nearer(values, radius)))


def _distance_to_neighbour(values: Cases, k: int) -> Cases:
    """The distance of each value to its k-th nearest neighbour."""
    order = np.argsort(values)
    beyond = np.full(k, np.inf)
    # in sorted order, the k nearest neighbours are among the k values on either side
    windows = sliding_window_view(np.concatenate([-beyond, values[order], beyond]), 2 * k + 1)
    apart = np.abs(windows - values[order][:, None])
    distance = np.empty(len(values))
    distance[order] = np.partition(apart, k, 1)[:, k]  # number 0 is the value itself
    return distance


def _count_nearer(values: Cases, radius: Cases) -> Cases:
    """The number of values at less than the radius from each value, including itself."""
    line = np.concatenate([[-np.inf], np.sort(values), [np.inf]])
    first = np.searchsorted(line, values - radius)
    last = np.searchsorted(line, values + radius) - 1
    # `values ± radius` is rounded: whether the outermost values are nearer is decided by their distance itself
    first += np.abs(line[first] - values) >= radius
    first -= np.abs(line[first - 1] - values) < radius
    last -= np.abs(line[last] - values) >= radius
    last += np.abs(line[last + 1] - values) < radius
    return np.asarray(last - first + 1)
