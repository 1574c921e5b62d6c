"""The machines that laws launch on: what each must say of a call, and the simulated one.

The simulated machine has two devices that are alike, and two that differ from them and each other. The others are
`trunnion.testing.gpu.machine.GpuMachine` and `trunnion.testing.host_machine.HostMachine`.

What a machine tells of a call is a *delivered launch*, in the same words on each: what was allocated, what memory was
made to hold before the first kernel began, and the launches in their order, each with its grid, its block and the bytes
of its parameters. A driver says what it is asked to set (`MemorySet`); where there is none, memory itself is looked at
(`MemorySeen`). What only a driver has, such as streams and attributes, is in its events and in no others.
"""

from __future__ import annotations

import ctypes
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from trunnion import sim
from trunnion.arguments import spanned_bytes
from trunnion.contract.compiler import DeviceImage, ImageKernel, ImageVariable
from trunnion.contract.spec import Target
from trunnion.errors import DeviceRequirementError
from trunnion.image import SyntheticKernel, SyntheticVariable, pack_parameters, synthetic_cubin
from trunnion.sim.abi import DeviceAttribute, Limit
from trunnion.sim.objects import Library
from trunnion.sim.variables import variable_in
from trunnion.testing.reference import parameter_layouts
from trunnion.testing.reference_variables import variable_bytes
from trunnion.testing.symbols import kernel_symbol, variable_symbol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from trunnion.contract.runtime import Runtime
    from trunnion.model.program import KernelProgram
    from trunnion.sim import Simulator
    from trunnion.sim.trace import Event, Launched

__all__ = [
    "ALIKE", "ARCHITECTURES", "IMAGED", "KINDS", "UNLIKE", "USED", "Computed", "Machine", "MemorySeen",
    "SimulatedMachine", "Told", "shorten", "start_simulator", "synthetic_image", "untouched",
]  # fmt: skip

USED: Final = 0xA5
"""What each byte of a call's tensors holds, so that neither zeros nor fills are there by chance."""


IMAGED: Final = b"\x3c"
"""What each byte of a module variable holds in a synthetic image: neither zeros nor `USED`."""

KINDS: Final[Mapping[str, str]] = MappingProxyType({"sim": "cuda", "gpu": "cuda", "cpu": "cpu"})
"""Each tier in which laws are checked, and the kind of target that is launched on there."""


@dataclass(frozen=True, slots=True)
class MemorySeen:
    """What memory held when the first kernel of a call began; behind the launches, what it held in the end."""

    address: int
    """The first byte."""

    data: bytes
    """What it held: `USED`, but where something was written since the trace was cleared, or since it was allocated."""


@dataclass(frozen=True, slots=True)
class Computed:
    """The tensor library looked at elements of a device's tensors, or wrote some: with kernels, copies or waits."""

    operation: str
    """What it was asked for."""


Told: TypeAlias = "Event | MemorySeen | Computed"
"""What a machine tells of a call."""


class Machine(Protocol):
    """Devices, and what tells what launchers do on them: what laws use that hold on every machine."""

    @property
    def tier(self) -> str:
        """The tier in which laws are checked on it: a key of `KINDS`."""

    @property
    def kind(self) -> str:
        """The kind of target that is launched on."""

    @property
    def alike(self) -> tuple[int, ...]:
        """The devices on which laws launch, unless they are about others."""

    @property
    def runtime(self) -> Runtime:
        """What a launcher asks of the tensor library."""

    @property
    def trace(self) -> tuple[Told, ...]:
        """What came to devices since `clear_trace`."""

    def clear_trace(self) -> None:
        """Forget it."""

    def call(self, function: Callable[[], Any]) -> Any:
        """Make a call, and wait until all that it launched is over, unless its stream is being captured."""

    def attribute(self, device: int, attribute: int) -> int:
        """Return a ``CUdevice_attribute`` of a device."""

    def set_aside(self, device: int, nbytes: int) -> int:
        """Have a device set so many bytes of L2 cache aside for persisting accesses; return how many it did before."""

    def image(self, program: KernelProgram) -> DeviceImage:
        """Return an image with all kernels of a program: each takes what the oracle says, and touches no memory."""

    def variable(self, launched: Launched, symbol: str) -> int:
        """Return where a module variable lies of the image that a launch is of, on its device."""

    def empty(self, nbytes: int, device: int) -> Any:
        """Return a tensor of so many bytes in the memory of a device, each of them `USED`."""

    def shorten(self, tensor: Any) -> None:
        """Let a tensor's storage, all of it, end a byte before the tensor does, if the machine can."""

    def new_stream(self, device: int) -> int:
        """Return the handle of a new stream."""

    def stream_object(self, handle: int) -> Any:
        """Return the tensor library's own object for a stream; its driver's handle is ``cuda_stream``."""

    def stream(self, handle: int, device: int) -> AbstractContextManager[None]:
        """Make a stream the current one of a device, in this thread, until the block ends."""

    def current(self) -> tuple[int, ...]:
        """Return the tensor library's current device and the current stream of each, in this thread."""

    def capture(self, stream: int, device: int) -> AbstractContextManager[Any]:
        """Capture a stream until the block ends: the graph's ``launch()`` then runs what it was given."""


