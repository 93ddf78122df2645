"""Scores of volumes that differ from a reference volume in a small box: only what the box reaches is computed.

The output of a convolution changes only near a change of its input, so most of what the network computed for the
reference volume still holds. The network is given a stand-in for several changed volumes, which knows the box of each
and its new values. Operations that read only neighbours return another stand-in, whose boxes are a little larger; their
output for the reference volume is computed when it is first needed, and kept. Once the boxes cover most of the grid, or
at any other operation, all values are put together and the network goes on as usual. The first scores are compared with
those of a full pass.
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
from heatcheck.methods.covering.boxes import Box, full_box
from heatcheck.methods.speed.folding import KNOWN
from heatcheck.methods.speed.operations import ACTIVATIONS, PARAMETERS, Call, out_of_place
from heatcheck.methods.speed.windows import Window, window_of

MOST = 0.6  # share of the grid above which everything is computed: pieces would save nothing
CLOSE = 1e-4  # relative difference from a full pass that counts as rounding
AT_A_TIME = 8  # changed volumes that pass through the network together
VOXELS = 2**24  # that they may have together
MOST_USERS = 16  # operations that may read one output; more mean that they are new ones at every pass
SMALL = 2**16  # voxels of a volume up to which one thread is faster than several
_ELEMENTWISE = ACTIVATIONS - {"prelu", "rrelu"} | {"batch_norm", "dropout", "dropout3d"}
_LAYOUT = torch.channels_last_3d  # faster for convolutions on a CPU
_ALL = (slice(None), slice(None))  # images and channels


@dataclass(frozen=True, slots=True)
class Change:
    """A box of a volume and the new values in it."""

    box: Box
    values: Images  # of one volume


@dataclass(eq=False)
class Reference:
    """The output of an operation for the reference volume, and the operations that read it."""

    parent: "Reference | None"
    apply: Callable[[Tensor], Tensor]
    window: Window | None = None  # of an operation that reads neighbours
    constants: tuple[Any, ...] = ()  # keeps alive the tensors whose ids are in the keys of `users`
    kept: Tensor | None = None
    users: dict[tuple[Any, ...], "Reference"] = field(default_factory=dict)

    def value(self, *, keep: bool = True) -> Tensor:
        """The output; intermediate outputs are kept only where they were asked for themselves."""
        if self.kept is not None:
            return self.kept
        if self.parent is None:
            raise RuntimeError("the reference volume is gone")
        output = self.apply(self.parent.value(keep=False))
        if keep:
            self.kept = output.contiguous(memory_format=_LAYOUT)
        return output

    def move(self, latest: dict["Reference", Tensor]) -> None:
        """Make the latest volume the reference; outputs that were not updated are dropped, as they are out of date."""
        self.kept = latest.get(self)
        for user in self.users.values():
            user.move(latest)


class Changed(Tensor):
    """A stand-in for volumes that each differ from the reference in a box; it has their shape, but no memory."""

    local: "Local"
    reference: Reference
    changes: tuple[Change, ...]

    @classmethod
    def of(cls, local: "Local", reference: Reference, changes: Sequence[Change], grid: tuple[int, ...]) -> "Changed":
        """A stand-in for as many volumes as there are changes."""
        first = changes[0].values
        stand_in: Changed = Tensor._make_wrapper_subclass(  # noqa: SLF001 - torch's way to do this
            cls, (len(changes), first.shape[1], *grid), dtype=first.dtype, device=first.device
        )
        stand_in.local, stand_in.reference, stand_in.changes = local, reference, tuple(changes)
        return stand_in

    @property
    def space(self) -> tuple[int, ...]:
        """The size of the volumes."""
        return tuple(self.shape[2:])

    def together(self) -> Tensor:
        """The complete volumes."""
        return torch.cat(list(self.parts([full_box(self.space)] * len(self.changes))))

    def parts(self, wanted: Sequence[Box]) -> Iterator[Tensor]:
        """A part of each changed volume, not to be written into."""
        if not self.local.in_turn:
            yield from map(self._part, self.changes, wanted)
            return
        latest = self.reference.value().clone()
        for change, box in zip(self.changes, wanted, strict=True):  # each change is made on top of those before it
            latest[(*_ALL, *change.box.index)] = change.values
            yield latest[(*_ALL, *box.index)].clone()
        self.local.latest[self.reference] = latest

    def _part(self, change: Change, wanted: Box) -> Tensor:
        if change.box.contains(wanted):
            return change.values[(*_ALL, *wanted.relative_to(change.box).index)]
        part = self.reference.value()[(*_ALL, *wanted.index)].clone()
        shared = change.box.intersection(wanted)
        if shared is not None:
            new = change.values[(*_ALL, *shared.relative_to(change.box).index)]
            part[(*_ALL, *shared.relative_to(wanted).index)] = new
        return part

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:  # noqa: ANN401 - whatever the operation returns
        """The operation on what changed, or on all values where it reads more than neighbours."""
        if func in KNOWN:
            with torch._C.DisableTorchFunctionSubclass():  # noqa: SLF001 - torch's way to do this
                return func(*args, **(kwargs or {}))
        return _followed(out_of_place(func, args, kwargs or {}))

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:  # noqa: ANN401 - as above
        """Refused: a full pass is made instead."""
        raise RuntimeError(f"{func} cannot be followed")


@dataclass
class Local:
    """Scores of volumes that each differ from one reference volume, or (`in_turn`) from the volume before."""

    logits: Callable[[Images], Logits]
    volume: Reference
    in_turn: bool
    followed: int = 0  # operations that read only neighbours
    latest: dict[Reference, Tensor] = field(default_factory=dict)  # outputs for the last of the changed volumes

    def __call__(self, changes: Sequence[Change]) -> Logits:
        """The scores of the changed volumes; in turn, the last of them becomes the reference."""
        changed = Changed.of(self, self.volume, changes, tuple(self.volume.value().shape[2:]))
        scores = self.logits(changed)
        if self.in_turn:
            if self.volume not in self.latest:  # no operation has put the last volume itself together
                deque(changed.parts([change.box for change in changes]), maxlen=0)
            self.volume.move(self.latest)
            self.latest = {}
        return scores


def local_scores(
    logits: Callable[[Images], Logits], volume: Images, changes: Iterable[Change | None], before: Logits | None = None
) -> Logits | None:
    """The scores of the volume with each change alone, given its own scores `before`; without these, with all so far.

    A change of None changes nothing and has the scores before it. The result is None where the network does not allow
    this: its operations are new ones at every pass or read the whole volume, or the first scores are not those of a
    full pass.
    """
    in_turn = before is None
    local = Local(logits, Reference(None, torch.clone, kept=volume.clone(memory_format=_LAYOUT)), in_turn)
    at_a_time = min(AT_A_TIME, max(1, VOXELS // volume[0, 0].numel()))
    scores, waiting = [logits(volume) if before is None else before], list[Change]()
    rows: list[int] = []  # for each change, the row of its scores

    def flush() -> bool:
        """Score the waiting changes; False where the scores cannot be relied on."""
        full = logits(_changed_volumes(volume, waiting, in_turn=in_turn)) if len(scores) == 1 else None
        scores.append(local(waiting))
        waiting.clear()
        return full is None or (local.followed > 0 and _alike(scores[-1], full))

    def row_of(change: Change | None) -> int:
        """The row that the scores will have; row 0 is the volume without a change."""
        if change is not None:
            waiting.append(change)
        return sum(map(len, scores)) + len(waiting) - 1 if change is not None or in_turn else 0

    try:
        with _one_thread() if volume[0, 0].numel() <= SMALL else nullcontext():
            for change in changes:
                rows.append(row_of(change))
                if len(waiting) == at_a_time and not flush():
                    return None
            if waiting and not flush():
                return None
    except (RuntimeError, ModelError):
        return None  # a full pass reports what is wrong, if anything is
    return torch.cat(scores)[rows]


@contextmanager
def _one_thread() -> Iterator[None]:
    """A block in which torch uses one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        yield
    finally:
        torch.set_num_threads(threads)


