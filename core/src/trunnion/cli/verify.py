"""``trunnion verify``: whether somebody who is trusted signed what lies there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from trunnion.cli.presentation import Report, print_line
from trunnion.signed_files import Signed, verify_identity
from trunnion.signed_files import verify as verify_files
from trunnion.signing.identity import SigstoreIdentity
from trunnion.signing.keys import PublicKey, expect_keys

__all__ = ["verify"]


def verify(
    files: Annotated[
        list[str], typer.Argument(help="Bundles' indices, artifacts' folders, lock files, provenances.")
    ],
    *,
    key: Annotated[
        list[Path] | None,
        typer.Option(help="A public key that is trusted, in PEM or OpenSSH's form; may be repeated."),
    ] = None,
    identity: Annotated[
        str, typer.Option(help="Who must have signed it with sigstore, instead of a key.")
    ] = "",
    issuer: Annotated[str, typer.Option(help="Who knows that identity: a provider's URL.")] = "",
    trust_root: Annotated[
        Path | None, typer.Option(help="sigstore's trusted_root.json: whom is believed. Nothing is fetched.")
    ] = None,
) -> Report:
    """Verify every byte of what lies at each path, and that somebody who is trusted signed it. Nothing of it is run."""
    check = _check(key or [], identity, issuer, trust_root)
    rows = []
    absent = []
    for file in files:
        found = check(file)
        signer = found.signer
        said = {"key": signer.id} if isinstance(signer, PublicKey) else {"identity": signer.identity}
        parts = [asdict(part) for part in found.absent]
        rows.append({"path": file, "kind": found.kind, "digest": found.digest, **said, "absent": parts})
        absent += [f"{file}: {part}" for part in found.absent]

    def show() -> None:
        for row in rows:
            signer = row.get("key", row.get("identity"))
            print_line(f"{row['path']}: the {row['kind']} {row['digest']}, signed by {signer}", "green")
        for line in absent:
            print_line(line, "yellow")

    return Report({"verified": rows}, show)


def _check(keys: list[Path], identity: str, issuer: str, trust_root: Path | None) -> Callable[[str], Signed]:
    """Return what verifies one path, by keys or by an identity."""
    if not any((identity, issuer, trust_root)):
        if not keys:
            raise typer.BadParameter("got neither --key nor --identity: say who is trusted")
        trusted = expect_keys(keys, "--key")
        return lambda file: verify_files(file, trusted)
    if keys or not identity or not issuer or trust_root is None:
        raise typer.BadParameter("--identity goes with --issuer and --trust-root, and not with --key")
    wanted = SigstoreIdentity(identity, issuer, trust_root)
    return lambda file: verify_identity(file, wanted)
