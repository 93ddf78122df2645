"""The registry of metrics, and the decorators that fill it: label, unit and words stand above each function."""

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import Literal

from heatcheck.core.records import Map, Mask, Measured
from heatcheck.core.registry import Registry
from heatcheck.metrics.counting import Overlap, overlap
from heatcheck.metrics.grids import require_masks

Measure = Callable[[Map | Mask, Mask], Measured]
MetricUnit = Literal["score", "share", "fine", "whole"]  # a decimal, a percentage, four decimals, a whole number
OfOverlap = Callable[[Overlap], Measured]


class Needs(Enum):
    """What a metric compares: the first three with the truth, the others with what only a study has."""

    REGION = "region"  # the region cut out of the map
    POINT = "point"  # the positions of the map's peaks
    MAP = "map"  # the raw map on the image's grid
    BOX = "box"  # the box detected in the map, with what was planted
    PREDICTIONS = "predictions"  # what a model says of an image, with what it says of another or should say
    MAPS = "two maps"  # the raw maps of two methods, with each other
    MODALITIES = "modalities"  # a map of each modality, with the lesion in each and how much it matters to the model


@dataclass(frozen=True, slots=True)
class MetricFacts:
    """What tables and reports show of a metric, whatever it compares; `Metric` and `StudyMetric` are the two kinds."""

    name: str
    label: str  # the head of a table's column
    summary: str  # one sentence for a clinician
    higher_is_better: bool
    needs: Needs
    reference: str  # the paper that defines it
    unit: MetricUnit = field(kw_only=True, default="score")
    study: str = field(kw_only=True, default="localization")  # the one that it was made for; others may use it too


@dataclass(frozen=True, slots=True)
class Metric(MetricFacts):
    """A metric of a region, peaks or a map, and the truth."""

    measure: Measure
    of_overlap: OfOverlap | None = None  # the same from the sizes of region and truth, where they are enough
    is_count: bool = False  # an ingredient of ratios over many images, not a score to show


@dataclass(frozen=True, slots=True)
class StudyMetric(MetricFacts):
    """A metric of what only a study has; the study calls its function, which is named like the metric or says so."""


METRICS: Registry[Metric] = Registry("metric")  # what any map can be scored with, given the truth
METRIC_FACTS: Registry[MetricFacts] = Registry("metric")  # everything that is ever shown, those included


def metric(  # noqa: PLR0913 - the facts are clearest beside the function
    name: str,
    *,
    label: str,
    summary: str,
    higher_is_better: bool,
    needs: Needs,
    reference: str,
    unit: MetricUnit = "score",
) -> Callable[[Measure], Measure]:
    """A decorator that registers a function as the metric `name` and leaves it as it is."""

    def register(measure: Measure) -> Measure:
        facts = Metric(name, label, summary, higher_is_better, needs, reference, measure, unit=unit)
        METRIC_FACTS.add(name, METRICS.add(name, facts))
        return measure

    return register


def region_metric(  # noqa: PLR0913 - as above
    name: str,
    *,
    label: str,
    summary: str,
    higher_is_better: bool,
    reference: str,
    is_count: bool = False,
    unit: MetricUnit = "score",
) -> Callable[[OfOverlap], Measure]:
    """A decorator that registers a function of what region and truth have in common, and returns it as one of both.

    A study that takes many such scores of one region counts its pixels once.
    """

    def register(of_overlap: OfOverlap) -> Measure:
        def measure(region: Map | Mask, truth: Mask) -> Measured:
            require_masks(region, truth)
            return of_overlap(overlap(region, truth))

        measure.__name__, measure.__doc__ = name, of_overlap.__doc__
        words = name, label, summary, higher_is_better, Needs.REGION, reference
        facts = Metric(*words, measure, of_overlap, is_count, unit=unit)
        METRICS.add(name, facts)
        if not is_count:
            METRIC_FACTS.add(name, facts)
        return measure

    return register


def study_metric(  # noqa: PLR0913 - as `metric`, for functions of many shapes
    name: str,
    *,
    study: str,
    label: str,
    summary: str,
    higher_is_better: bool,
    needs: Needs,
    reference: str,
    unit: MetricUnit = "score",
) -> None:
    """Register the facts of a metric that a study computes from what only it has."""
    facts = StudyMetric(name, label, summary, higher_is_better, needs, reference, unit=unit, study=study)
    METRIC_FACTS.add(name, facts)
