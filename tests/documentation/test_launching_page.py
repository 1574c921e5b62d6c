"""The launching page's table: each name of TileLang's wrapper once, and ours exist."""

from __future__ import annotations

import pytest
from page_reading.tables import named, page, places

ROWS = places(page("launching"))

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
    assert sorted(theirs for theirs, _ in ROWS) == sorted(THEIRS)


@pytest.mark.parametrize("ours", sorted({ours for _, ours in ROWS}))
def test_ours_exists(ours: str) -> None:
    assert named(ours) is not None
