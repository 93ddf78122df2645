"""A first spec, filled in by looking at a folder of images and at a model."""

import json
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from heatcheck.core.errors import InputError, ModelError
from heatcheck.explaining.named_model import NamedModel, in_full, load_named, stated_contract
from heatcheck.explaining.preflight import Preflight, preflight
from heatcheck.methods.sets import RECOMMENDED
from heatcheck.models import MODELS, Preprocessing
from heatcheck.models.contract import PARTS
from heatcheck.models.load import PYTHON_PREFIX, read_weights
from heatcheck.report.numbers import count, listed
from heatcheck.running.open_source import cautions_of, open_source
from heatcheck.running.progress import Silent, Watcher
from heatcheck.sources.files.folder_cautions import damaged
from heatcheck.sources.files.image_folder import ImageFolder

STARTER = resources.files("heatcheck") / "studies" / "localization" / "specs" / "starter.yaml.txt"
NO_WEIGHTS = (
    "No weights were named. Unless your function loads the trained weights itself, name their file under `weights:` in "
    "the spec: without it, an untrained network is judged."
)
_HINTS = {
    "outputs": "names, in the order of the model's outputs",
    "size": "rows, columns",
    "channels": "of the model's input",
    "mean": "of pixels scaled to [0, 1]",
    "std": "of pixels scaled to [0, 1]",
    "activation": "sigmoid, or softmax",
}


@dataclass(frozen=True, slots=True)
class DataFiles:
    """Where the images, masks and labels are; what is not named is looked for beside the images."""

    images: Path | None = None
    masks: Path | None = None  # a folder, or a file of outlines or boxes
    labels: Path | None = None

    def looked_up(self) -> "DataFiles":
        """The files with `masks` and `labels.csv` in the folder of images, or beside it."""
        if self.images is None:
            return self
        places = (self.images, self.images.absolute().parent)
        masks = next((place / "masks" for place in places if (place / "masks").is_dir()), None)
        labels = next((place / "labels.csv" for place in places if (place / "labels.csv").is_file()), None)
        return replace(self, masks=self.masks or masks, labels=self.labels or labels)


@dataclass(frozen=True, slots=True)
class FirstSpec:
    """The text of a spec, and what its author should know."""

    text: str
    remarks: tuple[str, ...]


@dataclass
class _Draft:
    """The text as far as it is filled in."""

    text: str
    folder: Path  # of the spec
    remarks: list[str] = field(default_factory=list)

    def fill(self, key: str, value: str) -> None:
        """Write the value behind a key of the template, commented out or not, and keep the comment."""
        line = re.compile(rf"^( *)(?:# )?{key}: (?:[^#\n]*?)( +#[^\n]*)?$", re.MULTILINE)
        self.text = line.sub(lambda found: f"{found[1]}{key}: {value}{found[2] or ''}", self.text, count=1)

    def drop(self, key: str) -> None:
        """Comment a key of the template out."""
        self.text = re.sub(rf"^( *){key}: ", rf"\1# {key}: ", self.text, count=1, flags=re.MULTILINE)

    def path(self, path: Path) -> str:
        """The path as the spec needs it: from the spec's folder on, where it lies there."""
        full, start = path.absolute(), self.folder.absolute()
        return json.dumps(os.fspath(full.relative_to(start) if full.is_relative_to(start) else full))


def first_spec(path: Path, files: DataFiles, model: NamedModel | None, watcher: Watcher | None = None) -> FirstSpec:
    """The commented template for a spec at this path, filled in with what the files and the model say."""
    draft = _Draft(STARTER.read_text(encoding="utf-8"), path.parent)
    findings = _fill_data(draft, files.looked_up(), files.images) if files.images is not None else ()
    if model is None:
        draft.fill("methods", RECOMMENDED)
        return FirstSpec(draft.text, tuple(draft.remarks))
    model = in_full(model)
    contract, tried = _contract(model), _tried(draft, model, watcher or Silent())
    _fill_model(draft, model, contract, findings if len(findings) == _outputs(model, tried) else ())
    if model.weights is None and model.name.startswith(PYTHON_PREFIX):
        draft.remarks.append(NO_WEIGHTS)
    if contract is not None and findings:
        _fill_findings(draft, findings, contract.outputs)
    draft.fill("methods", f"[{', '.join(tried.recommended)}]" if tried else RECOMMENDED)
    return FirstSpec(draft.text, tuple(draft.remarks))


