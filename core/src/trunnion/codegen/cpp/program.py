"""`CppProgram`: a loaded C++ launcher, from load to close."""

from __future__ import annotations

import ctypes
import os
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from trunnion.codegen.cpp.direct import direct_entry, direct_launch
from trunnion.codegen.cpp.image import encoded_name
from trunnion.codegen.cpp.l2_persisting import SetAsideHook
from trunnion.codegen.cpp.loader import load_library, process_libraries
from trunnion.codegen.cpp.payload import fields_of, typed_error, unallocated
from trunnion.codegen.cpp.preparation import Carried, Preparation
from trunnion.contract.adapter import BoundLaunch, LoadedProgram
from trunnion.launcher.l2_persisting import process_set_aside
from trunnion.launcher.tensors import TensorChecks
from trunnion.model.interval import INT64_MAX
from trunnion.model.plan.refusals import CLOSED
from trunnion.plain import is_a
from trunnion.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractContextManager

    from trunnion.codegen.cpp.call_signature import CallSignature
    from trunnion.contract.runtime import Runtime

__all__ = ["CppProgram", "HandedImage"]

_T = TypeVar("_T")

_DRIVERS_OWN = (1, 2)  # CU_STREAM_LEGACY, CU_STREAM_PER_THREAD

_NOTHING = Carried([], {})

_RAISED = (TypeError, ValueError, RuntimeError, ArithmeticError, MemoryError, BufferError, AttributeError)
"""What TVM-FFI raises: for a launcher, and on its own for an argument that it cannot carry."""


@dataclass(frozen=True, slots=True)
class HandedImage:
    """A device image that does not lie in its launcher."""

    data: bytes
    """The image."""

    symbols: tuple[str, ...]
    """The exact names of the kernels in it, in the plan's order."""

    @property
    def names(self) -> bytes:
        """The names as a launcher takes them.

        Raises
        ------
        ProgramError
            If there can be no kernel of such a name.
        """
        return b"".join(map(encoded_name, self.symbols))


