"""The words that every run's tables are written with: statistics and conditions; a study adds its own statistics."""

import json
from collections.abc import Mapping
from functools import lru_cache
from typing import Any, NewType, TypedDict, Unpack

Statistic = NewType("Statistic", str)  # what kind of number an estimate is; one word for writer and reader

MEAN = Statistic("mean")
DIFFERENCE = Statistic("difference")  # of two means over the same cases
TEST = Statistic("test")  # a difference with its p-value
CORRELATION = Statistic("correlation")
AUROC = Statistic("auroc")
RATIO = Statistic("ratio")  # of sums over images
PERCENT_DECREASE = Statistic("percent_decrease")  # from the readers' score
MODEL_DIFFERENCE = Statistic("model_difference")  # of one method's means on two models
SLOPE = Statistic("slope")  # of a regression on a feature of the truth or on the probability
SPEARMAN = Statistic("spearman")
TUNED_THRESHOLD = Statistic("tuned_threshold")
TUNED_CUTOFF = Statistic("tuned_cutoff")
SELECTED = Statistic("selected")  # what validation data chose
CALIBRATION = Statistic("calibration")  # the calibration error of a model's probabilities
CHANCE_CALIBRATION = Statistic("chance_calibration")  # that of a perfect model with these probabilities
RELIABILITY = Statistic("reliability")  # how often the finding is present, in one bin of probabilities
FRIEDMAN = Statistic("friedman")  # χ² of the ranks of all methods
MEAN_RANK = Statistic("mean_rank")
RANK_PAIR = Statistic("nemenyi")  # the difference of two mean ranks with its p-value
CRITICAL_DIFFERENCE = Statistic("critical_difference")  # of two mean ranks


class Condition(TypedDict, total=False):
    """Every fact that a condition may state. A study of another package may add its own with `condition_of`."""

    # which training or part of the data
    arm: str  # of an alignment study: base, control, align, misalign, or floor and human without a network
    seed: int
    fold: int | str  # a number, or "all"
    through: str  # the method that a network was aligned through
    split: str  # "finetune" for scores on images that the network learned from
    pooled: str  # what was averaged over first
    subgroup: str  # the column of the labels by which cases are divided
    group: str  # one of its groups
    call: str  # the model's answers that are meant: positive or negative ones, right or wrong
    # which rules or settings
    preset: str
    threshold: float | str  # a number, or "tuned"
    cutoff: float | str  # a number, or "tuned"
    smooth: float  # of the map, as a share of the image's longer side
    placement: str  # "plain" where coarse maps were resized as if their cells tiled the image
    sigma: float  # of the smoothing before a box is detected in a map
    temperature: str  # "scaled" where probabilities were calibrated first
    fitted_on: str  # the data a temperature was fitted on
    stage: str  # of tuning: pair or architecture
    measure: str  # the performance that an importance is a share of: accuracy, balanced accuracy
    importance: str
    weights: str
    filled: str  # what takes the place of removed pixels
    ablated: str  # what is removed: a whole modality, or its lesion
    shown: str  # the modalities that are left
    # which quantity
    reader: str
    feature: str  # of a regression
    term: str  # of a regression
    errors: str  # how the standard errors of a regression are computed
    kind: str
    left: str
    right: str
    versus: str  # the arm or method that is compared with
    other_model: str
    modality: str
    known: str  # the modality that alone is informative
    bin: int  # of a reliability diagram
    predicted: float  # the mean probability in a bin
    before: str  # of blame: the verdict without fine-tuning
    under: str  # of blame: the verdict from fine-tuning
    with_metric: str  # what a rating is correlated with
    within: str  # all cases together, or case by case


def condition(**facts: Unpack[Condition]) -> str:
    """The facts as canonical JSON, so that equal conditions are equal strings."""
    return condition_of(facts)


def condition_of(facts: Mapping[str, Any]) -> str:
    """The same for facts that are not all named here."""
    try:
        # 1, 1.0 and True are equal but read differently, so the types belong to what is remembered
        return _remembered(tuple((name, type(fact), fact) for name, fact in facts.items()))
    except TypeError:  # a list, of another package
        return _canonical(facts)


@lru_cache(maxsize=4096)
def _remembered(facts: tuple[tuple[str, type, Any], ...]) -> str:
    """A run has few conditions and thousands of rows under each."""
    return _canonical({name: fact for name, _, fact in facts})


def _canonical(facts: Mapping[str, Any]) -> str:
    return json.dumps(facts, sort_keys=True, separators=(",", ":"), allow_nan=False)


def facts_of(text: str) -> Condition:
    """The facts of a condition; none where it cannot be read."""
    try:
        facts = json.loads(text)
    except ValueError:
        return {}
    return facts if isinstance(facts, dict) else {}  # type: ignore[return-value] # another package may add facts


PLAIN = condition()  # of scores and estimates under the usual circumstances
