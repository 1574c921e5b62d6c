"""A stream whose work waits until a test lets it go on."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from typing import TYPE_CHECKING

import torch
from cuda.bindings import driver

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["stalled"]

_AT_MOST = 60.0  # seconds: what waits for the stream hangs no longer


@contextmanager
def stalled(stream: torch.cuda.Stream) -> Iterator[None]:
    """Hold back what is enqueued on a stream until the block ends (``cuStreamWaitValue32``).

    Unlike a kernel that takes long, that is no matter of how busy the host is.
    """
    go = torch.zeros(1, dtype=torch.int32).pin_memory()
    (status,) = driver.cuStreamWaitValue32(
        driver.CUstream(stream.cuda_stream),
        driver.CUdeviceptr(go.data_ptr()),
        1,
        int(driver.CUstreamWaitValue_flags.CU_STREAM_WAIT_VALUE_EQ),
    )
    assert not status, status
    watchdog = threading.Timer(_AT_MOST, lambda: go.fill_(1))
    watchdog.start()
    try:
        yield
    finally:
        watchdog.cancel()
        go.fill_(1)
        stream.synchronize()  # the flag is read until then