def _changed_volumes(volume: Images, changes: Sequence[Change], *, in_turn: bool) -> Images:
    latest, volumes = volume.clone(), []
    for change in changes:
        latest = latest if in_turn else volume.clone()
        latest[(*_ALL, *change.box.index)] = change.values
        volumes.append(latest.clone())
    return torch.cat(volumes)


def _alike(scores: Logits, full: Logits) -> bool:
    return bool(torch.allclose(scores, full, rtol=CLOSE, atol=CLOSE * float(full.abs().max())))


def _followed(call: Call) -> Any:  # noqa: ANN401 - whatever the operation returns
    """The output of one call, as a stand-in where that is possible."""
    volumes: Any = call.positional[0] if call.positional else call.named.get("input")
    rest = tree.tree_leaves((call.positional[1:], {k: v for k, v in call.named.items() if k != "input"}))
    output: Any = None
    if isinstance(volumes, Changed) and not any(isinstance(leaf, Changed) for leaf in rest):
        reference = _reference_for(call, volumes, rest)
        if reference is not None and reference.window:
            output = _wider_boxes(reference, reference.window, volumes)
        elif reference is not None:
            output = _same_boxes(reference, volumes)
    if call.target is not None and not isinstance(output, Changed):
        raise RuntimeError(f"{call.name!r} in place cannot be followed")  # a full pass is made instead
    if output is None:
        positional, named = tree.tree_map_only(Changed, Changed.together, (call.positional, call.named))
        return call.function(*positional, **named)
    if call.target is None:
        return output
    volumes.reference, volumes.changes = output.reference, output.changes
    return volumes


