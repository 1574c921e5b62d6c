"""How the launches that a driver saw compare with the oracle's word: parameters, attributes, windows and maps."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING

from trunnion.errors import CorruptArtifactError
from trunnion.sim.launch_attributes import LaunchAttributes
from trunnion.sim.tensormap import TiledRequest, decode
from trunnion.sim.trace import Launched, TensorMapEncoded
from trunnion.testing.expected import (
    Address,
    ExpectedLaunch,
    ExpectedMap,
    ExpectedNan,
    ExpectedParameter,
    ExpectedParts,
    ExpectedStruct,
    ExpectedView,
)
from trunnion.testing.rounding import SIZES, encode_float, is_nan

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trunnion.sim.launch_attributes import WindowAttribute
    from trunnion.sim.tensormap import Im2colRequest
    from trunnion.testing.expected import Expected, ExpectedNumber, ExpectedWindow, Kernel
    from trunnion.testing.harness import Harness
    from trunnion.testing.observed import Observed

__all__ = ["compare_launches", "compare_maps", "is_number", "locate_workspaces"]

_Fields = tuple[object, ...]
_WORDS = {"programmatic_stream_serialization": "pdl"}
# What the driver decoded, so that none goes uncompared; a window has a comparison of its own.
_SEEN = tuple(one.name for one in fields(LaunchAttributes) if one.name != "window")


def locate_workspaces(expected: Sequence[ExpectedLaunch], got: Sequence[Launched]) -> dict[Address, int]:
    """Return where the first launch that is given a workspace believes it to lie.

    Parameters
    ----------
    expected
        The oracle's launches.
    got
        The driver's.
    """
    found: dict[Address, int] = {}
    for want, have in zip(expected, got, strict=False):
        for value, data in _leaves(want, have):
            if isinstance(value, Address) and value.workspace:
                found.setdefault(value.base, int.from_bytes(data, "little") - value.offset)
            elif isinstance(value, ExpectedView) and value.address is not None and value.address.workspace:
                found.setdefault(value.address.base, int.from_bytes(data[:8], "little"))
            elif isinstance(value, ExpectedMap) and value.address.workspace:
                decoded = _decoded(data)
                if not isinstance(decoded, str):
                    found.setdefault(value.address.base, decoded.address - value.address.offset)
        if want.window is not None and want.window.address.workspace and have.window is not None:
            found.setdefault(want.window.address.base, have.window.address - want.window.address.offset)
    return found


def _leaves(want: ExpectedLaunch, have: Launched) -> Iterator[tuple[ExpectedParameter, bytes]]:
    """Yield each parameter with its bytes, and in the place of a struct its fields."""
    for value, data in zip(want.parameters, have.parameters, strict=False):
        if isinstance(value, ExpectedStruct):
            yield from ((one, data[offset : offset + size]) for offset, size, one in value.fields)
        else:
            yield value, data


def compare_launches(
    harness: Harness,
    expected: Sequence[ExpectedLaunch],
    got: Sequence[Launched],
    where: Mapping[Address, int],
    symbols: Mapping[Kernel, str],
) -> None:
    """Compare launches with what they must be, parameter by parameter.

    Parameters
    ----------
    harness
        The backend.
    expected
        The oracle's launches.
    got
        The driver's.
    where
        The address of each tensor and workspace.
    symbols
        Each kernel's exact name in the image.

    Raises
    ------
    LawViolation
        If anything differs.
    """
    wanted = [symbols[launch.kernel] for launch in expected]
    names = [launch.kernel for launch in got]
    harness.require(wanted == names, f"the launches were {names}, expected {wanted}")
    for index, (want, have) in enumerate(zip(expected, got, strict=True)):
        for difference in _differences(want, have, where):
            harness.violation(f"launch {index}: {difference}")


def _differences(want: ExpectedLaunch, have: Launched, where: Mapping[Address, int]) -> Iterator[str]:
    said = dict(want.attributes)
    facts: list[tuple[str, object, object]] = [
        ("grid", want.grid, have.grid),
        ("block", want.block, have.block),
        ("dynamic shared memory", want.dynamic_smem_bytes, have.dynamic_smem_bytes),
        ("number of parameters", len(want.parameters), len(have.parameters)),
    ]
    facts += [
        (_WORDS.get(one, one), said.get(_WORDS.get(one, one), ()), _numbers(have.attributes, one))
        for one in _SEEN
    ]
    for what, expected, got in facts:
        if expected != got:
            yield f"{what} is {got}, expected {expected}"
    yield from _window_differences(want.window, have, where)
    for ordinal, (value, data) in enumerate(zip(want.parameters, have.parameters, strict=False)):
        problem = _parameter_problem(value, data, where)
        if problem:
            yield f"parameter {ordinal}: {problem}"


def _numbers(attributes: LaunchAttributes, field: str) -> tuple[int, ...]:
    """Return an attribute that a launch carries; a switch that is off is none."""
    value = getattr(attributes, field)
    if value is None or value is False:
        return ()
    return value if isinstance(value, tuple) else (int(value),)


def _window_differences(
    want: ExpectedWindow | None, have: Launched, where: Mapping[Address, int]
) -> Iterator[str]:
    """Compare the window in force; only under the policy "launch" it is an attribute of the launch."""
    wanted: _Fields | None = None
    if want is not None and want.nbytes:
        first = where[want.address.base] + want.address.offset
        ratio = encode_float(want.hit_ratio, "float32")
        wanted = (first, want.nbytes, ratio, want.hit_property, want.miss_property)
    on_launch = wanted if want is None or want.policy == "launch" else None
    for what, expected, got in (
        ("the window in force", wanted, _window(have.window)),
        ("the launch's window", on_launch, _window(have.attributes.window)),
    ):
        if expected != got:
            yield f"{what} is {got}, expected {expected}"


def _window(window: WindowAttribute | None) -> _Fields | None:
    """Return a window's fields; one of no bytes is none."""
    if window is None or window.nbytes == 0:
        return None
    ratio = encode_float(window.hit_ratio, "float32")
    return (window.address, window.nbytes, ratio, int(window.hit_property), int(window.miss_property))


