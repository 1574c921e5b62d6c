"""`Stage`: the tensors of a case on a device, and whether a launch reached them."""

from __future__ import annotations

import contextlib
import importlib
import struct
from dataclasses import dataclass, field, replace
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import torch

import trunnion
from launching.case import CASES, KERNEL, LANDED, MEBIBYTE_SHIFT, MIXED, Case
from trunnion import sim
from trunnion.call_helper import installed_helper, no_helper
from trunnion.torch_runtime import default_runtime

if TYPE_CHECKING:
    from collections.abc import Iterator

    from launching.trial import Trial
    from trunnion.artifacts.artifact import Artifact
    from trunnion.compiled import CompiledProgram
    from trunnion.sim import KernelCall, Simulator

__all__ = ["Device", "Stage", "enter_device"]

_WORD = 7
_POINTER_BYTES = 8
_MAP_BYTES = 128
_MEBIBYTE = 1 << MEBIBYTE_SHIFT


@dataclass(frozen=True, slots=True)
class Device:
    """Where everything is launched: device 0."""

    name: str
    """The GPU's name; without a GPU it says that it is simulated."""

    simulator: Simulator | None = None
    """The simulated driver; None on a GPU."""

    def synchronize(self) -> None:
        """Wait for the device."""
        if self.simulator is None:
            torch.cuda.synchronize()
        else:
            self.simulator.clear_trace()


@contextlib.contextmanager
def enter_device(*, simulate: bool) -> Iterator[Device | None]:
    """Enter the device to measure on; None without a GPU, unless it is simulated."""
    if simulate:
        simulator = sim.active() or sim.start()
        simulator.register_body(KERNEL, _body)
        with simulator.torch_mode():
            yield Device("simulated: the times say nothing about a GPU", simulator)
    elif torch.cuda.is_available():
        yield Device(torch.cuda.get_device_name(0))
    else:
        yield None


