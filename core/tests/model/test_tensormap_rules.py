"""Who breaks which rules: both kinds of map, devices, and what is not known."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import pytest

from trunnion.errors import TensorMapError
from trunnion.model.dtypes import DTYPES, dtype
from trunnion.model.expr import symbols
from trunnion.model.params import TensorParam
from trunnion.model.tensormap.rules import (
    IM2COL_RULES,
    TILED_RULES,
    H200Answer,
    Im2colFields,
    Origin,
    TiledFields,
    broken_rules,
)

COMMON: dict[str, Any] = {
    "address": 1 << 20,
    "element_bits": 16,
    "data_type": 6,
    "dims": (64, 100, 10),
    "strides": (128, 12800),
    "innermost_stride": 1,
    "element_strides": (1, 1, 1),
    "interleave": 0,
    "swizzle": 0,
    "oob_fill": 0,
    "l2_promotion": 0,
}
TILED = TiledFields(**COMMON, box=(64, 8, 1))
IM2COL = Im2colFields(**COMMON, lower=(0,), upper=(0,), channels_per_pixel=64, pixels_per_column=128)
BOTH = pytest.mark.parametrize("good", [TILED, IM2COL], ids=["tiled", "im2col"])
TABLES = pytest.mark.parametrize("table", [TILED_RULES, IM2COL_RULES], ids=["tiled", "im2col"])


@BOTH
def test_all_broken_rules_are_named(good: TiledFields | Im2colFields) -> None:
    bad = replace(
        good, address=1, dims=(0, 2**33, 1), element_strides=(0, 9, 1), swizzle=4, oob_fill=1, data_type=0
    )
    texts = " ".join(broken_rules(bad, (9, 0)))
    for words in ("0x1", "global_dim[0]", "global_dim[1]", "element_strides[2]", "element_strides[1]",
                  "128B_ATOM", "NaN"):  # fmt: skip
        assert words in texts


def test_each_table_judges_its_own() -> None:
    assert any("box_dim[1]" in sentence for sentence in broken_rules(replace(TILED, box=(64, 0, 1))))
    assert any(
        "pixels_per_column" in sentence for sentence in broken_rules(replace(IM2COL, pixels_per_column=0))
    )


def told(fields: TiledFields | Im2colFields) -> str:
    (text,) = broken_rules(fields, (9, 0))
    return text[text.index("(got: ") + 6 : -1]


def test_what_the_author_wrote_is_counted_as_the_author_wrote_it() -> None:
    """Outermost first; the driver counts from the innermost, and what only it has a name for is told as such."""
    assert told(replace(TILED, box=(16, 8, 512))) == "box_dim[0] (outermost first) is 512"
    assert told(replace(TILED, element_strides=(1, 9, 1))) == "element_strides[1] (outermost first) is 9"
    assert told(replace(TILED, element_strides=(2, 1, 1))) == (
        "element_strides[2] (outermost first) is 2, which the hardware would ignore"
    )
    image = replace(IM2COL, dims=(64, 8, 8, 4), strides=(128, 1024, 8192), element_strides=(1,) * 4)
    assert told(replace(image, lower=(0, -129), upper=(0, 0))) == (
        "pixel_box_lower_corner[0] (outermost first) is -129, allowed for rank 4 is -128 to 127"
    )
    assert told(replace(image, lower=(0, 9), upper=(0, 0))) == (
        "along spatial dimension 0 (outermost first) it goes from 9 to 8"
    )
    assert told(replace(TILED, dims=(64, 2**33, 1))) == f"global_dim[1] (innermost first) is {2**33}"


@pytest.mark.parametrize(("bits", "code", "multiple"), [(16, 6, 8), (32, 7, 4), (8, 0, 16), (64, 8, 2)])
def test_of_a_stride_that_is_no_multiple_of_16_bytes_it_is_told_what_to_do(
    bits: int, code: int, multiple: int
) -> None:
    fields = replace(TILED, strides=(120, 1 << 20), element_bits=bits, data_type=code, box=(16, 1, 1))
    assert told(fields) == (
        "global_strides[0] (innermost first) is 120 bytes, not a multiple of 16 below 2**40: make the innermost "
        f"extent, or that stride, a multiple of {multiple} elements; Symbol(..., multiple_of={multiple}) declares it"
    )


def test_of_a_stride_that_is_too_large_no_padding_is_advised() -> None:
    fields = replace(TILED, strides=(128, 2**40))
    assert (
        told(fields)
        == f"global_strides[1] (innermost first) is {2**40} bytes, not a multiple of 16 below 2**40"
    )


@BOTH
def test_what_is_not_known_breaks_nothing(good: TiledFields | Im2colFields) -> None:
    unknown = replace(good, address=None, dims=(None,) * 3, strides=(None,) * 2, innermost_stride=None)
    assert broken_rules(unknown, (9, 0)) == ()


@BOTH
def test_what_depends_on_the_device_waits_for_it(good: TiledFields | Im2colFields) -> None:
    atom = replace(good, swizzle=4)
    assert broken_rules(atom) == broken_rules(atom, (10, 0)) == broken_rules(atom, (12, 1)) == ()
    (sentence,) = broken_rules(atom, (9, 0))
    assert sentence.startswith("the swizzles 128B_ATOM_*")
    high = replace(good, address=1 << 57)
    assert broken_rules(high) == broken_rules(high, (10, 0)) == ()
    assert len(broken_rules(high, (9, 0))) == 1


@BOTH
def test_a_device_without_tensor_maps_keeps_none(good: TiledFields | Im2colFields) -> None:
    assert broken_rules(good) == broken_rules(good, (9, 0)) == ()
    assert any("9.0 or more" in sentence for sentence in broken_rules(good, (8, 9)))


@TABLES
def test_rows_say_where_they_come_from(table: tuple[Any, ...]) -> None:
    texts = [rule.text for rule in table]
    assert len(set(texts)) == len(texts)
    for rule in table:
        assert (rule.h200 is H200Answer.ACCEPTS) is bool(rule.reason)
        if rule.origin is Origin.MEASURED:
            assert rule.h200 is H200Answer.REFUSES
            assert (9, 0) in rule.architectures
            assert None not in rule.architectures, "measured on one architecture, it says nothing of others"
        if rule.origin is Origin.OURS:
            assert rule.h200 is H200Answer.ACCEPTS


def test_ranges_of_architectures_are_written_out() -> None:
    assert {str(rule.architectures) for rule in TILED_RULES} == {
        "all",
        "below 9.0",
        "below 10.0",
        "9.0 to below 10.0",
    }


def test_both_kinds_share_their_common_fields() -> None:
    names = {item.name for item in fields(TiledFields)} & {item.name for item in fields(Im2colFields)}
    assert names == set(COMMON)


@pytest.mark.parametrize("name", [row.name for row in DTYPES.values() if row.tma_code is not None])
def test_nan_fill_is_for_the_floats_of_the_driver(name: str) -> None:
    kind = dtype(name)
    real = name in ("float16", "bfloat16", "float32", "float64")
    filled = replace(
        TILED, element_bits=8 * kind.itemsize, data_type=kind.tma_code, oob_fill=1, box=(16, 1, 1)
    )
    assert (broken_rules(filled) == ()) is real


def test_a_program_is_judged_by_what_it_fixes() -> None:
    n, m = symbols("n m")
    x = TensorParam("x", dtype("float16"), (n, 60))
    with pytest.raises(TensorMapError, match=r"global_strides\[0\] \(innermost first\) is 120 bytes"):
        x.tiled((8, 8))
    known = TensorParam("x", dtype("float16"), (n, m, 64)).tiled((1, 2, 8)).known_fields()
    assert known.dims == (64, None, None)
    assert known.strides == (128, None)
    assert known.box == (8, 2, 1)
    assert known.address is None
