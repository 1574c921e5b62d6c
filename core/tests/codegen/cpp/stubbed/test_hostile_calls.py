"""The exported functions, called with whatever C lets a caller pass: they refuse, or launch something legal."""

from __future__ import annotations

import ctypes
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from random import Random
from typing import TYPE_CHECKING, Any

import pytest
import tvm_ffi
from hypothesis import strategies as st

from trunnion.codegen.cpp.payload import typed_error
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.dtypes import dtype as dtype_of
from trunnion.model.expr import Symbol
from trunnion.model.launch_limits import MAX_BLOCK, MAX_GRID, MAX_THREADS
from trunnion.testing.draws import for_examples
from trunnion.testing.expected import CallSignature, Expected, TensorFacts
from trunnion.testing.reference import expect
from trunnion.testing.strategies import CallSpec, calls, programs

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from trunnion.model.program import KernelProgram

pytestmark = pytest.mark.tvm_ffi_abi

PROGRAMS, BASES, HOSTILE = 10, 12, 40
"""How many programs, good calls of each, and changed ones of each of those."""

NUMBERS = (0, 1, 2, 3, 7, 16, 255, 1000, -1, -2, -8)
NUMBERS += tuple(
    sign * 2**bits + near for bits in (31, 32, 40, 61, 62) for sign in (1, -1) for near in (-1, 0, 1)
)
NUMBERS += (2**63 - 1, -(2**63), -(2**63) + 1)
ADDRESSES = (0, 1, 4, 8, 64, 256, 4096, 2**32, 2**47 + 8, 2**57, 2**63, 2**64 - 256, 2**64 - 1)
DEVICES = ((2, 1), (2, 2), (2, 100), (2, -1), (2, 2**31 - 1), (2, -(2**31)), (1, 0), (3, 0), (13, 0), (99, 7))
NONE, INT, BOOL, FLOAT, POINTER, DTYPE, DEVICE, DLTENSOR, RAW_STR, BYTE_ARRAY = range(10)
SMALL_STR, SMALL_BYTES, STR, BYTES, FUNCTION = 11, 12, 65, 66, 68
OBJECT = 64
KINDS = {"TypeError", "ValueError", "RuntimeError", "MemoryError"}


class AnyValue(ctypes.Structure):
    _fields_ = (("type_index", ctypes.c_int32), ("small", ctypes.c_uint32), ("bits", ctypes.c_uint64))


class Tensor(ctypes.Structure):
    _fields_ = (
        ("data", ctypes.c_uint64),
        ("device", ctypes.c_int32 * 2),
        ("ndim", ctypes.c_int32),
        ("dtype", ctypes.c_uint8 * 2),
        ("lanes", ctypes.c_uint16),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("strides", ctypes.POINTER(ctypes.c_int64)),
        ("byte_offset", ctypes.c_uint64),
    )


class ByteArray(ctypes.Structure):
    _fields_ = (("data", ctypes.c_void_p), ("size", ctypes.c_size_t))


@dataclass(frozen=True)
class Raised:
    kind: str
    message: str
    fields: tuple[str, ...]


class Library:
    """A loaded launcher, as C sees it."""

    def __init__(self, path: Path) -> None:
        self._launcher = ctypes.CDLL(str(path))
        self._ffi = ctypes.CDLL("libtvm_ffi.so")
        self._get = tvm_ffi.get_global_func("ffi.ArrayGetItem")

    def __call__(self, name: str, given: list[AnyValue]) -> tuple[AnyValue, Raised | None]:
        function = getattr(self._launcher, f"__tvm_ffi_{name}")
        result = AnyValue(NONE, 0, 0)
        values = (AnyValue * len(given))(*given)  # of that length: whoever reads further is seen
        status = function(None, values, len(given), ctypes.byref(result))
        return result, self._raised(status)

    def _raised(self, status: int) -> Raised | None:
        error = ctypes.c_void_p()
        self._ffi.TVMFFIErrorMoveFromRaised(ctypes.byref(error))
        assert status in (0, -1)
        assert (status == -1) == (error.value is not None), "a status and an error say the same"
        if error.value is None:
            return None
        cells = (ByteArray * 3).from_address(error.value + 24)
        kind, message, backtrace = (ctypes.string_at(cell.data, cell.size).decode() for cell in cells)
        self._ffi.TVMFFIObjectDecRef(error)
        return Raised(kind, message, fields_of(backtrace))

    def drop(self, value: AnyValue) -> None:
        if value.type_index >= OBJECT:
            self._ffi.TVMFFIObjectDecRef(ctypes.c_void_p(value.bits))

    def first(self, array: AnyValue) -> AnyValue:
        """Return the function that a bound launch is."""
        result, given = AnyValue(NONE, 0, 0), (AnyValue * 2)(array, AnyValue(INT, 0, 0))
        handle = ctypes.c_void_p(self._get.__chandle__())
        assert self._ffi.TVMFFIFunctionCall(handle, given, 2, ctypes.byref(result)) == 0
        assert result.type_index == FUNCTION
        return result

    def call(self, function: AnyValue) -> Raised | None:
        result = AnyValue(NONE, 0, 0)
        handle = ctypes.c_void_p(function.bits)
        return self._raised(self._ffi.TVMFFIFunctionCall(handle, None, 0, ctypes.byref(result)))


