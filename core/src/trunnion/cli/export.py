"""``trunnion export``: a bundle in the forms in which other tools ship code."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trunnion.bundles.bundle import Bundle
from trunnion.cli.presentation import Report, print_line
from trunnion.exporters.kernels_folder import export_kernels
from trunnion.exporters.wheel import export_wheel

__all__ = ["export_commands"]


def export_commands(epilog: str) -> typer.Typer:
    """Return the commands below ``trunnion export``.

    Parameters
    ----------
    epilog
        What stands below each one's help.
    """
    commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None, add_completion=False)
    commands.callback()(_only_below)
    commands.command("wheel", epilog=epilog)(wheel)
    commands.command("kernels", epilog=epilog)(kernels)
    return commands


def _only_below() -> None:
    """Write a bundle in a form in which another tool ships code."""


def wheel(
    bundle: Annotated[str, typer.Argument(help="The bundle's index, a name in .trn.")],
    *,
    name: Annotated[str, typer.Option(help="The distribution's name, such as my-kernels.")],
    version: Annotated[str, typer.Option(help="Its version, such as 1.0.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder that the wheel goes to.")] = Path(
        "dist"
    ),
) -> Report:
    """Write a wheel: a package with a typed function for each program of a bundle, which needs no compiler."""
    opened = Bundle.open(bundle)
    made = export_wheel(opened, out, name=name, version=version)
    document = {"wheel": str(made), "functions": sorted(opened), "digest": opened.digest}
    return Report(document, lambda: print_line(f"{made}: {', '.join(sorted(opened))}", "green"))


def kernels(
    bundle: Annotated[str, typer.Argument(help="The bundle's index, a name in .trn.")],
    *,
    name: Annotated[str, typer.Option(help="The kernel's name, such as my-kernels.")],
    version: Annotated[int, typer.Option(help="Its version, a number.")],
    license_id: Annotated[
        str, typer.Option("--license", help="The licence's identifier, such as apache-2.0.")
    ],
    out: Annotated[Path, typer.Option("--out", "-o", help="The folder to write; nothing is there.")],
    cuda: Annotated[
        str | None, typer.Option(help="The CUDA version it is for; else that of the compilers.")
    ] = None,
) -> Report:
    """Write a folder that Hugging Face's kernels loads: C++ launchers, called with neither trunnion nor a compiler."""
    opened = Bundle.open(bundle)
    made = export_kernels(opened, out, name=name, version=version, license_id=license_id, cuda=cuda)
    variants = sorted(one.name for one in (made / "build").iterdir())
    document = {
        "folder": str(made),
        "functions": sorted(opened),
        "variants": variants,
        "digest": opened.digest,
    }
    return Report(document, lambda: print_line(f"{made}: {', '.join(variants)}", "green"))
