"""What is known about each metric: tables, help texts and studies read it from here."""

from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum

from heatcheck.core.records import Map, Mask, Measured
from heatcheck.core.registry import Registry
from heatcheck.metrics.counting import Overlap, overlap
from heatcheck.metrics.grids import require_masks

Measure = Callable[[Map | Mask, Mask], Measured]
OfOverlap = Callable[[Overlap], Measured]


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
    of_overlap: OfOverlap | None = None  # the same from the sizes of region and truth, where they are enough
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


def region_metric(
    name: str, *, label: str, summary: str, higher_is_better: bool, reference: str, is_count: bool = False
) -> Callable[[OfOverlap], Measure]:
    """A decorator that registers a function of what region and truth have in common, and returns it as one of both.

    A study that takes many such scores of one region counts its pixels once.
    """

    def register(of_overlap: OfOverlap) -> Measure:
        def measure(region: Map | Mask, truth: Mask) -> Measured:
            require_masks(region, truth)
            return of_overlap(overlap(region, truth))

        measure.__name__, measure.__doc__ = name, of_overlap.__doc__
        facts = Metric(name, label, summary, higher_is_better, Needs.REGION, reference, measure, of_overlap, is_count)
        METRICS.add(name, facts)
        return measure

    return register
