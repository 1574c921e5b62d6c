"""`ProgramBuilder`: how people write a program."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.model.code import code_parts
from trunnion.model.fields import place, refuse_unknown
from trunnion.model.launch import KernelLaunch
from trunnion.model.module_variable import CopyToVariable, ModuleVariable
from trunnion.model.params import Check, Param, PointerParam, ScalarParam, Signature, StructParam, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.model.workspace import Workspace

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any

    from trunnion.model.code import DeviceCode, ObjectCode
    from trunnion.model.dtypes import DType
    from trunnion.model.expr import Expr, ExprLike, Symbol

__all__ = ["ProgramBuilder"]


class ProgramBuilder:
    """Collect a program's parts in the order in which they are written.

    Parameters
    ----------
    name
        What people call the program.
    code
        The device code, in one part or several that are linked; a ``cuda.core.ObjectCode`` is one too (`ObjectCode`).

    Examples
    --------
    >>> from trunnion import DeviceCode, ProgramBuilder, ceildiv, symbols
    >>> (n,) = symbols("n")
    >>> p = ProgramBuilder("scale", DeviceCode("cuda", "__global__ void scale(...);"))
    >>> x = p.input("x", "float32", (n,))
    >>> y = p.output("y", "float32", (n,))
    >>> p.launch("scale", args=(x, y, n.cast("int32")), grid=ceildiv(n, 256), block=256)
    >>> p.build().signature.outputs[0].name
    'y'
    """

    def __init__(self, name: str, code: DeviceCode | ObjectCode | Iterable[DeviceCode | ObjectCode]) -> None:
        self._name = name
        self._code = code_parts(code)
        self._params: list[Param] = []
        self._outputs: list[TensorParam] = []
        self._checks: list[Check] = []
        self._launches: list[KernelLaunch] = []
        self._variables: list[ModuleVariable] = []
        self._copies: list[CopyToVariable] = []

    def input(self, name: str, dtype: DType | str, shape: Sequence[ExprLike], **fields: Any) -> TensorParam:
        """Add a tensor that the caller passes; further fields are those of `TensorParam`.

        Raises
        ------
        ProgramError
            If a field is wrong; it is named.
        """
        param = _tensor(name, dtype, shape, fields)
        self._params.append(param)
        return param

    def output(self, name: str, dtype: DType | str, shape: Sequence[ExprLike], **fields: Any) -> TensorParam:
        """Add a tensor that the launcher allocates and returns; further fields are those of `TensorParam`.

        Raises
        ------
        ProgramError
            If a field is wrong; it is named.
        """
        param = _tensor(name, dtype, shape, {"access": "write", **fields})
        self._outputs.append(param)
        return param

    def scalar(self, name: str, dtype: DType | str, symbol: Symbol | None = None) -> ScalarParam:
        """Add a number that the caller passes, and the symbol that stands for it in expressions.

        Raises
        ------
        ProgramError
            If a field is wrong; it is named.
        """
        param = ScalarParam(name, dtype, symbol)  # type: ignore[arg-type]  # the constructor reads spellings too
        self._params.append(param)
        return param

    def pointer(self, name: str, **fields: Any) -> PointerParam:
        """Add an address that the caller passes as a number; further fields are those of `PointerParam`.

        Raises
        ------
        ProgramError
            If a field is wrong; it is named.
        """
        refuse_unknown(fields, PointerParam.__match_args__[1:], "pointer")
        param = PointerParam(name, **fields)
        self._params.append(param)
        return param

    def struct(self, name: str, nbytes: int, alignment: int) -> StructParam:
        """Add bytes that the caller passes and that reach the kernel by value.

        Raises
        ------
        ProgramError
            If a field is wrong; it is named.
        """
        param = StructParam(name, nbytes, alignment)
        self._params.append(param)
        return param

    def workspace(self, name: str, dtype: DType | str, shape: Sequence[ExprLike], **fields: Any) -> Workspace:
        """Return device memory for the length of a call, to be given to launches.

        The program has it once a launch is given it; further fields are those of `Workspace`.

        Raises
        ------
        ProgramError
            If a field is wrong; it is named.
        """
        refuse_unknown(fields, Workspace.__match_args__[3:], "workspace")
        return Workspace(name, dtype, shape, **fields)  # type: ignore[arg-type]  # the constructor normalises

    def variable(
        self, name: str, dtype: DType | str, shape: Sequence[int] = (), **fields: Any
    ) -> ModuleVariable:
        """Add a ``__device__`` or ``__constant__`` variable of the device code; further fields are `ModuleVariable`'s.

        With ``init`` it holds that before the first launch on each device; as an argument of a launch it is its
        address; `copy` writes to it in every call.

        Raises
        ------
        ProgramError
            If a field is wrong; it is named.
        """
        refuse_unknown(fields, ModuleVariable.__match_args__[3:], "variable")
        variable = ModuleVariable(name, dtype, shape, **fields)  # type: ignore[arg-type]  # normalised there
        self._variables.append(variable)
        return variable

    def copy(self, variable: ModuleVariable, tensor: TensorParam) -> None:
        """Copy a tensor of the signature to a variable, on the call's stream, before the launches that are added later.

        Raises
        ------
        ProgramError
            If the tensor is not contiguous, or not of the variable's type and size; of sizes that only a call decides,
            the call is refused.
        """
        with place(f"copies[{len(self._copies)}]"):
            copy = CopyToVariable(variable, tensor, len(self._launches))
        self._copies.append(copy)

    def check(self, condition: Expr, message: str) -> None:
        """Refuse every call for which ``condition`` is 0, with ``message`` as what is expected."""
        self._checks.append(Check(condition, message))

    def launch(
        self,
        kernel: str,
        args: Sequence[Any],
        grid: ExprLike | Sequence[ExprLike],
        block: ExprLike | Sequence[ExprLike],
        **fields: Any,
    ) -> None:
        """Add a launch; further fields are those of `KernelLaunch`.

        Raises
        ------
        ProgramError
            If a field is wrong; it is named.
        """
        with place(f"launches[{len(self._launches)}]"):
            refuse_unknown(fields, KernelLaunch.__match_args__[4:], "")
            launch = KernelLaunch(kernel, args, grid, block, **fields)  # type: ignore[arg-type]  # normalised there
        self._launches.append(launch)

    def build(self) -> KernelProgram:
        """Return the program.

        Raises
        ------
        ProgramError
            If its parts do not fit together; the wrong field is named.
        """
        signature = Signature(tuple(self._params), tuple(self._outputs), tuple(self._checks))
        return KernelProgram(
            self._name,
            signature,
            self._code,  # type: ignore[arg-type]  # the program checks it
            tuple(self._launches),
            tuple(self._variables),
            tuple(self._copies),
        )


def _tensor(name: str, dtype: DType | str, shape: Sequence[ExprLike], fields: dict[str, Any]) -> TensorParam:
    refuse_unknown(fields, TensorParam.__match_args__[3:], "tensor")
    return TensorParam(name, dtype, shape, **fields)  # type: ignore[arg-type]  # the constructor normalises
