"""Which architecture an image was made for."""

from __future__ import annotations

import pytest

from trunnion.errors import ProgramError
from trunnion.image import SyntheticKernel, synthetic_cubin
from trunnion.image.target import assembles_for, can_assemble, can_run, image_target, runs_for

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


@pytest.mark.parametrize(
    ("image", "target", "runs", "assembled"),
    [
        ("sm_90", "sm_90a", True, True),
        ("sm_90a", "sm_90a", True, True),
        ("sm_90a", "sm_90", False, False),
        ("sm_80", "sm_90", False, True),
        ("sm_100f", "sm_103", True, True),
        ("sm_100f", "sm_103a", True, True),
        ("sm_100f", "sm_120", False, False),
        ("sm_103f", "sm_100f", False, False),
        ("sm_100f", "compute_103f", False, True),
        ("sm_100f", "compute_103", False, False),
        ("sm_90a", "compute_90a", False, True),
        ("sm_90", "x86-64-v3", False, False),
        ("sm_90", "", False, False),
    ],
)
def test_what_runs_wherever_code_for_a_target_does(
    image: str, target: str, runs: bool, assembled: bool
) -> None:
    """Those of the family as nvlink and ptxas of CUDA 13.0 take them."""
    assert runs_for(image, target) is runs
    assert assembles_for(image, target) is assembled


@pytest.mark.parametrize(
    "arch", ["", "sm_", "sm_0", "compute_90", "sm_90b", "sm_9\u0660", "sm_" + "9" * 5000]
)
def test_what_is_no_real_architecture_is_refused(arch: str) -> None:
    for ask in (can_run, can_assemble):
        with pytest.raises(ProgramError, match="expected an architecture such as"):
            ask(arch, (9, 0))
