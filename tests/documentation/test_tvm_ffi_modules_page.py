"""The table of the page on modules: each name of TileLang's adapter once, and ours exist."""

from __future__ import annotations

import re
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "tvm-ffi-modules.md").read_text("utf-8")
ROWS = re.findall(r"^\| `(\w+)` \| `(trunnion(?:_tvm_ffi)?\.[\w.]+)` \| (.*) \|$", PAGE, re.MULTILINE)

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
    assert sorted(row[0] for row in ROWS) == sorted(THEIRS)


@pytest.mark.parametrize("ours", sorted({row[1] for row in ROWS}))
def test_ours_exists(ours: str) -> None:
    names = ours.split(".")
    for count in range(len(names) - 1, 0, -1):
        try:
            module = import_module(".".join(names[:count]))
        except ModuleNotFoundError:
            continue
        assert reduce(getattr, names[count:], module) is not None
        return
    raise AssertionError(ours)
