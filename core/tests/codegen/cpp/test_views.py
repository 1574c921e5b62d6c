"""A view in a C++ launcher: an address, extents, strides, and zeros where an odd number of extents leaves a gap."""

from __future__ import annotations

from typing import Any

import pytest

ADDRESS, EXTENT, STRIDE, GAP = bytes(range(1, 9)), bytes(range(1, 5)), b"\x11" * 8, bytes(4)


@pytest.fixture(scope="module")
def written(native: Any) -> bytes:
    return native("views")(b"")


def test_what_no_number_fills_is_zero(written: bytes) -> None:
    expected = (
        ADDRESS + EXTENT + GAP,
        ADDRESS + EXTENT * 2,
        ADDRESS + EXTENT * 3 + GAP,
        ADDRESS + EXTENT + GAP + STRIDE,
        ADDRESS + EXTENT * 3 + GAP + STRIDE * 2,
    )
    assert written == b"".join(expected)
