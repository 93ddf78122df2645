"""`heatcheck init`: a spec to start from."""

from importlib import resources
from pathlib import Path
from typing import Annotated

import typer

from heatcheck.cli.layout import width, wrapped
from heatcheck.cli.options import MODEL_HELP, Contract, Debug, Quiet, TrustCode
from heatcheck.cli.stopping import stoppable
from heatcheck.core.errors import InputError
from heatcheck.core.registry import suggest

_STARTER = resources.files("heatcheck") / "studies" / "localization" / "specs" / "starter.yaml.txt"


def init(
    path: Annotated[Path, typer.Argument(metavar="FILE", help="The file to write.")] = Path("my-study.yaml"),
    shipped: Annotated[
        str, typer.Option("--from", help="Copy this shipped spec instead of the template (heatcheck list specs).")
    ] = "",
    images: Annotated[Path | None, typer.Option(help="Your folder of images, to fill in paths and findings.")] = None,
    masks: Annotated[
        Path | None, typer.Option(help="Their masks, or a file of outlines or boxes. Default: masks beside the images.")
    ] = None,
    labels: Annotated[Path | None, typer.Option(help="CSV of labels. Default: labels.csv beside the images.")] = None,
    model: Annotated[str, typer.Option(help=f"{MODEL_HELP} To fill in outputs and the methods that run on it.")] = "",
    weights: Annotated[
        Path | None, typer.Option(help="File with the model's weights: .safetensors, .pt or .pth.")
    ] = None,
    contract: Contract = None,
    trust_code: TrustCode = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Write a commented spec for your own images, masks and model, filled in as far as these are named."""
    if path.exists():
        raise InputError(f"{path} exists already; give another file name")
    named = {"--images": images, "--masks": masks, "--labels": labels, "--model": model, "--weights": weights}
    given = [name for name, value in {**named, "--contract": contract}.items() if value]
    if shipped and given:
        raise InputError(f"--from copies a shipped spec, which {given[0]} would change; leave one of them out")
    for needed, others in (("--images", {"--masks", "--labels"}), ("--model", {"--weights", "--contract"})):
        without = sorted(others & set(given))
        if without and needed not in given:
            raise InputError(f"{without[0]} needs {needed}; add it")
    if not given:
        _write(path, _shipped(shipped) if shipped else _STARTER.read_text(encoding="utf-8"))
        _say_next(path, shipped)
        return
    from heatcheck.explaining.named_model import NamedModel
    from heatcheck.running.progress import watching
    from heatcheck.studies.localization.first_spec import DataFiles, first_spec

    asked = NamedModel(model, weights, contract, "cpu", trust_code) if model else None
    with stoppable(), watching(quiet=quiet) as watcher:
        filled = first_spec(path, DataFiles(images, masks, labels), asked, watcher)
    _write(path, filled.text)
    for remark in () if quiet else filled.remarks:
        typer.echo("\n".join(wrapped(remark, width(), first="- ", other="  ")))
    typer.echo(f"Wrote {path}. Look it over, then: heatcheck run {path} --out my-run{' --trust-code' * trust_code}")


def _write(path: Path, text: str) -> None:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as error:
        raise InputError(f"{path} cannot be written ({error.strerror}); give a file in an existing folder") from error


def _say_next(path: Path, shipped: str) -> None:
    if shipped:
        verb = "train" if "\nstudy: training\n" in f"\n{path.read_text(encoding='utf-8')}" else "run"
        typer.echo(f"Wrote {path}. Edit it, then: heatcheck {verb} {path} --out my-{verb}")
    else:
        typer.echo(f"Wrote {path}. Fill in the paths, then: heatcheck run {path} --out my-run --trust-code")


def _shipped(name: str) -> str:
    from heatcheck.runs.spec import shipped_specs

    specs = shipped_specs()
    if name not in specs:
        raise InputError(f"there is no shipped spec {name!r}; {suggest(name, specs)}")
    return specs[name].read_text(encoding="utf-8")
