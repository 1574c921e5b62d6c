"""What the writer writes, the reader reads back; what the format cannot hold, the writer refuses."""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from trunnion.contract.compiler import ImageParameter
from trunnion.errors import ProgramError
from trunnion.image import SyntheticKernel, pack_parameters, place_parameters, read_cubin, synthetic_cubin
from trunnion.image.elf import read_elf
from trunnion.image.nvinfo import WIDE_THRESHOLD, Key, read_attributes

if TYPE_CHECKING:
    from collections.abc import Callable

ARCHS = ("sm_75", "sm_80", "sm_90", "sm_90a", "sm_100f", "sm_120a")
NAMES = st.text(
    alphabet=st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=40
) | st.builds(lambda character, count: character * count, st.sampled_from("xé\n.'"), st.integers(1, 10_000))
COUNTS = st.integers(1, 2**32 - 1)
DIMS = st.none() | st.tuples(COUNTS, COUNTS, COUNTS)


@st.composite
def parameter_tables(draw: Callable[..., object]) -> tuple[ImageParameter, ...]:
    spaces = draw(st.lists(st.tuples(st.integers(0, 300), st.integers(1, 5_000)), max_size=10))
    end = 0
    table = []
    for ordinal, (gap, size) in enumerate(spaces):
        table.append(ImageParameter(ordinal, end + gap, size))
        end += gap + size
    return tuple(table)


KERNELS = st.builds(
    SyntheticKernel,
    name=NAMES,
    parameters=parameter_tables(),
    max_threads=DIMS,
    required_threads=DIMS,
    cluster=DIMS,
    max_cluster_blocks=st.none() | COUNTS,
    grid_counts_clusters=st.booleans(),
    registers=st.none() | COUNTS,
    static_smem_bytes=st.integers(0, 2**20),
    local_bytes=st.none() | st.integers(0, 2**32 - 1),
    wide=st.sampled_from((None, True, False)),
)


@given(
    kernels=st.lists(KERNELS, max_size=6, unique_by=lambda kernel: kernel.name), arch=st.sampled_from(ARCHS)
)
def test_the_reader_finds_what_was_written(kernels: list[SyntheticKernel], arch: str) -> None:
    info = read_cubin(synthetic_cubin(kernels, arch))
    assert info.arch == arch
    assert info.kernels == tuple(kernel.info(arch) for kernel in kernels)
    assert not info.relocatable
    for kernel in kernels:
        found = info.kernel(kernel.name)
        assert found is not None
        assert found.parameters == kernel.parameters
        assert found.cluster == kernel.cluster
        assert found.registers == kernel.registers


@settings(max_examples=30)
@example(layouts=[(1, 1), (1, 64), (11, 128), (4200, 64), (8, 1)])  # from 0: above the threshold, else below
@example(layouts=[(128, 128), (4224, 1)])  # from 0: exactly the threshold, at 0x160: above
@example(
    layouts=[
        *((1, 1), (1, 64), (104, 64), (11, 128), (256, 128), (256, 128), (64, 128)),
        *((314, 64), (320, 1), (384, 1), (578, 1), (577, 64), (563, 64), (558, 1)),
    ]
)
@given(layouts=st.lists(st.tuples(st.integers(1, 600), st.sampled_from((1, 2, 4, 8, 64, 128))), max_size=20))
def test_packed_parameters_are_aligned_where_the_hardware_puts_them(layouts: list[tuple[int, int]]) -> None:
    for arch in ARCHS:
        place = place_parameters(layouts, arch)
        base = place.base if layouts else None
        kernel = SyntheticKernel(
            name="k", parameters=place.parameters, parameter_base=base, wide=place.wide if layouts else None
        )
        found = read_cubin(synthetic_cubin([kernel], arch)).kernels[0]
        assert [parameter.size for parameter in found.parameters] == [size for size, _ in layouts]
        assert all(
            (found.parameter_base + parameter.offset) % alignment == 0
            for parameter, (_, alignment) in zip(found.parameters, layouts, strict=True)
        )


