"""The run folder: created once, filled shard by shard, read by the report.

run.json · parts/ · scores, estimates, predictions, cases, timings, shapes, regions (.parquet) · gallery/ · maps/ ·
preview.png · report.html
"""

import json
import os
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, Unpack

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
from PIL import Image
from safetensors import safe_open
from safetensors.numpy import load_file, save

from heatcheck.core.atomic_files import replaced
from heatcheck.core.errors import RunFolderError
from heatcheck.core.paths import without_paths
from heatcheck.core.records import ALL_FINDINGS, Estimate, Map, ShardTables
from heatcheck.core.registry import suggest
from heatcheck.core.vocabulary import Condition
from heatcheck.runs.differences import another_run
from heatcheck.runs.lock import locked
from heatcheck.runs.manifest import AnyManifest, Manifest, parse_manifest
from heatcheck.runs.summary import facts_in_words, html_of, method_table, text_of
from heatcheck.runs.tables import TABLES, join_tables, one_record_per_case, records_in, schema_of, write_table

SCHEMA_VERSION = 5
HIDDEN = "(hidden)"  # instead of an absolute path, which may say whose data these are
SHARD_TABLES = (
    "predictions",
    "cases",
    "timings",
    "shapes",
    "regions",
    "scores",
)  # scores last: its presence says that the shard is whole


def _as_it_is(table: pd.DataFrame) -> pd.DataFrame:
    return table


@dataclass(frozen=True)  # without slots: a table is kept once it was read
class Run:
    """A finished or unfinished run as the report reads it; a table is read when it is first needed.

    Until its shards are joined, a table holds the rows of the shards that are finished.
    """

    path: Path
    manifest: Mapping[str, Any]
    gallery: Mapping[str, Any]
    shown: Callable[[pd.DataFrame], pd.DataFrame] = _as_it_is  # what each table goes through when it is read

    def manifest_as(self, kind: type[AnyManifest]) -> AnyManifest:
        """The manifest as a study declares it; checked once."""
        parsed: dict[type[Manifest], Any] = self.__dict__.setdefault("_parsed", {})
        if kind not in parsed:
            parsed[kind] = parse_manifest(self.manifest, kind, str(self.path / "run.json"))
        return parsed[kind]

    @cached_property
    def scores(self) -> pd.DataFrame:
        """Every score: millions of rows in a large run, so prefer `row_groups`."""
        return self._table("scores")

    @cached_property
    def estimates(self) -> pd.DataFrame:
        """Every number of the report."""
        return self._table("estimates")

    @cached_property
    def predictions(self) -> pd.DataFrame:
        """The model's answers, case by case: prefer `row_groups` here too."""
        return self._table("predictions")

    @cached_property
    def cases(self) -> pd.DataFrame:
        """The status of every case."""
        return self._table("cases")

    @cached_property
    def timings(self) -> pd.DataFrame:
        """How long every batch took."""
        return self._table("timings")

    @cached_property
    def shapes(self) -> pd.DataFrame:
        """The geometry of every annotated finding."""
        return self._table("shapes")

    def table(
        self, metric: str, finding: str = ALL_FINDINGS, *, model: str = "", **facts: Unpack[Condition]
    ) -> pd.DataFrame:
        """The mean score of each method, floor and reader by one metric, with its interval: one row each.

        Args:
            metric: such as "hit" or "iou".
            finding: one finding instead of the mean over all.
            model: another model than the first one.
            facts: the condition, such as preset="chexlocalize" or fold="all"; without any, the usual one.
        """
        return method_table(self.estimates, self.manifest_as(Manifest), (metric, finding, model), facts)

    def __repr__(self) -> str:
        return text_of(self._facts())

    def _repr_html_(self) -> str:
        return html_of(self._facts())

    def _facts(self) -> dict[str, str]:
        return facts_in_words(self.path, self.manifest_as(Manifest))

    def _table(self, name: str) -> pd.DataFrame:
        return self.shown(_read_table(self.path, name))

    def row_groups(self, name: str, columns: Sequence[str]) -> Iterator[Any]:
        """Some columns of a table that need not fit into memory: arrow tables, one per row group, as they are on disk.

        Words come dictionary-encoded: they are few and often repeated.
        """
        words = [field.name for field in schema_of(TABLES[name]) if field.type == pa.string()]
        for file in _files(self.path, name):
            with pq.ParquetFile(file, read_dictionary=words) as opened:
                for number in range(opened.num_row_groups):
                    yield opened.read_row_group(number, columns=list(columns))


