"""`heatcheck demo`: see what heatcheck does, without data or a model of your own."""

from typing import Annotated

import typer

from heatcheck.cli.options import Debug, Device, Limit, Out, Quiet
from heatcheck.cli.run import tell_failures
from heatcheck.cli.stopping import continuable

Only = Annotated[list[str] | None, typer.Option(help="Only this study's demo; may be repeated.")]


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command("demo", epilog="Example: heatcheck demo --out my-demo")(demo)


def demo(
    out: Out,
    only: Only = None,
    limit: Limit = None,
    device: Device = "cpu",
    quiet: Quiet = False,
    debug: Debug = False,
) -> None:
    """Run every study once on drawn chest films and brain slices; takes about three minutes on two cores."""
    from heatcheck.running.demo import run_demo
    from heatcheck.running.progress import watching
    from heatcheck.running.study import RunOptions

    with continuable(), watching(quiet=quiet) as watcher:
        done = run_demo(out, only or [], RunOptions(device=device, limit=limit), watcher)
    if not quiet:
        typer.echo(f"Reports: {done.page}")
    tell_failures(sum(one.n_failed for one in done.outcomes), sum(one.n_cases for one in done.outcomes))
