"""The page on errors has every class that trunnion raises."""

from __future__ import annotations

import pytest
from page_reading.tables import page

from trunnion import errors

CLASSES = [name for name in errors.__all__ if isinstance(getattr(errors, name), type)]


@pytest.mark.parametrize("name", CLASSES)
def test_the_page_names_every_class(name: str) -> None:
    assert f"`{name}`" in page("errors")
