"""The flags that several verbs share."""

from pathlib import Path
from typing import Annotated

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
