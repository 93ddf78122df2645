"""Scores of volumes that differ in a small box from one that was seen before: only what the box reaches is computed.

A convolution's answer changes only near a change, so most of what the network said of the first volume still holds.
The network is handed a stand-in for some changed volumes, which knows of each the box and its new values. Operations
that look at neighbours only answer with another stand-in, whose boxes are a little larger; what they said of the first
volume is computed when it is first asked for, and kept. Once most of the grid is reached, or by any other operation,
all values are put together and the usual way is taken. The first scores are compared with those of a usual pass.
"""

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor
from torch.utils import _pytree as tree

from heatcheck.core.errors import ModelError
from heatcheck.core.tensors import Images, Logits
from heatcheck.methods.covering.boxes import Box, whole
from heatcheck.methods.speed.folding import KNOWN
from heatcheck.methods.speed.operations import ACTIVATIONS, PARAMETERS, Call, out_of_place
from heatcheck.methods.speed.windows import Window, window_of

MOST = 0.6  # of a grid: where the changes have reached more, everything is computed
CLOSE = 1e-4  # scores may differ by so much from those of a usual pass, as a share of their size
AT_A_TIME = 8  # changed volumes that go through the network together
WAYS = 16  # operations that may look at one answer
VOXELS = 2**24  # that they may have together
SMALL = 2**16  # voxels of a volume; the parts of smaller ones are so small that threads wait for one another
_ELEMENTWISE = ACTIVATIONS - {"prelu", "rrelu"} | {"batch_norm", "dropout", "dropout3d"}
_LAID_OUT = torch.channels_last_3d  # on a CPU convolutions are faster so
_EVERYTHING = (slice(None), slice(None))  # images and channels


@dataclass(frozen=True, slots=True)
class Change:
    """A box of a volume and what is in it now."""

    box: Box
    values: Images  # of one volume


@dataclass(eq=False)
class Before:
    """What an operation said of the volume that changes start from, and what later ones said of that."""

    parent: "Before | None"
    apply: Callable[[Tensor], Tensor]
    window: Window | None = None  # where it looks at neighbours
    constants: tuple[Any, ...] = ()  # keeps alive what the keys below name
    kept: Tensor | None = None
    after: dict[tuple[Any, ...], "Before"] = field(default_factory=dict)

    def value(self, *, keep: bool = True) -> Tensor:
        """The answer; what led to it is not kept unless it was asked for itself."""
        if self.kept is not None:
            return self.kept
        if self.parent is None:
            raise RuntimeError("the first volume is gone")
        made = self.apply(self.parent.value(keep=False))
        if keep:
            self.kept = made.contiguous(memory_format=_LAID_OUT)
        return made

    def move(self, latest: dict["Before", Tensor]) -> None:
        """Keep the latest answers, and none that nobody told of the changes."""
        self.kept = latest.get(self)
        for later in self.after.values():
            later.move(latest)