def _varies_with_position(call: Call, rest: list[Any]) -> bool:
    """Whether the operation is not the same at every position: it learns, draws, or has a tensor as a bound."""
    if call.name == "batch_norm":
        named = _named(call)
        return bool(named.get("training")) or named.get("running_mean") is None
    if "dropout" in call.name:
        return bool(call.named.get("training", (*call.positional, True, True)[2]))
    return any(isinstance(leaf, Tensor) for leaf in rest)


def _same_boxes(reference: Reference, volumes: Changed) -> Changed:
    changes = [Change(change.box, reference.apply(change.values)) for change in volumes.changes]
    return Changed.of(volumes.local, reference, changes, volumes.space)


def _wider_boxes(reference: Reference, window: Window, volumes: Changed) -> Tensor:
    """A convolution or pooling of what the changes reach; of everything where that is nearly all."""
    grid = window.output_grid(volumes.space)
    boxes = [window.reached(change.box, grid) for change in volumes.changes]
    if sum(box.share(grid) for box in boxes) > MOST * len(boxes):
        return reference.apply(volumes.together())
    needed = [window.needed(box, volumes.space) for box in boxes]
    parts = volumes.parts([each.inside for each in needed])
    # `strict` runs `parts` to its end, where it records the latest volume
    values = [window.on_part(part, each) for part, each in zip(parts, needed, strict=True)]
    return Changed.of(volumes.local, reference, list(map(Change, boxes, values)), grid)


def _named(call: Call) -> dict[str, Any]:
    """The call's arguments by name."""
    return dict(zip(PARAMETERS[call.name], call.positional, strict=False)) | call.named


def _reference_for(call: Call, volumes: Changed, rest: list[Any]) -> Reference | None:
    """The output of the same operation for the reference volume; None where it reads more than neighbours."""
    key = (call.name, *(id(leaf) if isinstance(leaf, Tensor) else leaf for leaf in rest))
    known = volumes.reference.users.get(key)
    if known is not None:
        return known
    window = window_of(call.name, _named(call)) if call.name in PARAMETERS else None
    if window is None and (call.name not in _ELEMENTWISE or _varies_with_position(call, rest)):
        return None

    def on_grid(value: Tensor) -> Tensor:
        if call.positional:
            output: Tensor = call.function(value, *call.positional[1:], **call.named)
        else:
            output = call.function(**call.named | {"input": value})
        return output

    if len(volumes.reference.users) == MOST_USERS:
        raise RuntimeError("the network runs different operations on every pass")  # a full pass is made instead
    volumes.local.followed += 1
    reference = Reference(volumes.reference, window.on_grid if window else on_grid, window, tuple(rest))
    volumes.reference.users[key] = reference
    return reference
