from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunnion.wording import nearest, shorten


@given(st.text())
def test_shorten_gives_ascii_that_reads_back(name: str) -> None:
    text = shorten(name)
    assert text.isascii()
    assert text.isprintable()
    if len(name) <= 80:
        assert ast.literal_eval(text) == name


@given(st.text(min_size=81, max_size=300))
def test_shorten_keeps_both_ends_of_a_long_name(name: str) -> None:
    text = shorten(name)
    assert text.startswith(ascii(name[:40])[:-1])
    assert text.endswith(f"{ascii(name[-40:])[1:]} ({len(name)} characters)")


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("acme-backend", "acme_backend"),
        ("acme_bakend", "acme_backend"),
        (" ZETA\n", "zeta"),
        ("zeta", "zeta"),
        ("", ""),
        ("nothing like it", ""),
        ("x" * 100_000, ""),
    ],
)
def test_the_nearest_name_is_the_one_that_was_meant(name: str, meant: str) -> None:
    assert nearest(name, ("acme_backend", "zeta")) == meant
    assert nearest(name, ()) == ""
