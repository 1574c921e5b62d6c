"""Parameter offsets are those that ptxas was seen to write; the NVRTC plugin's tests compile them again."""

from __future__ import annotations

import pytest

from trunnion.errors import ProgramError
from trunnion.image import pack_parameters, parameter_base
from trunnion.image.layout import arch_number

# Two 128-byte tensor maps, each 64-byte aligned, around an int, then a pointer.
MAPS = [(128, 64), (4, 4), (128, 64), (8, 8)]


@pytest.mark.parametrize(
    ("arch", "offsets"),
    [
        ("sm_80", [0x20, 0xA0, 0xE0, 0x160]),
        ("sm_90a", [0x30, 0xB0, 0xF0, 0x170]),
        ("sm_120a", [0x00, 0x80, 0xC0, 0x140]),
    ],
)
def test_tensor_maps_are_aligned_in_the_constant_bank(arch: str, offsets: list[int]) -> None:
    assert [parameter.offset for parameter in pack_parameters(MAPS, arch)] == offsets


def test_many_bytes_move_the_parameters_before_hopper() -> None:
    assert parameter_base("sm_80", 4352) == 0x160
    assert parameter_base("sm_80", 4353) == 0x1A80
    assert parameter_base("sm_90", 4353) == 0x210
    assert [parameter.offset for parameter in pack_parameters([(4, 4), (128, 64), (4352, 1)], "sm_80")] == [
        0,
        0x40,
        0xC0,
    ]


def test_no_parameters_are_no_table() -> None:
    assert pack_parameters([]) == ()


@pytest.mark.parametrize("layout", [(0, 1), (-1, 1), (4, 0), (4, -4), (4, 3)])
def test_an_impossible_layout_is_refused_by_its_place(layout: tuple[int, int]) -> None:
    with pytest.raises(ProgramError) as caught:
        pack_parameters([(4, 4), layout])
    assert caught.value.field == "layouts[1]"


@pytest.mark.parametrize(
    "arch", ["", "90", "sm_", "sm_9", "sm_256", "sm_1000", "sm_90A", "compute_90", "sm_90 ", "sm_90\n"]
)
def test_what_is_no_architecture_is_refused(arch: str) -> None:
    with pytest.raises(ProgramError) as caught:
        arch_number(arch)
    assert caught.value.field == "arch"
