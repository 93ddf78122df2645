"""A forward pass recorded operation by operation, and a backward pass by rules other than the chain rule.

The network is given a stand-in for its input. Every torch operation on a stand-in runs on the true values, is written
on a tape and returns another stand-in, however it is spelled: as a module, as a function, as a method, in place, or
through one module used many times. There are no hooks and no changes to the network, so nothing must be restored. On
the way back a rule decides at each operation how what arrived at its output is shared among its inputs. With
`create_graph` the values keep their autograd graph, so that what a rule computes can be differentiated with respect to
the weights.
"""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any
from weakref import WeakSet

import torch
from jaxtyping import Float
from torch import Tensor, nn
from torch.utils import _pytree as tree

from heatcheck.core.contracts import Classifier
from heatcheck.core.errors import ModelError
from heatcheck.core.tensors import Images, Logits, Targets
from heatcheck.methods.passes import evaluation_mode
from heatcheck.methods.speed.fast_convolution import QuickBackward
from heatcheck.methods.speed.operations import PARAMETERS, SIMPLE, out_of_place


@dataclass(frozen=True)
class Piece:
    """One operation as a graph of its own, so that its vector-Jacobian product can be taken alone."""

    inputs: tuple[Tensor, ...]
    output: Tensor
    create_graph: bool
    simple: bool = False  # its backward functions form a chain and can be called directly

    def pull(self, arriving: Tensor) -> tuple[Tensor, ...]:
        """The vector-Jacobian product: `arriving`ᵀ · ∂output/∂input for each input; 0 where they are independent."""
        shares: tuple[Tensor | None, ...]
        if self.create_graph or not self.simple or not self._backward_chain:
            shares = torch.autograd.grad(
                self.output, self.inputs, arriving, retain_graph=True, create_graph=self.create_graph, allow_unused=True
            )
        else:
            shares = (arriving,)
            for function, positions in self._backward_chain:
                result = function(shares[0])
                shares = (result,) if isinstance(result, Tensor) else tuple(result[index] for index in positions)
        return tuple(  # the autograd engine sums over broadcast axes, the functions alone do not
            torch.zeros_like(value) if share is None else share.sum_to_size(value.shape)
            for value, share in zip(self.inputs, shares, strict=True)
        )

    @cached_property
    def _backward_chain(self) -> tuple[tuple[Any, list[int]], ...]:
        """Torch's backward functions from the output to the inputs, with the positions of the results to use.

        Called one after another they cost a fraction of what the autograd engine needs to start. Empty where the
        chain branches.
        """
        chain, function = [], self.output.grad_fn
        while function is not None:
            before = [(index, step[0]) for index, step in enumerate(function.next_functions) if step[0] is not None]
            call = function if callable(function) else function.apply  # type: ignore[attr-defined]  # a custom Function
            chain.append((call, [index for index, _ in before]))
            ends = [getattr(step, "variable", None) for _, step in before]
            if len(ends) == len(self.inputs) and all(a is b for a, b in zip(ends, self.inputs, strict=True)):
                return tuple(chain)
            function = before[0][1] if len(before) == 1 else None
        return ()


@dataclass(eq=False, slots=True)
class Node:
    """One operation on the tape: where its inputs came from, and how to repeat it with other arguments."""

    operation: str
    parents: tuple["Node", ...]
    piece: Piece
    call: Callable[..., Tensor]  # the output for other values of the tracked inputs
    function: Callable[..., Any]
    arrange: Callable[..., tuple[tuple[Any, ...], dict[str, Any]]]  # tracked values → all arguments of the call
    position: int
    overwritten: bool = False  # a later in-place operation changed the memory of its output
    kept: dict[str, Any] = field(default_factory=dict)  # what rules computed, see `once`

    @property
    def constants(self) -> list[Any]:
        """The arguments of the operation other than the tracked values."""
        return [leaf for leaf in tree.tree_leaves(self.arrange(*[None] * len(self.parents))) if leaf is not None]

    @property
    def arguments(self) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """The positional and named arguments of the operation, with true values."""
        return self.arrange(*(parent.value for parent in self.parents))

    @property
    def value(self) -> Tensor:
        """The output; with its graph only if `create_graph`."""
        return self.piece.output if self.piece.create_graph else self.piece.output.detach()

    def argument(self, name: str) -> Any:  # noqa: ANN401 - a tensor, a number or nothing
        """The argument of this name; None where it was left out."""
        positional, named = self.arguments
        index = PARAMETERS[self.operation].index(name)
        return positional[index] if index < len(positional) else named.get(name)

    def again(self, **changed: Any) -> Tensor:  # noqa: ANN401 - whatever the operation takes
        """The output of the operation with some of its arguments changed."""
        names = PARAMETERS[self.operation]
        positional, named = self.arguments
        known = dict(zip(names, positional, strict=False)) | named | changed
        result: Tensor = self.function(*[known.pop(name) for name in names[: len(positional)]], **known)
        return result

    def piece_at(self, values: Iterable[Tensor]) -> Piece:
        """The operation at other values of the tracked inputs."""
        inputs = tuple(followed(value, self.piece.create_graph) for value in values)
        with torch.enable_grad():
            return Piece(inputs, self.call(*inputs), self.piece.create_graph)

    def slope(self) -> Tensor:
        """The derivative of an elementwise operation with one tracked input."""
        (slope,) = self.piece.pull(torch.ones_like(self.value))
        return slope

    def once(self, what: str, make: Callable[[], Any]) -> Any:  # noqa: ANN401 - whatever the rule keeps
        """The result of `make`, computed at the first call only: a tape is run backward once per target."""
        if what not in self.kept:
            self.kept[what] = make()
        return self.kept[what]


