"""Identities where sigstore is not installed; what it verifies is tested in `tests/sigstore`, where it is."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

import pytest

import trunnion
from trunnion import SigstoreIdentity
from trunnion.cli import main
from trunnion.errors import ArgumentTypeError

if TYPE_CHECKING:
    from pathlib import Path


def test_without_the_library_the_extra_is_named(tmp_path: Path) -> None:
    source = """
import sys
sys.modules["sigstore"] = None
import trunnion
from trunnion.errors import BackendUnavailableError
trunnion.write_bundle("kernels.trn", {})
try:
    trunnion.verify_identity("kernels.trn", trunnion.SigstoreIdentity("me@example.org", "https://x", "root.json"))
except BackendUnavailableError as error:
    assert "trunnion[sigstore]" in str(error), error
else:
    raise AssertionError
"""
    words = [sys.executable, "-W", "error", "-c", source]
    done = subprocess.run(words, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


def test_what_is_no_identity_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentTypeError, match="a SigstoreIdentity"):
        trunnion.verify_identity(tmp_path, "me@example.org")  # type: ignore[arg-type]  # that is the mistake


def test_the_command_wants_all_of_an_identity_or_a_key(tmp_path: Path) -> None:
    place = str(tmp_path)
    assert main(["verify", place]) == 2
    assert main(["verify", place, "--identity", "me@example.org"]) == 2
    assert main(["verify", place, "--identity", "me@example.org", "--issuer", "https://x"]) == 2
    assert main(["verify", place, "--issuer", "https://x", "--trust-root", place]) == 2
    whole = ["--identity", "me@example.org", "--issuer", "https://x", "--trust-root", place]
    assert main(["verify", place, *whole, "--key", place]) == 2


def test_an_identity_says_who_it_is() -> None:
    assert "me@example.org" in repr(SigstoreIdentity("me@example.org", "https://x", "root.json"))