class CppProgram(LoadedProgram):
    """A loaded launcher.

    Parameters
    ----------
    library
        The shared library. It is native code, and runs: the caller has decided to trust it.
    facts
        What is known of its calls.
    runtime
        The tensor library.
    plugin
        The backend's name, for errors.
    image
        What a launcher without an image of its own is handed: the image, and its kernels' exact names; None: the
        launcher has one.

    Raises
    ------
    CorruptArtifactError
        If the library is no launcher.
    DriverError
        If the driver refuses the image.
    """

    def __init__(
        self,
        library: bytes,
        facts: CallSignature,
        runtime: Runtime,
        plugin: str,
        image: HandedImage | None = None,
    ) -> None:
        function = load_library(library, plugin)
        self._function: Callable[[str], Any] = function
        self._main: Callable[..., Any] = function("main")
        self._main_out: Callable[..., Any] = function("main_out")
        self._runtime, self._maps, self._pid = runtime, facts.maps, os.getpid()
        self._stream_of = runtime.current_stream_getter()
        self._several = len(facts.outputs) > 1
        self._allocates = bool(facts.outputs or facts.workspaces)
        self._class: Any = runtime.tensor_type
        self._closing = Turns(
            "the program is being closed", nests=True
        )  # the launcher sees that it is nested
        # How many devices there are the launcher knows.
        self._checks = TensorChecks(runtime, 0)
        self._preparation = Preparation(facts, self._checks)
        self._set_aside = SetAsideHook(facts, self._call_export, process_set_aside())
        try:
            self._call_export("load", *(() if image is None else (image.data, image.names)))
            self._set_aside.attach()
            kind = "cuda" if runtime.only_device is None else "cpu"
            general = facts.convention(kind).over(self.call, self._refuse_closed)
            # The entry's own: a call of it may have failed before the program was closed.
            raised = function("raised")
            self._direct = direct_entry(
                function("python_entry"), runtime, general, lambda error: self._run(raised, error), facts
            )
            self._entry: Callable[..., Any] = self._direct or general
        except BaseException:  # an interrupt too: nobody else has the program to close it
            self.close()  # the error keeps its library; those of loads that failed before go
            raise

    @property
    def entry(self) -> Callable[..., Any]:
        """The launcher, and behind it what only Python can check or say; see `LoadedProgram.entry`."""
        return self._entry

    def call(
        self,
        args: Sequence[Any],
        *,
        out: Sequence[Any] | None = None,
        stream: int | None = None,
        device: int | None = None,
    ) -> Any:
        """Launch with everything that a call can say; see `LoadedProgram.call`."""
        self._refuse_closed()
        ordinal = self._ordinal(args, device)
        carried = self._preparation.carried(args, out, ordinal)
        rest, where = self._rest(carried, args, (ordinal, stream, device))
        with where:
            main = self._main if out is None else self._main_out
            result = self._run(main, *carried.given, *rest, carried=carried)
        return self._give(result) if out is None else self._pick(tuple(out))

    def bind(
        self,
        args: Sequence[Any],
        *,
        out: Sequence[Any] | None = None,
        stream: int | None = None,
        device: int | None = None,
    ) -> BoundLaunch:
        """Check, allocate and prepare now, and return what launches; see `LoadedProgram.bind`."""
        self._refuse_closed()
        ordinal = self._ordinal(args, device)
        carried = self._preparation.carried(args, out, ordinal)
        if not carried.wrong and stream is None and ordinal is not None and self._runtime.only_device is None:
            stream = self._current(ordinal)
        rest, where = self._rest(carried, args, (ordinal, stream, device))
        with where:
            function = self._function("bind" if out is None else "bind_out")
            launch, *outputs = self._run(function, *carried.given, *rest, carried=carried)
        result = self._pick(tuple(outputs if out is None else out))
        again = self._again(launch, result, (carried, rest))
        return BoundLaunch(again, device=ordinal, stream=stream)

    def _again(self, launch: Any, result: Any, held: tuple[Any, ...]) -> Callable[[], Any]:
        """Return what launches a bound call again, and keeps what that works on."""
        if self._direct is not None:
            return direct_launch(launch, result, (self._direct, *held))
        launch.release_gil = True  # as everything that `load_library` gives

        def again(result: Any = result, _held: tuple[Any, ...] = held) -> Any:
            self._run(launch)
            return result

        return again

    def preload(self, device: int) -> None:
        """Do for a device all that a first launch would do; see `LoadedProgram.preload`."""
        self._call_export("preload", device)

    def close(self) -> None:
        """Wait for the program's launches, then unload its image; see `LoadedProgram.close`."""
        with self._closing.turn(), self._set_aside.closing():
            self._call_export("close")
        # What else has a function of the program keeps its code; every call of such a one raises what `_ended` does.
        self._function = self._ended
        self._main = self._main_out = self._entry = _refused
        self._direct = None
        process_libraries().unload()

    @staticmethod
    def _ended(name: str) -> Any:
        return (lambda: None) if name == "close" else _refused

    def _refuse_closed(self) -> None:
        """Refuse a call of a program that was closed, or is a forked child's, before anything is said of it."""
        if self._main is _refused:
            _refused()
        if self._pid != os.getpid() and self._runtime.only_device is None:
            self._call_export("preload", 0)  # which says so, in place of what the tensor library would raise

    # One call ----------------------------------------------------------------------------------------------------

    def _rest(
        self, carried: Carried, args: Sequence[Any], where: tuple[int | None, int | None, int | None]
    ) -> tuple[tuple[Any, ...], AbstractContextManager[Any]]:
        """Return what follows the arguments, and the scope in which memory is allocated under the call's stream.

        Parameters
        ----------
        carried
            The arguments as they travel; of a call that will be refused nothing is prepared.
        args
            The arguments as they were given.
        where
            The device on which the call runs, the stream and the device that it names.
        """
        ordinal, stream, device = where
        witness: Any = None
        scope: AbstractContextManager[Any] = nullcontext()
        if ordinal is not None and not carried.wrong:
            if self._first(args) is None and self._runtime.only_device is None:
                # TVM-FFI learns of a current stream, and of an allocator, from the tensors of a call.
                stream = self._current(ordinal) if stream is None else stream
            if self._first(args) is None and self._allocates:
                witness = self._there(ordinal, self._witness, stream or 0)
            if stream is not None and self._allocates:
                # To tensor libraries 1 and 2 are no streams. Memory of the legacy stream is ordered with both, but not
                # with what another thread has on its own stream 2: a launcher on that one waits for what it launched.
                scope = self._runtime.on_stream(ordinal, 0 if stream in _DRIVERS_OWN else stream)
        # TVM-FFI carries integers of 64 signed bits.
        handle: Any = stream if stream is None or stream <= INT64_MAX else ctypes.c_void_p(stream)
        return (handle, device, witness, True), scope

    def _current(self, device: int) -> int:
        """Return the handle of the tensor library's current stream of a device."""
        return self._there(device, self._stream_of)

    def _witness(self, device: int, stream: int) -> Any:
        """Return a tensor of a device, without elements."""
        return self._runtime.allocate((0,), self._checks.byte, device, stream)

    def _there(self, device: int, ask: Callable[..., _T], *said: int) -> _T:
        """Return what the tensor library answers of a device; of one that is not there the launcher says which are."""
        try:
            return ask(device, *said)
        except (RuntimeError, ValueError, ArithmeticError, LookupError):
            self._call_export("preload", device)
            raise

    def _first(self, args: Sequence[Any]) -> Any:
        """Return the first tensor of a call; None if there is none."""
        return next((value for value in args if is_a(value, self._class)), None)

    def _ordinal(self, args: Sequence[Any], device: int | None) -> int | None:
        """Return the device of a call's first tensor, else the one that it names, or the only one."""
        only, first = self._runtime.only_device, self._first(args)
        if first is None or only is not None:
            return only if device is None else device
        found = int(first.get_device())
        return device if found < 0 else found  # of a tensor elsewhere, which the launcher refuses

    def _run(self, function: Any, *given: Any, carried: Carried = _NOTHING) -> Any:
        """Call an export; raise the typed error that was meant, if the launcher raised; else what TVM-FFI says.

        Of all that is wrong with a call that is ``carried``, it is what comes first in the plan's order.
        """
        try:
            return function(*given)
        except _RAISED as error:
            raise self._told(error, carried)  # noqa: B904 - it has its cause

    def _told(self, error: BaseException, carried: Carried) -> BaseException:
        """Return what an export's error means, with its cause."""
        typed = self._typed(fields_of(error))
        if typed is None:
            return error
        told = carried.told(typed)
        if told is typed:
            told.__cause__ = error
        return told

    def _typed(self, fields: tuple[str, ...]) -> BaseException | None:
        """Return the typed error that a launcher meant; raise the one that it stands for, if a hook raised that."""
        self._set_aside.raise_kept(fields)
        return unallocated(fields, self._runtime) or typed_error(fields, self._maps)

    def _call_export(self, name: str, *given: Any) -> Any:
        return self._run(self._function(name), *given)

    def _give(self, result: Any) -> Any:
        return tuple(result) if self._several else result

    def _pick(self, outputs: tuple[Any, ...]) -> Any:
        return (outputs if self._several else outputs[0]) if outputs else None


def _refused(*_: Any, **__: Any) -> NoReturn:
    raise CLOSED()
