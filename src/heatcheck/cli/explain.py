"""`heatcheck explain`: heat maps of single images."""

import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from heatcheck.cli.layout import MISSING, columns, decimals, width, wrapped
from heatcheck.cli.options import MODEL_HELP, Contract, Debug, Device, Quiet, TrustCode
from heatcheck.cli.stopping import stoppable
from heatcheck.core.errors import InputError

if TYPE_CHECKING:
    from heatcheck.explaining.image_files import ExplainedFiles, MapRow

_FEW_IMAGES = 3  # more are shown in sum
_LEAST_ERROR = 0.001
_ERROR = "error of sum"
_ERROR_NOTE = (
    "error of sum: how far the values of a map, added up, are from the score that they explain; of several maps the "
    "largest"
)
_UNDEFINED_NOTE = f"; {MISSING} for methods whose maps have no such sum"


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
    if left_out := len(explained.left_out):
        named = "" if quiet else ", named above"
        typer.echo(
            f"heatcheck: {left_out} of {left_out + explained.n_images} images could not be used{named}", err=True
        )
        raise typer.Exit(3)


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
    """Print remarks, the maps image by image or in sum, and last what could not be used."""
    _print_wrapped(*explained.remarks)
    by_image: dict[str, list[MapRow]] = {}
    for row in explained.rows:
        by_image.setdefault(row.image, []).append(row)
    if len(by_image) <= _FEW_IMAGES:
        for image, rows in by_image.items():
            typer.echo("\n".join(["", *_of_image(image, rows)]))
    else:
        typer.echo("\n".join(["", *_in_sum(by_image)]))
    notes = (_ERROR_NOTE, _UNDEFINED_NOTE if any(math.isnan(row.error) for row in explained.rows) else "")
    typer.echo("")
    _print_wrapped("".join(notes))
    typer.echo(f"Files: {explained.rows[0].file.parent}")
    if explained.left_out:
        left_out = len(explained.left_out)
        typer.echo(f"\n{left_out} of {left_out + len(by_image)} images left out:")
        for reason in explained.left_out:
            typer.echo("\n".join(wrapped(reason, width(), first="- ", other="  ")))


def _print_wrapped(*texts: str) -> None:
    for text in texts:
        typer.echo("\n".join(wrapped(text, width())))


def _of_image(image: str, rows: Sequence["MapRow"]) -> Iterator[str]:
    """The findings of one image, and one line for each method, with each of its files once."""
    findings = {row.finding: f"{row.finding}, probability {decimals(row.probability, 2)}" for row in rows}
    yield image
    yield from wrapped("; ".join(findings.values()), width(), first="  ", other="    ")
    by_method = _by_method(rows)
    facts = [(name, f"{of[0].seconds:.1f} s", _error(of)) for name, of in by_method.items()]
    heading, *lines = columns([("method", "time", _ERROR), *facts])
    yield f"  {heading}  file"
    for line, of in zip(lines, by_method.values(), strict=True):
        first, *others = dict.fromkeys(row.file.name for row in of)
        yield from _with_file(line.ljust(len(heading)), first)
        yield from (f"    {name}" for name in others)


def _in_sum(by_image: Mapping[str, Sequence["MapRow"]]) -> Iterator[str]:
    """How many images were explained, by which methods, and for which findings."""
    rows = [row for of in by_image.values() for row in of]
    by_method = _by_method(rows)
    yield from wrapped(
        f"{len(by_image)} images explained by {len(by_method)} methods; for each image and method IMAGE.METHOD.png is "
        "the picture and .npz the values.",
        width(),
    )
    images = Counter(finding for of in by_image.values() for finding in {row.finding for row in of})
    shown = ", ".join(f"{finding} on {number}" for finding, number in images.most_common())
    yield from wrapped(f"Findings shown: {shown}.", width(), other="  ")
    facts = [(name, f"{_seconds(of):.1f} s", _error(of)) for name, of in by_method.items()]
    yield from (f"  {line}" for line in columns([("method", "time per image", f"highest {_ERROR}"), *facts]))


def _by_method(rows: Iterable["MapRow"]) -> dict[str, list["MapRow"]]:
    found: dict[str, list[MapRow]] = {}
    for row in rows:
        found.setdefault(row.method, []).append(row)
    return found


def _seconds(rows: Sequence["MapRow"]) -> float:
    """The mean time of an image, whose findings are explained together."""
    times = {row.image: row.seconds for row in rows}
    return sum(times.values()) / len(times)


def _with_file(line: str, name: str) -> Iterator[str]:
    """The line with the name of its file, which stands below a line that would become too long."""
    start = f"  {line}"
    if len(start) + 2 + len(name) <= width():
        yield f"{start}  {name}"
    else:
        yield start.rstrip()
        yield f"    {name}"


def _error(rows: Sequence["MapRow"]) -> str:
    """The largest error of these maps, to two digits; a dash where the method has none."""
    errors = [row.error for row in rows if not math.isnan(row.error)]
    if not errors:
        return MISSING
    largest = max(errors)
    if largest < _LEAST_ERROR:
        return f"< {_LEAST_ERROR}"
    return decimals(largest, 2 if largest >= 0.1 else 3)