def fields_of(backtrace: str) -> tuple[str, ...]:
    from types import SimpleNamespace

    from trunnion.codegen.cpp.payload import fields_of as read

    error = ValueError()
    error.__tvm_ffi_error__ = SimpleNamespace(backtrace=backtrace)
    return read(error)


# What is passed ----------------------------------------------------------------------------------------------------


class Passed:
    """Makes values, and keeps what they point to for as long as it lives."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.kept: list[Any] = []

    def keep(self, value: Any) -> int:
        self.kept.append(value)
        return ctypes.addressof(value)

    def good(self, given: object) -> AnyValue:
        if isinstance(given, TensorFacts):
            return self.tensor(given, ())
        if isinstance(given, bytes):
            return self.byte_array(given)
        if isinstance(given, float):
            return AnyValue(FLOAT, 0, ctypes.c_uint64.from_buffer(ctypes.c_double(given)).value)
        if isinstance(given, int):
            return AnyValue(BOOL if isinstance(given, bool) else INT, 0, given % 2**64)
        return AnyValue(NONE, 0, 0) if given is None else self.hostile()

    def byte_array(self, data: bytes) -> AnyValue:
        text = ctypes.create_string_buffer(data, max(len(data), 1))
        self.keep(text)
        return AnyValue(BYTE_ARRAY, 0, self.keep(ByteArray(ctypes.addressof(text), len(data))))

    def numbers(self, values: list[int]) -> Any:
        array = (ctypes.c_int64 * len(values))(*values)
        self.kept.append(array)
        return ctypes.cast(array, ctypes.POINTER(ctypes.c_int64))

    def tensor(self, facts: TensorFacts, changes: tuple[str, ...]) -> AnyValue:
        rng, shape, strides = self.rng, list(facts.shape), list(facts.strides)
        if "rank" in changes:
            rank = rng.choice((0, 1, 2, 6, 64, 65, 1000))
            shape, strides = ([rng.choice(NUMBERS) for _ in range(rank)] for _ in range(2))
        for axis in range(len(shape)):
            if "extents" in changes and rng.random() < 0.6:
                shape[axis] = rng.choice(NUMBERS)
            if "strides" in changes and rng.random() < 0.6:
                strides[axis] = rng.choice(NUMBERS)
        code, bits, lanes = dtype_of(facts.dtype).dlpack
        made = Tensor(facts.address, (2, facts.device or 0), len(shape), (code, bits), lanes)
        made.shape, made.strides = self.numbers(shape), self.numbers(strides)
        if not shape or "no strides" in changes:
            made.strides = None
        if not shape and rng.random() < 0.5:
            made.shape = None
        self._change(made, changes)
        return AnyValue(DLTENSOR, 0, self.keep(made))

    def _change(self, made: Tensor, changes: tuple[str, ...]) -> None:
        rng = self.rng
        if "address" in changes:
            made.data = rng.choice(ADDRESSES)
        if "offset" in changes:
            made.byte_offset = rng.choice((*ADDRESSES, 2))
        if "device" in changes:
            made.device[:] = rng.choice(DEVICES)
        if "dtype" in changes:
            made.dtype[:], made.lanes = (
                (rng.randrange(256), rng.randrange(256)),
                rng.choice((0, 1, 1, 2, 65535)),
            )
        if "no rank" in changes:
            made.ndim = rng.choice((-1, -(2**31), 2**31 - 1, 10**6))

    def hostile(self) -> AnyValue:
        """Return a value of any kind."""
        rng = self.rng
        text = rng.choice((b"", b"a", b"it's", b"12345678", b"\xed\xa0\x80", b"\xff" * 90, b"long" * 3000))
        number = rng.choice(NUMBERS) % 2**64
        simple = {NONE: 0, INT: number, BOOL: rng.choice((0, 1, 2)), FLOAT: number, POINTER: number}
        simple |= {DTYPE: number, DEVICE: number}
        kind = rng.choice((*simple, RAW_STR, BYTE_ARRAY, SMALL_STR, SMALL_BYTES, DLTENSOR, OBJECT, OBJECT))
        if kind in simple:
            return AnyValue(kind, 0, simple[kind])
        if kind == RAW_STR:
            return AnyValue(kind, 0, self.keep(ctypes.create_string_buffer(text)))
        if kind == BYTE_ARRAY:
            return self.byte_array(text)
        if kind in (SMALL_STR, SMALL_BYTES):
            return AnyValue(kind, len(text[:7]), int.from_bytes(text[:7], "little"))
        if kind == OBJECT:
            return self.object()
        facts = TensorFacts(dtype="float32", shape=(4,), strides=(1,), address=4096, device=0)
        return self.tensor(facts, (rng.choice(CHANGES),))

    def object(self) -> AnyValue:
        """Return one of TVM-FFI's objects."""
        rng = self.rng
        value = tvm_ffi.convert(rng.choice(([1, 2], {"a": 1}, ["text"], print, "longer than seven", 2**200)))
        if not hasattr(value, "__chandle__"):
            return AnyValue(NONE, 0, 0)
        self.kept.append(value)
        handle = value.__chandle__()
        return AnyValue(ctypes.c_int32.from_address(handle + 8).value, 0, handle)


