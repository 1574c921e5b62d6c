"""Each rule with a call that keeps it at the very edge, and one that breaks it."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from trunnion.errors import TensorMapError
from trunnion.model.dtypes import DTYPES, dtype
from trunnion.model.expr import symbols
from trunnion.model.params import TensorParam
from trunnion.model.tensormap_rules import RULES, TiledFields, broken_rules

GOOD = TiledFields(
    address=1 << 20,
    itemsize=2,
    dtype_code=6,
    dims=(64, 100, 10),
    strides=(128, 12800),
    innermost_stride=1,
    box=(64, 8, 1),
    element_strides=(1, 1, 1),
    interleave=0,
    swizzle=0,
    oob_fill=0,
)


def flat(count: int) -> dict[str, Any]:
    return {
        "dims": (64,) * count,
        "strides": (128,) * (count - 1),
        "box": (8,) * count,
        "element_strides": (1,) * count,
    }


CASES: list[tuple[int, dict[str, Any], dict[str, Any]]] = [
    (0, flat(1), {**flat(1), "dims": (), "strides": (), "box": (), "element_strides": ()}),
    (0, flat(5), flat(6)),
    (0, {**flat(3), "interleave": 1}, {**flat(2), "interleave": 1}),
    (1, {"address": 16}, {"address": 0}),
    (1, {"address": 16}, {"address": 24}),
    (
        1,
        {"address": 32, "interleave": 2, "swizzle": 1, "strides": (128, 12800)},
        {"address": 16, "interleave": 2, "swizzle": 1},
    ),
    (2, {"dims": (1, 2**32, 1)}, {"dims": (64, 2**32 + 1, 10)}),
    (2, {"dims": (1, 1, 1)}, {"dims": (64, 0, 10)}),
    (3, {"strides": (16, 2**40 - 16)}, {"strides": (16, 2**40)}),
    (3, {"strides": (16, 16)}, {"strides": (24, 16)}),
    (3, {"strides": (0, 16)}, {"strides": (-16, 16)}),
    (
        3,
        {"strides": (32, 64), "interleave": 2, "swizzle": 1},
        {"strides": (48, 64), "interleave": 2, "swizzle": 1},
    ),
    (4, {"innermost_stride": 1}, {"innermost_stride": 2}),
    (4, {"innermost_stride": 7, "dims": (1, 100, 10)}, {"innermost_stride": 0}),
    (5, {"box": (256, 256, 1)}, {"box": (256, 257, 1)}),
    (5, {"box": (8, 1, 1)}, {"box": (8, 0, 1)}),
    (6, {"box": (8, 1, 1)}, {"box": (4, 1, 1)}),
    (6, {"box": (4, 1, 1), "interleave": 1}, {"box": (9, 1, 1)}),
    (7, {"box": (16, 1, 1), "swizzle": 1}, {"box": (24, 1, 1), "swizzle": 1}),
    (7, {"box": (32, 1, 1), "swizzle": 2}, {"box": (40, 1, 1), "swizzle": 2}),
    (7, {"box": (64, 1, 1), "swizzle": 3}, {"box": (72, 1, 1), "swizzle": 3}),
    (7, {"box": (64, 1, 1), "swizzle": 6}, {"box": (72, 1, 1), "swizzle": 6}),
    (7, {"box": (72, 1, 1), "swizzle": 0}, {"box": (72, 1, 1), "swizzle": 4}),
    (8, {"element_strides": (1, 8, 8)}, {"element_strides": (1, 9, 1)}),
    (8, {"element_strides": (1, 1, 1)}, {"element_strides": (1, 0, 1)}),
    (9, {"element_strides": (1, 2, 2)}, {"element_strides": (2, 1, 1)}),
    (9, {"element_strides": (2, 1, 1), "interleave": 1}, {"element_strides": (8, 1, 1)}),
    (10, {"interleave": 2, "swizzle": 1}, {"interleave": 2, "swizzle": 0}),
    (10, {"interleave": 1, "swizzle": 0}, {"interleave": 2, "swizzle": 3}),
    (11, {"oob_fill": 1}, {"oob_fill": 1, "dtype_code": 3}),
]


@pytest.mark.parametrize(("rule", "edge", "beyond"), CASES)
def test_the_edge_is_kept_and_what_lies_beyond_is_not(
    rule: int, edge: dict[str, Any], beyond: dict[str, Any]
) -> None:
    assert broken_rules(replace(GOOD, **edge)) == ()
    (sentence,) = broken_rules(replace(GOOD, **beyond))
    assert sentence.startswith(RULES[rule].text)


def test_every_rule_has_a_case() -> None:
    assert {rule for rule, _, _ in CASES} == set(range(len(RULES)))


def test_all_broken_rules_are_named() -> None:
    bad = replace(GOOD, address=1, dims=(0, 0, 1), box=(300, 0, 1), element_strides=(0, 9, 1))
    assert len(broken_rules(bad)) == 1 + 2 + 2 + 1 * (300 * 2 % 16 != 0) + 2 + 1


def test_what_is_not_known_breaks_nothing() -> None:
    unknown = replace(GOOD, address=None, dims=(None,) * 3, strides=(None,) * 2, innermost_stride=None)
    assert broken_rules(unknown) == ()


@pytest.mark.parametrize("name", [row.name for row in DTYPES.values() if row.tma_code is not None])
def test_nan_fill_is_for_the_floats_of_the_driver(name: str) -> None:
    kind = dtype(name)
    real = name in ("float16", "bfloat16", "float32", "float64")
    fields = replace(GOOD, itemsize=kind.itemsize, dtype_code=kind.tma_code, oob_fill=1, box=(16, 1, 1))
    assert (broken_rules(fields) == ()) is real


def test_a_program_is_judged_by_what_it_fixes() -> None:
    n, m = symbols("n m")
    x = TensorParam("x", dtype("float16"), (n, 60))
    with pytest.raises(TensorMapError, match=r"global_strides\[0\] is 120 bytes"):
        x.tiled((8, 8))
    known = TiledFields.from_exprs(TensorParam("x", dtype("float16"), (n, m, 64)).tiled((1, 2, 8)))
    assert known.dims == (64, None, None)
    assert known.strides == (128, None)
    assert known.box == (8, 2, 1)
    assert known.address is None
