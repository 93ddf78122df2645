"""`heatcheck init`: a spec to start from."""

from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from heatcheck.cli.options import Debug
from heatcheck.core.errors import InputError


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command("init", epilog="Example: heatcheck init my-study.yaml")(init)


def init(
    path: Annotated[Path, typer.Argument(help="The file to write.")] = Path("my-study.yaml"), debug: Debug = False
) -> None:
    """Write a commented spec for your own images, masks and model."""
    if path.exists():
        raise InputError(f"{path} exists already; name another file")
    text = (resources.files("heatcheck") / "specs" / "starter.yaml.txt").read_text(encoding="utf-8")
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}); name a file in a folder that exists") from error
    typer.echo(f"Wrote {path}. Fill in the paths, then: heatcheck run {path} --out my-run --trust-code")
