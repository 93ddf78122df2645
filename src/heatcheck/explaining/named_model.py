"""A model named on the command line, by itself or by a study's spec; an error names each fact that is missing."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import yaml

from heatcheck.core.errors import ModelError
from heatcheck.explaining.study_models import StudyModel
from heatcheck.models import MODELS, ModelSettings, NetworkClassifier, Preprocessing, load_classifier
from heatcheck.models.contract import PARTS, checked_contract
from heatcheck.models.load import ASK_FOR_TRUST, PYTHON_PREFIX, read_weights
from heatcheck.runs.spec import checked, read_spec

_SPEC_ENDINGS = {".yaml", ".yml"}


@dataclass(frozen=True, slots=True)
class NamedModel:
    """The flags that describe a model."""

    name: str
    weights: Path | None = None
    contract: Path | Preprocessing | None = None  # a file, or what a spec states
    device: str = "cpu"
    trust_code: bool = False
    folder: Path = Path()  # of a spec, in which the user's code may lie


def in_full(model: NamedModel) -> NamedModel:
    """The model with what a spec says of it, where `name` is the file of a spec; other flags come first."""
    if Path(model.name).suffix not in _SPEC_ENDINGS:
        return model
    spec = read_spec(model.name)
    part = _model_part(spec.body, spec.name)
    stated = checked(StudyModel, part, f"{spec.name}, model")
    if stated.ensemble is not None:
        raise ModelError(
            f"{spec.name}: its model is an ensemble, but one network is needed; name one and its --weights"
        )
    weights = spec.folder / stated.weights if stated.weights else None
    return NamedModel(
        stated.name, model.weights or weights, model.contract or stated.contract, model.device, model.trust_code,
        spec.folder,
    )  # fmt: skip


def _model_part(body: Mapping[str, object], where: str) -> object:
    """The model of a spec, the first where it has several."""
    several = body.get("models")
    part = body.get("model") or (several[0] if isinstance(several, list) and several else several)
    if not part:
        raise ModelError(f"{where} names no model; name one, or give a spec with `model:`")
    return part


def load_named(model: NamedModel) -> NetworkClassifier:
    """The classifier; a checkpoint without a contract needs a contract file."""
    model = in_full(model)
    contract = stated_contract(model)
    custom = model.name.startswith(PYTHON_PREFIX)
    if not custom and not (model.weights or MODELS[model.name].weights):
        raise ModelError(f"model {model.name} comes without weights; name a file with --weights")
    if contract is None and _contract_is_unknown(model):
        *most, last = PARTS
        source = "the weights do not say" if model.weights else "nothing says"
        trust = "" if model.trust_code or not custom else f". It also {ASK_FOR_TRUST}"
        raise ModelError(
            f"model {model.name}: {source} how its images are prepared; write {', '.join(most)} and {last} into a YAML "
            f"file, or fill them in in your study's spec, and add --contract FILE{trust}"
        )
    settings = ModelSettings(name=model.name, weights=model.weights and model.weights.absolute(), contract=contract)
    return load_classifier(settings, model.folder, model.device, trust_code=model.trust_code)


def _contract_is_unknown(model: NamedModel) -> bool:
    if model.weights is None:
        return model.name.startswith(PYTHON_PREFIX)
    return read_weights(model.weights).contract is None


def stated_contract(model: NamedModel) -> Preprocessing | None:
    """What the user states of the model, in a file or in a spec."""
    return contract_file(model.contract) if isinstance(model.contract, Path) else model.contract


def contract_file(path: Path) -> Preprocessing:
    """The contract in a YAML file or a study's spec, which must state every fact: a default mean would be a guess."""
    try:
        values = yaml.safe_load(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        what = "no such file" if isinstance(error, FileNotFoundError) else "it is not readable YAML"
        raise ModelError(f"contract {path}: {what}; correct --contract") from error
    if isinstance(values, Mapping) and "study" in values:
        part = _model_part(values, path.name)
        values = part.get("contract") if isinstance(part, Mapping) else None
        if values is None:
            raise ModelError(f"{path.name}: its model states no contract; add `contract:` with {', '.join(PARTS)}")
    return checked_contract(values, path.name)
