"""Which architecture an image was made for."""

from __future__ import annotations

import pytest

from trunnion.image import SyntheticKernel, synthetic_cubin
from trunnion.image.target import image_target

PTX = b".version 8.8\n.target sm_90a\n.address_size 64\n"


def test_an_image_says_what_it_is_for() -> None:
    assert image_target(synthetic_cubin([SyntheticKernel(name="k")], arch="sm_100a")) == "sm_100a"
    assert image_target(PTX) == "sm_90a"


@pytest.mark.parametrize("image", [b"", b"\x7fELF", b"\xff", b".version 8.8"])
def test_one_that_cannot_be_read_says_nothing(image: bytes) -> None:
    assert image_target(image) == ""
