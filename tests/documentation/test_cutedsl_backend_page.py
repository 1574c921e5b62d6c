"""Every row of the CuTeDSL backend page's table names something that is there; what the page says the code does."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import pytest
from page_reading.tables import named, page, places

from trunnion import PrebuiltImage
from trunnion.image.prebuilt import METADATA_SUFFIX
from trunnion.image.synthetic import SyntheticKernel, synthetic_cubin
from trunnion.registry import default_registry

if TYPE_CHECKING:
    from pathlib import Path

PAGE = page("cutedsl-backend")
ROWS = places(PAGE)


@pytest.mark.parametrize(("there", "here"), ROWS)
def test_what_stands_on_the_right_is_there(there: str, here: str) -> None:
    assert named(here) is not None, there


def test_the_table_is_read() -> None:
    assert len(ROWS) > 15
    assert len({there for there, _ in ROWS}) == len(ROWS)


def test_auto_takes_them_in_the_page_s_order() -> None:
    (listed,) = re.findall(r"the first of ((?:`\w+`,\s)*`\w+`)\.", PAGE)
    ranks = {spec.name: -spec.auto_rank for spec in default_registry().backends()}
    named = re.findall(r"`(\w+)`", listed)
    assert named == sorted(named, key=lambda name: ranks[name])


def test_the_file_beside_an_image_is_read_as_the_page_shows_it(tmp_path: Path) -> None:
    (shown,) = re.findall(r"```json\n(.*?)```", PAGE, re.DOTALL)
    data = synthetic_cubin([SyntheticKernel(name=name) for name in ("fill", "fill_1")], "sm_90a")
    (tmp_path / "fill.cubin").write_bytes(data)
    text = shown.replace('"sha256": "…", ', "")
    assert text != shown
    (tmp_path / f"fill.cubin{METADATA_SUFFIX}").write_text(text, "utf-8")
    assert PrebuiltImage.from_file(tmp_path / "fill.cubin").names == {"first": "fill", "second": "fill_1"}
