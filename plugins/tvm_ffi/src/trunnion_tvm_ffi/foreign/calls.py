"""Calling a function of TVM-FFI: on which stream, with which errors, and what comes back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.dlpack import CUDA
from trunnion.errors import ProgramError
from trunnion.messages import type_name
from trunnion.model.plan.refusals import CLOSED_MODULE
from trunnion.turns import kept_property
from trunnion_tvm_ffi.foreign.arrays import Arrays, ForeignArray
from trunnion_tvm_ffi.foreign.fills import fill
from trunnion_tvm_ffi.foreign.functions import on_raw_stream
from trunnion_tvm_ffi.foreign.interface import emit_preparation
from trunnion_tvm_ffi.foreign.layout import argument_places
from trunnion_tvm_ffi.foreign.passing import pass_on
from trunnion_tvm_ffi.foreign.preparation import Preparation
from trunnion_tvm_ffi.foreign.results import read_results

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.model.plan import LaunchPlan
    from trunnion_tvm_ffi.foreign.functions import ForeignFunction
    from trunnion_tvm_ffi.foreign.preparation import PreparedCall

__all__ = ["Caller"]


class Caller:
    """Calls one function.

    Parameters
    ----------
    function
        The function.
    plan
        The plan of its signature; None: nobody described it.
    results
        The place of each output among the function's parameters.
    callee
        Whether the function allocates its outputs and returns them.
    """

    def __init__(
        self, function: ForeignFunction, plan: LaunchPlan | None, results: tuple[int, ...], *, callee: bool
    ) -> None:
        self._function, self._plan, self._results, self._callee = function, plan, results, callee
        self._outputs = () if plan is None else plan.outputs
        self._fills = any(slot.fill is not None for slot in self._outputs)
        self._closed = False

    def close(self) -> None:
        """Make no call any more; those under way go on."""
        self._closed = True

    def check_open(self) -> None:
        """Refuse what comes after `close`.

        Raises
        ------
        LifecycleError
            If it was called.
        """
        if self._closed:
            raise CLOSED_MODULE()

    @kept_property
    def arrays(self) -> Arrays:
        """How arrays are read; found out at the first call, because a simulator may be started before."""
        return Arrays()

    @kept_property
    def prepare(self) -> Callable[..., PreparedCall]:
        """The check of a call: positional arguments, and ``out``, ``stream`` and ``device`` in their plain forms.

        It allocates the outputs, and raises `ArgumentError`, `ExprError`, `UnboundSymbolError` or
        `DeviceRequirementError` if the call does not fit.
        """
        plan = self._plan
        if plan is None:
            return self._pass_on
        text = emit_preparation(plan, argument_places(plan.signature, self._results))
        namespace: dict[str, Any] = {}
        exec(compile(text, "<preparation>", "exec"), namespace)  # noqa: S102 - our own text, no user's name in it
        prepare: Callable[..., PreparedCall] = namespace["make"](
            Preparation(plan, self.arrays, returned=self._callee)
        )
        return prepare

    def _pass_on(
        self,
        *args: Any,
        out: Any = None,
        stream: int | None = None,
        device: tuple[int, int] | None = None,
    ) -> PreparedCall:
        return pass_on(self.arrays, args, out, device, stream)

    @kept_property
    def call(self) -> Callable[..., Any]:
        """`check_open`, `prepare`, and then `run`."""

        def call(*args: Any, **named: Any) -> Any:
            self.check_open()
            call = prepare(*args, **named)
            return self.run(call, self.stream_of(call))

        prepare = self.prepare
        return self.arrays.guarded(call)

    @kept_property
    def entry(self) -> Callable[..., Any]:
        """`call` without anything that has a name."""

        def entry(*args: Any) -> Any:
            self.check_open()
            call = prepare(*args)
            return self.run(call, self.stream_of(call))

        prepare = self.prepare
        return self.arrays.guarded(entry)

    def stream_of(self, call: PreparedCall) -> int | None:
        """Return the handle of the stream that a call runs on; None on the host, and where TVM-FFI finds it out."""
        device = call.device
        if device is None or device[0] != CUDA:
            return None
        if call.stream is not None or (call.asks and not call.torch):
            return call.stream
        return self.arrays.runtime.current_stream_getter()(device[1])

    def run(self, call: PreparedCall, stream: int | None) -> Any:
        """Call the function.

        Parameters
        ----------
        call
            What `prepare` returned.
        stream
            What `stream_of` returned.

        Raises
        ------
        ProgramError
            If the function returned something else than the signature says.
        LifecycleError
            If it is a call on a CUDA device, and the process forked since the first of these.
        """
        self.arrays.check_process(call.device)
        if stream is None or call.device is None:
            return self._invoke(call)
        if call.torch:
            # Torch's tensors bring torch's current stream, whatever TVM-FFI was told before.
            context = self.arrays.runtime.on_stream(call.device[1], stream)
        else:
            context = on_raw_stream(call.device, stream)
        with context:
            return self._invoke(call)

    def _invoke(self, call: PreparedCall) -> Any:
        if self._fills and call.device is not None:
            for slot, output in zip(self._outputs, call.outputs, strict=True):
                if slot.fill is not None:
                    fill(self.arrays, output, slot.fill, call.device)
        try:
            returned = self._function.call(*call.arguments)
        except Exception as error:
            error.add_note(f"raised by {self._function}")
            if self._callee and not any(map(self.arrays.is_torch, call.arguments)):
                error.add_note("TVM-FFI has memory for what a function allocates only beside torch tensors")
            raise
        if returned is None and len(call.outputs) == 1:
            output = call.outputs[0]
            return output.value if type(output) is ForeignArray else output
        return self._result(call, returned)

    def _result(self, call: PreparedCall, returned: Any) -> Any:
        if self._plan is None:
            return returned
        if self._callee:
            results = read_results(self.arrays, self._outputs, call, returned)
        elif returned is not None:
            got = f"the function returned {type_name(returned)}, expected None: it is given its outputs"
            raise ProgramError(f"{got}; say returns='callee' if it returns them", field="outputs")
        else:
            results = tuple(
                output.value if type(output) is ForeignArray else output for output in call.outputs
            )
        return results[0] if len(results) == 1 else results or None
