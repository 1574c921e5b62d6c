"""A thin C view of the simulator's entry points."""

from __future__ import annotations

import ctypes
from typing import TYPE_CHECKING

import pytest

from trunnion.image import SyntheticKernel, pack_parameters, synthetic_cubin
from trunnion.sim.abi import LaunchAttributeStruct, LaunchConfigStruct
from trunnion.sim.status import Status

if TYPE_CHECKING:
    from trunnion.sim.simulator import Simulator

IMAGE = synthetic_cubin(
    (
        SyntheticKernel(name="plain", parameters=pack_parameters(((4, 4), (8, 8)))),
        SyntheticKernel(name="empty"),
        SyntheticKernel(name="bounded", max_threads=(128, 1, 1)),
        SyntheticKernel(name="required", required_threads=(64, 1, 1)),
        SyntheticKernel(name="clustered", cluster=(2, 1, 1)),
        SyntheticKernel(name="mapped", parameters=pack_parameters(((128, 64), (8, 8), (4, 4)))),
    )
)


class Library:
    """The entry points, called as C calls them."""

    def __init__(self, simulator: Simulator) -> None:
        self.c = ctypes.CDLL(simulator.library_path)
        self.simulator = simulator

    def __call__(self, name: str, *arguments: object) -> Status:
        plain = [
            ctypes.c_void_p(value) if isinstance(value, int) and value >= 1 << 31 else value
            for value in arguments
        ]
        return Status(self.c[name](*plain))

    def ok(self, name: str, *arguments: object) -> None:
        status = self(name, *arguments)
        assert status is Status.SUCCESS, (name, status, self.simulator.trace[-1:])

    def handle(self, name: str, *arguments: object) -> int:
        """Call what returns a handle through its first argument."""
        out = ctypes.c_void_p()
        self.ok(name, ctypes.byref(out), *arguments)
        assert out.value
        return out.value

    def context(self, device: int = 0) -> int:
        """Retain a primary context and make it the thread's only one."""
        handle = self.handle("cuDevicePrimaryCtxRetain", device)
        self.ok("cuCtxSetCurrent", handle)
        return handle

    def image(self, image: bytes = IMAGE) -> ctypes.Array[ctypes.c_char]:
        return ctypes.create_string_buffer(image, len(image))

    def library(self, image: bytes = IMAGE) -> int:
        buffer = self.image(image)
        return self.handle("cuLibraryLoadData", buffer, None, None, 0, None, None, 0)

    def kernel(self, name: str, library: int | None = None) -> int:
        return self.handle("cuLibraryGetKernel", library or self.library(), name.encode())

    def launch(self, function: int, **fields: object) -> Status:
        """Launch through cuLaunchKernelEx; fields: grid, block, smem, stream, attributes, values, extra."""
        grid, block = fields.get("grid", (1, 1, 1)), fields.get("block", (32, 1, 1))
        attributes = fields.get("attributes", ())
        array = (LaunchAttributeStruct * len(attributes))(*attributes)
        config = LaunchConfigStruct(
            *grid, *block, fields.get("smem", 0), fields.get("stream"), ctypes.addressof(array), len(array)
        )
        values = fields.get("values", ())
        pointers = (ctypes.c_void_p * max(1, len(values)))(*(ctypes.addressof(value) for value in values))
        return self(
            fields.get("entry", "cuLaunchKernelEx"),
            ctypes.byref(config),
            function,
            pointers if values else None,
            fields.get("extra"),
        )


@pytest.fixture
def library(simulator: Simulator) -> Library:
    """The driver, initialised, with the primary context of device 0 current."""
    entry = Library(simulator)
    entry.ok("cuInit", 0)
    entry.context()
    return entry
