"""``trunnion sign``: say with a key that this is what you made."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Annotated

import typer

from trunnion.cli.presentation import Report, print_line
from trunnion.signed_files import sign as sign_files
from trunnion.signing.keys import PASSWORD, SigningKey

__all__ = ["sign"]


def sign(
    files: Annotated[
        list[str], typer.Argument(help="Bundles' indices, artifacts' folders, lock files, provenances.")
    ],
    *,
    key: Annotated[
        Path,
        typer.Option(help=f"The ed25519 private key, in PEM; ${PASSWORD} is its password, if it has one."),
    ],
) -> Report:
    """Sign what lies at each path, after every byte of it is verified: the signature is a file beside it, in .sig."""
    password = os.environ.get(PASSWORD)
    opened = SigningKey.open(key, password=None if password is None else os.fsencode(password))
    rows = []
    for file in files:
        signed = sign_files(file, opened)
        rows.append({"path": file, "kind": signed.kind, "digest": signed.digest})

    def show() -> None:
        for row in rows:
            print_line(f"{row['path']}: the {row['kind']} {row['digest']}", "green")
        print_line(f"signed by the key {opened.public.id}", "green")

    return Report({"key": opened.public.id, "signed": rows}, show)
