"""The flags that several verbs share."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from heatcheck.core.errors import InputError

Out = Annotated[
    Path,
    typer.Option(
        "--out", "-o", metavar="FOLDER", help="Folder for the results; the same command continues an unfinished run."
    ),
]
Device = Annotated[str, typer.Option(metavar="DEVICE", help="Where to compute: cpu, cuda, cuda:1, mps …")]


def _at_least_one(number: int | None) -> int | None:
    if number is not None and number < 1:
        raise InputError(f"--limit must be a number of patients from 1 on, got {number}; leave it out for all")
    return number


Limit = Annotated[
    int | None,
    typer.Option(
        callback=_at_least_one, metavar="N", help="Use the cases of N patients only, spread over the findings."
    ),
]
Workers = Annotated[int, typer.Option(min=1, metavar="N", help="Number of cases to read in parallel.")]
Seed = Annotated[int | None, typer.Option(metavar="NUMBER", help="Random seed, instead of the one in the spec.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="Print neither progress nor summary.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the full traceback of an error.")]
TrustCode = Annotated[
    bool,
    typer.Option("--trust-code", help="Allow models that are your own Python code: python:package.module:factory."),
]
RetryFailed = Annotated[
    bool,
    typer.Option("--retry-failed", help="Run the failed cases of a finished run again, after you repaired them."),
]
Pseudonymise = Annotated[bool, typer.Option("--pseudonymise", help="Replace case and patient ids with salted hashes.")]
MODEL_HELP = (
    "A model of `heatcheck list models`, your own as python:package.module:factory, or a study's spec that names one."
)
Contract = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE",
        help="YAML file with the model's outputs, size, channels, mean, std and activation, or a study's spec.",
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print the result as JSON.")]
Maps = Annotated[
    list[str],
    typer.Option(
        metavar="FOLDER",
        help="Folder of maps named <image>_<finding>_map.pkl (or .npz, .npy), or of what `heatcheck explain` wrote. "
        "NAME=FOLDER also names their method; "
        "repeat the option for several methods.",
    ),
]
Truth = Annotated[
    Path,
    typer.Option(
        metavar="FILE",
        help="The experts' marks: outlines or masks as JSON, boxes as CSV or COCO, or a folder of PNG masks.",
    ),
]
Labels = Annotated[
    Path | None,
    typer.Option(
        metavar="FILE", help="CSV of labels: an image column (or CheXpert's Path) and one column per finding."
    ),
]
Preset = Annotated[
    Literal["recommended", "chexlocalize"],
    typer.Option(
        metavar="PRESET",
        help="recommended: without the flaws of the benchmark; chexlocalize: exactly as the benchmark.",
    ),
]
AllowMissing = Annotated[
    bool, typer.Option("--allow-missing", help="Count findings without a map and continue, instead of stopping.")
]