# Parameters -------------------------------------------------------------------------------------------------------


def is_number(value: ExpectedNumber, data: bytes) -> bool:
    """Whether bytes are a number that they must be.

    Parameters
    ----------
    value
        The number.
    data
        The bytes.
    """
    match value:
        case bytes():
            return data == value
        case ExpectedNan(dtype):
            return is_nan(data, dtype)
        case ExpectedParts(parts):
            half = len(data) // 2
            sizes_fit = all(
                half == (len(part) if isinstance(part, bytes) else SIZES[part.dtype]) for part in parts
            )
            return sizes_fit and is_number(parts[0], data[:half]) and is_number(parts[1], data[half:])


def _parameter_problem(value: ExpectedParameter, data: bytes, where: Mapping[Address, int]) -> str:
    match value:
        case ExpectedMap():
            have = _decoded(data)
            if isinstance(have, str):
                return have
            wanted = _resolved(value, where)
            return "" if _fields(have) == wanted else f"the map is {_fields(have)}, expected {wanted}"
        case Address():
            wanted_bytes = (where[value.base] + value.offset).to_bytes(8, "little")
            return "" if data == wanted_bytes else f"{data.hex()}, expected {wanted_bytes.hex()}"
        case ExpectedView():
            return _view_problem(value, data, where)
        case ExpectedStruct():
            return _struct_problem(value, data, where)
    return "" if is_number(value, data) else f"{data[:64].hex()}, expected {str(value)[:300]}"


def _view_problem(value: ExpectedView, data: bytes, where: Mapping[Address, int]) -> str:
    address = 0 if value.address is None else where[value.address.base] + value.address.offset
    start, end = value.stride_offset, value.stride_offset + len(value.strides)
    wanted = (address.to_bytes(8, "little"), value.extents, value.strides, end)
    got = (data[:8], data[8 : 8 + len(value.extents)], data[start:end], len(data))
    return "" if got == wanted else f"the view is {data.hex()}, expected {wanted}"


def _struct_problem(value: ExpectedStruct, data: bytes, where: Mapping[Address, int]) -> str:
    """Say what is wrong with a struct: a field, or a byte between the fields that is not 0."""
    if len(data) != value.nbytes:
        return f"the struct has {len(data)} bytes, expected {value.nbytes}"
    rest = bytearray(data)
    for offset, size, one in value.fields:
        problem = _parameter_problem(one, data[offset : offset + size], where)
        if problem:
            return f"the field at offset {offset}: {problem}"
        for start, length in _said(one, size):
            rest[offset + start : offset + start + length] = bytes(length)
    return f"what lies between the fields is {rest[:64].hex()}, expected zeros" if any(rest) else ""


def _said(field: ExpectedParameter, size: int) -> Iterator[tuple[int, int]]:
    """Yield offset and length of each run of bytes that a field's value decides: of a view not what fills it up."""
    if isinstance(field, ExpectedView):
        yield 0, 8 + len(field.extents)
        yield field.stride_offset, len(field.strides)
    else:
        yield 0, size


def _decoded(data: bytes) -> TiledRequest | Im2colRequest | str:
    try:
        return decode(data)
    except CorruptArtifactError as error:
        return str(error)


# Maps -------------------------------------------------------------------------------------------------------------


def _resolved(value: ExpectedMap, where: Mapping[Address, int]) -> _Fields:
    address = where[value.address.base] + value.address.offset
    mode: _Fields = (value.box,)
    if value.im2col is not None:
        mode = (value.im2col.lower, value.im2col.upper, value.im2col.channels, value.im2col.pixels)
    layout = (value.dims, value.strides, *mode, value.element_strides)
    modes = (value.interleave, value.swizzle, value.l2_promotion, value.oob_fill)
    return (address, value.dtype, *layout, *modes)


def _fields(have: TiledRequest | Im2colRequest) -> _Fields:
    mode: _Fields = (
        (have.box,)
        if isinstance(have, TiledRequest)
        else (have.lower, have.upper, have.channels, have.pixels)
    )
    layout = (have.dims, have.strides, *mode, have.element_strides)
    modes = (int(have.interleave), int(have.swizzle), int(have.l2_promotion), int(have.oob_fill))
    return (have.address, int(have.data_type), *layout, *modes)


def compare_maps(
    harness: Harness, expected: Expected, observed: Observed, where: Mapping[Address, int]
) -> None:
    """Compare the maps that a first call encoded with the distinct maps that its launches read.

    Raises
    ------
    LawViolation
        If one is missing, encoded twice, read by no launch, or encoded after its first reader.
    """
    wanted = sorted(repr(_resolved(value, where)) for value in expected.maps)
    got = sorted(repr(_fields(request)) for request in observed.encodes)
    harness.require(got == wanted, f"encoded {got}, expected {wanted}")
    encoded: set[_Fields] = set()
    launches = iter(expected.launches)
    for event in observed.events:
        if isinstance(event, TensorMapEncoded):
            encoded.add(_fields(event.request))
        elif isinstance(event, Launched):
            late = [value for value in next(launches).maps if _resolved(value, where) not in encoded]
            harness.require(not late, f"maps encoded after a launch that reads them: {late}")
