"""`heatcheck explain`: maps of single images."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heatcheck.cli.options import Debug, Device, Quiet, TrustCode

if TYPE_CHECKING:
    from heatcheck.explaining.image_files import ExplainedFiles

_EXAMPLE = (
    "Example: heatcheck explain film.png --out explained. "
    "Your own: heatcheck explain scan.dcm --model python:my_model:make_model --contract my_model.yaml --trust-code"
)


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command("explain", epilog=_EXAMPLE)(explain)


def explain(
    images: Annotated[list[Path], typer.Argument(help="PNG, JPEG, TIFF, BMP, .npy, DICOM or NIfTI files.")],
    model: Annotated[
        str, typer.Option(help="A name (heatcheck list models), or python:package.module:factory.")
    ] = "phantom_chest_densenet",
    weights: Annotated[Path | None, typer.Option(help="The model's weights: .safetensors, .pt or .pth.")] = None,
    contract: Annotated[
        Path | None, typer.Option(help="YAML: outputs, size, channels, mean, std, activation of the model.")
    ] = None,
    methods: Annotated[
        str, typer.Option(help="Names with commas between them (heatcheck list methods).")
    ] = "grad_cam,integrated_gradients,occlusion",
    settings: Annotated[
        list[str] | None, typer.Option("--set", help="A setting, such as grad_cam.layer=features.3; may be repeated.")
    ] = None,
    findings: Annotated[
        str | None,
        typer.Option(
            "--findings",
            "--targets",
            help="Outputs by name or number with commas between them, or `all`. Default: those with a probability of "
            "0.5 or more, else the most probable.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for the files.")] = Path("explained"),
    value_range: Annotated[
        tuple[float, float] | None, typer.Option("--range", help="The stored values that mean 0 and 1.")
    ] = None,
    seed: Annotated[int, typer.Option(help="Of everything random.")] = 0,
    device: Device = "cpu",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace files that are there already.")] = False,
    trust_code: TrustCode = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Make maps of single images: an overlay (.png) and the values (.npz) a method, and .nii.gz maps of NIfTI images.

    Without --model, the classifier of the built-in chest films is used.
    """
    from heatcheck.core.errors import InputError
    from heatcheck.explaining.image_files import Order, explain_files
    from heatcheck.explaining.named_model import NamedModel, load_named
    from heatcheck.running.progress import watching

    if value_range is not None and not value_range[0] < value_range[1]:
        raise InputError("--range needs two numbers, the lower first")
    names = tuple(_split(findings)) if findings is not None else ()
    if findings is not None and not names:
        raise InputError("--findings names nothing; name outputs with commas between them, or leave it out")
    order = Order(
        tuple(images), tuple(_split(methods)), _settings(settings or []), names, out, seed, value_range, overwrite
    )
    try:
        with watching(quiet=quiet) as watcher:
            classifier = load_named(NamedModel(model, weights, contract, device, trust_code))
            explained = explain_files(classifier, order, watcher)
    except KeyboardInterrupt:
        typer.echo(f"\nStopped. Images that were finished lie in {out}; no file is half-written.", err=True)
        raise typer.Exit(130) from None
    if not quiet:
        _show(explained)


def _settings(texts: list[str]) -> dict[str, dict[str, Any]]:
    """The settings by method, each value read as a spec's would be."""
    import yaml

    from heatcheck.core.errors import InputError

    found: dict[str, dict[str, Any]] = {}
    for text in texts:
        place, equals, value = text.partition("=")
        method, dot, key = place.partition(".")
        if not (equals and dot and method and key):
            raise InputError(f"--set {text} should read METHOD.SETTING=VALUE, such as occlusion.window=30")
        try:
            found.setdefault(method.strip(), {})[key.strip()] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise InputError(f"--set {text}: the value cannot be read; write it as in a spec") from error
    return found


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _show(explained: "ExplainedFiles") -> None:
    from rich.console import Console
    from rich.table import Table

    console = Console(highlight=False)
    for remark in explained.remarks:
        console.print(remark, markup=False)
    several = len({row.image for row in explained.rows}) > 1
    table = Table(box=None)
    for heading in [*(["image"] if several else []), "finding", "probability", "method", "seconds", "error"]:
        table.add_column(heading, no_wrap=True)
    table.add_column("file", overflow="fold")
    for row in explained.rows:
        facts = [row.finding, f"{row.probability:.2f}", row.method, f"{row.seconds:.1f}"]
        error = "–" if math.isnan(row.error) else f"{row.error:.3g}"
        table.add_row(*([row.image] if several else []), *facts, error, row.file.name)
    console.print(table)
    console.print(f"Files: {explained.rows[0].file.parent}", markup=False, soft_wrap=True)