CHANGES = ("rank", "extents", "strides", "no strides", "address", "offset", "device", "dtype", "no rank")


def call_of(passed: Passed, facts: CallSignature, *, several: bool) -> tuple[str, list[AnyValue]]:
    """Return a call like a good one but for some things; ``several`` things may differ in one tensor."""
    rng = passed.rng
    name = rng.choice(("main", "main", "bind", "main_out", "bind_out"))
    given = [*facts.args, *((facts.out or ()) if name.endswith("_out") else ())]
    changed = set(rng.sample(range(len(given)), min(len(given), rng.choice((0, 1, 1, 2, 4)))))
    values = []
    for index, one in enumerate(given):
        if index in changed and isinstance(one, TensorFacts) and rng.random() < 0.8:
            values.append(passed.tensor(one, tuple(rng.choices(CHANGES[:7], k=3 if several else 1))))
        elif index in changed and isinstance(one, int) and rng.random() < 0.8:
            values.append(passed.good(rng.choice(NUMBERS)))
        else:
            values.append(passed.hostile() if index in changed else passed.good(one))
    trailing = rng.choice((0, 0, 0, 1, 2, 3, 4, 5))
    values += [passed.hostile() if rng.random() < 0.5 else AnyValue(NONE, 0, 0) for _ in range(trailing)]
    return name, values[: rng.choice((len(values), len(values), len(values), 1, 0))] if several else values


# The test ----------------------------------------------------------------------------------------------------------


def drawn() -> list[tuple[KernelProgram, list[CallSignature]]]:
    """Return programs, and good calls of each; always the same."""
    found: list[tuple[KernelProgram, list[CallSignature]]] = []

    @st.composite
    def cases(draw: st.DrawFn) -> tuple[KernelProgram, list[CallSignature]]:
        program = draw(programs())
        good = calls(program).filter(lambda call: launches(program, call))
        return program, [draw(good).imagined() for _ in range(BASES)]

    for_examples(cases(), PROGRAMS, found.append, seed=12)
    return found


def launches(program: KernelProgram, call: CallSpec) -> bool:
    """Whether the oracle expects that a call launches something."""
    expected = expect(program, call.imagined())
    return isinstance(expected, Expected) and bool(expected.launches)


