"""`from_artifact`: what ``tilelang.lower`` returns, as a program."""

from __future__ import annotations

from collections.abc import Iterable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any, SupportsIndex

from trunnion.errors import ProgramError
from trunnion.messages import describe
from trunnion.model.params import Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion_tilelang.compiler_flags import CompilerFlags
from trunnion_tilelang.cutedsl_source import cutedsl_launch
from trunnion_tilelang.device_source import device_code
from trunnion_tilelang.errors import Refusal, UnsupportedStatementError, not_too_deep
from trunnion_tilelang.parameters import Parameters
from trunnion_tilelang.prologue import Prologue
from trunnion_tilelang.reading import computed_variables, read_only_pointers
from trunnion_tilelang.tir import artifact_module
from trunnion_tilelang.walk import Walk

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.model.code import DeviceCode
    from trunnion_tilelang.nodes import Module

__all__ = ["from_artifact", "positions", "program_of"]


def from_artifact(
    artifact: Any, *, out_idx: int | Sequence[int] | None = None, name: str | None = None
) -> KernelProgram:
    """Return the program of a lowered TileLang kernel.

    Parameters
    ----------
    artifact
        What ``tilelang.lower`` returns, for a CUDA target and without ``enable_host_codegen``.
    out_idx
        The positions of the parameters that are outputs, negative ones counted from the end, in the order in which
        they are returned; None: those that the host function's attributes name.
    name
        What people call the program; None: the function's name.

    Raises
    ------
    UnsupportedStatementError
        If the host function does what a program cannot say; the statement is named.
    ProgramError
        If it is no such artifact, or its parts do not fit together.
    """
    module = artifact_module(artifact)
    called = name or module.host.name
    code = device_code(module, CompilerFlags(), called)
    return program_of(module, code, out_idx=out_idx, name=called)


@not_too_deep()
def program_of(
    module: Module, code: DeviceCode, *, out_idx: int | Sequence[int] | None, name: str
) -> KernelProgram:
    """Return the program of a host function and its device code; see `from_artifact`."""
    try:
        prologue = Prologue.read(module.host, module.dtypes)
        outputs = _outputs(module, len(prologue.parameters), out_idx)
        parameters = Parameters(prologue, outputs, read_only_pointers(module), computed_variables(module))
    except Refusal as refusal:
        raise UnsupportedStatementError(str(refusal), "the parameters", module.host.name) from refusal
    walk = Walk(module, parameters)
    walk.run()
    results = [parameters.by_index[index] for index in outputs]
    signature = Signature(
        tuple(parameters.by_index[index] for index in sorted(parameters.by_index) if index not in outputs),
        tuple(result for result in results if isinstance(result, TensorParam)),
        tuple(walk.checks),
    )
    if len(signature.outputs) != len(outputs):
        raise ProgramError("got an output that is no tensor", field="out_idx")
    launches = walk.launches
    if module.language == "cutedsl":
        launches = [cutedsl_launch(launch) for launch in launches]
    return KernelProgram(name, signature, (code,), tuple(launches))


def positions(out_idx: int | Sequence[int]) -> tuple[int, ...]:
    """Return an author's ``out_idx`` as positions.

    Raises
    ------
    ProgramError
        If it is neither an integer nor integers in an order.
    """
    given: tuple[Any, ...] = (out_idx,)
    if isinstance(out_idx, Iterable) and not isinstance(out_idx, (str, AbstractSet)):
        given = tuple(out_idx)
    for index in given:
        if isinstance(index, bool) or not isinstance(index, SupportsIndex):
            raise ProgramError(
                f"got {describe(out_idx)}, expected an integer, or integers in an order", field="out_idx"
            )
    return tuple(int(index) for index in given)


def _outputs(module: Module, count: int, out_idx: int | Sequence[int] | None) -> tuple[int, ...]:
    """Return the outputs' positions, all counted from the beginning.

    Raises
    ------
    ProgramError
        If one is out of range, or named twice.
    """
    given = module.host.outputs if out_idx is None else positions(out_idx)
    for index in given:
        if not -count <= index < count:
            raise ProgramError(f"got {index}, expected {-count} to {count - 1}", field="out_idx")
    outputs = tuple(index % count for index in given)
    if len(set(outputs)) != len(outputs):
        raise ProgramError(f"got {list(given)}, which names a parameter twice", field="out_idx")
    if module.host.callee_allocates and set(outputs) != {index % count for index in module.host.outputs}:
        own = list(module.host.outputs)
        raise ProgramError(
            f"got {list(given)}, expected {own}: the function allocates these itself", field="out_idx"
        )
    return outputs
