"""A small interpreter of the host functions that TileLang lowers to: what a call of one asks the driver to do.

It is the tests' own reading of the IR: nothing of the importer or of a plan is in it. Statements are run one by one
with the arguments of one call, as the C code that TVM makes of them would be, and launches are recorded.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

from tilelang_host.expressions import Evaluator, as_type
from tilelang_host.values import HostAssertion, Launch, MapRequest, Scalar, Scratch, Slot, Window

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["interpret", "packed_calls"]

_AXES = {f"{what}.{axis}": (what, "xyz".index(axis)) for what in ("blockIdx", "threadIdx") for axis in "xyz"}
_CLUSTER = {f"cluster_dim_{axis}": ("cluster", "xyz".index(axis)) for axis in "xyz"}
_SHARED = "use_dyn_shared_memory"
_BITS = {"bool": 8}


def interpret(artifact: Any, arguments: Sequence[Any]) -> tuple[Launch, ...]:
    """Return the launches of one call, in order.

    Parameters
    ----------
    artifact
        What ``tilelang.lower`` returned.
    arguments
        One for each parameter of the PrimFunc, outputs too: tensors, numbers, None.

    Raises
    ------
    HostAssertion
        If an assertion of the host function does not hold.
    NotImplementedError
        If the function has something that no kernel of the corpus has.
    """
    return tuple(_run(artifact, arguments).launches)


def packed_calls(artifact: Any, arguments: Sequence[Any]) -> tuple[tuple[Any, ...], ...]:
    """Return what the host function calls in one call, in order: each name, then the operands.

    Parameters
    ----------
    artifact, arguments
        As for `interpret`.

    Raises
    ------
    HostAssertion
        As for `interpret`.
    NotImplementedError
        As for `interpret`.
    """
    return tuple(_run(artifact, arguments).calls)


def _run(artifact: Any, arguments: Sequence[Any]) -> _Run:
    (host,) = artifact.host_mod.functions.values()
    kernels = {str(func.attrs["global_symbol"]): func for func in artifact.device_mod.functions.values()}
    run = _Run(list(arguments), kernels)
    _, packed, count, _ = host.params
    run.variables |= {packed: run.arguments, count: len(run.arguments)}
    run.statement(host.body)
    return run


class _Run(Evaluator):
    """One call."""

    def __init__(self, arguments: list[Any], kernels: dict[str, Any]) -> None:
        super().__init__(arguments)
        self.launches: list[Launch] = []
        self.calls: list[tuple[Any, ...]] = []
        self._kernels = kernels
        self._window: Window | None = None
        self._allocated = 0

    def statement(self, node: Any) -> None:
        """Run a statement."""
        kind = type(node).__name__
        known = getattr(self, f"_run_{kind.lower()}", None)
        if known is None:
            raise NotImplementedError(f"a statement of the kind {kind}: {node}")
        known(node)

    def _run_seqstmt(self, node: Any) -> None:
        for each in node.seq:
            self.statement(each)

    def _run_bind(self, node: Any) -> None:
        self.variables[node.var] = as_type(self.value(node.value), str(node.var.dtype))

    def _run_assertstmt(self, node: Any) -> None:
        if not self.value(node.condition):
            raise HostAssertion("".join(str(part.value) for part in node.message_parts))

    def _run_attrstmt(self, node: Any) -> None:
        self.statement(node.body)

    def _run_ifthenelse(self, node: Any) -> None:
        if self.value(node.condition):
            self.statement(node.then_case)
        elif node.else_case is not None:
            self.statement(node.else_case)

    def _run_for(self, node: Any) -> None:
        start, extent = self.value(node.min), self.value(node.extent)
        for at in range(0, extent, 1 if node.step is None else self.value(node.step)):
            self.variables[node.loop_var] = start + at
            self.statement(node.body)

    def _run_declbuffer(self, node: Any) -> None:
        """Take note of a buffer's type: what its pointer points to is known anyway."""

    def _run_allocbuffer(self, node: Any) -> None:
        buffer, dtype = node.buffer, str(node.buffer.dtype)
        if buffer.scope() != "global":
            raise NotImplementedError(f"an allocation that is not in the device's memory: {node}")
        count = math.prod(self.value(extent) for extent in buffer.shape)
        bits = _BITS.get(dtype) or buffer.dtype.bits
        self.variables[buffer.data] = Scratch(self._allocated, dtype, -(-count * bits // 8))
        self._allocated += 1

    def _run_evaluate(self, node: Any) -> None:
        if type(node.value).__name__ == "IntImm":
            return
        self.value(node.value)

    # What is called ------------------------------------------------------------------------------------------

    def _call_ret(self, node: Any) -> None:
        if self.value(node.args[0]) != 0:
            raise NotImplementedError(f"a return of something else than 0: {node}")

    def _call_tvm_stack_alloca(self, node: Any) -> Slot:
        return Slot()

    def _call_tvm_call_packed(self, node: Any) -> None:
        name, *operands = node.args
        known = {
            "__tvm_set_device": lambda *_: None,
            "__tvm_tensormap_create_tiled": self._encode_tiled,
            "__tvm_tensormap_create_im2col": self._encode_im2col,
            "__tvm_cuda_stream_set_access_policy_window": self._set_window,
            "__tvm_cuda_stream_reset_access_policy_window": self._reset_window,
        }
        values = [self.value(operand) for operand in operands]
        self.calls.append((str(name.value), *values))
        if name.value in known:
            known[name.value](*values)
        elif name.value in self._kernels:
            self._launch(str(name.value), values)
        else:
            raise NotImplementedError(f"a call of {name.value!r}")

    def _encode_tiled(self, slot: Slot, dtype: int, rank: int, address: Any, *rest: int) -> None:
        dims, strides, box, steps = (tuple(rest[at * rank : (at + 1) * rank]) for at in range(4))
        modes = rest[4 * rank :]
        slot.request = MapRequest("tiled", dtype, address, dims, strides[1:], (box,), steps, _four(modes))

    def _encode_im2col(self, slot: Slot, dtype: int, rank: int, address: Any, *rest: int) -> None:
        dims, strides, steps = (tuple(rest[at * rank : (at + 1) * rank]) for at in range(3))
        corners = rest[3 * rank : 5 * rank - 4]
        pixels, channels, *modes = rest[5 * rank - 4 :]
        box = (corners[: rank - 2], corners[rank - 2 :], channels, pixels)
        slot.request = MapRequest("im2col", dtype, address, dims, strides[1:], box, steps, _four(modes))

    def _set_window(self, address: Any, nbytes: int, ratio: float) -> None:
        self._window = Window(address, nbytes, ratio)

    def _reset_window(self) -> None:
        self._window = None

    # Launches ------------------------------------------------------------------------------------------------

    def _launch(self, name: str, values: list[Any]) -> None:
        kernel = self._kernels[name]
        count, tags = len(kernel.params), [str(tag) for tag in kernel.attrs["tirx.kernel_launch_params"]]
        if len(values) != count + len(tags):
            raise NotImplementedError(f"{len(values)} operands of {name}, expected {count} and {tags}")
        extents = {"blockIdx": [1, 1, 1], "threadIdx": [1, 1, 1], "cluster": [1, 1, 1]}
        shared = 0
        for tag, value in zip(tags, values[count:], strict=True):
            last = tag.removeprefix("tirx.").removeprefix("tir.")
            if last == _SHARED:
                shared = value
            else:
                what, axis = (_AXES | _CLUSTER)[last]
                extents[what][axis] = value
        cluster = _three(extents["cluster"]) if any("cluster" in tag for tag in tags) else None
        self.launches.append(
            Launch(
                kernel=name,
                parameters=tuple(map(_received, kernel.params, values)),
                grid=_three(extents["blockIdx"]),
                block=_three(extents["threadIdx"]),
                cluster=cluster,
                shared=shared,
                cooperative=bool(kernel.attrs.get("use_cooperative_groups", 0)),
                pdl=bool(kernel.attrs.get("has_cuda_pdl_sync", 0)),
                window=self._window,
            )
        )


def _received(param: Any, value: Any) -> Any:
    """Return an operand as the kernel's parameter receives it."""
    if isinstance(value, Slot):
        if value.request is None:
            raise NotImplementedError(f"a tensor map that is passed before it is encoded: {param}")
        return value.request
    if isinstance(value, Scratch) or str(param.dtype) == "handle":
        return 0 if value is None else value
    return Scalar(str(param.dtype), as_type(value, str(param.dtype)))


def _three(extents: Sequence[int]) -> tuple[int, int, int]:
    x, y, z = extents
    return x, y, z


def _four(modes: Sequence[int]) -> tuple[int, int, int, int]:
    interleave, swizzle, promotion, fill = modes
    return interleave, swizzle, promotion, fill
