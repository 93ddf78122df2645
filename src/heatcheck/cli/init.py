"""`heatcheck init`: a spec to start from."""

from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from heatcheck.cli.options import Debug
from heatcheck.core.errors import InputError
from heatcheck.core.registry import suggest

_STARTER = resources.files("heatcheck") / "studies" / "localization" / "specs" / "starter.yaml.txt"


def init(
    path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("my-study.yaml"),
    shipped: Annotated[
        str, typer.Option("--from", help="Copy this shipped spec instead of the template (heatcheck list specs).")
    ] = "",
    debug: Debug = False,
) -> None:
    """Write a commented spec to fill in with your own images, masks and model, or a copy of a shipped spec."""
    if path.exists():
        raise InputError(f"{path} exists already; give another file name")
    text = _shipped(shipped) if shipped else _STARTER.read_text(encoding="utf-8")
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}); give a file in an existing folder") from error
    if shipped:
        verb = "train" if "\nstudy: training\n" in f"\n{text}" else "run"
        typer.echo(f"Wrote {path}. Edit it, then: heatcheck {verb} {path} --out my-{verb}")
    else:
        typer.echo(f"Wrote {path}. Fill in the paths, then: heatcheck run {path} --out my-run --trust-code")


def _shipped(name: str) -> str:
    from heatcheck.runs.spec import shipped_specs

    specs = shipped_specs()
    if name not in specs:
        raise InputError(f"there is no shipped spec {name!r}; {suggest(name, specs)}")
    return specs[name].read_text(encoding="utf-8")
