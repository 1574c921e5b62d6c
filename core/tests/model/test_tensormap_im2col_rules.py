"""Each rule of ``cuTensorMapEncodeIm2col`` alone: a request at the very edge, and one that breaks it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.model.tensormap.fields import Im2colFields
from trunnion.model.tensormap.rules import IM2COL_RULES, broken_rules, violations
from trunnion.model.tensormap.shared_rules import LAYOUT_RULES, MODE_RULES

if TYPE_CHECKING:
    from trunnion.model.tensormap.rule import Rule

HOPPER, BLACKWELL = (9, 0), (10, 0)
GOOD = Im2colFields(
    address=1 << 20,
    element_bits=16,
    data_type=6,
    dims=(64, 200, 300, 10),
    strides=(128, 25600, 7680000),
    innermost_stride=1,
    lower=(-1, -2),
    upper=(-1, 3),
    channels_per_pixel=64,
    pixels_per_column=128,
    element_strides=(1, 1, 1, 1),
    interleave=0,
    swizzle=0,
    oob_fill=0,
)


def of_rank(rank: int, lower: int = 0, upper: int = 0) -> dict[str, Any]:
    return {
        "dims": (64, *(70000,) * (rank - 2), 10),
        "strides": (128,) * (rank - 1),
        "element_strides": (1,) * rank,
        "lower": (lower,) * (rank - 2),
        "upper": (upper,) * (rank - 2),
    }


WIDE = {"data_type": 14, "element_bits": 4, "dims": (128, 200, 300, 10), "channels_per_pixel": 128}
CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    ("the rank", of_rank(3), of_rank(2)),
    ("the rank", of_rank(5), of_rank(6)),
    ("each corner", {}, {"lower": (0,)}),
    ("each corner", {}, {"upper": (0, 0, 0)}),
    *(
        case
        for rank, least, most in ((3, -32768, 32767), (4, -128, 127), (5, -16, 15))
        for case in (
            ("each offset of the lower", of_rank(rank, least), of_rank(rank, least - 1)),
            ("each offset of the lower", of_rank(rank, most), of_rank(rank, most + 1)),
            ("each offset of the upper", of_rank(rank, upper=least), of_rank(rank, upper=least - 1)),
            ("each offset of the upper", of_rank(rank, upper=most), of_rank(rank, upper=most + 1)),
        )
    ),
    ("the bounding box, from", {"dims": (1, 1, 300, 10), "lower": (-1, -2)},
     {"dims": (1, 1, 300, 10), "lower": (0, -2)}),
    ("the bounding box, from", {"lower": (-1, 127), "dims": (1, 200, 125, 10)},
     {"lower": (-1, 127), "dims": (1, 200, 124, 10)}),
    # With an interleave the dimensions are width, height, blocks of channels, images.
    ("the bounding box, from", {"interleave": 1, "dims": (200, 300, 1, 1)},
     {"interleave": 1, "dims": (1, 300, 1, 1), "lower": (0, 0)}),
    ("the bounding box is not", {"dims": (64, 2**31, 300, 10)}, {"dims": (64, 2**31 + 1, 300, 10)}),
    ("the bounding box is not", {"dims": (64, 2**32, 300, 10), "upper": (3, 3)}, {"dims": (64, 2**32, 300, 10)}),
    ("the channels per pixel are 1 to", {"channels_per_pixel": 256}, {"channels_per_pixel": 264}),
    ("the channels per pixel are 1 to", {"channels_per_pixel": 8}, {"channels_per_pixel": 0}),
    ("the channels per pixel are a multiple", {"channels_per_pixel": 8}, {"channels_per_pixel": 12}),
    ("the channels per pixel are a multiple", {"channels_per_pixel": 8, "interleave": 1},
     {"channels_per_pixel": 4, "interleave": 1}),
    ("the pixels per column are", {"pixels_per_column": 1024}, {"pixels_per_column": 1025}),
    ("the pixels per column are", {"pixels_per_column": 1}, {"pixels_per_column": 0}),
    ("the pixels per column, times", {"pixels_per_column": 912, "channels_per_pixel": 128},
     {"pixels_per_column": 913, "channels_per_pixel": 128}),
    ("the address is a multiple", {"address": 16}, {"address": 24}),
    ("the innermost dimension", {}, {"innermost_stride": 2}),
    ("without interleave, the box's", {"swizzle": 3}, {"swizzle": 3, "channels_per_pixel": 72}),
    ("NaN fill", {"oob_fill": 1}, {"oob_fill": 1, "data_type": 1}),
]  # fmt: skip


def named(words: str) -> Rule[Im2colFields]:
    (rule,) = [rule for rule in IM2COL_RULES if rule.text.startswith(words)]
    return rule


@pytest.mark.parametrize(("words", "edge", "beyond"), CASES)
def test_on_hopper(words: str, edge: dict[str, Any], beyond: dict[str, Any]) -> None:
    assert broken_rules(replace(GOOD, **edge), HOPPER) == ()
    broken = {rule.text for rule, _ in violations(replace(GOOD, **beyond), HOPPER)}
    assert broken == {named(words).text}


def test_wide_packed_types_take_128_channels_on_blackwell() -> None:
    assert broken_rules(replace(GOOD, **WIDE), BLACKWELL) == ()
    (sentence,) = broken_rules(replace(GOOD, **{**WIDE, "channels_per_pixel": 64}), BLACKWELL)
    assert sentence.startswith("the channels per pixel are 128")


def test_every_rule_of_its_own_has_a_case() -> None:
    tried = {named(words).text for words, _, _ in CASES} | {named("the channels per pixel are 128").text}
    shared = {rule.text for rule in (*LAYOUT_RULES, *MODE_RULES)}
    assert tried >= {rule.text for rule in IM2COL_RULES} - shared
