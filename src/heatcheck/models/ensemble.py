"""Several checkpoints of one architecture that answer together, each for the findings it was chosen for.

Only one of them is in memory at a time: members with the same number of answers share one network, into which their
weights are loaded in turn.
"""

import hashlib
import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Literal

import torch
from jaxtyping import Float
from pydantic import BaseModel, ConfigDict, Field, ValidationError
from torch import Tensor, nn

from heatcheck.core.errors import ModelError
from heatcheck.core.geometry import Placement
from heatcheck.core.records import Image
from heatcheck.core.settings.problems import of_value
from heatcheck.core.tensors import Images, Logits
from heatcheck.models.classifier import NetworkClassifier, placed, prepared
from heatcheck.models.contract import Preprocessing
from heatcheck.models.load import (
    ModelSettings,
    file_hash,
    load_classifier,
    stored_contract,
    stored_state,
    usable_device,
)
from heatcheck.models.registry import MODELS
from heatcheck.models.renaming import fitted

FILE = "ensemble.json"
BEST_FILE = "best_single.json"  # of the same form, with one checkpoint per finding
SMALLEST = 1e-7  # mean probabilities are kept this far from 0 and 1, where logits are infinite


class MemberEntry(BaseModel):
    """A checkpoint in the file of an ensemble."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    checkpoint: Path  # relative to the file's folder
    sha256: str
    auroc: float | None = None  # of the finding on the validation data


class EnsembleFile(BaseModel):
    """The content of an ensemble's file."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    version: Literal[1] = 1
    model: str
    findings: dict[str, tuple[MemberEntry, ...]] = Field(min_length=1)


@dataclass(frozen=True, slots=True)
class Member:
    """A checkpoint and the findings it was chosen for."""

    path: Path
    digest: str
    findings: tuple[str, ...]


@dataclass(frozen=True)
class Ensemble:
    """A classifier whose probability of a finding is the mean over the finding's members."""

    name: str  # in tables of scores
    architecture: str
    preprocessing: Preprocessing
    members: tuple[Member, ...]
    weights_hash: str
    device: torch.device
    _networks: dict[int, nn.Module] = field(default_factory=dict, repr=False, compare=False)  # by number of answers
    _stamps: dict[Path, tuple[int, int, int]] = field(
        default_factory=dict, repr=False, compare=False
    )  # of checked files

    @property
    def outputs(self) -> tuple[str, ...]:
        """The findings, in the order of the logits."""
        return self.preprocessing.outputs

    @property
    def module(self) -> nn.Module:
        """Refused: there is no single network."""
        raise ModelError(f"{self.name} is an ensemble of {len(self.members)} networks; explain them one by one")

    def placement(self, image: Image) -> Placement:
        """Where the image lies on the model's grid."""
        return placed(image, self.preprocessing)

    def prepare(self, images: Sequence[Image]) -> Images:
        """The images on the model's grid, normalised, on the model's device."""
        return torch.stack([prepared(image, self.preprocessing) for image in images]).to(self.device)

    def loaded(self, member: Member) -> NetworkClassifier:
        """The member as a classifier; the classifier returned before it must no longer be used."""
        self._require_unchanged(member)
        contract = stored_contract(member.path) or self.preprocessing
        if contract.answers not in self._networks:
            module = MODELS[self.architecture].build(contract.channels, contract.answers, contract.size)
            self._networks[contract.answers] = module.to(self.device).eval()
        module = self._networks[contract.answers]
        translate = MODELS[self.architecture].translate
        module.load_state_dict(fitted(stored_state(member.path), module, translate, self.architecture))
        return NetworkClassifier(self.name, module, contract, member.digest)

    def _require_unchanged(self, member: Member) -> None:
        """Refuse a file that was changed; its hash is computed once, as long as size and time stay the same.

        The system keeps files that are read again and again in memory as far as there is room.
        """
        facts = member.path.stat()
        stamp = (facts.st_ino, facts.st_size, facts.st_mtime_ns)
        if self._stamps.get(member.path) == stamp:
            return
        if file_hash(member.path) != member.digest:
            raise ModelError(
                f"{member.path} was changed while it was in use; restore the training's file and start again"
            )
        self._stamps[member.path] = stamp

    @cached_property
    def stand_in(self) -> NetworkClassifier:
        """The first member in a network of its own, on which methods are tried; its hash is that of the ensemble."""
        settings = ModelSettings(name=self.architecture, weights=self.members[0].path)
        first = load_classifier(settings, Path(), str(self.device))
        return replace(first, name=self.name, weights_hash=self.weights_hash)

    def columns(self, member: Member) -> list[int]:
        """The indices of the member's findings among the outputs."""
        return [self.outputs.index(finding) for finding in member.findings]

    @torch.no_grad()
    def logits(self, images: Images) -> Logits:
        """The logit of the mean probability, for each image and output."""
        total = images.new_zeros(len(images), len(self.outputs))
        for member in self.members:
            classifier = self.loaded(member)
            probabilities = classifier.probabilities(classifier.logits(images))
            total[:, self.columns(member)] += probabilities[:, self.columns(member)]
        return logits_of(total / total.new_tensor(self.counts))

    @property
    def counts(self) -> list[int]:
        """The number of members of each output."""
        return [sum(finding in member.findings for member in self.members) for finding in self.outputs]

    @property
    def is_single(self) -> bool:
        """Whether one checkpoint answers for each finding, so that nothing is averaged."""
        return max(self.counts) == 1

    def probabilities(self, logits: Logits) -> Logits:
        """Sigmoid of the logits."""
        return logits.sigmoid()


