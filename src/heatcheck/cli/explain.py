"""`heatcheck explain`: heat maps of single images."""

import math
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heatcheck.cli.layout import MISSING, columns, decimals, width, wrapped
from heatcheck.cli.options import MODEL_HELP, Contract, Debug, Device, Quiet, TrustCode
from heatcheck.cli.stopping import stoppable
from heatcheck.core.errors import InputError

if TYPE_CHECKING:
    from heatcheck.explaining.image_files import ExplainedFiles


def explain(
    images: Annotated[
        list[Path],
        typer.Argument(
            metavar="IMAGE", help="Image files, or folders of them: PNG, JPEG, TIFF, BMP, .npy, DICOM, NIfTI."
        ),
    ],
    model: Annotated[str, typer.Option(metavar="MODEL", help=MODEL_HELP)] = "phantom_chest_densenet",
    weights: Annotated[
        Path | None, typer.Option(metavar="FILE", help="File with the model's weights: .safetensors, .pt or .pth.")
    ] = None,
    contract: Contract = None,
    methods: Annotated[
        str,
        typer.Option(
            metavar="METHODS",
            help="Methods, separated by commas (heatcheck list methods), or one of: all, fast, recommended.",
        ),
    ] = "grad_cam,integrated_gradients,occlusion",
    settings: Annotated[
        list[str] | None,
        typer.Option(
            "--set", metavar="TEXT", help="METHOD.SETTING=VALUE, such as grad_cam.layer=features.3; may be repeated."
        ),
    ] = None,
    findings: Annotated[
        str | None,
        typer.Option(
            "--findings",
            "--targets",
            metavar="OUTPUTS",
            help="Outputs of the model to explain, by name or number, separated by commas, or `all`. Default: those "
            "with a probability of at least 0.5, else the most probable one.",
        ),
    ] = None,
    out: Annotated[Path, typer.Option("--out", "-o", metavar="FOLDER", help="Folder for the maps.")] = Path(
        "explained"
    ),
    value_range: Annotated[
        tuple[float, float] | None,
        typer.Option("--range", metavar="LOW HIGH", help="The pixel values to show as black (0) and white (1)."),
    ] = None,
    seed: Annotated[int, typer.Option(metavar="NUMBER", help="Random seed.")] = 0,
    device: Device = "cpu",
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Overwrite existing files.")] = False,
    trust_code: TrustCode = False,
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Make heat maps of single images: for each method an overlay (.png) and values (.npz, for NIfTI also .nii.gz).

    Without --model, the classifier of the built-in chest films is used.
    """
    from heatcheck.explaining.image_files import Order, explain_files
    from heatcheck.explaining.named_model import NamedModel, load_named
    from heatcheck.running.progress import watching

    if value_range is not None and not value_range[0] < value_range[1]:
        raise InputError(f"--range needs two numbers, the lower first, got {value_range[0]:g} {value_range[1]:g}")
    names = tuple(_split(findings)) if findings is not None else ()
    if findings is not None and not names:
        raise InputError("--findings names nothing; give outputs separated by commas, or leave it out")
    order = Order(
        tuple(images), tuple(_split(methods)), _settings(settings or []), names, out, seed, value_range, overwrite
    )
    with stoppable(f"Maps of finished images are in {out}; no file is half-written."), watching(quiet=quiet) as watcher:
        classifier = load_named(NamedModel(model, weights, contract, device, trust_code))
        explained = explain_files(classifier, order, watcher)
    if not quiet:
        _print_table(explained)


def _settings(texts: list[str]) -> dict[str, dict[str, Any]]:
    """The settings by method; values are read as YAML, as in a spec."""
    import yaml

    by_method: dict[str, dict[str, Any]] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        method, dot, setting = name.partition(".")
        if not (equals and dot and method and setting):
            raise InputError(f"--set must be METHOD.SETTING=VALUE, such as occlusion.window=30, got {text!r}")
        try:
            by_method.setdefault(method.strip(), {})[setting.strip()] = yaml.safe_load(value)
        except yaml.YAMLError as error:
            raise InputError(f"the value of --set {text} is not valid YAML; write it as in a spec") from error
    return by_method


def _split(names: str) -> list[str]:
    return [name.strip() for name in names.split(",") if name.strip()]


def _print_table(explained: "ExplainedFiles") -> None:
    """Print remarks, then image by image and finding by finding what each method gave, and where."""
    for line in (line for remark in explained.remarks for line in wrapped(remark, width())):
        typer.echo(line)
    facts = [(row.method, f"{row.seconds:.1f} s", _error(row.error)) for row in explained.rows]
    heading, *lines = columns([("method", "time", "error"), *facts])
    by_place: dict[str, dict[str, list[str]]] = {}
    for row, line in zip(explained.rows, lines, strict=True):
        finding = f"{row.finding}, probability {decimals(row.probability, 2)}"
        shown = _with_file(line.ljust(len(heading)), row.file.name)
        by_place.setdefault(row.image, {}).setdefault(finding, []).append(shown)
    for image, findings in by_place.items():
        typer.echo(f"\n{image}")
        for finding, shown_lines in findings.items():
            typer.echo(f"  {finding}")
            typer.echo("\n".join([f"    {heading}  file", *shown_lines]))
    if any(math.isnan(row.error) for row in explained.rows):
        note = f"error: how far a map's sum is from the score it explains; {MISSING} where that has no meaning"
        typer.echo("\n".join(["", *wrapped(note, width())]))
    typer.echo(f"Files: {explained.rows[0].file.parent}")


def _with_file(line: str, name: str) -> str:
    """The line with the name of its file, which stands below a line that would become too long."""
    start = f"    {line}"
    return f"{start}  {name}" if len(start) + 2 + len(name) <= width() else f"{start.rstrip()}\n      {name}"


def _error(error: float) -> str:
    return MISSING if math.isnan(error) else f"{error:.3g}"