class RunFolder:
    """The writing side of a run; hold it inside `RunFolder.locked`."""

    def __init__(self, path: Path) -> None:
        self.path = path

    @classmethod
    @contextmanager
    def locked(
        cls,
        path: Path,
        identity: Mapping[str, Any],
        facts: Mapping[str, Any],
        changed_since: Callable[[str], str] = lambda _: "",
    ) -> Iterator["RunFolder"]:
        """The folder, created if it is new, locked against other writers.

        `identity` (spec, weights, cases) must be equal when a run is resumed; `facts` (versions, batch size, threads)
        are recorded once and reused. Where the identity says `pseudonymised`, run.json holds no absolute path; its
        hashes still distinguish other data. `changed_since` names a file that is newer.
        """
        require_usable(path)
        try:
            path.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise RunFolderError(f"{path} cannot be written ({error.strerror}); choose another --out") from error
        with locked(path):
            folder = cls(path)
            folder._begin(identity, facts, changed_since)
            yield folder

    def _begin(
        self, identity: Mapping[str, Any], facts: Mapping[str, Any], changed_since: Callable[[str], str]
    ) -> None:
        for left_over in self.path.rglob("*.tmp-*"):  # a killed run leaves its unfinished file behind
            left_over.unlink()
        if not self.manifest_path.exists():
            # before anything else: a folder that holds files and no description is taken for somebody else's
            self._write_manifest({"schema": SCHEMA_VERSION, "status": "running", **identity, **facts})
        else:
            self.require_same(identity, changed_since=changed_since)
        for name in ("parts", "gallery", "maps"):
            (self.path / name).mkdir(exist_ok=True)

    def require_same(
        self,
        identity: Mapping[str, Any],
        but: Collection[str] = (),
        changed_since: Callable[[str], str] = lambda _: "",
    ) -> None:
        """Refuse a folder that holds other work; `but` names what may differ."""
        manifest = read_manifest(self.path)
        different = [key for key, value in _written(identity).items() if key not in but and manifest.get(key) != value]
        if different:
            newer = changed_since(str(manifest.get("started", ""))) if "data_hash" in different else ""
            raise RunFolderError(another_run(self.path, manifest, _written(identity), different, newer))

    @property
    def manifest_path(self) -> Path:
        """The path of run.json."""
        return self.path / "run.json"

    @property
    def manifest(self) -> Mapping[str, Any]:
        """run.json as it was recorded."""
        return read_manifest(self.path)

    def _write_manifest(self, manifest: Mapping[str, Any]) -> None:
        with replaced(self.manifest_path) as temporary:
            temporary.write_text(json.dumps(_written(manifest), indent=1, sort_keys=True) + "\n")

    def record(self, **facts: Any) -> None:  # noqa: ANN401 - any JSON value
        """Add or change facts in run.json."""
        self._write_manifest({**self.manifest, **facts})

    def _part(self, shard: int, table: str) -> Path:
        return _part(self.path, shard, table)

    def has_shard(self, shard: int) -> bool:
        """Whether the shard was finished earlier."""
        return self._part(shard, "scores").exists()

    def write_shard(self, shard: int, tables: ShardTables) -> None:
        """Store what the shard produced; it counts as finished only when all of it is on disk."""
        if tables.maps:
            self.write_maps(f"{shard:05d}", tables.maps)
        for name in SHARD_TABLES:
            write_table(self._part(shard, name), TABLES[name], getattr(tables, name))

    def read_shard(self, shard: int, without: Collection[str]) -> ShardTables:
        """What a finished shard produced, without the rows of some cases."""
        tables = {name: records_in(self._part(shard, name), TABLES[name], without) for name in SHARD_TABLES}
        file = self.path / "maps" / f"{shard:05d}.safetensors"
        return ShardTables(**tables, maps=load_file(file) if file.exists() else {})

    def write_maps(self, name: str, maps: Mapping[str, Map]) -> None:
        """Store maps for display, as `maps.keep` returns them; scores never come from these files."""
        with replaced(self.path / "maps" / f"{name}.safetensors") as temporary:
            # save_file would leave the file readable by its owner only
            contiguous = {
                key: np.ascontiguousarray(value) for key, value in maps.items()
            }  # safetensors ignores strides
            temporary.write_bytes(save(contiguous))

    def read_maps(self, names: Collection[str]) -> dict[str, Map]:
        """The named maps that are stored here, from any shard."""
        maps_by_name: dict[str, Map] = {}
        for file in sorted((self.path / "maps").glob("*.safetensors")):
            with safe_open(file, framework="numpy") as stored:
                maps_by_name |= {name: stored.get_tensor(name) for name in stored.keys() if name in names}  # noqa: SIM118 - no dict
        return maps_by_name

    def within(self, name: str) -> "RunFolder":
        """The folder of one stage of the run, which has its own tables; this folder where the name is empty."""
        if not name:
            return self
        (self.path / name / "parts").mkdir(parents=True, exist_ok=True)
        return RunFolder(self.path / name)

    def join_shards(self, shards: int) -> None:
        """Join the parts into the run's tables: model by model, in the order of the cases."""
        for name in SHARD_TABLES:
            parts = [self._part(i, name) for i in range(shards)]
            join_tables(parts, self.path / f"{name}.parquet", TABLES[name])
        one_record_per_case(self.path / "cases.parquet")

    def write_estimates(self, estimates: list[Estimate]) -> None:
        """Store the run's estimates."""
        write_table(self.path / "estimates.parquet", Estimate, estimates)

    def read_estimates(self) -> list[Estimate]:
        """The estimates that are stored here."""
        return [Estimate(**row) for row in pq.read_table(self.path / "estimates.parquet").to_pylist()]

    def read_table(self, name: str) -> pd.DataFrame:
        """One of the run's tables; empty where it does not exist."""
        return _read_table(self.path, name)

    def write_picture(self, name: str, grey: np.ndarray) -> None:
        """Store an 8-bit grey picture in the gallery."""
        with replaced(self.path / "gallery" / name) as temporary:
            Image.fromarray(grey).save(temporary, format="PNG")

    def write_preview(self, picture: np.ndarray) -> None:
        """Store the picture of what the network is given."""
        with replaced(self.preview_path) as temporary:
            Image.fromarray(picture).save(temporary, format="PNG")

    @property
    def preview_path(self) -> Path:
        """The path of that picture."""
        return self.path / "preview.png"

    def write_gallery(self, index: Mapping[str, Any]) -> None:
        """Store the index of the gallery."""
        with replaced(self.path / "gallery" / "index.json") as temporary:
            temporary.write_text(json.dumps(index, sort_keys=True) + "\n")


