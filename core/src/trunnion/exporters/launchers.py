"""Launchers that were built ahead of time, called through TVM-FFI alone.

`export_kernels` copies this file beside the launchers: so it imports nothing of trunnion, and nothing when it is
imported that is not Python's own.
"""

from __future__ import annotations

import contextlib
import ctypes
import operator
import os
import platform
import re
import struct
import sys
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

__all__ = ["Launcher", "LauncherFunction", "check_machine"]

_CUDA = 2  # kDLCUDA
_SIGNED, _ADDRESSES = 1 << 63, 1 << 64
_MAJOR, _MINOR = 75, 76  # CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, _MINOR
_NOT_INITIALIZED = 3  # CUDA_ERROR_NOT_INITIALIZED


def check_machine(machine: str, libc: str, runtime: str) -> None:
    """Refuse a machine on which the launchers beside this file cannot be loaded.

    Parameters
    ----------
    machine
        The processor that they are for, such as ``"x86_64"``; empty: any.
    libc
        The oldest version of glibc that they can be loaded with, such as ``"2.34"``; empty: any.
    runtime
        The oldest version of apache-tvm-ffi.

    Raises
    ------
    ImportError
        If the machine is another one.
    """
    here = platform.machine()
    if machine and machine != here:
        raise ImportError(f"got a processor {here}, expected {machine}: these kernels were built for that")
    name, version = platform.libc_ver()
    if libc and (name != "glibc" or _numbers(version) < _numbers(libc)):
        got = f"{name or 'another C library'} {version}".strip()
        raise ImportError(f"got {got}, expected glibc {libc} or later: with that these kernels were built")
    import tvm_ffi as ffi  # noqa: PLC0415 - only who loads launchers needs it

    if _numbers(ffi.__version__) < _numbers(runtime):
        got = f"got apache-tvm-ffi {ffi.__version__}, expected {runtime} or later"
        raise ImportError(f"{got}: pip install --upgrade apache-tvm-ffi")


@dataclass(frozen=True)
class Launcher:
    """One build of a program."""

    file: str
    """The shared library, beside this file."""

    least: tuple[int, int] = (0, 0)
    """The least compute capability of a device that it is for."""

    most: tuple[int, int] = (0, 0)
    """The greatest one; (0, 0): it is for the CPU."""

    image: str = ""
    """The device image, beside this file; empty: it lies in the library."""

    symbols: tuple[str, ...] = ()
    """The exact names of the kernels in that image, in the launcher's order."""


