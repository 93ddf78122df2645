"""Maps that were made for scoring, kept on disk until the gallery is drawn: a slow model makes them only once."""

import hashlib
import json
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path

import torch
from safetensors import safe_open
from safetensors.torch import save_file

from heatcheck.core.atomic_files import replaced
from heatcheck.core.geometry import Cells, Placement
from heatcheck.core.records import Case
from heatcheck.explaining.batch import Explained, GridMaps
from heatcheck.methods import METHODS

FOLDER = "maps-to-show"  # within a run, until its gallery is drawn
LEAST_ROOM, MOST_ROOM = 1_000_000_000, 4_000_000_000  # bytes on disk; maps of further cases are made again
SHARE = 0.1  # of what is free on the disk
LARGEST_CASE = 100_000_000  # bytes: with less room than this left, a case may have been too large to keep


def room_on(folder: Path) -> int:
    """How many bytes of maps may be kept below this folder: a share of the free disk, within limits."""
    there = next(parent for parent in (folder, *folder.parents) if parent.exists())
    return round(min(MOST_ROOM, max(LEAST_ROOM, SHARE * shutil.disk_usage(there).free)))


@dataclass(frozen=True)
class KeptMaps:
    """The maps of one model, a file per case, in full precision on the methods' own grids.

    Floors are not kept: they are made without the model, in a moment.
    """

    folder: Path
    most_bytes: int | None = None  # else as many as there is room for

    def keep(self, explained: Explained, columns: Sequence[int]) -> None:
        """Keep the maps of these findings, unless what is kept has grown too large."""
        tensors = {
            f"{method}/{column}": maps.values[column].contiguous()
            for method, maps in _without_floors(explained.grids).items()
            for column in columns
            if not explained.why_missing(method, column)
        }
        size = sum(tensor.nbytes for tensor in tensors.values())
        if not tensors or self._used["bytes"] + size > self.room:
            return
        self._used["bytes"] += size
        facts = {
            "logits": explained.logits,
            "probabilities": explained.probabilities,
            "missing": explained.missing,
            "cells": {
                name: maps.cells and asdict(maps.cells) for name, maps in _without_floors(explained.grids).items()
            },
        }
        self.folder.mkdir(parents=True, exist_ok=True)
        with replaced(self._path(explained.case.key.case)) as temporary:
            save_file(tensors, temporary, {"facts": json.dumps(facts)})

    def explained(self, case: Case, column: int, placement: Placement) -> Explained | None:
        """The case with its kept maps of one finding, which are in its column alone; None if none were kept.

        Floors are not among them.
        """
        path = self._path(case.key.case)
        if not path.is_file():
            return None
        with safe_open(path, "pt") as file:
            facts = json.loads(file.metadata()["facts"])
            names = set(file.keys())
            grids = {}
            for method, cells in facts["cells"].items():
                if f"{method}/{column}" in names:
                    values = file.get_tensor(f"{method}/{column}")
                    among_all = torch.zeros(column + 1, *values.shape)
                    among_all[column] = values
                    grids[method] = GridMaps(among_all, cells and Cells(tuple(cells["first"]), tuple(cells["step"])))
        missing = {
            method: {int(number): why for number, why in reasons.items()}
            for method, reasons in facts["missing"].items()
        }
        if any(method not in grids and column not in missing.get(method, {}) for method in facts["cells"]):
            return None  # the finding was not kept
        known = Explained(case, tuple(facts["logits"]), tuple(facts["probabilities"]), grids, placement)
        return replace(known, missing=missing)

    def remark(self, cases: Sequence[str]) -> str:
        """What a run says before these cases are drawn: how many of them are explained again; empty if none is."""
        every = list(dict.fromkeys(cases))
        again = sum(not self._path(case).is_file() for case in every)
        if not again:
            return ""
        full = self._used["bytes"] + LARGEST_CASE > self.room
        limit = f", of which a run keeps at most {self.room / 1e9:.1f} GB" if full else ""
        return f"The gallery explains {again} of its {len(every)} cases again: their maps were not kept{limit}."

    def remove(self) -> None:
        """Remove everything that was kept."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def _path(self, case: str) -> Path:
        return self.folder / f"{hashlib.sha256(case.encode()).hexdigest()[:24]}.safetensors"

    @cached_property
    def room(self) -> int:
        """How many bytes may be on disk."""
        return room_on(self.folder) if self.most_bytes is None else self.most_bytes

    @cached_property
    def _used(self) -> dict[str, int]:
        """How many bytes are on disk; another process may have begun."""
        return {"bytes": sum(file.stat().st_size for file in self.folder.glob("*.safetensors"))}


def _without_floors(grids: Mapping[str, GridMaps]) -> dict[str, GridMaps]:
    return {name: maps for name, maps in grids.items() if name not in METHODS or not METHODS[name].is_floor}
