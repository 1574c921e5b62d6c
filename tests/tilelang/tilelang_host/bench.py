"""One lowered kernel on the simulated driver, through every backend."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

import torch
from tilelang_host.interpreter import interpret
from tilelang_host.received import moved, placed, received

from trunnion.contract.compiler import DeviceImage, ImageKernel
from trunnion.contract.spec import Target
from trunnion.image import SyntheticKernel, pack_parameters, synthetic_cubin
from trunnion.testing.kept_launchers import kept_launchers, launcher_folder
from trunnion.testing.observed import observe

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from tilelang_corpus.entry import Entry
    from tilelang_host.values import Launch

    from trunnion.contract.adapter import LoadedProgram
    from trunnion.model.program import KernelProgram
    from trunnion.testing.harness import Harness
    from trunnion.testing.observed import Observed

__all__ = ["Bench", "kernels_of", "on_device", "synthetic"]

_POINTER, _MAP = (8, 8), (128, 64)


def kernels_of(artifact: Any) -> dict[str, Any]:
    """Return the device functions of what was lowered, by name."""
    return {str(func.attrs["global_symbol"]): func for func in artifact.device_mod.functions.values()}


def synthetic(artifact: Any, arch: str) -> DeviceImage:
    """Return an image of no code, whose kernels have the parameters that the device functions declare.

    Parameters
    ----------
    artifact
        What was lowered.
    arch
        For which architecture.
    """

    def layout(param: Any) -> tuple[int, int]:
        if str(param.dtype) == "handle":
            return _MAP if "uint8x128" in str(param.type_annotation) else _POINTER
        size = max(1, param.dtype.bits // 8)
        return size, size

    kernels = tuple(
        ImageKernel(name, name, pack_parameters(map(layout, func.params), arch))
        for name, func in kernels_of(artifact).items()
    )
    described = [SyntheticKernel(name=kernel.symbol, parameters=kernel.parameters) for kernel in kernels]
    target = Target("cuda", arch)
    return DeviceImage(kind="cubin", data=synthetic_cubin(described, arch), target=target, kernels=kernels)


@dataclass(frozen=True)
class Bench:
    """One entry of the corpus, lowered and imported."""

    entry: Entry
    artifact: Any
    program: KernelProgram

    @contextlib.contextmanager
    def loaded(self, harness: Harness, image: DeviceImage) -> Iterator[LoadedProgram]:
        """Build the program with one backend around an image, and close it at the end of the block."""
        with kept_launchers(launcher_folder()):
            artifact = harness.build(self.program, image)
        loaded = harness.load(artifact)
        try:
            yield loaded
        finally:
            loaded.close()

    def given(self, harness: Harness, seed: int, device: int) -> tuple[Any, ...]:
        """Return the drawn arguments of a call, as views of memory on a simulated device."""
        return tuple(on_device(harness, value, device) for value in self.entry.arguments(seed))

    def call(self, harness: Harness, loaded: LoadedProgram, given: Sequence[Any], device: int) -> Observed:
        """Make a call, and return what came of it."""
        passed = self.entry.passed(given)
        named = None if any(isinstance(value, torch.Tensor) for value in passed) else device
        return observe(harness, lambda: loaded.call(passed, device=named))

    def expected(self, given: Sequence[Any], outputs: Sequence[Any]) -> tuple[Launch, ...]:
        """Return the interpreter's launches of a call, without those of an empty grid, which nobody makes."""
        count = len(given) + len(outputs)
        places = [index % count for index in self.entry.out_idx]
        rest = iter(self.entry.passed(given))
        whole = [None if index in places else next(rest) for index in range(count)]
        for place, output in zip(places, outputs, strict=True):
            whole[place] = output
        return tuple(launch for launch in interpret(self.artifact, whole) if 0 not in launch.grid)

    def compared(
        self, observed: Observed, given: Sequence[Any], symbols: Mapping[str, str] = MappingProxyType({})
    ) -> tuple[Launch, ...]:
        """Require that a call did what the interpreter says, and return that with names in the place of addresses.

        Each backend allocates for itself, so two are compared with an output's number, or an allocation, where its
        address was.

        Parameters
        ----------
        observed
            What came of the call.
        given
            What it was given.
        symbols
            The host function's names of kernels whose symbols in the image are others, by symbol.
        """
        assert observed.error is None, f"{type(observed.error).__name__}: {observed.error}"
        expected = self.expected(given, observed.outputs)
        kernels = kernels_of(self.artifact)
        names = [symbols.get(launch.kernel, launch.kernel) for launch in observed.launches]
        assert names == [launch.kernel for launch in expected]
        got = tuple(
            received(launch, name, kernels[name])
            for launch, name in zip(observed.launches, names, strict=True)
        )
        scratch = placed(expected, got)
        assert got == tuple(moved(launch, lambda at: scratch.get(at, at)) for launch in expected)
        self._check_memory(observed, scratch)
        named = {at: key for key, at in scratch.items()}
        named |= {tensor.data_ptr(): f"output {index}" for index, tensor in enumerate(observed.outputs)}
        return tuple(moved(launch, lambda at: named.get(at, at)) for launch in got)

    def _check_memory(self, observed: Observed, scratch: Any) -> None:
        """Require that what is taken for an allocation is one, and large enough, and no other's."""
        made = {event.address: event.nbytes for event in observed.allocations}
        assert len(set(scratch.values())) == len(scratch)
        for one, address in scratch.items():
            assert one.nbytes <= made.get(address, 0), f"{one} lies at {address}, allocated are {made}"


def on_device(harness: Harness, value: Any, device: int) -> Any:
    """Return a tensor's copy on a simulated device, and anything else as it is.

    All of the memory that the tensor lies in is copied, and seen with its strides and from its offset.

    Parameters
    ----------
    harness
        Whose simulator it is.
    value
        An argument of a call.
    device
        The device's ordinal.
    """
    if not isinstance(value, torch.Tensor):
        return value
    flat = torch.empty(0, dtype=torch.uint8).set_(value.untyped_storage())
    memory = harness.simulator.tensor(flat, device).view(value.dtype)
    return memory.as_strided(value.shape, value.stride(), value.storage_offset())
