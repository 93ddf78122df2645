"""What is known about each metric: tables, help texts and studies read it from here."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from heatcheck.core.records import Map, Mask, Measured
from heatcheck.core.registry import Registry

Measure = Callable[[Map | Mask, Mask], Measured]


class Needs(Enum):
    """What a metric compares with the truth."""

    REGION = "region"  # the region cut out of the map
    POINT = "point"  # the positions of the map's peaks
    MAP = "map"  # the raw map on the image's grid


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric with the facts that tables and reports show."""

    name: str
    label: str  # the head of a table's column
    summary: str  # one sentence for a clinician
    higher_is_better: bool
    needs: Needs
    reference: str  # the paper that defines it
    measure: Measure
    is_count: bool = False  # an ingredient of ratios over many images, not a score to show


METRICS: Registry[Metric] = Registry("metric")


def metric(  # the facts are few, and clearest beside the function
    name: str, *, label: str, summary: str, higher_is_better: bool, needs: Needs, reference: str
) -> Callable[[Measure], Measure]:
    """A decorator that registers a function as the metric `name` and leaves it as it is."""

    def register(measure: Measure) -> Measure:
        METRICS.add(name, Metric(name, label, summary, higher_is_better, needs, reference, measure))
        return measure

    return register


def pixel_count(
    name: str, *, label: str, summary: str, higher_is_better: bool, reference: str
) -> Callable[[Measure], Measure]:
    """A decorator that registers a function as a count of a region's pixels, to be summed over images."""

    def register(measure: Measure) -> Measure:
        facts = Metric(name, label, summary, higher_is_better, Needs.REGION, reference, measure, is_count=True)
        METRICS.add(name, facts)
        return measure

    return register
