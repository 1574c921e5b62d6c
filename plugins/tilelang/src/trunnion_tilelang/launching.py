"""Launches: the operands of a kernel's call as a launch of the program.

The call gives the kernel's parameters in the kernel's own order, and then what its attribute ``kernel_launch_params``
lists: extents of cluster, grid and block, and the dynamic shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.errors import ProgramError
from trunnion.messages import shorten
from trunnion.model.dtypes import DTYPES
from trunnion.model.expr import Const, Expr
from trunnion.model.launch import KernelLaunch
from trunnion_tilelang.errors import Refusal
from trunnion_tilelang.nodes import Node, Var

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trunnion.model.launch import Argument
    from trunnion.model.params import ScalarParam
    from trunnion.model.window import AccessPolicyWindow
    from trunnion_tilelang.arithmetic import Arithmetic
    from trunnion_tilelang.nodes import DeviceFunction

__all__ = ["LAUNCH_PARAMS", "Launcher"]

LAUNCH_PARAMS: Mapping[str, tuple[str, int]] = {
    "tir.cluster_dim_x": ("cluster", 0),
    "tir.cluster_dim_y": ("cluster", 1),
    "tir.cluster_dim_z": ("cluster", 2),
    "blockIdx.x": ("grid", 0),
    "blockIdx.y": ("grid", 1),
    "blockIdx.z": ("grid", 2),
    "threadIdx.x": ("block", 0),
    "threadIdx.y": ("block", 1),
    "threadIdx.z": ("block", 2),
    "tirx.use_dyn_shared_memory": ("dynamic_smem_bytes", 0),
}
"""Where each launch operand goes: the field of a launch, and the axis."""


@dataclass(frozen=True, slots=True)
class Launcher:
    """Makes launches."""

    arithmetic: Arithmetic
    """Translates integer operands."""

    pointers: Mapping[int, Argument]
    """What each variable of type handle stands for, by key: memory, a map, an address."""

    scalars: Mapping[int, ScalarParam]
    """The scalar parameters, by the key of the variable that holds each."""

    def launch(
        self,
        kernel: DeviceFunction,
        operands: Sequence[Node],
        window: AccessPolicyWindow | None,
        when: Expr | None,
    ) -> KernelLaunch:
        """Return the launch that a call of a kernel makes.

        Raises
        ------
        Refusal
            If a program cannot say it.
        """
        count = len(kernel.params)
        if len(operands) != count + len(kernel.launch_params):
            raise Refusal(
                f"the kernel has {count} parameters and {len(kernel.launch_params)} launch operands, "
                f"and is called with {len(operands)}"
            )
        args = tuple(self._argument(*pair) for pair in zip(operands, kernel.params, strict=False))
        dims: dict[str, dict[int, Expr]] = {}
        for tag, operand in zip(kernel.launch_params, operands[count:], strict=True):
            if tag not in LAUNCH_PARAMS:
                raise Refusal(f"the launch operand {tag} is none of {', '.join(LAUNCH_PARAMS)}")
            field, axis = LAUNCH_PARAMS[tag]
            dims.setdefault(field, {})[axis] = self.arithmetic.expr(operand)
        try:
            return KernelLaunch(
                kernel.entry,
                args,
                _extents(dims.get("grid", {})),
                _extents(dims.get("block", {})),
                dynamic_smem_bytes=dims.get("dynamic_smem_bytes", {}).get(0, Const(0)),
                cluster=_cluster(dims.get("cluster")),
                cooperative=kernel.cooperative,
                pdl=kernel.pdl,
                window=window,
                when=when,
            )
        except ProgramError as error:
            raise Refusal(str(error)) from error

    def _argument(self, operand: Node, param: Var) -> Argument:
        """Return an operand as the type of the kernel's parameter."""
        if param.dtype == "handle":
            found = self.pointers.get(operand.key) if isinstance(operand, Var) else None
            if found is None:
                raise Refusal(
                    f"the kernel's parameter {shorten(param.name)} is given a pointer that is no tensor's, "
                    "workspace's or map's own"
                )
            return found
        scalar = self.scalars.get(operand.key) if isinstance(operand, Var) else None
        if scalar is not None and scalar.dtype.name == param.dtype:
            return scalar
        if param.dtype == "bool":  # one byte of 0 or 1, whatever the type that carries it
            return self.arithmetic.expr(operand).cast("uint8")
        row = DTYPES.get(param.dtype)
        if row is None or not row.is_integer:
            raise Refusal(
                f"the kernel's parameter {shorten(param.name)} of type {param.dtype} is given a value that is "
                "computed: only integers are"
            )
        return self.arithmetic.expr(operand).cast(param.dtype)


def _extents(axes: Mapping[int, Expr]) -> tuple[Expr, Expr, Expr]:
    return axes.get(0, Const(1)), axes.get(1, Const(1)), axes.get(2, Const(1))


def _cluster(axes: Mapping[int, Expr] | None) -> tuple[Expr, Expr, Expr] | None:
    return None if axes is None else _extents(axes)
