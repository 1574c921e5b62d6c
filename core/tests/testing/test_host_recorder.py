"""The recorder's text has a kernel of each signature, and what it tells is read as launches."""

from __future__ import annotations

import functools
import struct

import pytest

from trunnion.contract.spec import Target
from trunnion.testing.host_recorder import (
    image_number,
    launches_of,
    process_log,
    read_records,
    recorder_source,
)
from trunnion.testing.probe_compiler import compile_probes
from trunnion.testing.symbols import kernel_symbol

LAYOUTS = (((8, 8), (24, 8)), ((2, 2),), ())
IMAGE = image_number(LAYOUTS)


def record(kernel=2, first=0, count=4, parameters=b"", *, good=1, **other):
    scratch, image = other.get("scratch", 16), other.get("image", IMAGE)
    header = struct.pack(
        "<II3I3IQQQII", kernel, len(parameters), 2, 1, 2, 3, 1, 1, scratch, first, count, good, image
    )
    return header + parameters + bytes(-len(parameters) % 8)


def launches(*records):
    return launches_of(
        read_records(b"".join(records)),
        lambda image, kernel: [size for size, _ in LAYOUTS[kernel]] if image == IMAGE else [],
    )


def test_the_text_has_a_kernel_of_each_signature():
    code = recorder_source(LAYOUTS)
    assert code.language == "c++"
    assert (
        f"{kernel_symbol(0)}(Bytes<8, 8> p0, Bytes<24, 8> p1, const trunnion_block_t* block)" in code.source
    )
    assert f"{kernel_symbol(1)}(Bytes<2, 2> p0, const trunnion_block_t* block)" in code.source
    assert f"{kernel_symbol(2)}(const trunnion_block_t* block)" in code.source


def test_an_image_of_it_takes_what_was_asked_for():
    image = compile_probes(recorder_source(LAYOUTS), LAYOUTS, Target("cpu"))
    found = [tuple(parameter.size for parameter in kernel.parameters) for kernel in image.kernels]
    assert found == [tuple(size for size, _ in layout) for layout in LAYOUTS]


def test_records_are_launches():
    first, second, third = launches(
        record(0, 0, 4, bytes(32)), record(1, 2, 2, b"\5\0"), record(1, 0, 2, b"\5\0"), record(2)
    )
    assert [one.kernel for one in (first, second, third)] == [kernel_symbol(index) for index in range(3)]
    assert first.parameters == (bytes(8), bytes(24))
    assert second.parameters == (b"\5\0",)
    assert (third.grid, third.block, third.dynamic_smem_bytes) == ((2, 1, 2), (3, 1, 1), 16)
    assert launches() == ()


def test_launches_of_two_threads_are_told_apart():
    one, other = (functools.partial(record, 1, parameters=told) for told in (b"\5\0", b"\6\0"))
    found = launches(
        one(first=2, count=2), other(first=0, count=3), one(first=0, count=2), other(first=3, count=1)
    )
    assert [launch.parameters for launch in found] == [(b"\5\0",), (b"\6\0",)]


@pytest.mark.parametrize(
    "records",
    [
        [record(count=3)],
        [record(1, 0, 3, b"\5\0"), record(1, 0, 4, b"\6\0"), record(1, 0, 1, b"\5\0")],
        [record(count=2), record(first=1, count=2)],
        [record(count=5)],
        [record(count=3), record(first=3, count=1, good=0)],
        [record(count=3), record(first=3, count=1, scratch=17)],
        [record(1, 0, 3, b"\5\0"), record(1, 3, 1, b"\6\0")],
        [record(1, 0, 3, b"\5\0"), record(2, 3, 1)],
        [record(2, image=0), record(1, 0, 4, b"\5\0", image=0)],
        [record(1, 0, 4, b"\5\0\0")],
    ],
)
def test_blocks_that_do_not_belong_together_are_found(records):
    with pytest.raises(AssertionError, match=r"blocks|bytes"):
        launches(*records)


def test_a_full_log_is_told():
    log = process_log()
    log._head.full = 1
    with pytest.raises(AssertionError, match="more than"):
        _ = log.data
    log.clear()
    assert log.data == b""
