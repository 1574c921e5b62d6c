"""The launching page's table: each name of TileLang's wrapper once, and ours exist."""

from __future__ import annotations

import re
from functools import reduce
from importlib import import_module
from pathlib import Path

import pytest

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "launching.md").read_text("utf-8")
ROWS = re.findall(r"^\| `(\w+)` \| `(trunnion(?:_nvrtc)?\.[\w.]+)` \| (.+) \|$", PAGE, re.MULTILINE)

THEIRS = {
    "PREDEF_HOST_FUNC_PY",
    "TMA_DESC_INIT_FUNC_PY",
    "TMA_IM2COL_DESC_INIT_FUNC_PY",
    "L2_PERSISTENT_MAP_CREATE_HANDLE_PY",
    "L2_PERSISTENT_MAP_INIT_FUNC_PY",
    "L2_PERSISTENT_MAP_RESET_HANDLE_PY",
    "PDL_SYNC_PY",
    "KERNEL_LAUNCH_FUNC_PY",
    "TLNVRTCSourceWrapper",
    "host_func",
    "create_dispatch_func",
    "generate_l2_persistent_map",
    "generate_pdl_sync_code",
    "generate_tma_descriptor_args",
    "update_lib_code",
    "get_stream_type",
}
"""The attributes, the class, its property and its methods."""


def test_every_name_of_theirs_has_one_row() -> None:
    assert sorted(row[0] for row in ROWS) == sorted(THEIRS)


@pytest.mark.parametrize("ours", [row[1] for row in ROWS])
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
