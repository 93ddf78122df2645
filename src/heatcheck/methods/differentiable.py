"""Maps as part of a loss, differentiated with respect to the weights."""

from collections.abc import Callable, Sequence
from itertools import islice
from typing import Protocol, cast

from jaxtyping import Float
from torch import Tensor

from heatcheck.core.batches import MapBatch
from heatcheck.core.contracts import Classifier, Method
from heatcheck.core.errors import SpecError
from heatcheck.core.tensors import Images, Targets
from heatcheck.methods.gradient import OverPoints
from heatcheck.methods.registry import METHODS, Access, MethodFacts

Loss = Callable[[Float[Tensor, "batch target channel *space"]], Float[Tensor, ""]]


class DifferentiableMethod(Protocol):
    """A method whose maps can be differentiated with respect to the weights."""

    def __call__(
        self,
        classifier: Classifier,
        images: Images,
        targets: Targets,
        seeds: Sequence[int],
        *,
        create_graph: bool = False,
    ) -> MapBatch:
        """One map per image and target."""


def differentiable(method: Method) -> DifferentiableMethod:
    """The method, for use in a loss; a SpecError gives the reason where that is not possible."""
    facts = next((facts for facts in METHODS.values() if facts.settings is type(method)), None)
    if facts is None or not facts.differentiable:
        able = ", ".join(name for name, other in METHODS.items() if other.differentiable)
        name = facts.name if facts else type(method).__name__
        raise SpecError(f"method {name} cannot be part of a loss: {_reason(facts)}; use one of {able}")
    return cast("DifferentiableMethod", method)


def _reason(facts: MethodFacts | None) -> str:
    if facts is None:
        return "it is not registered"
    return {
        Access.NOTHING: "it does not look at the model",
        Access.PREDICTIONS: "it compares predictions for many covered images, which has no useful gradient in one step",
        Access.INTERNALS: "its map has no second derivative here",
    }[facts.needs]


def _is_one_point(method: OverPoints, images: Images, seeds: Sequence[int]) -> bool:
    """Whether the map is one gradient, so that running the method twice would save nothing."""
    return len(list(islice(method.points(images, seeds), 2))) == 1


def backward(
    method: Method, classifier: Classifier, inputs: tuple[Images, Targets, Sequence[int]], loss: Loss
) -> tuple[Float[Tensor, ""], MapBatch]:
    """The loss of the maps, and the maps; the loss's gradient is added to the weights' `.grad`.

    A method that sums over several points is run twice: once without a graph, for the gradient of the loss at the map,
    and once more point by point, each point's graph freed before the next. Memory then does not grow with the number
    of points, and the result is that of `loss(maps).backward()` with one graph over all points.
    """
    images, targets, seeds = inputs
    if not isinstance(method, OverPoints) or _is_one_point(method, images, seeds):
        maps = differentiable(method)(classifier, images, targets, seeds, create_graph=True)
        value = loss(maps.values)
        value.backward()  # type: ignore[no-untyped-call]
        return value.detach(), MapBatch(maps.values.detach(), maps.error.detach(), maps.note, maps.cells)
    differentiable(method)
    maps = method(classifier, images, targets, seeds)
    leaf = maps.values.detach().requires_grad_()
    value = loss(leaf)
    value.backward()  # type: ignore[no-untyped-call]  # also reaches weights that the loss uses directly
    map_gradient = leaf.grad
    if map_gradient is None:
        raise ValueError("the loss does not depend on the maps")
    for point in method.points(images, seeds):  # the map is the sum of the points' terms: each is pulled back alone
        term = point.term(classifier, targets, create_graph=True)
        (term * map_gradient).sum().backward()  # type: ignore[no-untyped-call]
    return value.detach(), maps
