"""The images of an alignment study: read once and stored as each network needs them, with the experts' masks."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cached_property
from pathlib import Path
from zipfile import ZIP_DEFLATED, ZipFile

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor

from heatcheck.core.atomic_files import replaced
from heatcheck.core.contracts import Source
from heatcheck.core.geometry import MapGrid, Placement, mask_to_grid, place
from heatcheck.core.records import Case, CaseKey, CaseRecord, Mask
from heatcheck.models import Preprocessing
from heatcheck.models.classifier import prepared
from heatcheck.running.cases import digest_of, first_patients, read_cases
from heatcheck.running.failed_cases import failure
from heatcheck.running.progress import Watcher

FOLDER = "images"  # of the run, until it is finished
INDEX = "read.json"
MASKS = "masks.npz"


@dataclass(frozen=True)
class Images:
    """The readable images of one split, by row, with labels and masks."""

    folder: Path
    keys: Sequence[CaseKey]  # of the rows
    shapes: Sequence[tuple[int, ...]]  # of the original images
    failed: tuple[CaseRecord, ...]
    _open: dict[str, np.ndarray] = field(default_factory=dict)  # memory maps

    def prepared(self, rows: Sequence[int], contract: Preprocessing) -> Float[Tensor, "batch channel *space"]:
        """The images of these rows, prepared for a network of that contract."""
        name = file_of(contract)
        if name not in self._open:
            self._open[name] = np.load(self.folder / name, mmap_mode="r")
        stored = self._open[name]
        images = torch.from_numpy(np.stack([stored[row] for row in rows]))
        return images.expand(-1, contract.channels, *images.shape[2:])

    def placement(self, row: int, contract: Preprocessing) -> Placement:
        """Where the image of a row lies on the model's grid."""
        return place(self.shapes[row], contract.size, contract.fit)

    def label(self, row: int, finding: str) -> float:
        """1 present, 0 absent, −1 uncertain, NaN unknown."""
        return self.keys[row].labels.get(finding, np.nan)

    def mask(self, row: int, finding: str) -> Mask | None:
        """The finding's mask on the image's own grid; None where there is none."""
        name = _mask_name(row, finding)
        if name not in self._masks:
            return None
        shape = self.shapes[row]
        bits = np.unpackbits(self._masks[name], count=int(np.prod(shape)))
        return np.asarray(bits.reshape(shape).astype(bool))

    def mask_on(self, row: int, finding: str, contract: Preprocessing, grid: MapGrid | None = None) -> Mask | None:
        """The mask on the grid of a method's maps; by default on that of the model's input."""
        mask, on = self.mask(row, finding), grid or MapGrid(contract.size)
        return None if mask is None else mask_to_grid(mask, self.placement(row, contract), on.shape, on.cells)

    def positives(self, finding: str) -> list[int]:
        """The rows in which the finding is present and outlined."""
        rows = range(len(self.keys))
        return [row for row in rows if self.label(row, finding) == 1 and self.is_outlined(row, finding)]

    def of_patients(self, rows: Sequence[int], limit: int | None) -> list[int]:
        """Those of the rows that belong to the first `limit` of their patients."""
        kept = first_patients((self.keys[row] for row in rows), limit)
        return [row for row in rows if self.keys[row].patient in kept]

    def is_outlined(self, row: int, finding: str) -> bool:
        """Whether there is a mask of the finding."""
        return _mask_name(row, finding) in self._masks

    @cached_property
    def _masks(self) -> Mapping[str, np.ndarray]:
        return np.load(self.folder / MASKS, allow_pickle=False)

    def records(self) -> list[CaseRecord]:
        """Every case, read or failed."""
        read = (
            CaseRecord(key.case, key.patient, "ok", shape="×".join(map(str, shape)), annotated=1)
            for key, shape in zip(self.keys, self.shapes, strict=True)
        )
        return [*read, *self.failed]


