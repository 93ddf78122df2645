"""The networks of an alignment study: per base, finding and seed a control, and two per method, toward and away.

Each is fine-tuned from its base, in any order, and continued where it was interrupted.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Int
from torch import Tensor
from torch.utils.data import Dataset

from heatcheck.core.contracts import Method
from heatcheck.core.errors import UntrainedError
from heatcheck.core.geometry import MapGrid
from heatcheck.core.seeds import generator_for, seed_for
from heatcheck.core.vocabulary import Condition, condition
from heatcheck.fitting.networks import BestNetwork, fit_network, with_weights
from heatcheck.models import NetworkClassifier, Preprocessing
from heatcheck.running.progress import Watcher
from heatcheck.studies.alignment.bases import BaseNetworks, file_name
from heatcheck.studies.alignment.images import Images
from heatcheck.studies.alignment.objective import AlignmentObjective, map_grid
from heatcheck.studies.alignment.settings import AlignmentSettings
from heatcheck.studies.alignment.spec import AlignmentBody
from heatcheck.studies.alignment.vocabulary import DIRECTIONS, FINETUNE, Arm, network_key
from heatcheck.training import Job, Machine

SAVE_EVERY = 60.0  # seconds; saving thousands of networks after every epoch would wear out disks

Rows = Int[np.ndarray, " images"]


@dataclass(frozen=True, slots=True)
class NetworkCell:
    """One network: its base, how it is fine-tuned, and the findings it is evaluated on."""

    base: str
    arm: Arm
    findings: tuple[str, ...]
    seed: int = 0  # counted from 1; a base has none
    method: str = ""  # through which it was aligned or misaligned

    @property
    def key(self) -> str:
        """Its name in the table of predictions."""
        return network_key(self.base, self.arm, self.seed, self.method)

    @property
    def label(self) -> str:
        """Its name in the progress output and among failures, with its finding or how many it has."""
        findings = self.findings[0] if len(self.findings) == 1 else f"{len(self.findings)} findings"
        return self.key if self.arm == "base" else f"{self.key} · {findings}"

    @property
    def file(self) -> str:
        """The name of its files, without the suffix."""
        findings = self.findings[0] if len(self.findings) == 1 else "all"
        return file_name(*self.base.split("/"), findings, self.method, self.arm, f"seed{self.seed}")

    def condition(self, through: str = "", *, learned: bool = False) -> str:
        """The condition of its scores, `learned` on images that it learned from.

        `through` is the method that it was aligned through, where another method's maps are scored.
        """
        facts: Condition = {"arm": self.arm}
        if self.arm != "base":
            facts["seed"] = self.seed
        if through:
            facts["through"] = through
        if learned:
            facts["split"] = FINETUNE
        return condition(**facts)


def cells_of(settings: AlignmentSettings, *, several: bool) -> Iterator[NetworkCell]:
    """Every network, base by base, the base itself first."""
    subjects = [settings.findings] if several else [(finding,) for finding in settings.findings]
    for base in settings.bases:
        yield NetworkCell(base.key, "base", settings.findings)
        for findings in subjects if base.fine_tuned else ():
            for seed in settings.seeds:
                yield NetworkCell(base.key, "control", findings, seed)
                for method in settings.methods:
                    for arm in DIRECTIONS:
                        yield NetworkCell(base.key, arm, findings, seed, method)


def methods_on(cell: NetworkCell, settings: AlignmentSettings) -> dict[str, str]:
    """The methods whose maps are scored on a network, each with the method it was aligned through, if another."""
    if cell.arm in ("base", "control"):
        return dict.fromkeys((*settings.methods, *settings.judged), "")
    judged = settings.judged if cell.method == settings.through else ()
    return {cell.method: "", **dict.fromkeys(judged, cell.method)}


@dataclass(frozen=True)
class Parts:
    """The rows of the fine-tuning images that a network learns from, and those that choose its checkpoint."""

    learned: Rows
    choosing: Rows


def parts_of(images: Images, findings: Sequence[str], share: float, seed: int) -> Parts:
    """The two parts: no patient is in both, and both have patients with an outlined finding.

    They are the same for every arm, method and base, so that these can be compared.
    """
    outlined = {images.keys[row].patient for finding in findings for row in images.positives(finding)}
    patients = sorted({key.patient for key in images.keys})
    name = "+".join(findings)
    choosing: set[str] = set()
    for kind, group in (
        ("outlined", [patient for patient in patients if patient in outlined]),
        ("others", [patient for patient in patients if patient not in outlined]),
    ):
        drawn = generator_for(seed, name, kind, "selection").permutation(group).tolist()
        needed = 1 if kind == "outlined" else 0  # in each part, as far as there are two
        most = max(0, len(drawn) - needed)
        choosing |= set(drawn[: min(most, max(needed, round(share * len(drawn))))])
    is_choosing = np.array([key.patient in choosing for key in images.keys], bool)
    return Parts(np.flatnonzero(~is_choosing), np.flatnonzero(is_choosing))


def seed_of(run_seed: int, cell: NetworkCell) -> int:
    """The seed of a fine-tuning: the same for all arms, so that they see the same images in the same order."""
    return seed_for(run_seed, cell.seed, "network")


class MaskedExamples(Dataset[tuple[Tensor, ...]]):
    """Images with labels, masks on the maps' grid, whether each mask can be learned from, and the row.

    A mask that covers the whole grid cannot: there is nothing outside it.
    """

    def __init__(
        self,
        images: Images,
        rows: Rows,
        contract: Preprocessing,
        findings: Sequence[str],
        grid: MapGrid,
    ) -> None:
        self.images, self.rows, self.contract = images, rows, contract
        self.findings, self.grid = findings, grid
        self._masks: dict[int, Tensor] = {}  # by row; small, but costly to make

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> tuple[Tensor, ...]:
        row = int(self.rows[index])
        image = self.images.prepared([row], self.contract)[0]
        masks = self._masks_of(row)
        return image, self._labels(row), masks.float(), self._outlined(row), torch.tensor(row)

    @property
    def has_usable_masks(self) -> bool:
        """Whether there is a mask to learn from."""
        return any(bool(self._outlined(row).any()) for row in self.rows.tolist())

    def _labels(self, row: int) -> Tensor:
        return torch.tensor([self.images.label(row, finding) for finding in self.findings])

    def _outlined(self, row: int) -> Tensor:
        """Which findings are present and outlined, with something outside the outline."""
        flat = self._masks_of(row).flatten(1)
        return flat.any(1) & ~flat.all(1) & (self._labels(row) == 1)

    def _masks_of(self, row: int) -> Tensor:
        if row not in self._masks:
            self._masks[row] = torch.stack([self._mask(row, finding) for finding in self.findings])
        return self._masks[row]

    def _mask(self, row: int, finding: str) -> Tensor:
        mask = self.images.mask_on(row, finding, self.contract, self.grid)
        return torch.zeros(self.grid.shape, dtype=torch.bool) if mask is None else torch.from_numpy(mask)


@dataclass(frozen=True)
class FineTuner:
    """Fine-tunes networks from their bases."""

    body: AlignmentBody
    seed: int  # of the run
    bases: BaseNetworks
    methods: Mapping[str, Method]
    finetune: Images
    evaluation: Images
    machine: Machine
    watcher: Watcher
    _grids: dict[tuple[str, str], MapGrid] = field(default_factory=dict)
    _forgotten: set[NetworkCell] = field(default_factory=set)

    def parts(self, cell: NetworkCell) -> Parts:
        """The images that a network learns from, and those that choose its checkpoint."""
        return parts_of(self.finetune, cell.findings, self.body.selection, seed_of(self.seed, cell))

    def network(self, cell: NetworkCell) -> NetworkClassifier:
        """The network of a cell: the base itself, or fine-tuned from it."""
        base = self.bases.classifier(cell.base)
        if cell.arm == "base":
            return base
        self._train(cell, base)
        tuned = NetworkClassifier(cell.key, self.bases.copy(cell.base), base.preprocessing)
        return with_weights(tuned, self.path(cell))

    def untrained(self, base: str) -> list[NetworkClassifier]:
        """Networks like the base before any training."""
        return self.bases.untrained(base, self.seed)

    def path(self, cell: NetworkCell) -> Path:
        """The file of the network's weights."""
        return self.bases.store.path(cell.file)

    def state(self, cell: NetworkCell) -> Path:
        """The file from which an interrupted fit continues."""
        return self.bases.store.state(cell.file)

    def forget(self, cell: NetworkCell) -> None:
        """Remove the state of its fit and, unless the spec keeps networks, its weights.

        Only once per cell: each of thousands of shards forgets all networks before it.
        """
        if cell in self._forgotten:
            return
        self._forgotten.add(cell)
        if self.body.keep_networks:
            self.state(cell).unlink(missing_ok=True)
        else:
            self.discard(cell)

    def discard(self, cell: NetworkCell) -> None:
        """Remove its weights and the state of its fit."""
        self.state(cell).unlink(missing_ok=True)
        self.path(cell).unlink(missing_ok=True)

    def _train(self, cell: NetworkCell, base: NetworkClassifier) -> None:
        parts = self.parts(cell)
        contract, grid = base.preprocessing, self._grid(cell, base)
        classifier = NetworkClassifier(cell.key, self.bases.copy(cell.base), contract)
        learned = MaskedExamples(self.finetune, parts.learned, contract, cell.findings, grid)
        if cell.method and not learned.has_usable_masks:
            raise UntrainedError(
                f"every mask that could be learned from covers the whole grid of {cell.method}'s maps "
                f"({'×'.join(map(str, grid.shape))}); name a layer with a finer grid, or leave the finding out"
            )
        job = Job(
            classifier.module,
            self._objective(cell, classifier),
            learned,
            MaskedExamples(self.finetune, parts.choosing, contract, cell.findings, grid),
            self.body.fit.settings(seed_of(self.seed, cell)),
            self.state(cell),
            BestNetwork(self.path(cell), self.bases.base(cell.base).settings.name, contract),
            save_every=SAVE_EVERY,
        )
        fit_network(job, cell.label, self.machine, self.watcher)

    def _objective(self, cell: NetworkCell, classifier: NetworkClassifier) -> AlignmentObjective:
        targets = tuple(classifier.outputs.index(finding) for finding in cell.findings)
        common = AlignmentObjective(
            classifier,
            targets,
            at_once=self.body.at_once,
            seed=seed_of(self.seed, cell),
            softplus=self.body.softplus,
        )
        if cell.arm not in ("align", "misalign"):
            return common
        method = self.methods[cell.method]
        return replace(common, method=method, direction=cell.arm, alpha=self.body.alpha)

    def _grid(self, cell: NetworkCell, base: NetworkClassifier) -> MapGrid:
        """The grid of the method's maps on this base; one pixel for a control, which makes none."""
        if not cell.method:
            return MapGrid((1,) * len(base.preprocessing.size))
        if (cell.base, cell.method) not in self._grids:
            self._grids[cell.base, cell.method] = map_grid(self.methods[cell.method], base)
        return self._grids[cell.base, cell.method]