def maps_of_numbers() -> tuple[KernelProgram, list[CallSignature]]:
    """Return a program whose tensor maps any numbers of a call describe, and its good calls."""
    builder = ProgramBuilder("maps", DeviceCode("cuda", "// no text", name="maps.cu"))
    x = builder.input("x", "float32", (Symbol("n"),))
    a, b, c, s, t, u, o = (Symbol(name, min=-(2**63)) for name in "abcstuo")
    for symbol in (a, b, c, s, t, u, o):
        builder.scalar(symbol.name, "int64", symbol)
    tiled = x.tiled(box_dim=(1, 1, 4), shape=(a, b, c), strides=(s, t, u), element_offset=o)
    corners = {"pixel_box_lower_corner": (0,), "pixel_box_upper_corner": (0,)}
    columns = {"channels_per_pixel": 4, "pixels_per_column": 1}
    im2col = x.im2col(shape=(a, b, c), strides=(s, t, u), element_offset=o, **corners, **columns)
    builder.launch("maps", args=(tiled, im2col), grid=1, block=1)
    numbers = (2, 2, 4, 8, 4, 1, 0)
    x_facts = TensorFacts(dtype="float32", shape=(64,), strides=(1,), address=4096, device=0)
    return builder.build(), [CallSignature(args=(x_facts, *numbers))] * BASES


@pytest.fixture
def allocator(driver: Any) -> Iterator[None]:
    """Let the stub allocate what launchers in this thread ask for."""
    ffi, before, now = ctypes.CDLL("libtvm_ffi.so"), ctypes.c_void_p(), ctypes.c_void_p(driver.allocator)
    assert ffi.TVMFFIEnvSetDLPackManagedTensorAllocator(now, 0, ctypes.byref(before)) == 0
    yield
    assert ffi.TVMFFIEnvSetDLPackManagedTensorAllocator(before, 0, None) == 0


def check_legal(driver: Any) -> int:
    launches = driver.launches
    for launch in launches:
        assert all(1 <= extent <= most for extent, most in zip(launch.grid, MAX_GRID, strict=True))
        assert all(1 <= extent <= most for extent, most in zip(launch.block, MAX_BLOCK, strict=True))
        assert launch.block[0] * launch.block[1] * launch.block[2] <= MAX_THREADS
        assert launch.device in (0, 1, 2**32 - 1)
    driver.reset()
    return len(launches)


def check_raised(raised: Raised) -> None:
    assert raised.kind in KINDS
    assert 0 < len(raised.message) < 2**16
    if raised.fields and raised.fields[0] not in (
        "TensorMapError",
        "AllocationError",
    ):  # these need a program
        assert typed_error(raised.fields) is not None, raised.fields


def attack(library: Library, driver: Any, facts: list[CallSignature], rng: Random) -> tuple[int, int]:
    """Return how many calls launched, and how many were refused."""
    launched = refused = 0
    for base in facts:
        for _ in range(HOSTILE):
            passed = Passed(rng)
            name, values = call_of(passed, base, several=rng.random() < 0.5)
            driver.allow_allocations(rng.choice((0, 1, 2, 100)))
            result, raised = library(name, values)
            if raised is not None:
                check_raised(raised)
                refused += 1
            elif name.startswith("bind"):
                bound = library.first(result)
                passed.kept.clear()  # what was passed is gone when it is launched
                assert library.call(bound) is None
                library.drop(bound)
            library.drop(result)
            launched += check_legal(driver)
    return launched, refused


def test_hostile_calls_are_refused_or_launch_something_legal(
    build: Callable[..., bytes], driver: Any, allocator: None, tmp_path: Path
) -> None:
    cases = [maps_of_numbers(), *drawn()]
    with ThreadPoolExecutor(2) as pool:
        built = list(pool.map(lambda case: build(case[0], on_host=False), cases))
    tensors, totals = driver.tensors, [0, 0]
    for number, ((_, facts), library) in enumerate(zip(cases, built, strict=True)):
        path = tmp_path / f"launcher{number}.so"
        path.write_bytes(library)
        launcher = Library(path)
        launched, refused = attack(launcher, driver, facts, Random(number))  # noqa: S311 - a test draws
        totals = [totals[0] + launched, totals[1] + refused]
        assert driver.tensors == tensors, "a tensor was allocated and not given back"
        assert launcher("close", [])[1] is None
    # Both happen often, or this would show little.
    assert min(totals) > PROGRAMS * BASES * HOSTILE / 10, totals
