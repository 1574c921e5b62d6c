"""JSON over lines is what Python's own library writes."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunnion.artifacts.json_document import sealed, spelled
from trunnion.json_text import over_lines

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.lists(inner).map(tuple) | st.dictionaries(st.text(), inner),
    max_leaves=20,
)


@given(VALUES, st.booleans())
def test_it_is_what_the_library_writes(value: object, by_name: bool) -> None:
    assert over_lines(value, sort_keys=by_name) == json.dumps(value, indent=1, sort_keys=by_name)


@pytest.mark.parametrize("value", [float("nan"), [float("inf")], {"x": float("-inf")}])
def test_what_json_has_not_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="not JSON compliant"):
        over_lines(value)


@given(st.dictionaries(st.text().filter(lambda name: name not in {"", "sha256"}), VALUES, min_size=1))
def test_a_seal_is_a_member_like_the_others(members: dict[str, object]) -> None:
    seal = hashlib.sha256(spelled(members)).hexdigest()
    assert sealed(members) == spelled({**members, "sha256": seal})
