"""The wheel, installed into a fresh environment, runs its demo."""

import subprocess
import sys
import sysconfig
import venv
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent


@pytest.mark.slow
def test_the_built_wheel_runs_its_demo_in_a_fresh_environment(tmp_path):
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet"]
    build = [*pip, "wheel", "--no-deps", "--no-build-isolation", "--wheel-dir", tmp_path / "dist", ROOT]
    subprocess.run(build, check=True, capture_output=True)
    (wheel,) = (tmp_path / "dist").glob("heatcheck-*.whl")
    package = ROOT / "src"
    data = [file for kind in ("csv", "safetensors", "yaml", "html") for file in package.rglob(f"*.{kind}")]
    assert {file.relative_to(package).as_posix() for file in data} <= set(zipfile.ZipFile(wheel).namelist())
    assert {file.suffix for file in data} == {".csv", ".safetensors", ".yaml", ".html"}
    fresh = tmp_path / "fresh"
    venv.create(fresh, with_pip=False)
    subprocess.run([*pip, "--python", fresh / "bin" / "python", "install", "--no-deps", wheel], check=True)
    # the dependencies are those of this environment, without its copy of heatcheck
    site = next((fresh / "lib").glob("python*/site-packages"))
    (site / "dependencies.pth").write_text(sysconfig.get_path("purelib") + "\n")
    where = [fresh / "bin" / "python", "-c", "import heatcheck; print(heatcheck.__file__)"]
    found = subprocess.run(where, check=True, capture_output=True, text=True, cwd=tmp_path).stdout
    assert str(fresh) in found
    command = [fresh / "bin" / "heatcheck", "demo", "--out", tmp_path / "run", "--limit", "6", "-q"]
    command += ["--only", "localization", "--only", "triggers"]  # a limit does not shorten the third one's fits
    done = subprocess.run(command, check=False, capture_output=True, text=True, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "run" / "report.html").exists()
    for study in ("localization", "triggers"):
        assert (tmp_path / "run" / study / "report.html").stat().st_size > 100_000