Shares = Iterable[tuple[Node, Tensor]]
Rule = Callable[[Node, Tensor], Shares]  # an operation and what arrived at its output → what each parent gets
Decomposition = Callable[..., Any]  # the same output from simpler operations


def gradient(node: Node, arriving: Tensor) -> Shares:
    """The chain rule."""
    return zip(node.parents, node.piece.pull(arriving), strict=True)


def passed(node: Node, arriving: Tensor) -> Shares:
    """All of it to the one parent; summed over axes along which a constant broadcast it."""
    parent = node.parents[0]
    return [(parent, arriving.sum_to_size(parent.piece.output.shape))]


def followed(value: Tensor, create_graph: bool) -> Tensor:
    """The value as the input of a piece, distinct from its other uses; with its history only if `create_graph`."""
    if not create_graph or not value.requires_grad:
        return value.detach().requires_grad_()
    with torch.enable_grad():
        return value.view_as(value)  # a new tensor in the same graph: gradients can be taken at it alone


class StandIn(Tensor):
    """What the network holds in place of a tensor: it has the tensor's shape, type and device, but no values."""

    tape: "Tape"
    node: Node

    @classmethod
    def of(cls, tape: "Tape", node: Node) -> "StandIn":
        """A stand-in for a node's value."""
        value = node.piece.output
        stand_in: StandIn = Tensor._make_wrapper_subclass(  # noqa: SLF001 - torch's way to do this
            cls, value.shape, strides=value.stride(), dtype=value.dtype, device=value.device
        )
        stand_in.tape, stand_in.node = tape, node
        return stand_in

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
        """Refused: an operation that bypasses `__torch_function__` cannot be followed."""
        raise ModelError(
            f"the network calls {func} where it cannot be followed (compiled or scripted code?); use the plain module"
        )


