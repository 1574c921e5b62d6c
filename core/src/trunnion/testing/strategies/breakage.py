"""Calls with exactly one mistake."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from hypothesis import assume
from hypothesis import strategies as st

from trunnion.model.params import TensorParam
from trunnion.testing.expected import Refused
from trunnion.testing.reference import expect
from trunnion.testing.strategies.calls import CallSpec, TensorSpec, calls, row_major
from trunnion.testing.strategies.choices import choose
from trunnion.testing.strategies.numbers import RaiserSpec
from trunnion.testing.strategies.wrong_values import wrong_values

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trunnion.model.params import Param
    from trunnion.model.program import KernelProgram

__all__ = ["Breakage", "broken_calls", "may_be_imaginary", "mistakes_of_each_kind"]


@dataclass(frozen=True, slots=True)
class Breakage:
    """A call with one mistake, or with none."""

    kind: str
    """What was broken: ``"count"``, ``"dtype"``, ``"extent"``, …; empty: nothing."""

    argument: str
    """The parameter that was broken; empty for the call as a whole."""

    call: CallSpec
    """The call."""


@st.composite
def broken_calls(draw: st.DrawFn, program: KernelProgram) -> Breakage:
    """Draw a call that differs from a correct one in one thing, and that the oracle refuses for it.

    Parameters
    ----------
    draw
        Hypothesis's.
    program
        What is called.
    """
    _, *mistakes = draw(mistakes_of_each_kind(program))
    return choose(draw, mistakes)


@st.composite
def mistakes_of_each_kind(draw: st.DrawFn, program: KernelProgram) -> tuple[Breakage, ...]:
    """Draw a correct call, which comes first, and of every kind of mistake that can be made in it one.

    Parameters
    ----------
    draw
        Hypothesis's.
    program
        What is called.
    """
    call = draw(calls(program))
    assume(not isinstance(expect(program, call.imagined()), Refused))
    candidates = [broken for broken in _mistakes(program, call) if _is_refused(program, broken)]
    unread = [broken for broken in candidates if broken.kind.endswith(_NOT_IN_MEMORY)]  # few: all of them
    others = [broken for broken in candidates if broken not in unread]
    chosen = (
        choose(draw, [broken for broken in others if broken.kind == kind])
        for kind in sorted({broken.kind for broken in others})
    )
    return (Breakage("", "", call), *unread, *chosen)


_NOT_IN_MEMORY = ("storage", "conjugated", "negated")


def _is_refused(program: KernelProgram, broken: Breakage) -> bool:
    """Whether the mistake is one: another extent, for example, is none where nothing else depends on it."""
    return isinstance(expect(program, broken.call.imagined()), Refused)


def _mistakes(program: KernelProgram, call: CallSpec) -> Iterator[Breakage]:
    signature = program.signature
    yield Breakage("count", "", replace(call, args=(*call.args, 1)))
    if call.args:
        yield Breakage("count", "", replace(call, args=call.args[:-1]))
    for index, (param, given) in enumerate(zip(signature.params, call.args, strict=True)):
        for kind, wrong in _wrong_arguments(param, given):
            yield Breakage(kind, param.name, replace(call, args=_with(call.args, index, wrong)))
    on = {given.device for given in call.args if isinstance(given, TensorSpec)}
    if len(on) == 1:
        yield Breakage("named device", "device", replace(call, device=1 - (on.pop() or 0)))
    out = call.out if call.out is not None else _destinations(program, call)
    if out is None:
        return
    yield Breakage("out", "out", replace(call, out=(*out, *out[:1])))
    yield Breakage("out", "out", replace(call, out=out[:-1]))
    for index, (output, given) in enumerate(zip(signature.outputs, out, strict=True)):
        for kind, wrong in _wrong_arguments(output, given):
            yield Breakage(f"out {kind}", output.name, replace(call, out=_with(out, index, wrong)))
    shared = tuple(replace(x, shared=True) if isinstance(x, TensorSpec) else x for x in out)
    yield Breakage("overlap", "out", replace(call, out=shared))


def _with(values: tuple[object, ...], index: int, value: object) -> tuple[object, ...]:
    return (*values[:index], value, *values[index + 1 :])


def _destinations(program: KernelProgram, call: CallSpec) -> tuple[object, ...] | None:
    """Return correct destinations for the outputs; None if there are none."""
    expected = expect(program, call.imagined())
    if isinstance(expected, Refused) or not expected.outputs:
        return None
    return tuple(
        TensorSpec(dtype=x.dtype, shape=x.shape, strides=row_major(x.shape), device=expected.device)
        for x in expected.outputs
    )


def _wrong_arguments(param: Param, given: object) -> Iterator[tuple[str, object]]:
    if not isinstance(param, TensorParam):
        yield from wrong_values(param)
    elif isinstance(given, TensorSpec):
        yield from _wrong_tensors(given)
        if param.nullable:
            yield "absent", None


def _wrong_tensors(given: TensorSpec) -> Iterator[tuple[str, object]]:
    for other in (None, 3, 1.5, "tensor", [1.0, 2.0], RaiserSpec()):
        yield "type", other
    for dtype in ("float32", "int32", "uint8", "bfloat16", "float16"):
        if dtype != given.dtype:
            yield "dtype", replace(given, dtype=dtype)
    yield "rank", replace(given, shape=(*given.shape, 1), strides=(*given.strides, 1))
    if given.shape:
        yield "rank", replace(given, shape=given.shape[1:], strides=given.strides[1:])
    for axis, extent in enumerate(given.shape):
        for wrong in (extent + 1, max(extent - 1, 0), extent * 2 + 3):
            shape = (*given.shape[:axis], wrong, *given.shape[axis + 1 :])
            yield "extent", replace(given, shape=shape, strides=row_major(shape))
    if 0 not in given.shape:
        for axis, extent in enumerate(given.shape):
            if extent > 1:
                wrong_step = given.strides[axis] * 2 + 1
                yield (
                    "stride",
                    replace(given, strides=(*given.strides[:axis], wrong_step, *given.strides[axis + 1 :])),
                )
        yield "alignment", replace(given, offset=given.offset + 1)
    yield from _not_in_memory(given)
    yield "host", replace(given, device=None)
    yield "device", replace(given, device=1 - (given.device or 0))


def _not_in_memory(given: TensorSpec) -> Iterator[tuple[str, object]]:
    """Yield tensors that memory does not hold as they are."""
    if 0 not in given.shape:
        yield "storage", replace(given, short=True)
    if given.dtype.startswith("complex"):
        yield "conjugated", replace(given, lazy="conj")
    if given.dtype.startswith("complex") or may_be_imaginary(given.dtype, given.shape, given.strides):
        yield "negated", replace(given, lazy="neg")


def may_be_imaginary(dtype: str, shape: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether a tensor may be the imaginary part of a conjugate, which is all that torch's users get negated lazily."""
    steps = (step for extent, step in zip(shape, strides, strict=True) if extent > 1)
    return dtype in ("float16", "float32", "float64") and all(step % 2 == 0 for step in steps)