def read_manifest(path: Path) -> Mapping[str, Any]:
    """run.json of this folder."""
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
        raise RunFolderError(f"{file} is damaged (it is not a JSON object); remove the folder and run again")
    if manifest.get("schema") != SCHEMA_VERSION:
        raise RunFolderError(
            f"{file} has schema {manifest.get('schema')!r}, this heatcheck reads {SCHEMA_VERSION}; run the study again "
            "with another --out"
        )
    return manifest


def read_run(path: Path | str) -> Run:
    """The run in this folder, finished or not."""
    path = Path(path)
    manifest = read_manifest(path)
    index = path / "gallery" / "index.json"
    gallery = json.loads(index.read_text()) if index.exists() else {}
    return Run(path, manifest, gallery)


def _read_table(path: Path, name: str) -> pd.DataFrame:
    read = [pq.read_table(file) for file in _files(path, name)]
    return pa.concat_tables(read or [schema_of(TABLES[name]).empty_table()]).to_pandas()


def _files(path: Path, name: str) -> list[Path]:
    """The files that hold a table: the joined one, or else the parts of the finished shards in their order."""
    joined = path / f"{name}.parquet"
    if joined.exists():
        return [joined]
    if name not in SHARD_TABLES:
        return []
    finished = (int(file.stem) for file in (path / "parts").glob("*.parquet") if file.stem.isdigit())
    parts = [_part(path, shard, name) for shard in sorted(finished)]
    return [part for part in parts if part.exists()]  # an older run has no such table


def _part(path: Path, shard: int, table: str) -> Path:
    middle = "" if table == "scores" else f".{table}"
    return path / "parts" / f"{shard:05d}{middle}.parquet"


def _written(description: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest as it is written; a pseudonymised run's holds no absolute path."""
    plain = json.loads(json.dumps(description, default=str))
    return dict(without_paths(plain, lambda _: HIDDEN) if plain.get("pseudonymised") else plain)


def require_usable(path: Path) -> None:
    """Refuse a folder that a run may not write, before anything is written."""
    if path.exists() and not path.is_dir():
        raise RunFolderError(f"{path} is a file; give --out a folder")
    names = {p.name for p in path.iterdir()} if path.is_dir() else set()
    foreign = [name for name in names if name != ".lock" and not name.startswith("run.json")]
    if foreign and "run.json" not in names:
        raise RunFolderError(f"{path} is not empty and holds no run; choose another --out")
    parent = next(p for p in (path, *path.absolute().parents) if p.exists())
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        raise RunFolderError(f"{path} cannot be written; choose another --out")
