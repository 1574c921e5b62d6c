"""`jax_call`: a program as a function of JAX, through XLA's custom calls and ``jax-tvm-ffi``, by the same launcher."""

from __future__ import annotations

import ctypes
import uuid
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trunnion.arguments import expect
from trunnion.codegen.cpp.build import LAUNCHER
from trunnion.codegen.cpp.image import encoded_name
from trunnion.codegen.cpp.loader import load_library, load_runtime
from trunnion.compiled import CompiledProgram
from trunnion.contract.convention import WORDS, Convention
from trunnion.errors import (
    BackendUnavailableError,
    ProgramError,
    UnsupportedFeatureError,
    shorten,
)
from trunnion.launcher import refusals
from trunnion.launcher.memory import ALLOCATOR_ALIGNMENT
from trunnion.messages import describe, listed
from trunnion.model.dtypes import Kind
from trunnion.model.params import ScalarParam, TensorParam
from trunnion.model.plan import refusals as rows
from trunnion.model.plan.steps import Phase, ShapeLaunch, SizeWorkspace, slots_of
from trunnion.operators.structure import StructureWalk

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trunnion.model.params import Param
    from trunnion.model.plan import LaunchPlan

__all__ = ["jax_call"]

_PLATFORMS: Final = {"cuda": "gpu", "cpu": "cpu"}
_PIECE: Final = 128  # bytes of which jax-tvm-ffi gives out the workspace
_NUMBERS: Final = {Kind.BOOL: "bool_", Kind.INT: "int64", Kind.UINT: "int64", Kind.FLOAT: "float64"}
_SIGNED_END: Final = 1 << 63
_BITS: Final = (1 << 64) - 1


def jax_call(program: CompiledProgram) -> Callable[..., Any]:
    """Return a program as a function of JAX's arrays, which may be called inside of `jax.jit`.

    It takes what the program takes, by position or by name. Tensors are JAX's arrays; numbers are Python's, and part of
    what XLA compiles. What comes back is allocated by JAX, by the program's own expressions, and so are workspaces.
    `jax.vmap` calls it for each member. It is not differentiable: `jax.custom_vjp` says what the gradient is.

    Parameters
    ----------
    program
        The program, by a backend whose launchers are C++.

    Returns
    -------
    collections.abc.Callable
        The function; it returns an array, or a tuple of several.

    Raises
    ------
    ArgumentTypeError
        If it is no program.
    UnsupportedFeatureError
        If the launcher is Python, or the program asks for what JAX has not: a tensor to write into, an address, a
        struct, a complex number, a tensor of those or of pairs of 4-bit floats, a workspace whose size facts of the
        device decide.
    ProgramError
        If it has no output, so that there would be nothing to call it for.
    BackendUnavailableError
        If ``jax``, ``jax-tvm-ffi`` or apache-tvm-ffi is not installed.
    """
    expect(program, CompiledProgram, "program", "a CompiledProgram, as trunnion.compile returns it")
    _expect_carried(program)
    jax, bridge = _modules()
    return _JaxCall(program, jax, bridge)


def _modules() -> tuple[Any, Any]:
    try:
        import jax  # noqa: PLC0415 - only who calls from JAX has it
        import jax_tvm_ffi as bridge  # noqa: PLC0415 - the same
    except ImportError as error:
        reason = f"{error}; pip install jax jax-tvm-ffi"
        raise BackendUnavailableError("jax", "", reason) from error
    return jax, bridge


def _expect_carried(program: CompiledProgram) -> None:
    """Refuse a program that asks for what JAX has not."""
    signature = program.program.signature
    name = f"a call of JAX of {shorten(program.program.name)}"
    for words, params, hint in (
        (
            "a tensor that is written",
            [one for one in signature.tensors if one.access != "read"],
            "make it an output",
        ),
        ("addresses", signature.pointers, "JAX moves its arrays; make it a tensor"),
        ("structs by value", signature.structs, "pass its members as numbers"),
        (
            "complex numbers",
            [one for one in signature.scalars if one.dtype.kind is Kind.COMPLEX],
            "pass two numbers",
        ),
        (
            "tensors of complex numbers or of pairs of 4-bit floats",
            [one for one in (*signature.tensors, *signature.outputs) if _is_foreign(one)],
            "declare its bytes as numbers that JAX passes, such as two float32, or a uint8",
        ),
    ):
        if params:
            raise UnsupportedFeatureError(name, [words], f"{listed(one.name for one in params)}: {hint}")
    if not signature.outputs:
        raise ProgramError(
            "has no output, for which JAX would call it; declare one", field=program.program.name
        )
    _expect_sized(name, program.program.plan())
    if program.kind == "cuda":
        _expect_aligned(name, program.program.plan())
    if LAUNCHER not in program.artifact.files:
        hint = "compile it with a backend whose launchers are C++"
        raise UnsupportedFeatureError(
            f"a launcher of {program.backend}", ["calls of JAX: it is Python"], hint
        )


