"""Which methods run on a model: each is tried on one random image and one target."""

import math
import statistics
import time
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import nn

from heatcheck.core.contracts import Classifier
from heatcheck.core.errors import HeatcheckError, ModelError, briefly
from heatcheck.core.tensors import Images
from heatcheck.explaining.cost import pass_seconds
from heatcheck.explaining.inputs import as_classifier
from heatcheck.explaining.named_model import NamedModel, in_full, load_named, stated_contract
from heatcheck.methods import METHODS, build_method
from heatcheck.methods.checks import naming_errors, require_fit, require_logits
from heatcheck.methods.feature_maps import feature_map
from heatcheck.methods.passes import evaluation_mode
from heatcheck.methods.registry import MethodFacts, Passes, passes_of
from heatcheck.methods.sets import RECOMMENDED, members_of, one_of_each_family
from heatcheck.models import MODELS, NetworkClassifier, NetworkShape
from heatcheck.models.load import PYTHON_PREFIX
from heatcheck.models.untrained import untrained
from heatcheck.running.progress import Silent, Watcher

_USUAL_SIDE = {2: 224, 3: 64}  # of an image of unknown size
_FORWARDS = 3  # timed, after one that warms up


@dataclass(frozen=True, slots=True)
class MethodTrial:
    """The result of trying one method."""

    method: str
    label: str
    runs: bool
    reason: str  # why it does not run, or a note if it does
    seconds: float
    forwards: float  # the trial's time in forward passes of this model, measured here
    differentiable: bool
    settings: Mapping[str, Any]  # of the trial
    full_cost: str  # with its usual settings, in forward passes
    passes: float = math.nan  # of a map of one finding with its usual settings, forward and backward together
    seconds_per_map: float = math.nan  # with its usual settings, from these passes and what one takes here


@dataclass(frozen=True, slots=True)
class Preflight:
    """Facts about a model, and the trial of every method on it."""

    model: str
    weights: str
    channels: int
    size: tuple[int, ...]
    outputs: int
    parameters: int
    forward_seconds: float
    layer: str  # used by class activation maps
    methods: tuple[MethodTrial, ...]
    assumed: bool = False  # size or channels were neither given nor stated by a contract

    @property
    def recommended(self) -> tuple[str, ...]:
        """The methods to begin a spec with: of each family one that runs, and the floors."""
        best = one_of_each_family(METHODS, (row.method for row in self.methods if row.runs))
        return tuple(name for name in members_of(RECOMMENDED, lambda _: True) if name in best)

    def seconds_of(self, names: Collection[str]) -> float:
        """The seconds of one map by each of these methods, with their usual settings."""
        return sum(row.seconds_per_map for row in self.methods if row.method in names and row.runs)


@dataclass(frozen=True, slots=True)
class Input:
    """The user's description of the model's input; None is taken from the model."""

    side: int | None = None
    channels: int | None = None


def preflight(model: NamedModel, wanted: Input = Input(), watcher: Watcher | None = None) -> Preflight:
    """The trial of every registered method on the model with its cheapest settings, and the cost of its usual ones."""
    watcher = watcher or Silent()
    model = in_full(model)
    ready = _ready(model, wanted)
    classifier, image = ready.classifier, ready.image
    require_logits(classifier, image)
    forward = _forward_seconds(classifier, image)
    watcher.start("methods", len(METHODS))
    for name in ("guided_backprop", "deep_lift"):  # the first trial includes what torch sets up once
        try_method(METHODS[name], classifier, image, forward)
    tried = []
    for facts in METHODS.values():
        tried.append(try_method(facts, classifier, image, forward))
        watcher.advance(note=facts.name)
    return Preflight(
        model=model.name,
        weights=ready.weights,
        channels=image.shape[1],
        size=tuple(image.shape[2:]),
        outputs=len(classifier.outputs),
        parameters=sum(parameter.numel() for parameter in classifier.module.parameters()),
        forward_seconds=forward,
        layer=_layer(classifier.module, image),
        methods=_costed(classifier, tried),
        assumed=ready.assumed,
    )


def _costed(classifier: NetworkClassifier, tried: Sequence[MethodTrial]) -> tuple[MethodTrial, ...]:
    """The trials with what a map costs with the usual settings."""
    contract = classifier.preprocessing
    shape = (contract.channels, *contract.size)
    usual = {row.method: passes_of(row.method, build_method(row.method, {}), shape, 1) for row in tried if row.runs}
    seconds = pass_seconds(classifier, 1, sum(usual.values(), Passes()))
    return tuple(
        replace(row, passes=usual[row.method].total, seconds_per_map=seconds.of(usual[row.method])) if row.runs else row
        for row in tried
    )


@dataclass(frozen=True, slots=True)
class _Ready:
    """A classifier, the origin of its weights, and a random image of the size it takes, or of one that is assumed."""

    classifier: NetworkClassifier
    weights: str
    image: Images
    assumed: bool = False


