"""The run folder: created once, filled shard by shard, read by the report.

run.json · parts/ · scores, estimates, predictions, cases, timings (.parquet) · gallery/ · maps/ · report.html
"""

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from PIL import Image
from safetensors.numpy import save

from heatcheck.core.errors import RunFolderError
from heatcheck.core.records import Estimate, Map, ShardTables
from heatcheck.core.registry import suggest
from heatcheck.runs.tables import TABLES, join_tables, replaced, write_table

SCHEMA_VERSION = 1
SHARD_TABLES = (
    "predictions",
    "cases",
    "timings",
    "scores",
)  # scores last: its presence says that the shard is whole


@dataclass(frozen=True, slots=True)
class Run:
    """A finished or unfinished run as the report sees it."""

    path: Path
    manifest: Mapping[str, Any]
    scores: pd.DataFrame
    estimates: pd.DataFrame
    predictions: pd.DataFrame
    cases: pd.DataFrame
    timings: pd.DataFrame
    gallery: Mapping[str, Any]


class RunFolder:
    """The writing side of a run; hold it inside `RunFolder.locked`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    @contextmanager
    def locked(cls, path: Path, identity: Mapping[str, Any], facts: Mapping[str, Any]) -> Iterator["RunFolder"]:
        """The folder, made if it is new, with every other writer kept out.

        `identity` must be equal when a run is taken up again (spec, weights, cases); `facts` are recorded once
        (versions, batch size, threads) and reused.
        """
        _require_usable(path)
        path.mkdir(parents=True, exist_ok=True)
        with _lock(path):
            folder = cls(path)
            folder._begin(identity, facts)
            yield folder

    def _begin(self, identity: Mapping[str, Any], facts: Mapping[str, Any]) -> None:
        for left_over in self.path.rglob("*.tmp-*"):  # a killed run leaves its unfinished file behind
            left_over.unlink()
        if not self.manifest_path.exists():
            # before anything else: a folder that holds files and no description is taken for somebody else's
            self._write_manifest({"schema": SCHEMA_VERSION, "status": "running", **identity, **facts})
        else:
            self._require_same(identity)
        for name in ("parts", "gallery", "maps"):
            (self.path / name).mkdir(exist_ok=True)

    def _require_same(self, identity: Mapping[str, Any]) -> None:
        manifest = read_manifest(self.path)
        different = [key for key, value in _plain(identity).items() if manifest.get(key) != value]
        if different:
            raise RunFolderError(
                f"{self.path} holds another run (its {', '.join(different)} differ); choose another --out, "
                "remove that folder, or repeat the command that began it"
            )

    @property
    def manifest_path(self) -> Path:
        """Where the run's description lies."""
        return self.path / "run.json"

    @property
    def manifest(self) -> Mapping[str, Any]:
        """The run's description as it was recorded."""
        return read_manifest(self.path)

    def _write_manifest(self, manifest: Mapping[str, Any]) -> None:
        with replaced(self.manifest_path) as temporary:
            temporary.write_text(json.dumps(manifest, indent=1, sort_keys=True, default=str) + "\n")

    def record(self, **facts: Any) -> None:  # noqa: ANN401 - any JSON value
        """Add or change facts of the run's description."""
        self._write_manifest({**self.manifest, **facts})

    def _part(self, shard: int, table: str) -> Path:
        middle = "" if table == "scores" else f".{table}"
        return self.path / "parts" / f"{shard:05d}{middle}.parquet"

    def has_shard(self, shard: int) -> bool:
        """Whether the shard was finished earlier."""
        return self._part(shard, "scores").exists()

    def write_shard(self, shard: int, tables: ShardTables) -> None:
        """Store what the shard produced; it counts as finished only when all of it is on disk."""
        if tables.maps:
            self.write_maps(f"{shard:05d}", tables.maps)
        for name in SHARD_TABLES:
            write_table(self._part(shard, name), TABLES[name], getattr(tables, name))

    def write_maps(self, name: str, maps: Mapping[str, Map]) -> None:
        """Store maps for looking at, never for scores: at half precision, the largest value of each scaled to 1."""
        with replaced(self.path / "maps" / f"{name}.safetensors") as temporary:
            # save_file would leave the file readable by its owner only
            temporary.write_bytes(save({key: _half(value) for key, value in maps.items()}))

    def join_shards(self, shards: int) -> None:
        """Make the run's tables from its parts, which follow each other in the order of the cases."""
        for name in SHARD_TABLES:
            join_tables([self._part(i, name) for i in range(shards)], self.path / f"{name}.parquet", TABLES[name])

    def write_estimates(self, estimates: list[Estimate]) -> None:
        """Store the run's estimates."""
        write_table(self.path / "estimates.parquet", Estimate, estimates)

    def read_table(self, name: str) -> pd.DataFrame:
        """One of the run's joined tables."""
        return _read_table(self.path / f"{name}.parquet", TABLES[name])

    def write_picture(self, name: str, grey: np.ndarray) -> None:
        """Store an 8-bit grey picture in the gallery."""
        with replaced(self.path / "gallery" / name) as temporary:
            Image.fromarray(grey).save(temporary, format="PNG", optimize=True)

    def write_gallery(self, index: Mapping[str, Any]) -> None:
        """Store the index of the gallery whose pictures lie beside it."""
        with replaced(self.path / "gallery" / "index.json") as temporary:
            temporary.write_text(json.dumps(index, sort_keys=True) + "\n")