def _is_foreign(param: TensorParam) -> bool:
    """Return whether XLA's custom calls, or JAX itself, have no such elements."""
    return param.dtype.kind is Kind.COMPLEX or param.dtype.name == "float4_e2m1fn_x2"


def _expect_sized(name: str, plan: LaunchPlan) -> None:
    """Refuse workspaces whose sizes nobody knows while JAX traces: it allocates before there is a device."""
    late = [
        one.name
        for one in plan.workspaces
        if max(slots_of(SizeWorkspace(one)), default=-1) >= len(plan.bindings)
    ]
    if late:
        hint = f"{listed(late)}: say the size by what the call is given"
        raise UnsupportedFeatureError(name, ["a workspace whose size facts of the device decide"], hint)


def _expect_aligned(name: str, plan: LaunchPlan) -> None:
    """Refuse several workspaces of which one needs more than the pieces of one that JAX allocates are aligned to."""
    wide = [one.name for one in plan.workspaces if one.alignment > _PIECE]
    if wide and len(plan.workspaces) > 1:
        hint = f"{listed(wide)}: make one workspace of them, or align each to {_PIECE} bytes at the most"
        raise UnsupportedFeatureError(
            name, [f"several workspaces, aligned to more than {_PIECE} bytes"], hint
        )


@dataclass(frozen=True, slots=True)
class _Device:
    """Where a JAX call is: in a trace no array says it."""

    type: str


class _Array:
    """An array of JAX's, as a walk through a plan asks it: compact and row-major."""

    def __init__(self, array: Any, device: _Device) -> None:
        self.shape: tuple[int, ...] = tuple(array.shape)
        self.dtype = str(array.dtype)
        self.device = device

    def dim(self) -> int:
        """Return the number of dimensions."""
        return len(self.shape)

    def numel(self) -> int:
        """Return the number of elements."""
        count = 1
        for extent in self.shape:
            count *= extent
        return count

    def stride(self) -> tuple[int, ...]:
        """Return the elements between neighbours along each dimension."""
        strides, step = [], 1
        for extent in reversed(self.shape):
            strides.append(step)
            step *= max(extent, 1)
        return tuple(reversed(strides))

    def is_contiguous(self) -> bool:
        """Return True."""
        return True


