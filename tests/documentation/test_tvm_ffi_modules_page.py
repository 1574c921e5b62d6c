"""The table of the page on modules: each name of TileLang's adapter once, and ours exist."""

from __future__ import annotations

import pytest
from page_reading.tables import named, page, places

ROWS = places(page("tvm-ffi-modules"))

THEIRS = {
    "COMPILE_ARGS",
    "TVMFFIKernelAdapter",
    "compile_flags",
    "device_kernel_source",
    "device_mod",
    "dynamic_symbolic_map",
    "executable",
    "from_database",
    "get_device_source",
    "get_host_source",
    "get_kernel_source",
    "host_kernel_source",
    "host_mod",
    "ir_module",
    "kernel_global_source",
    "params",
    "pass_configs",
    "prim_func",
    "result_idx",
    "rt_mod",
    "target",
    "verbose",
}
"""The data, the class, its attributes, its property and its methods."""


def test_every_name_of_theirs_has_one_row() -> None:
    assert sorted(theirs for theirs, _ in ROWS) == sorted(THEIRS)


@pytest.mark.parametrize("ours", sorted({ours for _, ours in ROWS}))
def test_ours_exists(ours: str) -> None:
    assert named(ours) is not None