class LauncherFunction:
    """A program as a function: each call goes to the launcher that is for its device, loaded when it is first needed.

    Parameters
    ----------
    folder
        Where the files lie.
    name
        What errors call it.
    launchers
        The builds, those that are to be preferred first.
    outputs
        How many tensors it returns.
    """

    def __init__(self, folder: Path, name: str, launchers: Sequence[Launcher], outputs: int) -> None:
        self._folder, self._name, self._launchers, self._outputs = folder, name, tuple(launchers), outputs
        self._modules: dict[Launcher, Any] = {}
        self._of_device: dict[int, Any] = {}
        self._process, self._loading, self._within = os.getpid(), threading.RLock(), False

    def __call__(self, args: tuple[Any, ...], out: Any = None, stream: Any = None, device: Any = None) -> Any:
        """Launch the program, and return its outputs.

        Parameters
        ----------
        args
            The arguments, in order.
        out
            What to write to: a tensor, or a sequence of as many as there are outputs; None: they are allocated.
        stream
            A stream's handle, or an object with ``__cuda_stream__``; None: the current stream.
        device
            An ordinal, or an object that has one as ``index``; needed where no argument is a tensor.

        Raises
        ------
        TypeError, ValueError, RuntimeError
            What the launcher, which checks the arguments, raises; or if this machine has no device for the program, or
            the call is made while its launcher is being loaded in the same thread, by a signal's handler for example.
        """
        given = tuple(map(_passed, args))
        ordinal = _ordinal(device)
        module = self._module(given, ordinal)
        more = _trailing(given, stream, ordinal)
        if out is None:
            made = module.main(*given, *more)
            return tuple(made) if self._outputs > 1 else made
        outputs = tuple(out) if isinstance(out, (list, tuple)) else (out,)
        if len(outputs) != self._outputs:
            raise ValueError(f"argument 'out': got {len(outputs)} tensors, expected {self._outputs}")
        module.main_out(*given, *map(_passed, outputs), *more)
        return outputs if self._outputs > 1 else outputs[0]

    def _module(self, given: tuple[Any, ...], device: int | None) -> Any:
        """Return the launcher of a call, loaded."""
        ordinal = _device_of(given) if device is None else device
        found = self._of_device.get(ordinal)
        if found is None:
            with self._alone():
                found = self._of_device[ordinal] = self._chosen(ordinal)
        return found

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Keep other threads out until the block ends; refuse who comes from within it, and would wait for ever."""
        if self._process != os.getpid():  # forked: the thread that held the lock may not be here
            self._process, self._loading, self._within = os.getpid(), threading.RLock(), False
        with self._loading:
            if self._within:
                raise RuntimeError(f"{self._name} is being loaded in this thread; call it when that is over")
            self._within = True
            try:
                yield
            finally:
                self._within = False

    def _chosen(self, ordinal: int) -> Any:
        """Load the first launcher that is for a device."""
        if len(self._launchers) == 1:  # it says itself what it is for
            return self._loaded(self._launchers[0])
        if self._launchers[0].most == (0, 0):
            return self._first_for_this_processor()
        here = _capability(ordinal)
        for one in self._launchers:
            if one.least <= here <= one.most:
                return self._loaded(one)
        wanted = ", ".join(f"{one.least[0]}.{one.least[1]}" for one in self._launchers)
        got = f"device {ordinal} has compute capability {here[0]}.{here[1]}"
        raise RuntimeError(f"{self._name} was built for {wanted}, {got}: no launcher of it is for that")

    def _first_for_this_processor(self) -> Any:
        """Load the first launcher that says of this processor that it has what its code needs."""
        *better, last = self._launchers
        for one in better:
            try:
                return self._loaded(one)
            except RuntimeError:
                continue
        return self._loaded(last)

    def _loaded(self, launcher: Launcher) -> Any:
        """Load a launcher once, with its image."""
        found = self._modules.get(launcher)
        if found is None:
            import tvm_ffi as ffi  # noqa: PLC0415 - only who loads launchers needs it

            found = ffi.load_module(str(self._folder / launcher.file))
            if launcher.image:
                names = b"".join(symbol.encode() + b"\0" for symbol in launcher.symbols)
                found.load((self._folder / launcher.image).read_bytes(), names)
            else:
                found.load()
            self._modules[launcher] = found
        return found


def _passed(value: Any) -> Any:
    """Return an argument as a launcher takes it.

    Raises
    ------
    ValueError
        If it is a tensor whose numbers are not those in its memory, or an integer that no type holds.
    """
    if isinstance(value, complex):
        return struct.pack("dd", value.real, value.imag)
    if isinstance(value, int) and not -_SIGNED <= value < _SIGNED:
        if not 0 <= value < _ADDRESSES:
            raise ValueError(f"got an integer of {value.bit_length()} bits, expected one of 64 at most")
        return ctypes.c_void_p(value)
    for lazy in ("is_neg", "is_conj"):
        if getattr(value, lazy, bool)():
            what = "negation" if lazy == "is_neg" else "conjugate"
            raise ValueError(f"got a tensor whose {what} is lazy, expected one that is resolved")
    return value


def _ordinal(device: Any) -> int | None:
    """Return a device's ordinal; None: whichever is current.

    Raises
    ------
    TypeError
        If it is neither an ordinal nor an object that has one.
    """
    found = getattr(device, "index", device)
    if found is None:
        return None
    if not isinstance(found, bool) and not hasattr(found, "data_ptr"):
        with contextlib.suppress(TypeError):
            return operator.index(found)
    raise TypeError(f"argument 'device': got {type(device).__name__}, expected an ordinal or a torch.device")


def _trailing(given: tuple[Any, ...], stream: Any, device: int | None) -> tuple[Any, ...]:
    """Return what stands behind the arguments of a call: the stream, the device, and whose allocator is used."""
    handle = stream.__cuda_stream__()[1] if hasattr(stream, "__cuda_stream__") else stream
    torch = sys.modules.get("torch")
    if torch is not None and not any(hasattr(one, "__dlpack__") for one in given):
        return handle, device, torch.empty(0)
    return () if handle is None and device is None else (handle, device)


def _device_of(given: tuple[Any, ...]) -> int:
    """Return the ordinal of the device that the first tensor lies on; 0 where there is none."""
    for one in given:
        if hasattr(one, "__dlpack_device__"):
            kind, ordinal = one.__dlpack_device__()
            return int(ordinal) if int(kind) == _CUDA else 0
    return 0


def _capability(ordinal: int) -> tuple[int, int]:
    """Return a device's compute capability.

    Raises
    ------
    RuntimeError
        If there is no driver, or no such device.
    """
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError as error:
        raise RuntimeError(f"the NVIDIA driver is not here: {error}") from error
    device, values = ctypes.c_int(), (ctypes.c_int(), ctypes.c_int())
    status = driver.cuDeviceGet(ctypes.byref(device), ordinal)
    if status == _NOT_INITIALIZED:
        status = driver.cuInit(0) or driver.cuDeviceGet(ctypes.byref(device), ordinal)
    for attribute, value in zip((_MAJOR, _MINOR), values, strict=True):
        status = status or driver.cuDeviceGetAttribute(ctypes.byref(value), attribute, device)
    if status:
        raise RuntimeError(f"device {ordinal} cannot be asked for its compute capability: CUresult {status}")
    return values[0].value, values[1].value


def _numbers(version: str) -> tuple[int, ...]:
    found = re.match(r"\d+(?:\.\d+)*", version)
    return tuple(map(int, found[0].split("."))) if found else ()