ARCHITECTURES: Final = ("sm_90a", "sm_90a", "sm_80", "sm_100a")
"""The architecture of each device."""

ALIKE: Final = (0, 1)
"""The devices on which laws launch, unless they are about others."""

UNLIKE: Final = (0, 2, 3)
"""One device of each architecture."""

_SMALL: Final[tuple[Mapping[int, int] | None, ...]] = (
    None,
    {DeviceAttribute.MULTIPROCESSOR_COUNT: 114},  # an H100 PCIe: alike, but for how much of it there is
    {DeviceAttribute.MAX_ACCESS_POLICY_WINDOW_SIZE: 4096, DeviceAttribute.MAX_PERSISTING_L2_CACHE_SIZE: 2048},
    {
        DeviceAttribute.MAX_ACCESS_POLICY_WINDOW_SIZE: 512,
        DeviceAttribute.MAX_PERSISTING_L2_CACHE_SIZE: 0,
        DeviceAttribute.MAX_SHARED_MEMORY_PER_BLOCK_OPTIN: 99 << 10,
    },
)
"""What one has less of than the other that is alike; and others than any product, so that tensors of a few bytes meet
the limit."""


class SimulatedMachine:
    """The simulated driver of this process.

    Parameters
    ----------
    simulator
        The driver, with at least two devices.
    alone
        Whether laws launch on the first device alone, and launchers are told that it is the only one: then the tensor
        library has a quick allocator, as torch has with one GPU.
    """

    tier: Final = "sim"
    kind: Final = "cuda"
    alike: tuple[int, ...] = ALIKE

    def __init__(self, simulator: Simulator, *, alone: bool = False) -> None:
        self.simulator = simulator
        self._lone: Runtime | None = None
        if alone:
            from trunnion.sim.runtime import SimRuntime  # noqa: PLC0415 - imports torch

            self.alike, self._lone = ALIKE[:1], SimRuntime(simulator, alone=True)
        self.call: Callable[..., Any] = simulator.call
        self.clear_trace = simulator.clear_trace
        self.new_stream = simulator.new_stream
        self.stream = simulator.stream
        self.capture = simulator.capture

    @property
    def runtime(self) -> Runtime:
        """See `Machine`."""
        return self.simulator.runtime if self._lone is None else self._lone

    def stream_object(self, handle: int) -> Any:
        """See `Machine`."""
        return self.simulator.runtime.stream_type(handle)

    @property
    def trace(self) -> tuple[Told, ...]:
        """See `Machine`; what the tensor library did, which is in no trace, stands at the end."""
        operations = self.simulator.state.operations
        if not operations:
            return self.simulator.trace
        return (*self.simulator.trace, *map(Computed, tuple(operations)))

    def current(self) -> tuple[int, ...]:
        """See `Machine`; the current device is that of the thread's current context, else the first."""
        state = self.simulator.state
        stack = state.stack()
        streams = map(state.current_stream, range(self.simulator.devices))
        return (stack[-1].device.ordinal if stack else 0, *streams)

    def attribute(self, device: int, attribute: int) -> int:
        """See `Machine`."""
        there = device if device < self.simulator.devices else 0
        return int(self.simulator.device(there).attribute(attribute))

    def set_aside(self, device: int, nbytes: int) -> int:
        """See `Machine`."""
        limits = self.simulator.state.contexts[device].limits
        before = limits.get(Limit.PERSISTING_L2_CACHE_SIZE, 0)
        limits[Limit.PERSISTING_L2_CACHE_SIZE] = nbytes
        return int(before)

    def image(self, program: KernelProgram) -> DeviceImage:
        """See `Machine`; there is no code in it."""
        return synthetic_image(program)

    def variable(self, launched: Launched, symbol: str) -> int:
        """See `Machine`."""
        state = self.simulator.state
        library, context = state.get(Library, launched.library), state.contexts[launched.device]
        return variable_in(state, library, symbol, context).address

    def empty(self, nbytes: int, device: int) -> Any:
        """See `Machine`."""
        import torch  # noqa: PLC0415 - tensors are torch's, in the simulator too

        from trunnion.sim.tensor import empty  # noqa: PLC0415 - imports torch

        made = empty(self.simulator, (nbytes,), torch.uint8, device)
        # Not by torch, which wakes its other threads for so many bytes: that takes longer than the call itself.
        ctypes.memset(made.data_ptr(), USED, nbytes)
        return made

    def shorten(self, tensor: Any) -> None:
        """See `Machine`."""
        memory, end = self.simulator.memory, tensor.data_ptr() + spanned_bytes(tensor)
        held = memory.find(end - 1)
        assert held is not None  # a tensor that was just made
        memory.shrink(held.address, end - 1 - held.address)


