"""Make the golden run folders anew: python -m tests.golden.make [name ...].

Each spec in specs/ is run and packed into an archive of its name. What differs from one making to the next (seconds,
dates, versions) is replaced by fixed values, so that making a folder twice gives the same archive.
"""

import argparse
import lzma
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from io import BytesIO
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from heatcheck import RunOptions, run_study
from heatcheck.running.registry import STUDIES
from heatcheck.running.reporting import build_report
from heatcheck.running.study import Plan
from heatcheck.runs.spec import read_spec
from heatcheck.runs.store import RunFolder

HERE = Path(__file__).parent
ROOT = HERE.parent.parent
SPECS = {path.stem: path for path in sorted((HERE / "specs").glob("*.yaml"))}
COMMAND = "python -m tests.golden.make"
LEFT_OUT = {"parts", "networks", "maps", ".lock", "cases.csv", "preview.png"}  # neither report nor estimates read them
FIXED = {"machine": "any", "started": "2026-01-01T00:00:00+00:00", "finished": "2026-01-01T00:01:00+00:00"}


def plan_of(name: str, out: Path) -> Plan:
    """The golden study of that name, checked and ready; nothing is trained."""
    spec = read_spec(str(SPECS[name]))
    return STUDIES[spec.envelope.study].make_plan(spec, RunOptions(), out)


def archive_of(name: str) -> Path:
    """Where the golden run folder of that name is packed."""
    return HERE / f"{name}.tar.xz"


def unpack(name: str, folder: Path) -> Path:
    """The folder, now holding the golden run of that name."""
    with tarfile.open(archive_of(name)) as archive:
        # the archive is our own; Python before 3.11.4 has no filters
        archive.extractall(folder, **({"filter": "data"} if hasattr(tarfile, "data_filter") else {}))  # noqa: S202
    return folder


def make(name: str, out: Path) -> None:
    """Run the spec of that name into the folder `out` and pack what the report and the estimates read."""
    run_study(SPECS[name], out)
    folder = RunFolder(out)
    folder.record(**FIXED, versions=dict.fromkeys(folder.manifest["versions"], "1.0"))
    for timings in _files(out):
        if timings.name == "timings.parquet":
            _write_fixed_seconds(timings)
    folder.write_estimates(plan_of(name, out).estimates(folder))  # some tell how long a map takes
    build_report(out)
    _require_no_places(out)
    archive_of(name).write_bytes(lzma.compress(_packed(out), preset=9))


def _files(out: Path) -> Iterator[Path]:
    for path in sorted(out.rglob("*")):
        if path.is_file() and not LEFT_OUT & set(path.relative_to(out).parts):
            yield path


def _write_fixed_seconds(path: Path) -> None:
    """Let each map of a method take its own fixed time: a hundredth of a second for each letter of its name."""
    table = pq.read_table(path)
    seconds = [0.01 * (1 + len(row["method"])) * max(1, row["maps"]) for row in table.to_pylist()]
    place = table.schema.get_field_index("seconds")
    pq.write_table(table.set_column(place, "seconds", pa.array(seconds, pa.float64())), path, compression="zstd")


def _require_no_places(out: Path) -> None:
    """Refuse to pack where this machine keeps its files."""
    places = [str(place) for place in (ROOT, out, Path.home(), Path(sys.prefix)) if place != Path("/")]
    for path in _files(out):
        text = pq.read_table(path).to_pandas().to_csv() if path.suffix == ".parquet" else path.read_text("latin-1")
        found = next((place for place in places if place in text), "")
        if found:
            raise SystemExit(f"{path.relative_to(out)} names the place {found}; golden folders must not")


def _packed(out: Path) -> bytes:
    """The files as a tar archive that depends on their names and contents alone."""
    packed = BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        for path in _files(out):
            facts = tarfile.TarInfo(path.relative_to(out).as_posix())
            facts.size = path.stat().st_size
            with path.open("rb") as file:
                archive.addfile(facts, file)
    return packed.getvalue()


def main() -> None:
    """Make the golden folders that the command line names, or all."""
    parser = argparse.ArgumentParser(description="Make the golden run folders anew.")
    parser.add_argument("names", nargs="*", metavar="name", help=f"some of {', '.join(SPECS)}; all where none is named")
    names = parser.parse_args().names or list(SPECS)
    unknown = [name for name in names if name not in SPECS]
    if unknown:
        parser.error(f"no golden run is called {unknown[0]!r}; choose among {', '.join(SPECS)}")
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            make(name, Path(folder) / "run")
        sys.stdout.write(f"{archive_of(name).relative_to(ROOT)}: {archive_of(name).stat().st_size / 1000:.0f} kB\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
