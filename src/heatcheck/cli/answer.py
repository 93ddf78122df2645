"""What a finished run answers, printed in a few lines."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from heatcheck.cli.layout import width, wrapped

if TYPE_CHECKING:
    from heatcheck.report.build import Brief


def print_answer(brief: "Brief", report: Path) -> None:
    """Print the answer of a run, its failed cases, and where its report is."""
    for line in answer_lines(brief):
        typer.echo(line)
    typer.echo(f"\nReport: {report}")


def answer_lines(brief: "Brief") -> Iterator[str]:
    """The title, the status, the verdict sentence by sentence, the methods that come first, and the failed cases."""
    yield from wrapped(brief.title, width())
    yield from wrapped(brief.status, width())
    for sentences in (brief.answer, brief.best):
        if sentences:
            yield ""
        for sentence in sentences:
            yield from wrapped(sentence, width(), first="- ", other="  ")
    if brief.failed:
        yield "\nFailed cases:"
    for line in brief.failed:
        yield from wrapped(line, width(), first="- ", other="  ")