def _fill_data(draft: _Draft, files: DataFiles, folder: Path) -> tuple[str, ...]:
    """Fill in the source, and return its findings; the files must be usable."""
    named = {"images": files.images, "labels": files.labels}
    if files.masks is not None:
        named["masks" if files.masks.is_dir() else "truth"] = files.masks
    else:
        draft.remarks.append("No masks were found; name a folder of masks, or a file of boxes or outlines, as --masks.")
    part = {key: str(value) for key, value in named.items() if value is not None}
    source = open_source({"name": "folder", **part}, Path(), "--images")
    for key in ("images", "labels", "masks", "truth"):
        value = named.get(key)
        if value is not None:
            draft.fill(key, draft.path(value))
        elif key != "truth":
            draft.drop(key)
    findings = tuple(source.findings)
    images = ImageFolder(folder)
    labelled = sum(key.case in images.endings for key in source.index())
    of_them = "" if labelled == len(images.endings) else f", {labelled:,} of them with labels"
    draft.remarks.append(f"Found {count(len(images.endings), 'image')}{of_them}; findings: {listed(findings)}.")
    unusable = damaged([images.path(case) for case in images.endings])
    draft.remarks += [*cautions_of([source]), *([unusable] if unusable else [])]
    return findings


def _contract(model: NamedModel) -> Preprocessing | None:
    """What the model says that it was trained with; None where it does not."""
    if model.contract is not None:
        return stated_contract(model)
    if model.weights is not None:
        return read_weights(model.weights).contract
    if model.name.startswith(PYTHON_PREFIX) or not MODELS[model.name].weights:
        return None
    return load_named(model).preprocessing


def _tried(draft: _Draft, model: NamedModel, watcher: Watcher) -> Preflight | None:
    """Every method tried on the model; None, with a remark, where the model does not run."""
    known = _contract(model) is not None
    try:
        return preflight(model if known else replace(model, weights=None), watcher=watcher)
    except ModelError as error:
        if known or "--trust-code" in str(error):
            raise
        draft.remarks.append(f"Methods were not tried: {error}.")
        return None


def _outputs(model: NamedModel, tried: Preflight | None) -> int:
    """The number of outputs: as many as the last of the weights has rows, or as the user's network has."""
    if model.weights is not None:
        return len(list(read_weights(model.weights).state.values())[-1])
    return tried.outputs if tried else 0


def _fill_model(draft: _Draft, model: NamedModel, contract: Preprocessing | None, proposed: Sequence[str]) -> None:
    """Write the model and what it was trained with; `proposed` are outputs to propose where it does not say."""
    lines = ["model:", f"  name: {model.name}"]
    if model.weights is not None:
        lines.append(f"  weights: {draft.path(model.weights)}")
    elif model.name.startswith(PYTHON_PREFIX):
        lines.append(
            "  # weights: model.safetensors   # or .pt/.pth; needed unless the function loads the trained weights"
        )
    if contract is None:
        lines += ["  contract:   # fill in what the model was trained with", *_empty_contract(draft, proposed)]
    elif model.contract is not None:
        stated = contract.model_dump(mode="json", exclude_defaults=True) | {
            key: value for key, value in contract.model_dump(mode="json").items() if key in PARTS
        }
        lines += ["  contract:", *(f"    {key}: {_flow(value)}" for key, value in stated.items())]
    else:
        lines += [f"  # the weights say what the model was trained with; its outputs: {', '.join(contract.outputs)}"]
    block = re.compile(r"^model:\n(?:  .*\n)+", re.MULTILINE)
    draft.text = block.sub(lambda _: "\n".join(lines) + "\n", draft.text, count=1)


def _empty_contract(draft: _Draft, proposed: Sequence[str]) -> list[str]:
    """The facts to fill in, with the outputs that are proposed."""
    asked = listed([part for part in PARTS if part != "outputs" or not proposed])
    check = "; check the order of `outputs`" if proposed else ""
    draft.remarks.append(f"The model does not say {asked}: fill them in under `contract`{check}.")
    outputs = f"    outputs: {_flow(list(proposed))}   # as many as the model has; check their order"
    rest = [f"    {key}:   # {hint}" for key, hint in _HINTS.items()]
    return [outputs, *rest[1:]] if proposed else rest


def _fill_findings(draft: _Draft, findings: Sequence[str], outputs: Sequence[str]) -> None:
    both = [finding for finding in findings if finding in outputs]
    if not both:
        raise InputError(
            f"no finding of the images ({', '.join(findings)}) is an output of the model ({', '.join(outputs)}); give "
            "them the same names in the labels or masks, and in the contract"
        )
    if len(both) < len(findings):
        others = [finding for finding in findings if finding not in both]
        draft.remarks.append(f"The model has no output for {listed(others)}, so `findings` leaves that out.")
        draft.fill("findings", _flow(both))


def _flow(value: Any) -> str:  # noqa: ANN401 - any JSON value
    """The value in one line of YAML."""
    if isinstance(value, list):
        return f"[{', '.join(map(_flow, value))}]"
    return value if isinstance(value, str) and re.fullmatch(r"[A-Za-z][\w ]*", value) else json.dumps(value)