def _ready(model: NamedModel, wanted: Input) -> _Ready:
    custom = model.name.startswith(PYTHON_PREFIX)
    contract = stated_contract(model)
    trained = model.weights is not None or (not custom and bool(MODELS[model.name].weights))
    if trained or (custom and contract):
        loaded = load_named(model)
        known = loaded.preprocessing
        size = (wanted.side,) * len(known.size) if wanted.side else known.size
        image = _random((wanted.channels or known.channels, *size), loaded.device)
        classifier = replace(loaded, preprocessing=known.model_copy(update={"size": size}))
        return _Ready(classifier, "trained" if trained else "the factory's", image)
    outputs = len(contract.outputs) if contract else 2
    if custom:
        module = untrained(model.name, trusted=model.trust_code, folder=model.folder)
        usual = _usual_input(module)
    else:
        usual = (MODELS[model.name].channels, *MODELS[model.name].size)
    usual = (contract.channels, *contract.size) if contract else usual
    shape = (wanted.channels or usual[0], *((wanted.side or side) for side in usual[1:]))
    if not custom:
        module = untrained(model.name, NetworkShape(shape[0], outputs, shape[1:]))
    module = _moved(module.eval(), model.device)
    device = next((parameter.device for parameter in module.parameters()), torch.device("cpu"))
    image = _random(shape, device)
    named: Any = as_classifier(module, image, contract.outputs if contract else None)
    assumed = custom and contract is None and (wanted.side is None or wanted.channels is None)
    return _Ready(replace(named, name=model.name), "the factory's" if custom else "random", image, assumed)


def _moved(module: nn.Module, device: str) -> nn.Module:
    try:
        return module.to(device)
    except (RuntimeError, AssertionError) as error:
        raise ModelError(f"device {device!r} cannot be used ({briefly(error)}); try --device cpu") from error


def _usual_input(module: nn.Module) -> tuple[int, ...]:
    """The channels and sides that a network most likely takes, from its first convolution."""
    for part in module.modules():
        if isinstance(part, nn.Conv2d | nn.Conv3d):
            axes = 2 if isinstance(part, nn.Conv2d) else 3
            return (part.in_channels, *(_USUAL_SIDE[axes],) * axes)
    return (1, _USUAL_SIDE[2], _USUAL_SIDE[2])


def _random(shape: tuple[int, ...], device: torch.device, seed: int = 0) -> Images:
    return torch.randn(1, *shape, generator=torch.Generator().manual_seed(seed)).to(device)


def _forward_seconds(classifier: Classifier, image: Images) -> float:
    times = []
    with evaluation_mode(classifier.module), torch.no_grad():
        for _ in range(_FORWARDS + 1):
            start = time.perf_counter()
            classifier.logits(image).sum().item()  # waits for an asynchronous device
            times.append(time.perf_counter() - start)
    return statistics.median(times[1:])


def try_method(facts: MethodFacts, classifier: Classifier, image: Images, forward: float) -> MethodTrial:
    """The trial of one method on one image and the first output."""
    start = time.perf_counter()
    runs, reason = True, ""
    try:
        method, stand_in = _with_stand_ins(facts, classifier, image)
        require_fit(facts.name, method, classifier, image)
        with naming_errors(facts.name, classifier):
            maps = method(classifier, image, torch.zeros(1, 1, dtype=torch.long, device=image.device), [0])
        runs = bool(maps.values.isfinite().all())
        reason = "; ".join(filter(None, ("" if runs else "its map is not finite", stand_in, maps.note)))
    except HeatcheckError as error:
        runs, reason = False, str(error).removeprefix(f"method {facts.name}: ")  # the table has the name
    except Exception as error:  # noqa: BLE001 - any failure is a result of the trial
        runs, reason = False, f"{type(error).__name__}: {briefly(error)}"
    seconds = time.perf_counter() - start
    return MethodTrial(
        method=facts.name,
        label=facts.label,
        runs=runs,
        reason=" ".join(reason.split()),
        seconds=seconds if runs else math.nan,
        forwards=seconds / forward if runs else math.nan,
        differentiable=facts.differentiable,
        settings=dict(facts.trial),
        full_cost=facts.cost,
    )


def _with_stand_ins(facts: MethodFacts, classifier: Classifier, image: Images) -> tuple[Any, str]:
    """The method with its cheapest settings, with stand-ins for what only a study can provide."""
    method: Any = build_method(facts.name, facts.trial)
    if facts.wants_priors:
        flat = torch.ones(1, len(classifier.outputs), *(8,) * (image.ndim - 2))
        return replace(method, priors=flat), "tried with a flat prior; a study provides the real one"
    if facts.wants_donors:
        donor = _random(tuple(image.shape[1:]), image.device, seed=1)
        return replace(method, donors=(donor,)), "tried with a random image as donor; a study provides real ones"
    return method, ""


def _layer(module: nn.Module, image: Images) -> str:
    try:
        with evaluation_mode(module):
            return feature_map(module, image).name
    except ModelError:
        return ""
