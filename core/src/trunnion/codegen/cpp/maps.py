"""The part of a C++ launcher that lays out tensor maps and encodes them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.cpp.launches import memory_address
from trunnion.codegen.cpp.places import tensor_rule
from trunnion.codegen.literals import cpp_name
from trunnion.model.expr import Const
from trunnion.model.tensormap.rules import TiledFields, broken_rules

if TYPE_CHECKING:
    from trunnion.codegen.cpp.text import CallText
    from trunnion.codegen.writer import SourceWriter
    from trunnion.model.plan import Encode, LaunchPlan
    from trunnion.model.plan.steps import RequirePresence

__all__ = ["emit_encode", "emit_map_rules", "emit_map_values", "emit_presence"]

_ARCHITECTURES = ((8, 0), (9, 0), (10, 0))
"""One device of each kind that a map's constant fields may be refused on: before Hopper, Hopper, since Blackwell."""

_INTERLEAVE_32B = 2
_EXTENT_UNITS = {13: 2, 14: 128, 15: 128}  # CUtensorMapDataType: the packed types
_WIDE_PACKED = frozenset({14, 15})


def emit_map_rules(out: SourceWriter, plan: LaunchPlan) -> None:
    """Write what is known of each map before any call, and where each thread keeps the last one."""
    for encode in plan.encodes:
        out.line(f"constexpr MapRule kMap{encode.index}{{{', '.join(_rule(plan, encode))}}};")
        out.line(f"thread_local KnownMap known{encode.index};")


def _rule(plan: LaunchPlan, encode: Encode) -> list[str]:
    fields = encode.fields
    wide = fields.interleave == _INTERLEAVE_32B or fields.data_type in _WIDE_PACKED
    allowed = ["false" if broken_rules(fields, one) else "true" for one in _ARCHITECTURES]
    head = [
        str(encode.index),
        cpp_name(plan.memory(encode.memory).name),
        str(len(encode.dims)),
        "32" if wide else "16",
        str(_EXTENT_UNITS.get(fields.data_type, 1)),
        str(fields.element_bits),
        *allowed,
        f"static_cast<CUtensorMapDataType>({fields.data_type})",
        f"static_cast<CUtensorMapInterleave>({fields.interleave})",
        f"static_cast<CUtensorMapSwizzle>({fields.swizzle})",
        f"static_cast<CUtensorMapL2promotion>({fields.l2_promotion})",
        f"static_cast<CUtensorMapFloatOOBfill>({fields.oob_fill})",
        _numbers(fields.element_strides),
    ]
    if isinstance(fields, TiledFields):
        return [*head, "true", _numbers(fields.box), "{}", "{}", "0", "0"]
    corners = [_numbers(fields.lower), _numbers(fields.upper)]
    return [*head, "false", "{}", *corners, str(fields.channels_per_pixel), str(fields.pixels_per_column)]


def _numbers(values: tuple[int, ...]) -> str:
    return f"{{{', '.join(map(str, values))}}}"


def emit_map_values(text: CallText, encode: Encode) -> None:
    """Write the lines that compute a map's layout ``k<i>``, and that it fits its memory."""
    name = text.member("MapLayout", f"k{encode.index}")
    if encode.offset_bytes != Const(0):
        text.store("int64_t", f"k{encode.index}_offset", encode.offset_bytes)
    for axis, extent in enumerate(encode.dims):
        text.line(f"{name}.dims[{axis}] = {text.expr(extent)};")
    for axis, stride in enumerate(encode.strides):
        text.line(f"{name}.strides[{axis}] = {text.expr(stride)};")
    text.line(f"{name}.innermost_stride = {text.expr(encode.innermost_stride)};")
    if encode.limit_bytes is not None:
        with text.out.block("{", "}"):
            text.line(f"const int64_t limit = {text.expr(encode.limit_bytes)};")
            offset = "0" if encode.offset_bytes == Const(0) else f"{name}_offset"
            text.require(f"check_within(kMap{encode.index}, {name}, {offset}, limit)")


def emit_presence(text: CallText, required: RequirePresence) -> None:
    """Write the check that no map and no window that is read lies over a tensor that the call leaves out."""
    slot = required.memory.slot
    text.refuse(f"t[{slot}] == nullptr", f'raise_absent({tensor_rule(slot)}.name, "{required.what}")')


def emit_encode(text: CallText, encode: Encode) -> None:
    """Write the lines that encode a map ``m<i>``."""
    index = encode.index
    text.member("CUtensorMap", f"m{index}")
    offset = "" if encode.offset_bytes == Const(0) else f" + static_cast<uint64_t>(k{index}_offset)"
    values = f"kMap{index}, k{index}, *state, {memory_address(encode.memory)}{offset}, known{index}, m{index}"
    text.require(f"trunnion::encode(program.driver(), {values})")
