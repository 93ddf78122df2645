"""Loading a classifier by its name and a weights file; nothing in a weights file is executed."""

import hashlib
import importlib
import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any, Self

import torch
import yaml
from pydantic import BaseModel, ConfigDict, model_validator
from safetensors import SafetensorError, safe_open
from safetensors.torch import save
from torch import Tensor, nn

from heatcheck.core.answer_shapes import remedy_for_answers
from heatcheck.core.errors import ModelError, briefly
from heatcheck.models.classifier import NetworkClassifier
from heatcheck.models.contract import PARTS, Preprocessing, StatedContract, checked_contract, read_contract
from heatcheck.models.predicting import Predicting
from heatcheck.models.registry import MODELS
from heatcheck.models.renaming import fitted, unchanged, unwrapped

PYTHON_PREFIX = "python:"
ASK_FOR_TRUST = (
    "runs your own code; if you trust it, add --trust-code to the command (in Python: RunOptions(trust_code=True))"
)
_METADATA_KEY = "heatcheck"


class ModelSettings(BaseModel):
    """What a spec may say about a model."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    name: str
    weights: Path | None = None
    ensemble: Path | None = None  # a training's folder, or its ensemble.json, instead of weights
    contract: StatedContract | None = None

    @model_validator(mode="after")
    def _weights_or_ensemble(self) -> Self:
        if self.ensemble is not None and (self.weights is not None or self.contract is not None):
            raise ValueError("an ensemble has its own weights and contract; name either `ensemble` or `weights`")
        return self

    @property
    def has_weights(self) -> bool:
        """Whether the model comes with weights: shipped, named by the spec, or those of the user's own code."""
        shipped = self.name in MODELS and MODELS[self.name].weights
        return bool(shipped or self.weights or self.ensemble or self.name.startswith(PYTHON_PREFIX))


@dataclass(frozen=True, slots=True)
class Weights:
    """A state dict with the contract and the hash of its file."""

    state: dict[str, Tensor]
    contract: Preprocessing | None
    digest: str


def load_classifier(
    settings: ModelSettings, folder: Path = Path(), device: str = "cpu", *, trust_code: bool = False
) -> NetworkClassifier:
    """The classifier a spec names, checked by one forward pass; relative paths start at `folder`."""
    if settings.ensemble is not None:
        raise ModelError(f"model {settings.name} is an ensemble, but one network is needed; name `weights:` instead")
    weights = _weights(settings, folder)
    contract = settings.contract or (weights.contract if weights else None)
    custom = settings.name.startswith(PYTHON_PREFIX)
    if contract is None:
        trust = f". It also {ASK_FOR_TRUST}" if custom and not trust_code else ""
        raise ModelError(
            f"model {settings.name}: its preprocessing is unknown; add `contract:` with {', '.join(PARTS)} to the "
            f"spec, or a YAML file of the same name beside the weights{trust}"
        )
    if custom:
        module = user_module(settings.name, folder, trusted=trust_code)
    else:
        if weights is None:
            raise ModelError(f"model {settings.name} comes without weights; name a file under `weights:`, or train it")
        module = MODELS[settings.name].build(contract.channels, contract.answers, contract.size)
    if weights is not None:
        translate = MODELS[settings.name].translate if settings.name in MODELS else unchanged
        module.load_state_dict(fitted(weights.state, module, translate, settings.name))
    module = module.to(usable_device(device)).eval()
    digest = weights.digest if weights else digest_of(module)
    is_random = weights is None and custom and _differs_when_made_again(settings.name, folder, digest)
    if custom:  # the same weights in other code are another model
        digest = hashlib.sha256(f"{digest}{_code_of(module)}".encode()).hexdigest()
    classifier = NetworkClassifier(settings.name, module, contract, digest, is_random)
    _try_out(classifier)
    return classifier


