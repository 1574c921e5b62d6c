"""Which architecture an image was made for."""

from __future__ import annotations

import pytest

from trunnion.image import SyntheticKernel, synthetic_cubin
from trunnion.image.target import can_assemble, can_run, image_target

PTX = b".version 8.8\n.target sm_90a\n.address_size 64\n"


def test_an_image_says_what_it_is_for() -> None:
    assert image_target(synthetic_cubin([SyntheticKernel(name="k")], arch="sm_100a")) == "sm_100a"
    assert image_target(PTX) == "compute_90a"


@pytest.mark.parametrize("image", [b"", b"\x7fELF", b"\xff", b".version 8.8"])
def test_one_that_cannot_be_read_says_nothing(image: bytes) -> None:
    assert image_target(image) == ""


@pytest.mark.parametrize(
    ("image", "runs", "assembled"),
    [
        ("sm_90", True, True),
        ("sm_90a", True, True),
        ("sm_80", False, True),
        ("sm_89", False, True),
        ("sm_91", False, False),
        ("sm_100f", False, False),
        ("sm_80a", False, False),
    ],
)
def test_what_a_hopper_runs(image: str, runs: bool, assembled: bool) -> None:
    assert can_run(image, (9, 0)) is runs
    assert can_assemble(image, (9, 0)) is assembled