class Changed(Tensor):
    """Some volumes of which only a box each is known to differ from before; it has their shape, but no memory."""

    local: "Local"
    before: Before
    changes: tuple[Change, ...]

    @classmethod
    def of(cls, local: "Local", before: Before, changes: Sequence[Change], grid: tuple[int, ...]) -> "Changed":
        """A stand-in for the volumes."""
        one = changes[0].values
        made: Changed = Tensor._make_wrapper_subclass(  # noqa: SLF001 - torch's way to do this
            cls, (len(changes), one.shape[1], *grid), dtype=one.dtype, device=one.device
        )
        made.local, made.before, made.changes = local, before, tuple(changes)
        return made

    @property
    def space(self) -> tuple[int, ...]:
        """The size of the volumes."""
        return tuple(self.shape[2:])

    def together(self) -> Tensor:
        """All the values, in memory of their own."""
        return torch.cat(list(self.parts([whole(self.space)] * len(self.changes))))

    def parts(self, wanted: Sequence[Box]) -> Iterator[Tensor]:
        """A part of each volume as it is now, not to be written into."""
        if not self.local.in_turn:
            yield from map(self._part, self.changes, wanted)
            return
        latest = self.before.value().clone()
        for change, box in zip(self.changes, wanted, strict=True):
            latest[(*_EVERYTHING, *change.box.place)] = change.values
            yield latest[(*_EVERYTHING, *box.place)].clone()
        self.local.latest[self.before] = latest

    def _part(self, change: Change, wanted: Box) -> Tensor:
        if change.box.holds(wanted):
            return change.values[(*_EVERYTHING, *wanted.seen_from(change.box).place)]
        cut = self.before.value()[(*_EVERYTHING, *wanted.place)].clone()
        common = change.box.common(wanted)
        if common is not None:
            new = change.values[(*_EVERYTHING, *common.seen_from(change.box).place)]
            cut[(*_EVERYTHING, *common.seen_from(wanted).place)] = new
        return cut

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:  # noqa: ANN401 - whatever the operation returns
        """The operation where something changed, or on all values where it looks further than at neighbours."""
        if func in KNOWN:
            with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001 - torch's way to do this
                return func(*args, **(kwargs or {}))
        return _followed(out_of_place(func, args, kwargs or {}))

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:  # noqa: ANN401 - as above
        """Refused: a usual pass is made instead."""
        raise RuntimeError(f"{func} cannot be followed")


@dataclass
class Local:
    """The scores of volumes near one that was seen before, or each near the one before it (`in_turn`)."""

    logits: Callable[[Images], Logits]
    first: Before
    in_turn: bool
    new: int = 0  # operations that looked at neighbours only
    latest: dict[Before, Tensor] = field(default_factory=dict)

    def __call__(self, changes: Sequence[Change]) -> Logits:
        """The scores of the changed volumes; in turn, those after them start from the last."""
        now = Changed.of(self, self.first, changes, tuple(self.first.value().shape[2:]))
        scores = self.logits(now)
        if self.in_turn:
            if self.first not in self.latest:  # nobody looked at neighbours in the volume itself
                deque(now.parts([change.box for change in changes]), maxlen=0)
            self.first.move(self.latest)
            self.latest = {}
        return scores


