"""The `heatcheck` command."""

import os
import sys
import traceback
import warnings
from typing import Annotated

import typer

from heatcheck import __version__
from heatcheck.cli import compare, demo, explain, init, list_parts, preflight, rate, report, run, score, train, tune
from heatcheck.cli.help_pages import Overview, Page
from heatcheck.core.errors import HeatcheckError, HeatcheckWarning
from heatcheck.core.waiting import wait_briefly

_PYTHON_FORMAT = warnings.formatwarning
_VERBS = (  # in the order of the help page, each with examples
    ("demo", demo.demo, "heatcheck demo --out my-demo"),
    (
        "explain",
        explain.explain,
        (
            "heatcheck explain film.png --out explained\n"
            "heatcheck explain my_films --out explained\n\nWith your own model:\n"
            "heatcheck explain scan.dcm --model python:my_model:make_model \\\n"
            "    --contract my_model.yaml --trust-code"
        ),
    ),
    (
        "preflight",
        preflight.preflight,
        (
            "heatcheck preflight phantom_chest_densenet\n\nWith your own model:\n"
            "heatcheck preflight python:my_model:make_model --trust-code \\\n"
            "    --size 224 --channels 3"
        ),
    ),
    (
        "run",
        run.run,
        (
            "heatcheck run localization-demo --out my-run\n\nWith your own images and model:\n"
            "heatcheck init my-study.yaml\nheatcheck run my-study.yaml --out my-run --trust-code"
        ),
    ),
    (
        "score",
        score.score,
        "heatcheck score --maps maps --truth gt_annotations.json \\\n    --human hb_annotations.json --out scores",
    ),
    ("tune", tune.tune, "heatcheck tune --maps val_maps --truth gt_annotations_val.json --out tuning"),
    ("report", report.report, "heatcheck report my-run"),
    (
        "rate",
        rate.rate,
        "heatcheck rate my-run --sheet ratings.csv\n\nThen fill in the sheet, and:\nheatcheck rate my-run ratings.csv",
    ),
    ("compare", compare.compare, "heatcheck compare my-run other-run"),
    (
        "init",
        init.init,
        (
            "heatcheck init my-study.yaml\nheatcheck init my-study.yaml --images films --model densenet121 \\\n"
            "    --weights model.safetensors\nheatcheck init my-alignment.yaml --from alignment-demo"
        ),
    ),
    ("list", list_parts.list_parts, "heatcheck list methods\nheatcheck list specs --json"),
    ("train", train.train, "heatcheck train phantom-chest --out my-training"),
)
app = typer.Typer(
    cls=Overview,
    help="Test whether the heat maps of a medical-image classifier can be trusted.",
    epilog="heatcheck demo --out my-demo\nheatcheck run --help",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,  # an error of usage is plain text too
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for verb, command, examples in _VERBS:
    app.command(verb, cls=Page, epilog=examples)(command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"heatcheck {__version__}")
        raise typer.Exit


@app.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    pass


def _one_line(
    message: Warning | str, category: type[Warning], filename: str, lineno: int, line: str | None = None
) -> str:
    """A warning of heatcheck as one line; any other warning as Python formats it."""
    if issubclass(category, HeatcheckWarning):
        return f"heatcheck: {message}\n"
    return _PYTHON_FORMAT(message, category, filename, lineno, line)


def main() -> None:
    """Run the command; an error that the user can fix is one line on stderr and exit code 2."""
    debug = "--debug" in sys.argv
    wait_briefly()
    warnings.formatwarning = _one_line
    try:
        app()
    except HeatcheckError as error:
        if debug:
            traceback.print_exc()
        typer.echo(f"heatcheck: {' '.join(str(error).split())}", err=True)
        sys.exit(2)
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(0)
