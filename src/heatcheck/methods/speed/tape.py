"""Following an image through a network, operation by operation, and walking back by rules of one's own.

The network is handed a stand-in for its input. Every torch operation on a stand-in is carried out on the true values,
written on a tape and answered with another stand-in, however it is spelled: as a module, as a function, as a method,
in place, or through one module used many times. There are no hooks and no edits, so nothing must be restored. The way
back asks a rule at each operation how what arrived at its output is shared among its inputs. The values keep their own
autograd graph throughout, so that what a rule computes can be differentiated with respect to the weights.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from weakref import WeakSet

import torch
from torch import Tensor, nn
from torch.utils import _pytree as tree

from heatcheck.core.contracts import Classifier
from heatcheck.core.errors import ModelError
from heatcheck.core.tensors import Images, Logits
from heatcheck.methods.passes import evaluation_mode
from heatcheck.methods.speed.fast_convolution import QuickBackward
from heatcheck.methods.speed.operations import PARAMETERS, SIMPLE, out_of_place


@dataclass(frozen=True)
class Piece:
    """One differentiable step from some inputs to an output."""

    inputs: tuple[Tensor, ...]
    output: Tensor
    create_graph: bool
    simple: bool = False  # torch's own functions on the way back have one output each and can be called directly

    def pull(self, arriving: Tensor) -> tuple[Tensor, ...]:
        """The vector-Jacobian product: what arrives at the output, as seen from each input; 0 where nothing does."""
        shares: tuple[Tensor | None, ...]
        if self.create_graph or not self.simple or not self._way_back:
            shares = torch.autograd.grad(
                self.output, self.inputs, arriving, retain_graph=True, create_graph=self.create_graph, allow_unused=True
            )
        else:
            shares = (arriving,)
            for function, places in self._way_back:
                answer = function(shares[0])
                shares = (answer,) if isinstance(answer, Tensor) else tuple(answer[place] for place in places)
        return tuple(  # the engine would sum what was spread over more places, the functions alone do not
            torch.zeros_like(value) if share is None else share.sum_to_size(value.shape)
            for value, share in zip(self.inputs, shares, strict=True)
        )

    @cached_property
    def _way_back(self) -> tuple[tuple[Any, list[int]], ...]:
        """Torch's own functions from the output straight to the inputs, with the places of what they answer.

        Called one after the other they cost a fraction of what the autograd engine needs to start. None where the way
        branches.
        """
        way, function = [], self.output.grad_fn
        while function is not None:
            before = [(place, step[0]) for place, step in enumerate(function.next_functions) if step[0] is not None]
            call = function if callable(function) else function.apply  # type: ignore[attr-defined]  # one of ours
            way.append((call, [place for place, _ in before]))
            ends = [getattr(step, "variable", None) for _, step in before]
            if len(ends) == len(self.inputs) and all(a is b for a, b in zip(ends, self.inputs, strict=True)):
                return tuple(way)
            function = before[0][1] if len(before) == 1 else None
        return ()


@dataclass(eq=False, slots=True)
class Node:
    """One operation on the tape: where its inputs came from, and how to do it again."""

    operation: str
    parents: tuple["Node", ...]
    piece: Piece
    call: Callable[..., Tensor]  # the output for other values of the tracked inputs
    function: Callable[..., Any]
    arrange: Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]  # tracked values → all arguments of the call
    position: int
    overwritten: bool = False  # a later operation wrote into memory that it shares
    kept: dict[str, Any] = field(default_factory=dict)

    @property
    def constants(self) -> list[Any]:
        """What the operation was called with besides the tracked values."""
        return [leaf for leaf in tree.tree_leaves(self.arrange(*[None] * len(self.parents))) if leaf is not None]

    @property
    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """What the operation was called with, positional and named, with true values."""
        return self.arrange(*(parent.value for parent in self.parents))

    @property
    def value(self) -> Tensor:
        """The output; with its own graph only where one was asked for."""
        return self.piece.output if self.piece.create_graph else self.piece.output.detach()

    def argument(self, name: str) -> Any:  # noqa: ANN401 - a tensor, a number or nothing
        """What the operation was called with under this name; None where it was left out."""
        positional, named = self.arguments
        place = PARAMETERS[self.operation].index(name)
        return positional[place] if place < len(positional) else named.get(name)

    def again(self, **changed: Any) -> Tensor:  # noqa: ANN401 - whatever the operation takes
        """The operation with some of its arguments changed."""
        names = PARAMETERS[self.operation]
        positional, named = self.arguments
        known = dict(zip(names, positional, strict=False)) | named | changed
        result: Tensor = self.function(*[known.pop(name) for name in names[: len(positional)]], **known)
        return result

    def piece_at(self, values: Iterable[Tensor]) -> Piece:
        """The same step taken at other values of the tracked inputs."""
        inputs = tuple(followed(value, self.piece.create_graph) for value in values)
        with torch.enable_grad():
            return Piece(inputs, self.call(*inputs), self.piece.create_graph)

    def once(self, what: str, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the rule keeps
        """The result of `make`, made at the first call only: a tape is walked once for every target."""
        if what not in self.kept:
            self.kept[what] = make()
        return self.kept[what]


Shares = Iterable[tuple[Node, Tensor]]
Rule = Callable[[Node, Tensor], Shares]  # an operation and what arrived at its output → what its sources get
Decomposition = Callable[..., Any]  # the same answer, in simpler operations


def gradient(node: Node, arriving: Tensor) -> Shares:
    """What the chain rule says."""
    return zip(node.parents, node.piece.pull(arriving), strict=True)


def passed(node: Node, arriving: Tensor) -> Shares:
    """All of it to the one source; summed where a constant had spread it over more places."""
    source = node.parents[0]
    return [(source, arriving.sum_to_size(source.piece.output.shape))]


def followed(value: Tensor, create_graph: bool) -> Tensor:
    """The value as the start of a piece, told apart from every other use of it: with its history, or without any."""
    if not create_graph or not value.requires_grad:
        return value.detach().requires_grad_()
    with torch.enable_grad():
        return value.view_as(value)


class StandIn(Tensor):
    """What the network holds in place of a tensor; it has the tensor's shape, kind and device, but no memory."""

    tape: "Tape"
    node: Node

    @classmethod
    def of(cls, tape: "Tape", node: Node) -> "StandIn":
        """A stand-in for a node's value."""
        value = node.piece.output
        made: StandIn = Tensor._make_wrapper_subclass(  # noqa: SLF001 - torch's way to do this
            cls, value.shape, strides=value.stride(), dtype=value.dtype, device=value.device
        )
        made.tape, made.node = tape, node
        return made

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: object, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:  # noqa: ANN401 - whatever the operation returns
        """The operation on the true values, written on the tape."""
        leaves = tree.tree_leaves((args, kwargs))
        first = next(leaf for leaf in leaves if isinstance(leaf, StandIn))
        return first.tape.follow(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(  # type: ignore[override]
        cls, func: Callable[..., Any], types: object, args: object = (), kwargs: object = None
    ) -> Any:  # noqa: ANN401
        """Refused: an operation that torch does not announce cannot be followed."""
        raise ModelError(
            f"the network calls {func} where it cannot be followed (compiled or scripted code?); use the plain module"
        )


class Tape:
    """The operations of one forward pass, in their order."""

    def __init__(
        self,
        rules: Mapping[str, Rule],
        decompositions: Mapping[str, Decomposition] | None = None,
        *,
        otherwise: Rule | None = None,
        constant: frozenset[str] = frozenset(),
        create_graph: bool = False,
    ) -> None:
        """An empty tape; an operation without a rule is refused unless there is one for all others.

        What an operation in `constant` answers is taken for given: nothing goes back through it.
        """
        self.rules = rules
        self.decompositions = decompositions or {}
        self.otherwise = otherwise
        self.constant = constant
        self.create_graph = create_graph
        self.nodes: list[Node] = []
        self.taken_apart = False  # some operation was replaced by simpler ones
        self.memory: dict[int, list[Node]] = {}  # which nodes share a piece of memory

    def record(self, classifier: Classifier, images: Images) -> Logits:
        """Take the images through the classifier; the logits."""
        start = images.detach().requires_grad_()
        source = self._node(
            Node("input", (), Piece((), start, self.create_graph), Tensor.clone, Tensor.clone, _nothing, 0)
        )
        with evaluation_mode(classifier.module):
            logits = classifier.logits(StandIn.of(self, source))
        if not isinstance(logits, StandIn):
            raise ModelError(f"the outputs of {classifier.name} cannot be traced back to its input")
        self._end = logits.node
        self._require_rules()
        if self.taken_apart:
            _require_same_answer(classifier, images, self._end.value)
        return self._end.value

    def back(self, arriving: Logits) -> Images:
        """What the input gets when `arriving` starts at the logits."""
        waiting = {self._end.position: arriving}
        with torch.set_grad_enabled(self.create_graph):
            for node in reversed(self.nodes[1 : self._end.position + 1]):
                here = waiting.pop(node.position, None)
                if here is None:
                    continue
                for parent, share in self._rule(node.operation)(node, here):
                    before = waiting.get(parent.position)
                    waiting[parent.position] = share if before is None else before + share
        return waiting.get(0, torch.zeros_like(self.nodes[0].value))

    def _require_rules(self) -> None:
        """Refuse a network with an operation on the way back that has no rule; the others do not matter."""
        reached = {self._end.position}
        for node in reversed(self.nodes[1 : self._end.position + 1]):
            if node.position in reached:
                self._rule(node.operation)
                reached.update(parent.position for parent in node.parents)

    def _rule(self, operation: str) -> Rule:
        rule = self.rules.get(operation) or self.otherwise
        if rule is None:
            raise ModelError(
                f"the network uses the operation {operation!r}, for which this method has no rule; "
                "choose another method, such as integrated_gradients or occlusion"
            )
        return rule

    def follow(self, func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
        """The answer to one call: stand-ins where it depends on the input, plain values where it does not."""
        asked = out_of_place(func, args, kwargs)
        if asked.target is not None and not isinstance(asked.target, StandIn):
            raise ModelError(
                f"the network writes with {asked.name!r} into a tensor of its own, which cannot be followed; "
                "put the parts together with torch.cat or torch.stack"
            )
        if asked.name in self.decompositions:
            self.taken_apart = True
            whole = self.decompositions[asked.name](*asked.positional, **asked.named)
            return whole if asked.target is None else self._rewritten(asked.target, whole.node)
        leaves, shape = tree.tree_flatten((asked.positional, asked.named))
        places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, StandIn)]
        stand_ins = [leaves[place] for place in places]
        parents = tuple(each.node for each in stand_ins)
        _refuse_overwritten(parents, asked.name)
        function, constants = asked.function, self._constants(leaves)

        def arrange(*values: Tensor) -> tuple[tuple[Any, ...], dict[str, Any]]:
            positional, named = tree.tree_unflatten(_filled(constants, places, values), shape)
            return positional, named

        def call(*values: Tensor) -> Any:  # noqa: ANN401 - whatever the operation returns
            positional, named = arrange(*values)
            return function(*positional, **named)

        inputs = tuple(followed(parent.value, self.create_graph) for parent in parents)
        with torch.enable_grad(), QuickBackward(weights=self.create_graph):
            answer = call(*inputs)
        same = {id(value): each for each, value in zip(stand_ins, inputs, strict=True)}

        def stand_in(output: object, index: int | None = None) -> object:
            if not isinstance(output, Tensor) or not output.requires_grad:
                return output  # a shape, a mask, a constant: nothing goes back through it
            if asked.name in self.constant:
                return output if self.create_graph else output.detach()
            if id(output) in same:
                return same[id(output)]
            do = call if index is None else lambda *values: call(*values)[index]
            piece = Piece(inputs, output, self.create_graph, simple=asked.name in SIMPLE)
            node = self._node(Node(asked.name, parents, piece, do, function, arrange, len(self.nodes)))
            return StandIn.of(self, node) if asked.target is None else self._rewritten(asked.target, node)

        if not isinstance(answer, (tuple, list)) or not any(isinstance(output, Tensor) for output in answer):
            return stand_in(answer)
        made = [stand_in(output, index) for index, output in enumerate(answer)]
        return made if isinstance(answer, list) else tuple(made) if type(answer) is tuple else type(answer)(made)

    def _constants(self, leaves: list[Any]) -> list[Any]:
        """The arguments without stand-ins, which would make the tape hold itself; weights have a graph if asked for."""
        return [None if isinstance(leaf, StandIn) else self._constant(leaf) for leaf in leaves]

    def _constant(self, leaf: object) -> object:
        return leaf.detach() if isinstance(leaf, Tensor) and leaf.requires_grad and not self.create_graph else leaf

    def _node(self, node: Node) -> Node:
        self.nodes.append(node)
        self.memory.setdefault(node.piece.output.untyped_storage().data_ptr(), []).append(node)
        return node

    def _rewritten(self, target: StandIn, node: Node) -> StandIn:
        """The stand-in that was written into now stands for the new node; other views of its memory are out of date."""
        for other in self.memory[target.node.piece.output.untyped_storage().data_ptr()]:
            other.overwritten = other is not node
        target.node = node
        return target


def _filled(leaves: list[Any], places: list[int], values: Iterable[Any]) -> list[Any]:
    filled = list(leaves)
    for place, value in zip(places, values, strict=True):
        filled[place] = value
    return filled


_AGREED: WeakSet[nn.Module] = WeakSet()


def _require_same_answer(classifier: Classifier, images: Images, logits: Logits) -> None:
    """Refuse a network that answers otherwise when its operations are taken apart; asked once of each network."""
    if classifier.module in _AGREED:
        return
    with evaluation_mode(classifier.module), torch.no_grad():
        true = classifier.logits(images)
    if not torch.allclose(true, logits.detach(), rtol=1e-3, atol=1e-3 * float(true.abs().max())):
        raise ModelError(f"the operations of {classifier.name} cannot be followed exactly; use another method")
    _AGREED.add(classifier.module)


def _nothing(*_: Tensor) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (), {}


def _refuse_overwritten(parents: tuple[Node, ...], name: str) -> None:
    if any(parent.overwritten for parent in parents):
        raise ModelError(
            f"the network writes in place into memory that {name!r} reads through another view, which cannot be "
            "followed; use a copy there"
        )