@dataclass(frozen=True)
class Stage:
    """What every way to launch a case is given."""

    case: Case
    """The case."""

    device: Device
    """The device."""

    tensors: tuple[Any, ...] = field(init=False)
    """The tensors, the one that is written last."""

    _counts: tuple[int, ...] = field(init=False, repr=False)

    _artifacts: dict[tuple[str, bool], Artifact] = field(init=False, default_factory=dict, repr=False)

    def __post_init__(self) -> None:
        shape = self.case.shape
        values = [torch.randn(shape).to("cuda:0") for _ in range(self.case.tensors)]
        object.__setattr__(self, "tensors", tuple(values))
        object.__setattr__(self, "_counts", tuple(map(_references, values)))

    @property
    def named(self) -> dict[str, Any]:
        """The tensors by name."""
        return dict(zip(self.case.names, self.tensors, strict=True))

    @property
    def numbers(self) -> dict[str, Any]:
        """What is passed between the tensors and the scalar, by name."""
        address = self.tensors[0].data_ptr() if self.tensors else 0
        return {
            number.name: address if number.value is None else number.value for number in self.case.numbers
        }

    @property
    def number_bits(self) -> tuple[int, ...]:
        """The same as the lowest bytes of 64-bit integers, in their order."""
        address = self.tensors[0].data_ptr() if self.tensors else 0
        return tuple(address if number.value is None else number.bits for number in self.case.numbers)

    @property
    def held(self) -> tuple[str, ...]:
        """The tensors that something refers to beside the stage, past Python: a view in another library, say.

        Whoever hands such a tensor to compiled code saves a fifth of a bare tvm-ffi call: while nothing else refers to
        it, torch passes ownership to its Python object and back again with every reference that comes and goes.
        """
        counts = zip(self.named.items(), self._counts, strict=True)
        return tuple(name for (name, tensor), before in counts if _references(tensor) > before)

    def program(self, backend: str, *, allocating: bool, helped: bool = False) -> CompiledProgram:
        """Return a program of one's own, which shares nothing with another way in; it is compiled once.

        Parameters
        ----------
        backend
            The backend's name.
        allocating
            Whether the program allocates what it writes.
        helped
            Whether a launcher in Python uses the installed call helper.
        """
        if (backend, allocating) not in self._artifacts:
            compiled = trunnion.compile(self.case.program(allocating=allocating), backend)
            self._artifacts[backend, allocating] = compiled.artifact
        runtime = default_runtime(find_helper=installed_helper if helped else no_helper)
        return trunnion.CompiledProgram.from_artifact(self._artifacts[backend, allocating], runtime=runtime)

    @cached_property
    def stream(self) -> Any:
        """A stream that is not the current one: torch's, or what has its attribute."""
        simulator = self.device.simulator
        new_stream: Any = torch.cuda.Stream  # without annotations
        return new_stream(0) if simulator is None else SimpleNamespace(cuda_stream=simulator.new_stream(0))

    @cached_property
    def cubin(self) -> bytes:
        """The kernel, compiled by NVRTC for the device."""
        return self.program("nvrtc", allocating=False).image("cubin")

    @cached_property
    def kernel(self) -> Any:
        """The kernel's ``CUkernel``, loaded once and never unloaded."""
        driver: Any = importlib.import_module("cuda.bindings.driver")
        status, library = driver.cuLibraryLoadData(self.cubin, [], [], 0, [], [], 0)
        found, kernel = driver.cuLibraryGetKernel(library, KERNEL.encode())
        if status or found:
            raise RuntimeError(f"the kernel could not be loaded: {status or found}")
        return kernel

    def received(self, trial: Trial, *, adds_scalar: bool = True) -> bool:
        """Launch once and say whether the kernel got all that was passed.

        Parameters
        ----------
        trial
            Any way to launch the case.
        adds_scalar
            Whether the scalar is part of the sum; a kernel of others may take none.
        """
        if not self.case.tensors:
            return self._landed(trial)
        *inputs, last = self.tensors
        last.fill_(float("nan"))
        result = trial.once(_WORD)
        self.device.synchronize()
        written = result if isinstance(result, torch.Tensor) else last
        expected = sum((value.cpu() for value in inputs), torch.zeros(self.case.shape)) + adds_scalar * _WORD
        if self.case.numbers:
            at_address = inputs[0].cpu().reshape(-1)[0]
            expected = expected + sum(number.adds for number in self.case.numbers) + at_address
        return bool(torch.allclose(written.cpu(), expected, rtol=1e-5, atol=1e-4))

    def _landed(self, trial: Trial) -> bool:
        """Pass an address as the scalar."""
        room = torch.zeros(2 * _MEBIBYTE // 4, dtype=torch.int32).to("cuda:0")
        word = -(-room.data_ptr() // _MEBIBYTE)
        trial.once(word)
        self.device.synchronize()
        return int(room.cpu()[(word * _MEBIBYTE - room.data_ptr()) // 4]) == LANDED


def _references(tensor: Any) -> int:
    """Return how often a tensor is referred to, all Python objects together counted once."""
    return int(tensor._use_count())  # noqa: SLF001 - no public name


def _body(call: KernelCall) -> None:
    """Do in Python what the kernel does."""
    if len(call.parameters) == 1 and len(call.parameters[0]) > _POINTER_BYTES:
        _packed_body(call)
        return
    word = int(call.scalar(len(call.parameters) - 1, "int32"))
    if not word:
        return
    count, numbers = _received(call)
    mapped = [len(data) > _POINTER_BYTES for data in call.parameters[:count]]
    if not mapped:
        call.memory.view(word << MEBIBYTE_SHIFT, "int32", (1,)).fill_(LANDED)
        return
    shape = Case(len(mapped), sum(mapped)).shape
    views = [
        None if by_map else call.memory.view(call.pointer(index), "float32", shape)
        for index, by_map in enumerate(mapped)
    ]
    *inputs, last = (
        call.tensor_map(i).load((0, 0)) if view is None else view for i, view in enumerate(views)
    )
    total = sum(inputs, torch.zeros(shape)) + numbers + word
    if mapped[-1]:
        call.tensor_map(len(mapped) - 1).store((0, 0), total)
    else:
        last.copy_(total)


def _packed_body(call: KernelCall) -> None:
    """Do it with a struct's fields."""
    case = next(c for c in CASES if c.packed and bool(c.maps) == (len(call.parameters[0]) > _MAP_BYTES))
    found = call.fields(0, *case.places)
    rows, twice, nothing = (found.scalar(case.tensors + index, "int64") for index in range(3))
    right = twice == 2 * rows and not nothing and found.scalar(case.tensors + 3, "float32") == 1
    last = found.parameters[-1]
    plain = (*found.parameters[: case.tensors], last if right else bytes(len(last)))
    _body(replace(found, parameters=plain))


def _received(call: KernelCall) -> tuple[int, float]:
    """Return how many tensors there are, and what the kernel adds of the numbers of `MIXED`, if it has any."""
    count = len(call.parameters) - 1
    if count <= len(MIXED):
        return count, 0.0
    first = count - len(MIXED)
    if [len(data) for data in call.parameters[first:count]] != [number.nbytes for number in MIXED]:
        return count, 0.0
    total = 0.0
    for index, number in enumerate(MIXED, first):
        if number.kind == "pointer":
            total += float(call.memory.view(call.pointer(index), "float32", (1,))[0])
        elif number.kind == "struct":
            total += sum(struct.unpack("<ff", call.parameters[index]))
        else:
            value = call.scalar(index, number.kind)
            total += value >> 40 if number.kind == "uint64" else value
    return first, total