class _Structure(StructureWalk):
    """What a call of JAX allocates: outputs, and workspaces of the launches that happen or may happen."""

    seen = (*StructureWalk.seen, ShapeLaunch, SizeWorkspace)

    def walk(self) -> None:
        """Do the steps that structure decides, and size what is read by launches of which the device decides.

        Whether those happen is known once there is a device; by then JAX has allocated.
        """
        super().walk()
        for action in self.plan.actions(Phase.ADMIT):
            if isinstance(action, SizeWorkspace):
                self._size(action.workspace)

    def workspace_bytes(self) -> int:
        """Return the bytes that all workspaces take, each with room to be aligned."""
        total = 0
        for index, nbytes in self.sizes.items():
            room = nbytes + max(self.plan.workspaces[index].alignment, ALLOCATOR_ALIGNMENT)
            total += -(-room // _PIECE) * _PIECE
        return total


class _JaxCall:
    """The function.

    Parameters
    ----------
    program
        The program.
    jax
        The module.
    bridge
        ``jax_tvm_ffi``.
    """

    def __init__(self, program: CompiledProgram, jax: Any, bridge: Any) -> None:
        self._jax, self._bridge = jax, bridge
        self._plan, self._kind = program.program.plan(), program.kind
        self._params = program.program.signature.params
        self._convention = Convention.of(program.program.signature, program.kind)
        self._name = program.program.name
        self._plugin = program.backend
        self._function = _loaded(program)
        self._targets: dict[tuple[tuple[bool, ...], frozenset[int]], str] = {}

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        """Call the program."""
        for word in WORDS:
            if word in named and word not in self._convention.keywords:
                raise rows.WORD_IN_JAX(word)
        if named:
            args = self._convention.arguments(args, named)
        if len(args) != len(self._params):
            raise refusals.count_error(args, tuple(one.name for one in self._params))
        device = _Device(self._kind)
        walked = [self._walked(pair, device) for pair in zip(self._params, args, strict=True)]
        structure = _Structure(self._plan, (self._kind,), walked)
        structure.walk()
        results = [
            self._jax.ShapeDtypeStruct(structure.shapes[slot.index], self._dtype(slot.dtype.name))
            for slot in self._plan.outputs
        ]
        scratch = bool(self._plan.workspaces)
        if scratch:
            room = self._jax.ShapeDtypeStruct(
                (max(structure.workspace_bytes(), _PIECE),), self._dtype("uint8")
            )
            results.append(room)
        made = self._jax.ffi.ffi_call(self._target(args), results, vmap_method="sequential")(
            *(value for param, value in zip(self._params, args, strict=True) if _is_tensor(param, value)),
            **self._numbers(args),
        )
        outputs = tuple(made[: len(self._plan.outputs)])
        return outputs if len(outputs) > 1 else outputs[0]

    def _walked(self, pair: tuple[Param, Any], device: _Device) -> Any:
        param, value = pair
        if isinstance(param, TensorParam):
            good = value is None or (hasattr(value, "shape") and hasattr(value, "dtype"))
            if not good:
                raise refusals.no_tensor_error(param.name, value)
            return None if value is None else _Array(value, device)
        if isinstance(value, self._jax.core.Tracer):
            raise rows.TRACED_NUMBER(param.name, describe(value, facts=False))
        return value

    def _dtype(self, name: str) -> Any:
        """Return JAX's object for an element type; one that it would narrow is refused."""
        made = self._jax.numpy.dtype(name)
        if self._jax.dtypes.canonicalize_dtype(made) != made:
            raise rows.NARROWED_BY_JAX(name)
        return made

    def _numbers(self, args: Sequence[Any]) -> dict[str, Any]:
        import numpy as np  # noqa: PLC0415 - JAX brings it

        numbers = {}
        for place, (param, value) in enumerate(zip(self._params, args, strict=True)):
            if isinstance(param, ScalarParam):
                passed = int(value) - (_BITS + 1) if _is_wide(param, value) else value
                numbers[f"n{place}"] = getattr(np, _NUMBERS[param.dtype.kind])(passed)
        return numbers

    def _target(self, args: Sequence[Any]) -> str:
        """Return the name under which XLA knows the launcher, for the tensors that are there and the wide numbers."""
        there = tuple(value is not None for value in args)
        pairs = enumerate(zip(self._params, args, strict=True))
        wide = frozenset(place for place, (param, value) in pairs if _is_wide(param, value))
        name = self._targets.get((there, wide))
        if name is None:
            # XLA keeps it until the process ends, longer than an address of ours lasts.
            name = f"trunnion.{self._plan.hash[:32]}.{uuid.uuid4().hex}"
            function, spec = self._carried(there, wide)
            self._bridge.register_ffi_target(
                name,
                function,
                spec,
                platform=_PLATFORMS[self._kind],
                use_last_output_for_alloc_workspace=bool(self._plan.workspaces),
            )
            self._targets[there, wide] = name
        return name

    def _carried(self, there: tuple[bool, ...], wide: frozenset[int]) -> tuple[Any, list[str]]:
        """Return what XLA calls, and how it passes arguments.

        It passes all arrays one behind the other. Where the program has numbers or nothing between them, a function of
        Python's puts them in order; a number beyond 63 bits it makes what launchers take for such a one.
        """
        numbers = [place for place, param in enumerate(self._params) if isinstance(param, ScalarParam)]
        arrays = [place for place in range(len(there)) if place not in numbers and there[place]]
        between = range(arrays[0], arrays[-1] + 1) if arrays else range(0)
        if all(there) and not wide and list(between) == arrays:
            spec: list[str] = []
            for place in range(len(there)):
                spec += [f"attrs.n{place}"] if place in numbers else ["args"] if place == arrays[0] else []
            return self._function, [*spec, "rets"]
        order, main = [*arrays, *numbers], self._function

        def ordered(*given: Any) -> None:
            full: list[Any] = [None] * len(there)
            for place, value in zip(order, given, strict=False):
                full[place] = ctypes.c_void_p(value & _BITS) if place in wide else value
            main(*full, *given[len(order) :])

        spec = ["args", *(f"attrs.n{place}" for place in numbers), "rets"]
        return load_runtime(self._plugin).convert(ordered), spec


def _is_tensor(param: Param, value: Any) -> bool:
    return isinstance(param, TensorParam) and value is not None


def _is_wide(param: Param, value: Any) -> bool:
    """Return whether a number is beyond what 64 bits with a sign hold: jax-tvm-ffi passes no other integers."""
    unsigned = isinstance(param, ScalarParam) and param.dtype.kind is Kind.UINT
    return unsigned and int(value) >= _SIGNED_END


def _loaded(program: CompiledProgram) -> Any:
    """Return the launcher's function that writes to outputs it is given."""
    artifact = program.artifact
    exports = load_library(artifact.files[LAUNCHER], program.backend)
    handed = [image for image in artifact.images.values() if image not in artifact.files[LAUNCHER]]
    names = b"".join(map(encoded_name, artifact.manifest.symbols))
    exports("load")(*((handed[0], names) if program.kind == "cuda" and handed else ()))
    return exports("main_out")
