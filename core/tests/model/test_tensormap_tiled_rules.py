"""Each rule of ``cuTensorMapEncodeTiled``: a request at the very edge that keeps it, and one that breaks it alone."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.model.tensormap.fields import TiledFields
from trunnion.model.tensormap.rules import TILED_RULES, broken_rules, violations

if TYPE_CHECKING:
    from trunnion.model.tensormap.rule import Rule

HOPPER, BLACKWELL = (9, 0), (10, 0)
GOOD = TiledFields(
    address=1 << 20,
    element_bits=16,
    data_type=6,
    dims=(64, 100, 10),
    strides=(128, 12800),
    innermost_stride=1,
    box=(64, 8, 1),
    element_strides=(1, 1, 1),
    interleave=0,
    swizzle=0,
    oob_fill=0,
)
IN_32B = {"interleave": 2, "swizzle": 1}
PACKED = {"element_bits": 4, "data_type": 14, "dims": (128, 100, 10), "box": (128, 8, 1)}
PACKED_8B = {"element_bits": 4, "data_type": 13, "box": (64, 8, 1)}
PACKED_6BIT = {**PACKED, "element_bits": 6, "data_type": 15}
BYTES = {"element_bits": 8, "data_type": 0}


def flat(count: int) -> dict[str, Any]:
    return {
        "dims": (64,) * count,
        "strides": (128,) * (count - 1),
        "box": (8,) + (1,) * (count - 1),
        "element_strides": (1,) * count,
    }


STARVED = {"box": (128, 256, 255, 1), "element_strides": (1, 1, 1, 8)}
"""Rounded down, nothing at all is left of this box."""

NOTHING: dict[str, Any] = {"dims": (), "strides": (), "box": (), "element_strides": ()}
Case = tuple[str, dict[str, Any], dict[str, Any]]
CASES: list[Case] = [
    ("the rank", flat(1), NOTHING),
    ("the rank", flat(5), flat(6)),
    ("the rank", {**flat(3), "interleave": 1}, {**flat(2), "interleave": 1}),
    ("the address is a multiple", {"address": 16}, {"address": 24}),
    ("the address is a multiple", {"address": 32, **IN_32B}, {"address": 16, **IN_32B}),
    ("the address is not null", {"address": 16}, {"address": 0}),
    ("the address is below", {"address": 2**57 - 16}, {"address": 2**57}),
    ("each extent", {"dims": (1, 2**32, 1)}, {"dims": (64, 2**32 + 1, 10)}),
    ("each extent", {"dims": (1, 1, 1)}, {"dims": (64, 0, 10)}),
    ("each stride", {"strides": (16, 2**40 - 16)}, {"strides": (16, 2**40)}),
    ("each stride", {"strides": (16, 16)}, {"strides": (24, 16)}),
    ("each stride", {"strides": (0, 16)}, {"strides": (-16, 16)}),
    ("each stride", {"strides": (32, 64), **IN_32B}, {"strides": (48, 64), **IN_32B}),
    ("the innermost dimension", {"innermost_stride": 1}, {"innermost_stride": 2}),
    ("the innermost dimension", {"innermost_stride": 7, "dims": (1, 100, 10)}, {"innermost_stride": 0}),
    ("each box dimension", {"box": (8, 256, 1)}, {"box": (8, 257, 1)}),
    ("each box dimension", {"box": (8, 1, 1)}, {"box": (8, 0, 1)}),
    ("without interleave, the box's inner dimension is", {"box": (8, 1, 1)}, {"box": (4, 1, 1)}),
    ("with an interleave too", {"box": (8, 1, 1), "interleave": 1}, {"box": (4, 1, 1), "interleave": 1}),
    ("without interleave, the box's inner dimension fits", {"box": (16, 1, 1), "swizzle": 1},
     {"box": (24, 1, 1), "swizzle": 1}),
    ("without interleave, the box's inner dimension fits", {"box": (32, 1, 1), "swizzle": 2},
     {"box": (40, 1, 1), "swizzle": 2}),
    ("without interleave, the box's inner dimension fits", {"box": (64, 1, 1), "swizzle": 3},
     {"box": (72, 1, 1), "swizzle": 3}),
    ("without interleave, the box's inner dimension fits", {"box": (72, 1, 1), "swizzle": 3, "interleave": 1},
     {"box": (256, 1, 1), "swizzle": 3}),
    ("each element stride", {"element_strides": (1, 8, 8)}, {"element_strides": (1, 9, 1)}),
    ("each element stride", {"element_strides": (1, 1, 1)}, {"element_strides": (1, 0, 1)}),
    ("each element stride", {"element_strides": (1, 1, 1)}, {"element_strides": (0, 1, 1)}),
    ("without interleave, every element", {"element_strides": (1, 2, 2)}, {"element_strides": (2, 1, 1)}),
    ("without interleave, every element", {"element_strides": (2, 1, 1), "interleave": 1},
     {"element_strides": (8, 1, 1)}),
    ("interleave 32B", IN_32B, {"interleave": 2, "swizzle": 0}),
    ("interleave 32B", {"interleave": 1, "swizzle": 0}, {"interleave": 2, "swizzle": 3}),
    ("NaN fill", {"oob_fill": 1}, {"oob_fill": 1, "data_type": 1}),
    ("NaN fill", {"oob_fill": 1, "data_type": 9}, {"oob_fill": 1, "data_type": 5}),
    ("the packed types", {}, {"data_type": 13, "element_bits": 4}),
    ("the swizzles 128B_ATOM", {"swizzle": 3}, {"swizzle": 4}),
    # 128 x 228 x 8 bytes are the limit; 1 / 8 is nothing when rounded down.
    ("the box, each extent", {"box": (128, 228, 8), **BYTES}, {"box": (128, 229, 8), **BYTES}),
    ("the box, each extent", {"box": (128, 229, 9), "element_strides": (1, 1, 2), **BYTES, "interleave": 1},
     {"box": (128, 229, 16), "element_strides": (1, 1, 2), **BYTES, "interleave": 1}),
    ("the box as the hardware", {"box": (128, 228, 15), "element_strides": (1, 1, 2), **BYTES},
     {"box": (128, 228, 17), "element_strides": (1, 1, 2), **BYTES}),
    ("the box as the hardware", {"box": (128, 228, 8), "element_strides": (1, 1, 8), **BYTES},
     {**flat(4), **BYTES, **STARVED}),
    ("the box as the hardware",
     {"box": (256, 228, 8), "element_strides": (2, 1, 1), **BYTES, "interleave": 1}, {**flat(4), **BYTES, **STARVED}),
]  # fmt: skip
BLACKWELL_CASES: list[Case] = [
    ("the address is a multiple", {**PACKED, "address": 32}, {**PACKED, "address": 16}),
    ("each stride", {**PACKED, "strides": (64, 96)}, {**PACKED, "strides": (64, 80)}),
    ("the innermost extent", PACKED, {**PACKED, "dims": (192, 100, 10)}),
    ("the innermost extent", PACKED_6BIT, {**PACKED_6BIT, "dims": (2, 100, 10)}),
    ("the innermost extent", {**PACKED_8B, "dims": (2, 1, 1)}, {**PACKED_8B, "dims": (3, 1, 1)}),
    ("without interleave, the box's inner dimension is", PACKED_8B, {**PACKED_8B, "box": (48, 8, 1)}),
    ("the box's inner dimension is 128", PACKED, {**PACKED, "box": (64, 8, 1)}),
    ("type 16U6_ALIGN16B is not", {**PACKED, "interleave": 1}, {**PACKED_6BIT, "interleave": 1}),
    ("type 16U4_ALIGN16B goes", {**PACKED, "swizzle": 4}, {**PACKED, "swizzle": 6}),
    ("type 16U4_ALIGN16B goes", {**PACKED_6BIT, "swizzle": 6}, {**PACKED_6BIT, "swizzle": 5}),
    ("NaN fill", PACKED, {**PACKED, "oob_fill": 1}),
]


def named(words: str) -> Rule[TiledFields]:
    (rule,) = [rule for rule in TILED_RULES if rule.text.startswith(words)]
    return rule


def check(words: str, edge: TiledFields, beyond: TiledFields, capability: tuple[int, int]) -> None:
    assert broken_rules(edge, capability) == ()
    assert {rule.text for rule, _ in violations(beyond, capability)} == {named(words).text}


@pytest.mark.parametrize(("words", "edge", "beyond"), CASES)
def test_on_hopper(words: str, edge: dict[str, Any], beyond: dict[str, Any]) -> None:
    check(words, replace(GOOD, **edge), replace(GOOD, **beyond), HOPPER)


@pytest.mark.parametrize(("words", "edge", "beyond"), BLACKWELL_CASES)
def test_on_blackwell(words: str, edge: dict[str, Any], beyond: dict[str, Any]) -> None:
    check(words, replace(GOOD, **edge), replace(GOOD, **beyond), BLACKWELL)


def test_every_rule_has_a_case() -> None:
    tried = {named(words).text for words, _, _ in CASES + BLACKWELL_CASES}
    assert tried | {"the device has compute capability 9.0 or more"} == {rule.text for rule in TILED_RULES}