def test_equal_arguments_give_equal_bytes_and_every_field_counts() -> None:
    base = {"name": "k", "parameters": pack_parameters([(8, 8), (4, 4)])}
    variants = [
        {},
        {"name": "l"},
        {"parameters": pack_parameters([(8, 8), (8, 8)])},
        {"max_threads": (1, 2, 3)},
        {"required_threads": (1, 2, 3)},
        {"cluster": (1, 2, 3)},
        {"max_cluster_blocks": 4},
        {"registers": 255},
        {"wide": True},
        {"parameter_base": 0x160},
    ]
    digests = {
        hashlib.sha256(synthetic_cubin([SyntheticKernel(**{**base, **variant})])).hexdigest()
        for variant in (*variants, *variants)
    }
    assert len(digests) == len(variants)


@pytest.mark.parametrize(
    ("total", "wide", "key"),
    [
        (WIDE_THRESHOLD, None, Key.KPARAM_INFO),
        (WIDE_THRESHOLD + 1, None, Key.KPARAM_INFO_WIDE),
        (8, True, Key.KPARAM_INFO_WIDE),
        (0x3FFF, False, Key.KPARAM_INFO),
    ],
)
def test_the_total_size_chooses_the_record(total: int, wide: bool | None, key: Key) -> None:
    kernel = SyntheticKernel(name="k", parameters=(ImageParameter(0, 0, total),), wide=wide)
    elf = read_elf(synthetic_cubin([kernel]))
    (section,) = (section for section in elf.sections if section.name == ".nv.info.k")
    kinds = {attribute.key for attribute in read_attributes(elf.contents(section), section.name)}
    assert kinds & {Key.KPARAM_INFO, Key.KPARAM_INFO_WIDE} == {key}


def test_a_file_of_a_thousand_kernels_keeps_its_order() -> None:
    kernels = [SyntheticKernel(name=f"k{index}", registers=index + 1) for index in reversed(range(1000))]
    found = read_cubin(synthetic_cubin(kernels))
    assert [kernel.name for kernel in found.kernels] == [kernel.name for kernel in kernels]
    assert found.kernel("k1000") is None


@pytest.mark.parametrize(
    ("fields", "field"),
    [
        ({"name": ""}, "name"),
        ({"name": "k", "parameter_base": 8}, "parameter_base"),
        ({"name": "a\0b"}, "name"),
        ({"name": "\ud800"}, "name"),
        ({"parameters": (ImageParameter(1, 0, 4),)}, "parameters"),
        ({"parameters": (ImageParameter(0, -4, 4),)}, "parameters"),
        ({"parameters": (ImageParameter(0, 0, 0),)}, "parameters"),
        ({"parameters": (ImageParameter(0, 0, 8), ImageParameter(1, 4, 4))}, "parameters"),
        ({"parameters": (ImageParameter(0, 0, 0x10000),)}, "parameters"),
        ({"parameters": (ImageParameter(0, 0, 0x4000),), "wide": False}, "wide"),
        ({"max_threads": (0, 1, 1)}, "max_threads"),
        ({"required_threads": (1, 1, 2**32)}, "required_threads"),
        ({"cluster": (1, -1, 1)}, "cluster"),
        ({"max_cluster_blocks": 0}, "max_cluster_blocks"),
        ({"registers": 2**32}, "registers"),
    ],
)
def test_what_the_format_cannot_hold_is_refused(fields: dict[str, object], field: str) -> None:
    with pytest.raises(ProgramError) as caught:
        SyntheticKernel(**{"name": "k", **fields})
    assert caught.value.field == field


def test_equal_names_and_too_many_kernels_are_refused() -> None:
    kernel = SyntheticKernel(name="k")
    with pytest.raises(ProgramError, match="same name"):
        synthetic_cubin([kernel, kernel])
    with pytest.raises(ProgramError, match="fewer than"):
        synthetic_cubin([SyntheticKernel(name=str(index)) for index in range(32637)])
