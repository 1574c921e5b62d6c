"""Random small programs whose calls are made in many ways after one another, and the steps of such histories."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from hypothesis import strategies as st

from trunnion.model.capability import Capability
from trunnion.model.constant import const
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const, Expr, Symbol, as_expr, ceildiv, eq, gt, minimum, select
from trunnion.model.facts import device
from trunnion.model.float_expr import sqrt
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import Param, PointerParam, ScalarParam, Signature, StructParam, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.model.struct import Struct
from trunnion.model.tensormap import TiledTensorMap
from trunnion.model.window import AccessPolicyWindow
from trunnion.model.workspace import Workspace
from trunnion.testing.rounding import COMPLEX, FORMATS
from trunnion.testing.strategies.choices import choose
from trunnion.testing.strategies.expressions import INTEGERS
from trunnion.testing.strategies.programs import CODE

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trunnion.model.launch import Argument
    from trunnion.model.memory import Memory

__all__ = ["COLUMNS", "TWIN", "history_programs", "number_program", "plain_program", "sized_program"]

TWIN: Final = "twin"
"""The parameter that takes a tensor like that of ``x``."""

COLUMNS: Final = 16
"""The elements of a row of the first tensor."""

_ROWS: Final = 8
_ONES: Final = (Const(1), Const(1))
_MOSTLY: Final = (False, *(True,) * 7)  # the first is the simplest
_HALF: Final = (True, False)
_SELDOM: Final = (False, False, True)  # what one rare thing keeps a launcher from doing, it does without it
_REALS: Final = tuple(kind for kind in FORMATS if FORMATS[kind].signed)
_OF_TENSORS: Final = ("float32", "int32", "float16", "int8", "bfloat16", "int64")
_OF_COMPLEX: Final = tuple(COMPLEX)


@st.composite
def history_programs(draw: st.DrawFn, capabilities: Iterable[Capability]) -> KernelProgram:
    """Draw a program with a tensor, perhaps a second one, and numbers; all of its parameters reach a kernel.

    With dynamic shapes, the symbol ``n`` is the number of rows, ``s`` the elements between two of them, and ``k`` the
    KiB of dynamic shared memory, which is an argument. The parameters of the signature are in any order.

    Parameters
    ----------
    draw
        Hypothesis's.
    capabilities
        What the program may require.
    """
    declared, likely = frozenset(capabilities), choose(draw, (_SELDOM, _MOSTLY))
    wanted = {one for one in _OPTIONAL if one in declared and choose(draw, likely)}
    if Capability.COMPUTED_ATTRIBUTES in wanted:
        wanted |= {Capability.CLUSTER, Capability.PDL} & declared
    if Capability.STRIDED_TENSORS in wanted:
        wanted |= {Capability.BUILT_STRUCTS} & declared  # with no draw of their own
    if likely is _MOSTLY:
        wanted |= declared & {Capability.CONSTANTS_AND_OFFSETS, Capability.FLOAT_EXPRESSIONS}
    params = _params(draw, declared, wanted)
    rows = params[0].shape[0] if isinstance(params[0], TensorParam) else Const(_ROWS)
    outputs = _outputs(draw, rows, wanted)
    memories: list[Memory] = [*outputs]
    if Capability.WORKSPACE in wanted:
        size = rows * device.multiprocessor_count if Capability.DEVICE_FACTS in wanted else rows * 4
        memories.append(Workspace("w", dtype("uint8"), (size,), zeroed=draw(st.booleans())))
    launches = _launches(draw, wanted, params, memories)
    return KernelProgram(
        "history", Signature(tuple(draw(st.permutations(params))), outputs), (CODE,), launches
    )


def plain_program(capabilities: Iterable[Capability]) -> KernelProgram:
    """Return a program of which a launcher may keep all that it was given: integers, and memory.

    Parameters
    ----------
    capabilities
        What the program may require.
    """
    declared = frozenset(capabilities)
    n: Expr = Symbol("n", max=1 << 20) if Capability.DYNAMIC_SHAPES in declared else Const(_ROWS)
    x, i = (
        TensorParam("x", dtype("float32"), (n, Const(COLUMNS)), alignment=16),
        ScalarParam("i", dtype("int32")),
    )
    o = TensorParam("o", dtype("float32"), (n, Const(2)))
    maps = (TiledTensorMap(x, (4, 8)),) if Capability.TMA_TILED in declared else ()
    shape = (n, *_ONES), (Const(32), *_ONES)
    launches = [KernelLaunch("first", (o, i, n.cast("int64")), *shape)]
    if Capability.MULTI_LAUNCH in declared:
        launches.append(KernelLaunch("second", (x, i, n.cast("int64"), *maps), *shape))
        if Capability.BUILT_STRUCTS in declared:
            built = Struct((("x", x), ("i", i), ("n", n), *(("map", one) for one in maps)))
            launches.append(KernelLaunch("third", (built,), *shape))
    return KernelProgram("plain", Signature((x, i), (o,)), (CODE,), tuple(launches))


def number_program(capabilities: Iterable[Capability]) -> KernelProgram:
    """Return a program with a parameter of every type of number, each of which reaches a kernel of its own, alone.

    With dynamic shapes, a truth and an integer that stand under symbols reach kernels by expressions alone.

    Parameters
    ----------
    capabilities
        What the program may require, beside several launches.
    """
    declared = frozenset(capabilities)
    kinds = ("bool", *INTEGERS, *_REALS, *_OF_COMPLEX)
    params: list[Param] = [ScalarParam(f"s_{kind}", dtype(kind)) for kind in kinds]
    if Capability.POINTER_PARAMS in declared:
        params.append(PointerParam("p", nullable=True, alignment=16))
    if Capability.STRUCT_PARAMS in declared:
        params.append(StructParam("v", 24, 8))
    x = TensorParam("x", dtype("float32"), (Const(_ROWS),))
    given: list[tuple[str, Argument]] = [(one.name, one) for one in params]
    if Capability.DYNAMIC_SHAPES in declared:
        named = {"truth": Symbol("truth", max=1), "k": Symbol("k", max=256)}
        params += [
            ScalarParam(name, dtype(kind), named[name]) for name, kind in (("truth", "bool"), ("k", "int32"))
        ]
        given += [(name, (symbol * 3 + 1).cast("int32")) for name, symbol in named.items()]
    launches = tuple(
        KernelLaunch(f"of_{name}", (one,), (Const(1), *_ONES), (Const(1), *_ONES)) for name, one in given
    )
    return KernelProgram("numbers", Signature((x, *params)), (CODE,), launches)


def sized_program() -> KernelProgram:
    """Return a program whose only number stands under a symbol, and sizes a launch together with the device.

    What follows from the device alone may be kept for the next call; what follows from this number may not.
    """
    k = Symbol("k", max=256)
    x = TensorParam("x", dtype("float32"), (Const(_ROWS),))
    grid = minimum(k * 4 + 1, device.multiprocessor_count)
    launch = KernelLaunch("sized", (x, (k * 3 + 1).cast("int32")), (grid, *_ONES), (Const(32), *_ONES))
    return KernelProgram("sized", Signature((x, ScalarParam("k", dtype("int32"), k))), (CODE,), (launch,))


_OPTIONAL: Final = tuple(
    Capability(name)
    for name in (
        "strided_tensors", "nullable_tensors", "pointer_params", "struct_params", "tensor_views", "output_fill",
        "workspace", "multi_launch", "conditional_launch", "tma_tiled", "access_policy_window",
        "device_facts", "computed_attributes",
    )
)  # fmt: skip


def _params(draw: st.DrawFn, declared: frozenset[Capability], wanted: set[Capability]) -> list[Param]:
    dynamic = Capability.DYNAMIC_SHAPES in declared
    n: Expr = Symbol("n", max=1 << 20) if dynamic else Const(_ROWS)
    strides = None
    if Capability.STRIDED_TENSORS in wanted:
        step: Expr = Symbol("s", max=1 << 20, multiple_of=4) if dynamic else Const(COLUMNS + 4)
        strides = (step, Const(1))
    params: list[Param] = [
        TensorParam("x", dtype("float32"), (n, Const(COLUMNS)), strides=strides, alignment=16)
    ]
    nullable = Capability.NULLABLE_TENSORS in wanted
    second = nullable or draw(st.booleans())
    if second:
        params.append(TensorParam("y", dtype(choose(draw, _OF_TENSORS)), (n,), nullable=nullable))
    if not second or draw(st.booleans()):
        params.append(TensorParam(TWIN, dtype("float32"), (n, Const(COLUMNS)), strides=strides, alignment=16))
    if dynamic:
        params.append(ScalarParam("k", dtype("int32"), Symbol("k", max=256)))
    for name, kinds in (("f", _REALS), ("i", INTEGERS), ("b", ("bool",)), ("z", _OF_COMPLEX)):
        if choose(draw, _MOSTLY):
            params.append(ScalarParam(name, dtype(choose(draw, kinds))))
    if Capability.POINTER_PARAMS in wanted:
        params.append(PointerParam("p", nullable=True, alignment=16))
    if Capability.STRUCT_PARAMS in wanted:
        params.append(StructParam("v", 24, 8))
    return params


def _outputs(draw: st.DrawFn, rows: Expr, wanted: set[Capability]) -> tuple[TensorParam, ...]:
    fill = choose(draw, (0.0, -0.0, 1.5)) if Capability.OUTPUT_FILL in wanted else None
    if fill is None and draw(st.booleans()):
        return ()
    return (TensorParam("o", dtype("float32"), (rows, Const(2)), fill=fill),)


def _struct(params: list[Param], memories: list[Memory], wanted: set[Capability]) -> Struct:
    """Return a struct of all that a launch passes, with a map in its midst."""
    x: Any = params[0]
    maps = (TiledTensorMap(x, (4, 8)),) if Capability.TMA_TILED in wanted else ()
    values: list[Argument] = [*params, *maps, *memories, (x.shape[0] + 1).cast("int32")]
    return Struct(tuple((f"f{index}", value) for index, value in enumerate(values)))


def _decided(k: Symbol | None, wanted: set[Capability], grid: Expr) -> dict[str, Any]:
    """Return the attributes that ``k`` decides, a cluster of 1, 2, 4 or 9 blocks and an early start, and the grid."""
    found: dict[str, Any] = {"grid": (grid, *_ONES)}
    if k is not None and Capability.COMPUTED_ATTRIBUTES in wanted:
        wide = select(eq(k % 16, 3), 9, select(gt(k % 4, 2), 4, k % 2 + 1))
        if Capability.CLUSTER in wanted:
            found = {"grid": (grid * wide, *_ONES), "cluster": (wide, 1, 1)}
        found |= {"pdl": gt(k % 3, 1)} if Capability.PDL in wanted else {}
    return found


def _launches(
    draw: st.DrawFn, wanted: set[Capability], params: list[Param], memories: list[Memory]
) -> tuple[KernelLaunch, ...]:
    x: Any = params[0]
    k = next((one.symbol for one in params if isinstance(one, ScalarParam) and one.symbol is not None), None)
    rows = x.shape[0]
    args: list[Argument] = [*params, *memories, (rows * 3).cast("int64")]
    if Capability.TENSOR_VIEWS in wanted:
        args.append(x.view())
    if Capability.TMA_TILED in wanted:
        args.append(TiledTensorMap(x, (4, 8)))
    if Capability.CONSTANTS_AND_OFFSETS in wanted:
        args += [x.at(rows), const(-0.0, "float32")]
    if Capability.BUILT_STRUCTS in wanted:
        args.append(_struct(params, memories, wanted))
    if Capability.FLOAT_EXPRESSIONS in wanted:
        args.append((1 / sqrt(rows + 1)).cast("float32"))
    window = AccessPolicyWindow(x, hit_ratio=0.5) if Capability.ACCESS_POLICY_WINDOW in wanted else None
    smem = as_expr(0) if k is None else k * 1024
    grid, shared = ceildiv(rows, 4), as_expr(0)
    if Capability.DEVICE_FACTS in wanted:
        grid = choose(draw, (minimum(rows * 64, device.multiprocessor_count), grid))
        shared = choose(draw, (shared, device.max_shared_memory_per_block_optin - device.warp_size))
        args += [device.compute_capability_major * 10 + device.compute_capability_minor]
    first = KernelLaunch(
        "first",
        tuple(args),
        block=(Const(32), *_ONES),
        dynamic_smem_bytes=smem,
        window=window,
        **_decided(k, wanted, grid),
    )
    if Capability.MULTI_LAUNCH not in wanted:
        return (first,)
    when = gt(k, 1) if k is not None and Capability.CONDITIONAL_LAUNCH in wanted else None
    some = [one for one in params if choose(draw, _HALF)]
    others = tuple(draw(st.permutations([*some, rows.cast("int32")])))
    second = KernelLaunch(
        "second", others, (rows, *_ONES), (Const(64), *_ONES), when=when, dynamic_smem_bytes=shared
    )
    return (first, second)