def local_scores(
    logits: Callable[[Images], Logits], volume: Images, changes: Iterable[Change | None], before: Logits | None = None
) -> Logits | None:
    """The scores of the volume with each change, given its own scores; without these, with one change after the other.

    Where a change is None, nothing changes, and the scores are those before. The answer is None where the network
    does not allow it: because its operations are others each time or look at everything, or because the first scores
    are not those of a usual pass.
    """
    in_turn = before is None
    local = Local(logits, Before(None, torch.clone, kept=volume.clone(memory_format=_LAID_OUT)), in_turn)
    at_a_time = min(AT_A_TIME, max(1, VOXELS // volume[0, 0].numel()))
    scores, waiting = [logits(volume) if before is None else before], list[Change]()
    places: list[int] = []  # of each volume's scores among all

    def flush() -> bool:
        """Score what waits; False where that cannot be relied on."""
        usual = logits(_carried_out(volume, waiting, in_turn=in_turn)) if len(scores) == 1 else None
        scores.append(local(waiting))
        waiting.clear()
        return usual is None or (local.new > 0 and _alike(scores[-1], usual))

    def place_of(change: Change | None) -> int:
        """Where the scores will be found."""
        if change is not None:
            waiting.append(change)
        return sum(map(len, scores)) + len(waiting) - 1 if change is not None or in_turn else 0

    try:
        with _one_thread() if volume[0, 0].numel() <= SMALL else nullcontext():
            for change in changes:
                places.append(place_of(change))
                if len(waiting) == at_a_time and not flush():
                    return None
            if waiting and not flush():
                return None
    except (RuntimeError, ModelError):
        return None  # a usual pass tells what is wrong, if anything is
    return torch.cat(scores)[places]


@contextmanager
def _one_thread() -> Iterator[None]:
    """A block in which torch works alone."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _carried_out(volume: Images, changes: Sequence[Change], *, in_turn: bool) -> Images:
    """The changed volumes."""
    now, made = volume.clone(), []
    for change in changes:
        now = now if in_turn else volume.clone()
        now[(*_EVERYTHING, *change.box.place)] = change.values
        made.append(now.clone())
    return torch.cat(made)


def _alike(scores: Logits, usual: Logits) -> bool:
    return bool(torch.allclose(scores, usual, rtol=CLOSE, atol=CLOSE * float(usual.abs().max())))


def _followed(asked: Call) -> Any:  # noqa: ANN401 - whatever the operation returns
    """The answer to one call, as a stand-in where that can be."""
    given: Any = asked.positional[0] if asked.positional else asked.named.get("input")
    rest = tree.tree_leaves((asked.positional[1:], {k: v for k, v in asked.named.items() if k != "input"}))
    answer: Any = None
    if isinstance(given, Changed) and not any(isinstance(leaf, Changed) for leaf in rest):
        before = _next(asked, given, rest)
        if before is not None:
            answer = _wider_boxes(before, before.window, given) if before.window else _same_boxes(before, given)
    if asked.target is not None and not isinstance(answer, Changed):
        raise RuntimeError(f"{asked.name!r} in place cannot be followed")  # a usual pass is made instead
    if answer is None:
        positional, named = tree.tree_map_only(Changed, Changed.together, (asked.positional, asked.named))
        return asked.function(*positional, **named)
    if asked.target is None:
        return answer
    given.before, given.changes = answer.before, answer.changes
    return given


def _looks_further(asked: Call, rest: list[Any]) -> bool:
    """Whether the operation is not the same at every place: it learns, draws, or has a bound for each place."""
    if asked.name == "batch_norm":
        named = _named(asked)
        return bool(named.get("training")) or named.get("running_mean") is None
    if "dropout" in asked.name:
        return bool(asked.named.get("training", (*asked.positional, True, True)[2]))
    return any(isinstance(leaf, Tensor) for leaf in rest)


def _same_boxes(before: Before, given: Changed) -> Changed:
    changes = [Change(change.box, before.apply(change.values)) for change in given.changes]
    return Changed.of(given.local, before, changes, given.space)


def _wider_boxes(before: Before, window: Window, given: Changed) -> Tensor:
    """A convolution or pool of what the changes reach; of everything where that is nearly all."""
    grid = window.answered(given.space)
    boxes = [window.reached(change.box, grid) for change in given.changes]
    if sum(box.share(grid) for box in boxes) > MOST * len(boxes):
        return before.apply(given.together())
    needed = [window.needed(box, given.space) for box in boxes]
    cuts = given.parts([cut.inside for cut in needed])
    values = [window.at(part, cut) for part, cut in zip(cuts, needed, strict=True)]
    return Changed.of(given.local, before, list(map(Change, boxes, values)), grid)


def _named(asked: Call) -> dict[str, Any]:
    """The call's arguments by name."""
    return dict(zip(PARAMETERS[asked.name], asked.positional, strict=False)) | asked.named


def _next(asked: Call, given: Changed, rest: list[Any]) -> Before | None:
    """What the same operation said of the volume before; None where it looks at more than neighbours."""
    key = (asked.name, *(id(leaf) if isinstance(leaf, Tensor) else leaf for leaf in rest))
    found = given.before.after.get(key)
    if found is not None:
        return found
    window = window_of(asked.name, _named(asked)) if asked.name in PARAMETERS else None
    if window is None and (asked.name not in _ELEMENTWISE or _looks_further(asked, rest)):
        return None

    def everywhere(value: Tensor) -> Tensor:
        if asked.positional:
            made: Tensor = asked.function(value, *asked.positional[1:], **asked.named)
        else:
            made = asked.function(**asked.named | {"input": value})
        return made

    if len(given.before.after) == WAYS:
        raise RuntimeError("the network's operations are others each time")  # a usual pass is made instead
    given.local.new += 1
    made = Before(given.before, window.whole if window else everywhere, window, tuple(rest))
    given.before.after[key] = made
    return made
