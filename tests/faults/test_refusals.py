"""The file system fails at some call: the program is right, or the error is typed, and the next call is right.

Calls are failed below Python, in the process that makes them. Here some calls of each scene, which are the same every
time; ``make stress`` fails all of them.
"""

from __future__ import annotations

import errno
from typing import TYPE_CHECKING

import pytest
from fault_injection.rounds import KILL, sweep

if TYPE_CHECKING:
    from pathlib import Path

STEP = 29
ERRNOS = (errno.ENOSPC, errno.EACCES, errno.EIO, errno.EINTR, KILL)


@pytest.mark.parametrize("number", ERRNOS, ids=["ENOSPC", "EACCES", "EIO", "EINTR", "SIGKILL"])
def test_some_calls_fail(tmp_path: Path, number: int) -> None:
    first = 1 + 5 * ERRNOS.index(number)  # other calls for each
    swept = sweep(tmp_path, [number], first=first, step=STEP)
    assert not swept.wrong(), "\n".join([*swept.wrong(), swept.said])
    assert len(swept.calls) == 17
    assert len(swept.rounds) > len(swept.calls), "calls were failed"
