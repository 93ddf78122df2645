"""A model named on the command line; an error names each fact that is missing."""

from dataclasses import dataclass
from pathlib import Path

import yaml

from heatcheck.core.errors import ModelError
from heatcheck.models import MODELS, ModelSettings, NetworkClassifier, Preprocessing, load_classifier
from heatcheck.models.contract import PARTS, checked_contract
from heatcheck.models.load import PYTHON_PREFIX, read_weights


@dataclass(frozen=True, slots=True)
class NamedModel:
    """The flags that describe a model."""

    name: str
    weights: Path | None = None
    contract: Path | None = None
    device: str = "cpu"
    trust_code: bool = False


def load_named(model: NamedModel) -> NetworkClassifier:
    """The classifier; a checkpoint without a contract needs a contract file."""
    contract = contract_file(model.contract) if model.contract else None
    if not model.name.startswith(PYTHON_PREFIX) and not (model.weights or MODELS[model.name].weights):
        raise ModelError(f"model {model.name} comes without weights; name a file with --weights")
    if contract is None and _contract_is_unknown(model):
        *most, last = PARTS
        raise ModelError(
            f"model {model.weights or model.name} does not say how images are prepared: write {', '.join(most)} and "
            f"{last} into a YAML file and add --contract FILE"
        )
    settings = ModelSettings(name=model.name, weights=model.weights, contract=contract)
    return load_classifier(settings, Path(), model.device, trust_code=model.trust_code)


def _contract_is_unknown(model: NamedModel) -> bool:
    if model.weights is None:
        return model.name.startswith(PYTHON_PREFIX)
    return read_weights(model.weights).contract is None


def contract_file(path: Path) -> Preprocessing:
    """The contract in a YAML file, which must state every fact: a default mean would be a guess."""
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        what = "no such file" if isinstance(error, FileNotFoundError) else "it is not readable YAML"
        raise ModelError(f"contract {path}: {what}; correct --contract") from error
    return checked_contract(values, path.name)
