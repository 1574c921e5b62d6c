"""Anybody's TVM-FFI function, called with tensors: checked by a signature of ours, or by the function alone."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from trunnion.arguments import device_ordinal, expect, expect_text, output_list, stream_handle
from trunnion.contract.adapter import BoundLaunch
from trunnion.contract.spec import Target, target_words
from trunnion.dlpack import CPU, CUDA
from trunnion.errors import ArgumentTypeError, ProgramError, shorten
from trunnion.messages import describe, spelled, type_name
from trunnion.model.params import Signature
from trunnion.model.plan.planning import plan_signature
from trunnion_tvm_ffi.foreign.calls import Caller
from trunnion_tvm_ffi.foreign.functions import find_function
from trunnion_tvm_ffi.foreign.layout import result_places

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from os import PathLike
    from types import TracebackType
    from typing import Self

    from trunnion.model.plan import LaunchPlan
    from trunnion_tvm_ffi.foreign.functions import ForeignFunction

__all__ = ["ModuleProgram", "from_module"]

_TARGET = re.compile(r"cpu|cuda:(?:sm|compute)_[1-9][0-9]{1,2}[af]?")
_ALLOCATORS = ("caller", "callee")


def from_module(  # noqa: PLR0913 - what a library does not say of itself, each under its name
    module: Any | str | PathLike[str],
    function: str = "main",
    signature: Signature | None = None,
    *,
    result_idx: int | Sequence[int] | None = None,
    returns: str = "caller",
    host_source: str | None = None,
    device_source: str | None = None,
    target: Target | str | None = None,
) -> ModuleProgram:
    """Take up a function of a TVM-FFI module that anybody made. Loading a file runs its native code: trust it first.

    Parameters
    ----------
    module
        The path of a shared library, which stays loaded until the process ends; a ``tvm_ffi.Module``; or a
        ``tvm_ffi.Function``, for which ``function`` is only what messages call it.
    function
        The function's name.
    signature
        What the function takes and gives back. Every call is checked by it, as a compiled program's is, and outputs are
        allocated. None: the arguments are passed as they are, and only the function checks them.
    result_idx
        The place of each output in the function's own list of parameters, outputs included; negative ones count from
        the end. An int is one place. None: the outputs come last.
    returns
        ``"caller"``: the function is given its outputs. ``"callee"``: it allocates them, and returns one tensor, or
        several in a sequence.
    host_source
        The text that the function's host side was made from, if somebody has it: it is kept to be read.
    device_source
        The text of its device code, likewise.
    target
        What it was compiled for, such as ``"sm_90a"``, likewise: a function runs where its tensors lie. None: nobody
        says.

    Raises
    ------
    ArtifactError
        If there is no such file, or it cannot be loaded.
    CorruptArtifactError
        If the file is no shared library, or not whole.
    ArgumentTypeError, ArgumentValueError
        If an argument is of another type, or the module has no such function.
    ProgramError
        If the signature, ``result_idx`` and ``returns`` do not fit each other, or the target is none
        that modules run on.
    UnboundSymbolError
        If nothing gives a symbol of the signature its value.
    """
    if signature is not None:
        expect(signature, Signature, "signature", "a Signature, or None")
    _check_form(signature, result_idx, returns)
    host_text, device_text = _source(host_source, "host_source"), _source(device_source, "device_source")
    made_for = None if target is None else _target(target)
    return ModuleProgram(
        find_function(module, function),
        signature,
        result_idx=result_idx,
        callee=returns == "callee",
        host_source=host_text,
        device_source=device_text,
        target=made_for,
    )


def _source(given: str | None, name: str) -> str:
    return "" if given is None else expect_text(given, name, "the text of a source, or None")


def _target(given: Target | str) -> Target:
    """Return a target of a kind that modules run on, written as `trunnion.compile` takes it."""
    target = Target.parse(given)
    if not _TARGET.fullmatch(str(target)):
        written = str(target)
        raise ProgramError(f"got {shorten(written)}, expected {target_words(written)}", field="target")
    return target


def _check_form(signature: Signature | None, result_idx: object, returns: object) -> None:
    if spelled(returns) not in _ALLOCATORS:
        raise ProgramError(f"got {describe(returns)}, expected one of {_ALLOCATORS}", field="returns")
    if result_idx is not None and (signature is None or returns == "callee"):
        raise ProgramError(
            "got places of outputs, expected None: the function is given none", field="result_idx"
        )
    if returns == "callee":
        outputs = () if signature is None else signature.outputs
        if signature is not None and not outputs:
            raise ProgramError(
                "got 'callee', expected 'caller': the signature has no outputs", field="returns"
            )
        for index, output in enumerate(outputs):
            if output.fill is not None:
                raise ProgramError(
                    "the function allocates it: nobody can fill it", field=f"outputs[{index}].fill"
                )


class ModuleProgram:
    """A function of a TVM-FFI module, called as a compiled program is; `from_module` makes it.

    Parameters
    ----------
    function
        The function.
    signature
        What it takes and gives back; None: nobody says.
    result_idx
        Where it wants its outputs; see `from_module`.
    callee
        Whether it allocates its outputs and returns them.
    host_source, device_source, target
        What it was made from and for, as far as somebody says it; see `from_module`.
    """

    __slots__ = (
        "_caller",
        "device_source",
        "function",
        "host_source",
        "plan",
        "result_idx",
        "signature",
        "target",
    )

    def __init__(  # noqa: PLR0913 - `from_module` alone calls it
        self,
        function: ForeignFunction,
        signature: Signature | None,
        *,
        result_idx: Any,
        callee: bool,
        host_source: str = "",
        device_source: str = "",
        target: Target | None = None,
    ) -> None:
        self.function = function
        """The function, with its module and the file."""
        self.signature = signature
        """What it takes and gives back; None: nobody says."""
        self.plan: LaunchPlan | None = None
        """The plan of a call: symbols, checks, outputs; None without a signature."""
        self.result_idx: tuple[int, ...] = ()
        """The place of each output among the function's parameters; empty if it is given none."""
        self.host_source = host_source
        """The text of the host side, as `from_module` was given it; empty if it was not."""
        self.device_source = device_source
        """The text of the device code, as `from_module` was given it; empty if it was not."""
        self.target = target
        """What it was compiled for, as `from_module` was told it; None if it was not."""
        if signature is not None:
            self.plan = plan_signature(function.name, signature)
            self.result_idx = () if callee else result_places(signature, result_idx)
        self._caller = Caller(function, self.plan, self.result_idx, callee=callee)

    @property
    def name(self) -> str:
        """The function's name."""
        return self.function.name

    @property
    def symbol_map(self) -> dict[str, tuple[int, int, int]]:
        """Where each symbol gets its value; see `LaunchPlan.symbol_map`. Empty without a signature."""
        return {} if self.plan is None else self.plan.symbol_map

    @property
    def source(self) -> str:
        """The device code's text if it was given, else what the module itself shows of its source; empty if nothing."""
        if self.device_source:
            return self.device_source
        return "" if self.function.module is None else str(self.function.module.inspect_source())

    def __repr__(self) -> str:
        return f"<ModuleProgram {self.function}>"

    # Calls -----------------------------------------------------------------------------------------------------

    def __call__(self, *args: Any, out: Any = None, stream: Any = None, device: Any = None) -> Any:
        """Call the function.

        Parameters
        ----------
        *args
            Torch tensors, arrays that DLPack carries, and numbers: the signature's parameters, or what the function
            takes.
        out
            Where to put the outputs: an array if there is one output, else a sequence; None: torch tensors are
            allocated.
        stream
            None: the current stream of the tensors' device; or what a compiled program takes. It must be named for CUDA
            arrays of a library that does not tell TVM-FFI its current stream.
        device
            A CUDA device, or ``"cpu"``; needed if no argument is a tensor.

        Returns
        -------
        Any
            None, the output, or a tuple of outputs; without a signature, what the function returns.

        Raises
        ------
        ArgumentError
            If an argument does not fit the signature; the function was not called.
        ExprError
            If an expression cannot be computed from this call's values.
        ProgramError
            If the function returned something else than the signature says.
        LifecycleError
            If the program was closed, or the process forked after a call on a CUDA device.
        """
        caller = self._ready()
        if out is None and stream is None and device is None:
            return caller.call(*args)
        return caller.call(*args, out=self._given(out), stream=stream_handle(stream), device=_device(device))

    def bind(self, *args: Any, out: Any = None, stream: Any = None, device: Any = None) -> BoundLaunch:
        """Check everything now, and return a call of these arguments that can be repeated.

        Parameters and errors are those of a call, but the function is not called yet. Outputs that are not given are
        allocated now, unless the function does it; a stream of None is the one that is current now.
        """
        caller = self._ready()
        call = caller.prepare(
            *args, out=self._given(out), stream=stream_handle(stream), device=_device(device)
        )
        handle = caller.stream_of(call)
        guarded = caller.arrays.guarded(caller.run)

        def entry() -> Any:
            self._ready()
            return guarded(call, handle)

        ordinal = call.device[1] if call.device is not None and call.device[0] == CUDA else None
        return BoundLaunch(entry, name=self.name, device=ordinal, stream=handle)

    @property
    def entry(self) -> Callable[..., Any]:
        """The call itself: positional arguments, on the current stream; the fastest way in."""
        return self._ready().entry

    def _given(self, out: Any) -> Any:
        """Return the outputs of a call as a sequence; without a signature as they are, to be refused as such."""
        if out is None or self.signature is None:
            return out
        several = output_list(out)
        if several is not None:
            return several
        if len(self.signature.outputs) == 1:
            return (out,)
        raise ArgumentTypeError("out", type_name(out), "a sequence of arrays, one for each output, or None")

    # Life ------------------------------------------------------------------------------------------------------

    def _ready(self) -> Caller:
        self._caller.check_open()
        return self._caller

    def close(self) -> None:
        """Call the function no more, by an `entry` that was taken before neither; closing again does nothing.

        A file that was loaded stays loaded: tensors that its functions returned may need its code to be freed.
        """
        self._caller.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _device(device: Any) -> tuple[int, int] | None:
    """Return DLPack's name of what a caller passes for ``device=``."""
    if spelled(device, "torch.device") in ("cpu", "cpu:0"):
        return CPU, 0
    ordinal = device_ordinal(device)
    return None if ordinal is None else (CUDA, ordinal)
