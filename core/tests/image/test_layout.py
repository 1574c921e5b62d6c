"""Parameter offsets are those that ptxas was seen to write; the NVRTC plugin's tests compile them again."""

from __future__ import annotations

import pytest

from trunnion.errors import ProgramError
from trunnion.image import ParameterLayout, pack_parameters, parameter_base, place_parameters
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


@pytest.mark.parametrize(
    ("layouts", "base", "offsets"),
    [
        ([(1, 1), (128, 128), (4096, 1)], 0x160, [0, 32, 160]),  # 4352 bytes from zero, fewer in place
        ([(1, 1), (128, 128), (4097, 1)], 0x1A80, [0, 128, 256]),  # 4353 bytes from zero, 4257 at 0x160
        ([(128, 128), (4224, 1)], 0x160, [32, 160]),  # 4352 bytes from zero, more in place
        ([(128, 128), (4225, 1)], 0x1A80, [0, 128]),
        ([(1, 1), (256, 256), (3841, 1)], 0x1A80, [0, 256, 512]),
    ],
)
def test_the_size_from_zero_decides(layouts: list[tuple[int, int]], base: int, offsets: list[int]) -> None:
    place = place_parameters(layouts, "sm_80")
    assert (place.base, [parameter.offset for parameter in place.parameters]) == (base, offsets)
    assert place.wide is (base == 0x1A80)
    assert place_parameters(layouts, "sm_90").wide is place.wide
    assert pack_parameters(layouts, "sm_80") == place.parameters


def test_no_parameters_are_no_table() -> None:
    assert pack_parameters([]) == ()
    assert place_parameters([], "sm_80") == ParameterLayout(0x160, False, ())


@pytest.mark.parametrize("layout", [(0, 1), (-1, 1), (4, 0), (4, -4), (4, 3)])
def test_an_impossible_layout_is_refused_by_its_place(layout: tuple[int, int]) -> None:
    with pytest.raises(ProgramError) as caught:
        pack_parameters([(4, 4), layout])
    assert caught.value.field == "layouts[1]"


@pytest.mark.parametrize(
    "arch", ["", "90", "sm_", "sm_9", "sm_256", "sm_1000", "sm_90A", "compute_9", "sm_90 ", "sm_90\n"]
)
def test_what_is_no_architecture_is_refused(arch: str) -> None:
    with pytest.raises(ProgramError) as caught:
        arch_number(arch)
    assert caught.value.field == "arch"
