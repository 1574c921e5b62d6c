"""What a process has once for all of its code, and a backend leaves as it is."""

from __future__ import annotations

import gc
import os
import signal
import sys
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.testing.harness import Harness

__all__ = ["leaving_process"]


@contextmanager
def leaving_process(harness: Harness) -> Iterator[None]:
    """Require that what a process has once is after the block as before.

    Parameters
    ----------
    harness
        The backend.

    Raises
    ------
    LawViolation
        If the block changed some of it.
    """
    before = _state()
    yield
    after = _state()
    changed = [what for what, value in before.items() if after[what] != value]
    harness.require(not changed, f"changed for the whole process: {', '.join(changed)}")


def _state() -> dict[str, object]:
    import torch  # noqa: PLC0415 - only a run of the suite needs it

    return {
        "the garbage collector": (gc.isenabled(), gc.get_threshold()),
        "the recursion limit": sys.getrecursionlimit(),
        "the switch interval": sys.getswitchinterval(),
        "the environment": dict(os.environ),
        "the working folder": Path.cwd(),
        "the handler of SIGINT": signal.getsignal(signal.SIGINT),
        "the handler of SIGTERM": signal.getsignal(signal.SIGTERM),
        "torch's gradients": torch.is_grad_enabled(),
        "torch's threads": torch.get_num_threads(),
        "torch's default type": torch.get_default_dtype(),
        "torch's generator": torch.initial_seed(),
    }