def usable_device(name: str) -> torch.device:
    """The device of that name, tried out with one number."""
    try:
        device = torch.device(name)
        torch.zeros(1, device=device).item()
    except (RuntimeError, AssertionError, ImportError) as error:
        raise ModelError(f"device {name!r} cannot be used ({briefly(error)}); try --device cpu") from error
    return device


def _weights(settings: ModelSettings, folder: Path) -> Weights | None:
    if settings.weights is not None:
        return read_weights(folder / settings.weights)
    shipped = "" if settings.name.startswith(PYTHON_PREFIX) else MODELS[settings.name].weights
    return read_weights(Path(str(resources.files("heatcheck") / "models" / "weights" / shipped))) if shipped else None


def read_weights(path: Path) -> Weights:
    """The tensors of a .safetensors file, or of a .pt or .pth file read without executing anything."""
    if not path.is_file():
        raise ModelError(f"{path}: no such weights file; correct its path in the spec")
    digest = file_hash(path)
    if path.suffix != ".safetensors":
        return Weights(_plain_state(path), _sidecar(path), digest)
    return Weights(stored_state(path), stored_contract(path), digest)


def file_hash(path: Path) -> str:
    """The SHA-256 of a file."""
    with path.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def stored_state(path: Path) -> dict[str, Tensor]:
    """The tensors of a .safetensors file."""
    with _safely_open(path) as file:
        return {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping


def stored_contract(path: Path) -> Preprocessing | None:
    """The contract in or beside a .safetensors file, without reading its tensors."""
    with _safely_open(path) as file:
        text = (file.metadata() or {}).get(_METADATA_KEY)
    return read_contract(text, path.name) if text else _sidecar(path)


@contextmanager
def _safely_open(path: Path) -> Iterator[Any]:
    try:
        with safe_open(path, "pt") as file:
            yield file
    except (SafetensorError, OSError) as error:
        raise ModelError(f"{path} is not a safetensors file ({error}); export the weights again") from error


def _plain_state(path: Path) -> dict[str, Tensor]:
    try:
        loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # damaged bytes make the unpickler raise anything
        raise ModelError(
            f"{path} is not a plain file of weights ({briefly(error)}); save `model.state_dict()` with "
            "safetensors.torch.save_file"
        ) from error
    state: Any = unwrapped(loaded)
    plain = isinstance(state, dict) and all(isinstance(k, str) and isinstance(v, Tensor) for k, v in state.items())
    if not plain:
        raise ModelError(f"{path} does not hold a state dict; save `model.state_dict()`")
    return state


def _sidecar(path: Path) -> Preprocessing | None:
    sidecar = path.with_suffix(".yaml")
    if not sidecar.is_file():
        return None
    try:
        values = yaml.safe_load(sidecar.read_text(encoding="utf-8"))
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        raise ModelError(f"{sidecar} is not valid YAML ({briefly(error)}); correct it") from error
    return checked_contract(values, sidecar.name)


def user_module(name: str, folder: Path, *, trusted: bool) -> nn.Module:
    """The network returned by the factory of `python:package.module:factory`; a function is wrapped as a network."""
    module_name, _, factory_name = name.removeprefix(PYTHON_PREFIX).partition(":")
    if not module_name or not factory_name:
        raise ModelError(f"model {name!r} must have the form python:package.module:factory; correct it")
    if not trusted:
        raise ModelError(f"model {name} {ASK_FOR_TRUST}")
    before = list(sys.path)
    sys.path[:0] = [str(folder.absolute()), str(Path.cwd())]
    try:
        factory: Any = getattr(importlib.import_module(module_name), factory_name)
        _require_factory(factory, name)
        module = factory()
    except ModelError:
        raise
    except Exception as error:
        if isinstance(error, ModuleNotFoundError) and error.name == module_name.partition(".")[0]:
            raise ModelError(
                f"model {name}: there is no {error.name}.py beside the spec or here, nor a package of that name; "
                "correct the name"
            ) from error
        problem = f"{type(error).__name__}: {briefly(error)}"
        raise ModelError(f"model {name}: {problem}; run with --debug to see the full traceback") from error
    finally:
        sys.path[:] = before
    if isinstance(module, nn.Module):
        return module
    if not callable(module) or inspect.isclass(module):
        raise ModelError(
            f"model {name}: the factory returned {type(module).__name__}, not a torch.nn.Module, nor a function that "
            "predicts"
        )
    return Predicting(module)


def _differs_when_made_again(name: str, folder: Path, digest: str) -> bool:
    """Whether the user's function returns other weights when it is called again: then they are drawn, not trained."""
    with torch.random.fork_rng(devices=[]):
        torch.seed()  # a function that starts from the seed that is set would draw the same again
        try:
            return digest_of(user_module(name, folder, trusted=True)) != digest
        except ModelError:  # it can be called only once
            return False


def _require_factory(factory: object, name: str) -> None:
    """Raise ModelError for a function that needs arguments, which may be the one that predicts."""
    try:
        parameters = inspect.signature(factory).parameters.values()  # type: ignore[arg-type]
    except (TypeError, ValueError):
        return
    optional = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    needed = [each.name for each in parameters if each.default is each.empty and each.kind not in optional]
    if needed:
        function = name.rpartition(":")[2]
        raise ModelError(
            f"model {name}: {function} needs {', '.join(needed)}, but a function without arguments is wanted "
            "that returns the network, or the function that predicts; write "
            f"`def make_model(): return {function}` and name it"
        )


def _code_of(module: nn.Module) -> str:
    """The source of every class the network is made of, as far as it can be read, and its structure."""
    kinds = {type(part) for part in module.modules() if not type(part).__module__.startswith("torch.")}
    sources = []
    for kind in sorted(kinds, key=lambda kind: (kind.__module__, kind.__qualname__)):
        try:
            sources.append(inspect.getsource(kind))
        except (OSError, TypeError):
            sources.append(kind.__qualname__)
    return "\n".join([*sources, repr(module)])


@torch.no_grad()
def _try_out(classifier: NetworkClassifier) -> None:
    contract = classifier.preprocessing
    zeros = torch.zeros(1, contract.channels, *contract.size, device=classifier.device)
    try:
        answers = classifier.module(zeros)
    except Exception as error:
        raise ModelError(
            f"model {classifier.name} fails on an input of {tuple(zeros.shape)} ({briefly(error)}); "
            "correct `size` and `channels` of its contract"
        ) from error
    if not isinstance(answers, Tensor) or answers.shape != (1, contract.answers):
        each = "" if contract.head == "binary" else " with three answers each"
        if isinstance(answers, Tensor):
            got, remedy = str(tuple(answers.shape)), remedy_for_answers(tuple(answers.shape), 1, contract.answers)
        else:
            got, remedy = type(answers).__name__, "return the tensor of logits alone"
        raise ModelError(
            f"model {classifier.name} gives {got} for one image, its contract names {len(contract.outputs)} "
            f"outputs{each} (1, {contract.answers}); {remedy}"
        )


def digest_of(module: nn.Module) -> str:
    """A hash of all weights and buffers of a network."""
    digest = hashlib.sha256()
    for name, value in sorted(module.state_dict().items()):
        digest.update(name.encode())
        flat = value.detach().cpu().reshape(-1)
        digest.update(flat.view(torch.uint8).numpy().tobytes())  # NumPy lacks some of torch's types
    return digest.hexdigest()


def save_classifier(classifier: NetworkClassifier, path: Path) -> None:
    """Write weights and contract as one safetensors file."""
    # copies: a file cannot hold one tensor under two names, as for tied weights
    state = {name: value.detach().cpu().contiguous().clone() for name, value in classifier.module.state_dict().items()}
    # save_file would leave the file readable by its owner only
    path.write_bytes(save(state, metadata={_METADATA_KEY: classifier.preprocessing.model_dump_json()}))