def logits_of(probabilities: Float[Tensor, "*any"]) -> Float[Tensor, "*any"]:
    """The logits that belong to the probabilities, kept finite."""
    return probabilities.clamp(SMALLEST, 1 - SMALLEST).logit()


def open_model(
    settings: ModelSettings, folder: Path = Path(), device: str = "cpu", *, trust_code: bool = False
) -> NetworkClassifier | Ensemble:
    """The classifier or the ensemble a spec names; relative paths start at `folder`."""
    if settings.ensemble is None:
        return load_classifier(settings, folder, device, trust_code=trust_code)
    return read_ensemble(folder / settings.ensemble, settings.name, device)


def read_ensemble(path: Path, name: str = "", device: str = "cpu") -> Ensemble:
    """The ensemble in a file, or in a training's folder, with every checkpoint checked by its hash.

    `name` identifies it in scores; if it is a registered architecture, it must be that of the members.
    """
    path = path / FILE if path.is_dir() else path
    listed = _read(path)
    MODELS[listed.model]  # raises with a suggestion if unknown
    if name in MODELS and listed.model != name:
        raise ModelError(f"{path} is an ensemble of {listed.model}, the spec names {name}; correct one of them")
    chosen: dict[Path, list[str]] = {}
    digests: dict[Path, str] = {}
    for finding, entries in listed.findings.items():
        for entry in entries:
            chosen.setdefault(entry.checkpoint, []).append(finding)
            digests[entry.checkpoint] = entry.sha256
    members = tuple(
        Member(path.parent / file, _verified(path, file, digests[file]), tuple(findings))
        for file, findings in chosen.items()
    )
    contract = _common_contract(path, members)
    _require_all_findings(path, contract, listed.findings)
    text = json.dumps([[member.digest, member.findings] for member in members])
    digest = hashlib.sha256(text.encode()).hexdigest()
    ensemble = Ensemble(name or listed.model, listed.model, contract, members, digest, usable_device(device))
    ensemble.stand_in  # noqa: B018 - loaded now, so that weights that do not fit are found before any work
    return ensemble


def _read(path: Path) -> EnsembleFile:
    try:
        return EnsembleFile.model_validate(json.loads(path.read_text(encoding="utf-8")))
    except FileNotFoundError as error:
        raise ModelError(
            f"{path}: no such ensemble; correct `ensemble:` in the spec, or train one with `ensemble:` in its spec"
        ) from error
    except (ValueError, OSError) as error:  # pydantic's errors are ValueErrors
        problem = of_value(error) if isinstance(error, ValidationError) else str(error)
        raise ModelError(f"{path} does not describe an ensemble ({problem}); repeat the training's command") from error


def _verified(ensemble: Path, file: Path, expected: str) -> str:
    """The hash of a checkpoint; refused unless it is the one that the ensemble was chosen with."""
    path = ensemble.parent / file
    if not path.is_file():
        raise ModelError(f"{ensemble}: checkpoint {file} is missing; copy the training's whole folder")
    digest = file_hash(path)
    if digest != expected:
        raise ModelError(f"{ensemble}: checkpoint {file} is not the one it was chosen with; copy the training again")
    return digest


def _common_contract(path: Path, members: Iterable[Member]) -> Preprocessing:
    """The contract that all members share, except for their heads."""
    common: Preprocessing | None = None
    for member in members:
        contract = stored_contract(member.path)
        if contract is None:
            raise ModelError(f"{path}: checkpoint {member.path.name} has no contract; train again")
        plain = contract.model_copy(update={"head": "binary"})
        if common is not None and plain != common:
            raise ModelError(
                f"{path}: checkpoint {member.path.name} was trained with other images or findings than the others; "
                "repeat the training's command"
            )
        common = plain
    if common is None:
        raise ModelError(f"{path} names no checkpoint; repeat the training's command")
    return common


def _require_all_findings(path: Path, contract: Preprocessing, findings: Mapping[str, Sequence[MemberEntry]]) -> None:
    for finding in contract.outputs:
        if not findings.get(finding):
            raise ModelError(f"{path} has no checkpoint for {finding}; repeat the training's command")
    for finding in findings:
        if finding not in contract.outputs:
            raise ModelError(f"{path} names {finding}, which its checkpoints lack; repeat the training's command")
