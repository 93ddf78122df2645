"""The flags that several verbs share."""

from pathlib import Path
from typing import Annotated, Literal

import typer

Out = Annotated[
    Path, typer.Option("--out", "-o", help="Folder of the run; the same command continues an unfinished one.")
]
Device = Annotated[str, typer.Option(help="cpu, cuda, cuda:1, mps …")]
Limit = Annotated[int | None, typer.Option(min=1, help="Only the first so many cases.")]
Workers = Annotated[int, typer.Option(min=1, help="How many cases are read ahead.")]
Seed = Annotated[int | None, typer.Option(help="Instead of the spec's seed.")]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No progress, no summary.")]
Debug = Annotated[bool, typer.Option("--debug", help="Show the whole trace of an error.")]
TrustCode = Annotated[
    bool, typer.Option("--trust-code", help="Allow models of the form python:package.module:factory.")
]
Pseudonymise = Annotated[bool, typer.Option("--pseudonymise", help="Replace case and patient ids by salted hashes.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON.")]
Maps = Annotated[
    list[str],
    typer.Option(
        help="Folder of maps, <image>_<finding>_map.pkl (or .npz, .npy); NAME=FOLDER names the method, may be repeated."
    ),
]
Truth = Annotated[
    Path,
    typer.Option(help="What the experts marked: outlines or masks as JSON, boxes as CSV or COCO, or a folder of PNGs."),
]
Labels = Annotated[Path | None, typer.Option(help="CSV with an image column (or CheXpert's Path) and one per finding.")]
Preset = Annotated[
    Literal["recommended", "chexlocalize"],
    typer.Option(help="recommended: without the benchmark's flaws; chexlocalize: exactly as the benchmark."),
]
AllowMissing = Annotated[
    bool, typer.Option("--allow-missing", help="Count findings without a map instead of stopping.")
]
