"""Capture an example's call, and say what must be found in it."""

from __future__ import annotations

import contextlib
import struct

import torch
from gpu_reading import trials

from trunnion.cli.exhibits import load_example
from trunnion.testing.gpu import readback

PLAIN = {
    "cluster": (0, 0, 0),
    "cooperative": False,
    "window": None,
    "mem_sync_domain": 0,
    "dynamic_smem_bytes": 0,
}


@contextlib.contextmanager
def capture(build, name, make=None):
    """Capture an example's call; hand out the capture, the arguments and the results; replay it and compare."""
    example = load_example(name)
    with build(example.program) as program:
        args = (make or example.inputs)(torch.Generator().manual_seed(3), "cuda:0")
        program.preload(0)
        if any(launch.window for launch in example.program.launches):
            program(*args)  # sets the cache aside, which no capture can
        taken = readback.captured(lambda: program(*args))
        for launch in taken.launches:
            (kernel,) = [one for one in program.artifact.manifest.kernels if one.symbol == launch.symbol]
            assert launch.offsets == tuple(parameter.offset for parameter in kernel.parameters)
        yield taken, args, taken.result
        trials.assert_right(example, taken.replay(), args)


def pointer(tensor):
    return struct.pack("<Q", tensor.data_ptr())


def int32(*values):
    return tuple(struct.pack("<i", value) for value in values)


def int64(*values):
    return tuple(struct.pack("<q", value) for value in values)


def shown(launch, *names):
    return {name: getattr(launch, name) for name in names or PLAIN}


def scratch(parameter):
    """Return a workspace's address: aligned as workspaces are."""
    (address,) = struct.unpack("<Q", parameter)
    assert address
    assert address % 256 == 0
    return address