class Tape:
    """The operations of one forward pass, in order."""

    def __init__(
        self,
        rules: Mapping[str, Rule],
        decompositions: Mapping[str, Decomposition] | None = None,
        *,
        otherwise: Rule | None = None,
        constant: frozenset[str] = frozenset(),
        create_graph: bool = False,
    ) -> None:
        """An empty tape; an operation without a rule is refused unless `otherwise` is given.

        The output of an operation in `constant` is taken as a constant: nothing goes back through it.
        """
        self.rules = rules
        self.decompositions = decompositions or {}
        self.otherwise = otherwise
        self.constant = constant
        self.create_graph = create_graph
        self.nodes: list[Node] = []
        self.decomposed = False  # some operation was replaced by simpler ones
        self.memory: dict[int, list[Node]] = {}  # the nodes whose outputs share memory, by its address

    def record(self, classifier: Classifier, images: Images) -> Logits:
        """The logits of the images, with every operation written on the tape."""
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
        if self.decomposed:
            _require_same_logits(classifier, images, self._end.value)
        return self._end.value

    def back(self, arriving: Logits) -> Images:
        """What the input receives when `arriving` starts at the logits.

        In reverse order all users of an output come before it, so that its shares are complete when its turn comes.
        """
        waiting = {self._end.position: arriving}
        with torch.set_grad_enabled(self.create_graph):
            for node in reversed(self.nodes[1 : self._end.position + 1]):
                arrived = waiting.pop(node.position, None)
                if arrived is None:
                    continue
                for parent, share in self._rule(node.operation)(node, arrived):
                    before = waiting.get(parent.position)
                    waiting[parent.position] = share if before is None else before + share
        return waiting.get(0, torch.zeros_like(self.nodes[0].value))

    def back_from_each(self, targets: Targets) -> Float[Tensor, "batch target channel *space"]:
        """What the input receives when 1 starts at each target's logit, one target after another."""
        zeros = torch.zeros_like(self._end.value)
        return torch.stack([self.back(zeros.scatter(1, column[:, None], 1.0)) for column in targets.unbind(1)], 1)

    def _require_rules(self) -> None:
        """Refuse a network in which an operation that the logits depend on has no rule."""
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
        """The output of one call: stand-ins where it depends on the input, plain values where it does not."""
        operation = out_of_place(func, args, kwargs)
        if operation.target is not None and not isinstance(operation.target, StandIn):
            raise ModelError(
                f"the network writes with {operation.name!r} into a tensor of its own, which cannot be followed; "
                "put the parts together with torch.cat or torch.stack"
            )
        if operation.name in self.decompositions:
            self.decomposed = True
            composed = self.decompositions[operation.name](*operation.positional, **operation.named)
            return composed if operation.target is None else self._rewritten(operation.target, composed.node)
        leaves, shape = tree.tree_flatten((operation.positional, operation.named))
        tracked = [index for index, leaf in enumerate(leaves) if isinstance(leaf, StandIn)]
        stand_ins = [leaves[index] for index in tracked]
        parents = tuple(each.node for each in stand_ins)
        _refuse_overwritten(parents, operation.name)
        function, constants = operation.function, self._constants(leaves)

        def arrange(*values: Tensor) -> tuple[tuple[Any, ...], dict[str, Any]]:
            positional, named = tree.tree_unflatten(_filled(constants, tracked, values), shape)
            return positional, named

        def call(*values: Tensor) -> Any:  # noqa: ANN401 - whatever the operation returns
            positional, named = arrange(*values)
            return function(*positional, **named)

        inputs = tuple(followed(parent.value, self.create_graph) for parent in parents)
        with torch.enable_grad(), QuickBackward(weights=self.create_graph):
            result = call(*inputs)
        # an operation may return its input itself, which keeps its stand-in
        same = {id(value): each for each, value in zip(stand_ins, inputs, strict=True)}

        def stand_in(output: object, index: int | None = None) -> object:
            if not isinstance(output, Tensor) or not output.requires_grad:
                return output  # a shape, a mask or a constant: nothing goes back through it
            if operation.name in self.constant:
                return output if self.create_graph else output.detach()
            if id(output) in same:
                return same[id(output)]
            repeat = call if index is None else lambda *values: call(*values)[index]
            piece = Piece(inputs, output, self.create_graph, simple=operation.name in SIMPLE)
            node = self._node(Node(operation.name, parents, piece, repeat, function, arrange, len(self.nodes)))
            return StandIn.of(self, node) if operation.target is None else self._rewritten(operation.target, node)

        if not isinstance(result, (tuple, list)) or not any(isinstance(output, Tensor) for output in result):
            return stand_in(result)
        outputs = [stand_in(output, index) for index, output in enumerate(result)]
        return (
            outputs if isinstance(result, list) else tuple(outputs) if type(result) is tuple else type(result)(outputs)
        )

    def _constants(self, leaves: list[Any]) -> list[Any]:
        """The arguments without stand-ins, through which the tape would hold itself in memory."""

        def constant(leaf: object) -> object:
            if isinstance(leaf, StandIn):
                return None
            return leaf.detach() if isinstance(leaf, Tensor) and leaf.requires_grad and not self.create_graph else leaf

        return list(map(constant, leaves))

    def _node(self, node: Node) -> Node:
        self.nodes.append(node)
        self.memory.setdefault(node.piece.output.untyped_storage().data_ptr(), []).append(node)
        return node

    def _rewritten(self, target: StandIn, node: Node) -> StandIn:
        """The stand-in that was written into, now for the new node; other views of its memory are out of date."""
        for other in self.memory[target.node.piece.output.untyped_storage().data_ptr()]:
            other.overwritten = other is not node
        target.node = node
        return target


def _filled(leaves: list[Any], indices: list[int], values: Iterable[Any]) -> list[Any]:
    filled = list(leaves)
    for index, value in zip(indices, values, strict=True):
        filled[index] = value
    return filled


_CHECKED: WeakSet[nn.Module] = WeakSet()


def _require_same_logits(classifier: Classifier, images: Images, logits: Logits) -> None:
    """Refuse a network whose decomposed operations give other logits; checked once per network."""
    if classifier.module in _CHECKED:
        return
    with evaluation_mode(classifier.module), torch.no_grad():
        expected = classifier.logits(images)
    if not torch.allclose(expected, logits.detach(), rtol=1e-3, atol=1e-3 * float(expected.abs().max())):
        raise ModelError(f"the operations of {classifier.name} cannot be followed exactly; use another method")
    _CHECKED.add(classifier.module)


def _nothing(*_: Tensor) -> tuple[tuple[Any, ...], dict[str, Any]]:
    return (), {}


def _refuse_overwritten(parents: tuple[Node, ...], name: str) -> None:
    if any(parent.overwritten for parent in parents):
        raise ModelError(
            f"the network writes in place into memory that {name!r} reads through another view, which cannot be "
            "followed; use a copy there"
        )
