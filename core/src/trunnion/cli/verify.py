"""``trunnion verify``: whether somebody who is trusted signed what lies there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from trunnion.cli.presentation import Report, print_line
from trunnion.signed_files import verify as verify_files

__all__ = ["verify"]


def verify(
    files: Annotated[
        list[str], typer.Argument(help="Bundles' indices, artifacts' folders, lock files, provenances.")
    ],
    *,
    key: Annotated[
        list[Path],
        typer.Option(help="A public key that is trusted, in PEM or OpenSSH's form; may be repeated."),
    ],
) -> Report:
    """Verify every byte of what lies at each path, and that one of the keys signed it. Nothing of it is run."""
    rows = []
    for file in files:
        found = verify_files(file, key)
        rows.append({"path": file, "kind": found.kind, "digest": found.digest, "key": found.key.id})

    def show() -> None:
        for row in rows:
            print_line(f"{row['path']}: the {row['kind']} {row['digest']}, signed by {row['key']}", "green")

    return Report({"verified": rows}, show)