@dataclass
class _Writer:
    """Writes the files of one split."""

    folder: Path
    contracts: Sequence[Preprocessing]
    total: int
    findings: Sequence[str]
    files: dict[str, np.memmap] = field(default_factory=dict)

    @cached_property
    def masks(self) -> ZipFile:
        """The file of masks; they are added one at a time, because together they may be large."""
        return ZipFile(self.folder / MASKS, "w", ZIP_DEFLATED)

    def write(self, row: int, case: Case) -> None:
        """Write the case into the row of every file."""
        for contract in self.contracts:
            name = file_of(contract)
            image = prepared(case.image, as_stored(contract, len(case.image))).numpy()
            if name not in self.files:
                shape = (self.total, *image.shape)
                self.files[name] = np.lib.format.open_memmap(self.folder / name, "w+", np.float32, shape)
            self.files[name][row] = image
        for finding, mask in case.truth.items():
            if finding in self.findings and mask.any():
                with self.masks.open(f"{_mask_name(row, finding)}.npy", "w") as file:
                    np.lib.format.write_array(file, np.packbits(mask), allow_pickle=False)

    def close(self) -> None:
        """Flush and close all files."""
        for file in self.files.values():
            file.flush()
        self.masks.close()


@dataclass(frozen=True)
class ImageRequest:
    """What is to be read of a split, and for which networks."""

    source: Source
    findings: tuple[str, ...]
    contracts: tuple[Preprocessing, ...]
    workers: int

    @property
    def origin(self) -> str:
        """What the files depend on, as JSON."""
        facts = {
            "data": self.source.stamp(),
            "cases": digest_of(self.source.index()),
            "findings": list(self.findings),
            "files": sorted({file_of(contract) for contract in self.contracts}),
        }
        return json.dumps(facts, sort_keys=True)


def images_of(request: ImageRequest, folder: Path, name: str, watcher: Watcher) -> Images:
    """The images of a split, read unless an earlier call did it."""
    target = folder / FOLDER / name
    index = target / INDEX
    if not (index.exists() and json.loads(index.read_text())["origin"] == request.origin):
        index.unlink(missing_ok=True)  # before the images change: it must never describe others
        target.mkdir(parents=True, exist_ok=True)
        facts = _read(request, target, f"reading {name}", watcher)
        with replaced(index) as temporary:
            temporary.write_text(json.dumps({"origin": request.origin, **facts}))
    facts = json.loads(index.read_text())
    by_case = {key.case: key for key in request.source.index()}
    return Images(
        target,
        [by_case[case] for case in facts["cases"]],
        [tuple(shape) for shape in facts["shapes"]],
        tuple(CaseRecord(**record) for record in facts["failed"]),
    )


def _read(request: ImageRequest, target: Path, label: str, watcher: Watcher) -> dict[str, list[object]]:
    keys = request.source.index()
    writer = _Writer(target, request.contracts, len(keys), request.findings)
    cases: list[object] = []
    shapes: list[object] = []
    failed: list[object] = []
    watcher.start(label, len(keys))
    for key, read in zip(keys, read_cases(request.source, keys, request.workers), strict=True):
        watcher.advance()
        try:
            if isinstance(read, CaseRecord):
                failed.append(asdict(read))
                continue
            writer.write(len(cases), read)
        except Exception as error:  # noqa: BLE001 - one bad case must not stop the others
            failed.append(asdict(failure(key, error)))
            continue
        cases.append(key.case)
        shapes.append(list(read.image.shape[1:]))
    writer.close()
    return {"cases": cases, "shapes": shapes, "failed": failed}


def _mask_name(row: int, finding: str) -> str:
    return f"{row}/{finding}"


def as_stored(contract: Preprocessing, channels: int) -> Preprocessing:
    """The contract with one channel, where a grey image would be copied into all channels of the network."""
    if channels != 1 or not _same_scale(contract):
        return contract
    return contract.model_copy(update={"channels": 1, "mean": contract.mean[:1], "std": contract.std[:1]})


def file_of(contract: Preprocessing) -> str:
    """The name of the file that holds images for that contract; contracts that only copy grey channels share it."""
    grey = contract.mean[:1], contract.std[:1]
    pixels = grey if _same_scale(contract) else (contract.mean, contract.std, contract.channels)
    scaling = ("nonzero",) if contract.scaling == "nonzero" else ()
    facts = json.dumps([contract.size, contract.fit, *pixels, *scaling])
    return f"{hashlib.sha256(facts.encode()).hexdigest()[:16]}.npy"


def _same_scale(contract: Preprocessing) -> bool:
    """Whether all channels are scaled alike."""
    return len(set(contract.mean)) == 1 and len(set(contract.std)) == 1
