"""`heatcheck demo`: see what heatcheck does, without data or a model of your own."""

import typer

from heatcheck.cli.options import Debug, Device, Limit, Out, Quiet
from heatcheck.cli.run import carry_out


def add_to(app: typer.Typer) -> None:
    """Register the verb."""
    app.command("demo", epilog="Example: heatcheck demo --out my-demo")(demo)


def demo(out: Out, limit: Limit = None, device: Device = "cpu", quiet: Quiet = False, debug: Debug = False) -> None:
    """Run the localization study on drawn chest films with the built-in classifier; takes about a minute and a half."""
    from heatcheck.studies.registry import RunOptions

    carry_out("localization-demo", out, RunOptions(device=device, limit=limit), quiet=quiet)
