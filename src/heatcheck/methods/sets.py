"""Sets of methods that one word names, so that nobody has to know every method: all, fast and recommended."""

from collections.abc import Callable, Iterable, Iterator

from heatcheck.core.contracts import Method
from heatcheck.methods.registry import METHODS, MethodFacts, passes_of

ALL, FAST, RECOMMENDED = "all", "fast", "recommended"
SETS = (ALL, FAST, RECOMMENDED)
MOST_PASSES = 50.0  # of a fast method, for one map
# By family, the method that speaks for it first; the others stand in where it does not run on a model.
PREFERRED = {
    "CAM": ("grad_cam", "grad_cam_plus_plus", "eigen_cam"),  # the most studied, one pass
    "attention": ("attention_rollout",),
    "gradient": ("integrated_gradients", "smooth_grad", "gradient"),  # its sum can be checked against the score
    "modified backward": ("lrp", "deep_lift", "guided_backprop"),  # sums to the score, and depends on every weight
    "masks": ("occlusion", "lime"),  # nothing is drawn by chance, and nothing but predictions is needed
}


def members_of(name: str, allowed: Callable[[MethodFacts], bool]) -> tuple[str, ...]:
    """The methods that a set can have, floors last; which of them it has depends on the model."""
    known = [facts for facts in METHODS.values() if allowed(facts)]
    wanted = {facts.name for facts in known if not facts.is_floor}
    if name == RECOMMENDED:
        wanted &= {each for order in _orders(known) for each in order}
    return (*(each for each in METHODS if each in wanted), *(facts.name for facts in known if facts.is_floor))


def is_fast(name: str, method: Method, shape: tuple[int, ...]) -> bool:
    """Whether a map of one finding needs few passes for an image of this shape: its channels and sides."""
    return passes_of(name, method, shape, 1).total <= MOST_PASSES


def one_of_each_family(names: Iterable[str], running: Iterable[str]) -> frozenset[str]:
    """Of each family the first preferred one that runs, and the floors that run."""
    able = set(running)
    known = [METHODS[name] for name in names]
    firsts = (next((name for name in order if name in able), "") for order in _orders(known))
    floors = (facts.name for facts in known if facts.is_floor and facts.name in able)
    return frozenset([*filter(None, firsts), *floors])


def stand_ins(name: str) -> tuple[str, ...]:
    """The methods of its family that are recommended only where this one does not run."""
    order = next((order for order in PREFERRED.values() if name in order), ())
    return order[order.index(name) + 1 :] if order else ()


def _orders(known: Iterable[MethodFacts]) -> Iterator[tuple[str, ...]]:
    """By family, the order in which its methods are recommended: of a family without one, the first by name."""
    by_family: dict[str, list[str]] = {}
    for facts in known:
        if not facts.is_floor:
            by_family.setdefault(facts.family, []).append(facts.name)
    for family, names in by_family.items():
        yield tuple(name for name in PREFERRED.get(family, names[:1]) if name in names)
