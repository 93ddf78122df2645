"""How much a model's answer tells about the label: a score of a data set, made of a part for each of its cases."""

import numpy as np
from jaxtyping import Bool, Float
from numpy.lib.stride_tricks import sliding_window_view
from scipy.special import digamma

from heatcheck.core.records import Measured
from heatcheck.metrics.registry import Needs, study_metric
from heatcheck.metrics.undefined import NO_LABEL, NO_NEGATIVE, NO_POSITIVE, undefined

NEIGHBOURS = 3
ONE_OF_A_LABEL = "only one case has the finding, or only one has not"
NOISE = 1e-10  # of the probabilities' spread: enough to part equal ones

study_metric(
    "mutual_information_label",
    label="Mutual information with the label",
    summary="How much the model's probability tells about whether the finding is there, in nats: 0 nothing.",
    higher_is_better=True,
    needs=Needs.PREDICTIONS,
    reference="Ross 2014, PLoS ONE 9:e87357",
)

Cases = Float[np.ndarray, " cases"]


def mutual_information_label(labels: Cases, probabilities: Cases, generator: np.random.Generator) -> Measured:
    """The mutual information of probability and label by nearest neighbours, never below 0.

    Ross's estimate as scikit-learn's `mutual_info_classif` makes it. Labels are 1, 0, or NaN where unknown.
    """
    terms = information_terms(labels, probabilities, generator)
    if not np.isin(labels, (0, 1)).any():
        return undefined(NO_LABEL)
    if not (labels == 1).any():
        return undefined(NO_POSITIVE)
    if not (labels == 0).any():
        return undefined(NO_NEGATIVE)
    defined = terms[~np.isnan(terms)]
    return Measured(max(0.0, float(defined.mean()))) if len(defined) else undefined(ONE_OF_A_LABEL)


def information_terms(labels: Cases, probabilities: Cases, generator: np.random.Generator) -> Cases:
    """What each case adds to the mutual information: it is the mean of them all.

    A case asks how many others lie nearer to it than its third nearest of the same label; were labels telling
    nothing, there would be as many as that label's share of all cases makes expect. NaN where the label is not known,
    and everywhere if a label has less than two cases (scikit-learn then leaves it out, and says 0).
    """
    if labels.shape != probabilities.shape or labels.ndim != 1:
        shapes = f"{labels.shape} and {probabilities.shape}"
        raise ValueError(f"labels and probabilities must be two lists of one length, got {shapes}")
    counted = np.isin(labels, (0, 1))
    if np.isnan(probabilities[counted]).any():
        raise ValueError("a case with a known label has no probability (NaN); leave it out or record it as failed")
    terms = np.full(len(labels), np.nan)
    if min(np.count_nonzero(labels == label) for label in (0, 1)) > 1:
        terms[counted] = _terms(labels[counted] == 1, _parted(probabilities[counted], generator))
    return terms


def _parted(values: Cases, generator: np.random.Generator) -> Cases:
    """The values over their spread, with a little noise."""
    spread = values.std()
    scaled = values / (spread if spread > 0 else 1.0)
    noise = NOISE * max(1.0, float(np.abs(scaled).mean())) * generator.standard_normal(len(values))
    return np.asarray(scaled + noise)


def _terms(has_finding: Bool[np.ndarray, " cases"], values: Cases) -> Cases:
    """ψ(all) + ψ(neighbours) − ψ(cases of the label) − ψ(cases nearer than the last of the neighbours, and itself)."""
    radius, terms = np.empty(len(values)), np.full(len(values), digamma(len(values)))
    for own in (has_finding, ~has_finding):
        count = int(np.count_nonzero(own))
        neighbours = min(NEIGHBOURS, count - 1)
        radius[own] = _distance_to(values[own], neighbours)
        terms[own] += digamma(neighbours) - digamma(count)
    return np.asarray(terms - digamma(_nearer(values, radius)))


def _distance_to(values: Cases, neighbours: int) -> Cases:
    """How far each value is from the one that so many others are at most as far as."""
    order = np.argsort(values)
    beyond = np.full(neighbours, np.inf)
    windows = sliding_window_view(np.concatenate([-beyond, values[order], beyond]), 2 * neighbours + 1)
    apart = np.abs(windows - values[order][:, None])
    found = np.empty(len(values))
    found[order] = np.partition(apart, neighbours, 1)[:, neighbours]  # the nearest is the value itself
    return found


def _nearer(values: Cases, radius: Cases) -> Cases:
    """How many values lie within less than the radius of each, itself among them."""
    line = np.concatenate([[-np.inf], np.sort(values), [np.inf]])
    first = np.searchsorted(line, values - radius)
    last = np.searchsorted(line, values + radius) - 1
    # sums are rounded: whether the outermost are nearer is asked of their distance itself
    first += np.abs(line[first] - values) >= radius
    first -= np.abs(line[first - 1] - values) < radius
    last -= np.abs(line[last] - values) >= radius
    last += np.abs(line[last + 1] - values) < radius
    return np.asarray(last - first + 1)
