"""The cooperative sum: as many blocks as the device holds at once, and no more than there is work for."""

from __future__ import annotations

import struct as packing

from real_programs import reduction as SUBJECT  # noqa: N812 - what the fixtures build


def test_the_grid_is_what_the_device_holds(launched, simulator):
    most = 132 * (2048 // SUBJECT.THREADS)  # threads bind: 30 registers and 2 KiB leave room for more
    for length in SUBJECT.SHAPES[:3]:
        (x,), total, (partial, last) = launched(SUBJECT, length)
        assert partial.grid == (min(-(-length // SUBJECT.THREADS), most), 1, 1)
        assert partial.attributes.cooperative
        assert partial.dynamic_smem_bytes == SUBJECT.SHARED_BYTES
        assert partial.parameters[0] == packing.pack("<Q", x.data_ptr())
        assert partial.parameters[2] == packing.pack("<I", length)
        assert last.parameters == (
            partial.parameters[1],
            packing.pack("<Q", total.data_ptr()),
            packing.pack("<I", 1),
        )
        assert last.grid == (1, 1, 1)