def read_manifest(path: Path) -> Mapping[str, Any]:
    """The description of the run in this folder."""
    file = path / "run.json"
    if not file.is_file():
        near = (
            suggest(path.name, (p.parent.name for p in path.parent.glob("*/run.json"))) if path.parent.is_dir() else ""
        )
        raise RunFolderError(f"{path} is not a run folder (it has no run.json); {near}".rstrip("; "))
    try:
        manifest = json.loads(file.read_text())
    except ValueError as error:
        raise RunFolderError(f"{file} is damaged ({error}); remove the folder and run again") from error
    if not isinstance(manifest, dict):
        raise RunFolderError(f"{file} is damaged (it is no description); remove the folder and run again")
    if manifest.get("schema") != SCHEMA_VERSION:
        raise RunFolderError(
            f"{file} has schema {manifest.get('schema')}, this heatcheck reads {SCHEMA_VERSION}; run the study again"
        )
    return manifest


def read_run(path: Path | str) -> Run:
    """The run in this folder, with every table it has so far."""
    path = Path(path)
    manifest = read_manifest(path)
    tables = {name: _read_table(path / f"{name}.parquet", record) for name, record in TABLES.items()}
    index = path / "gallery" / "index.json"
    gallery = json.loads(index.read_text()) if index.exists() else {}
    return Run(path, manifest, gallery=gallery, **tables)


def _read_table(path: Path, record: type) -> pd.DataFrame:
    if path.exists():
        return pd.read_parquet(path)
    return pd.DataFrame({name: [] for name in record.__dataclass_fields__})  # type: ignore[attr-defined]


def _half(values: Map) -> Map:
    """The map at half precision, scaled first: raw gradients would fall below what it can hold."""
    largest = float(np.abs(values).max(initial=0))
    return np.ascontiguousarray(values / largest if largest > 0 else values, np.float16)


def _plain(value: Mapping[str, Any]) -> dict[str, Any]:
    return dict(json.loads(json.dumps(value, default=str)))


def _require_usable(path: Path) -> None:
    if path.exists() and not path.is_dir():
        raise RunFolderError(f"{path} is a file; give --out a folder")
    names = {p.name for p in path.iterdir()} if path.is_dir() else set()
    foreign = [name for name in names if name != ".lock" and not name.startswith("run.json")]
    if foreign and "run.json" not in names:
        raise RunFolderError(f"{path} is not empty and holds no run; choose another --out")
    parent = next(p for p in (path, *path.absolute().parents) if p.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise RunFolderError(f"{path} cannot be written; choose another --out")


@contextmanager
def _lock(path: Path) -> Iterator[None]:
    with (path / ".lock").open("w") as handle:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            raise RunFolderError(f"another process is writing {path}; wait for it, or choose another --out") from error
        yield