def shorten(tensor: Any) -> None:
    """Let the storage of a tensor of torch's end a byte before the tensor does.

    Parameters
    ----------
    tensor
        The tensor.
    """
    before = tensor.storage_offset() * tensor.element_size()
    tensor.untyped_storage().resize_(before + spanned_bytes(tensor) - 1)


def untouched(simulator: Simulator, nbytes: int) -> Any:
    """Return a tensor of so many bytes, zeros, on the first device: none of the host's memory is taken for it.

    Parameters
    ----------
    simulator
        The driver.
    nbytes
        How many.
    """
    import torch  # noqa: PLC0415 - tensors are torch's, in the simulator too

    from trunnion.sim.tensor import empty  # noqa: PLC0415 - imports torch

    return empty(simulator, (nbytes,), torch.uint8, 0, poisoned=False)


_TARGET = Target("cuda", "sm_90a")


def synthetic_image(
    program: KernelProgram, target: Target = _TARGET, *, map_alignment: int | None = None
) -> DeviceImage:
    """Return an image whose kernels take what the program passes, as the oracle lays it out.

    Parameters
    ----------
    program
        The program.
    target
        What the image shall be for.
    map_alignment
        How its tensor maps are aligned, in bytes; see `trunnion.testing.reference.parameter_layouts`.
    """
    kernels = [
        ImageKernel(name, kernel_symbol(index), pack_parameters(layout, target.arch))
        for index, ((name, _), layout) in enumerate(parameter_layouts(program, map_alignment).items())
    ]
    synthetic = [SyntheticKernel(name=kernel.symbol, parameters=kernel.parameters) for kernel in kernels]
    variables = [
        SyntheticVariable(
            name=variable_symbol(index),
            nbytes=variable_bytes(one),
            constant=index % 2 == 0,
            init=IMAGED * variable_bytes(one),
        )
        for index, one in enumerate(program.variables)
    ]
    data = synthetic_cubin(synthetic[::-1], target.arch, variables[::-1])  # in no order that a program knows
    return DeviceImage(
        kind="cubin",
        data=data,
        target=target,
        kernels=tuple(kernels),
        variables=tuple(
            ImageVariable(one.name, known.name, known.nbytes)
            for one, known in zip(program.variables, variables, strict=True)
        ),
    )


def start_simulator() -> Simulator:
    """Return the simulated driver of this process, which starts if need be.

    Raises
    ------
    DeviceRequirementError
        If it cannot be started, or runs with other devices.
    """
    simulator = sim.active() or sim.start(arch=ARCHITECTURES, attributes=_SMALL)
    if simulator.archs[: len(ARCHITECTURES)] != ARCHITECTURES:
        raise DeviceRequirementError(
            f"simulated devices of the architectures {', '.join(ARCHITECTURES)}",
            f"{', '.join(simulator.archs)} in this process",
            "let the laws start the simulated driver, or call trunnion.testing.machine.start_simulator() first",
        )
    return simulator
