"""Each file-system call of store, publication, kept files and a whole compilation is failed, and killed at, in turn."""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest
from fault_injection.rounds import KILL, sweep

if TYPE_CHECKING:
    from pathlib import Path

ERRNOS = {
    "ENOSPC": errno.ENOSPC,
    "EACCES": errno.EACCES,
    "EIO": errno.EIO,
    "EINTR": errno.EINTR,
    "EDQUOT": errno.EDQUOT,
    "EMFILE": errno.EMFILE,
    "EROFS": errno.EROFS,
    "SIGKILL": KILL,
}


@pytest.mark.parametrize("name", ERRNOS)
def test_every_call_fails(tmp_path: Path, name: str) -> None:
    swept = sweep(tmp_path, [ERRNOS[name]])
    assert not swept.wrong(), "\n".join([*swept.wrong(), swept.said])
    assert len(swept.rounds) == sum(swept.calls.values()) > 500
