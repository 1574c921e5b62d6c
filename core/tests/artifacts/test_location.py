from __future__ import annotations

from pathlib import Path

import platformdirs
import pytest

from trunnion.artifacts.location import VARIABLE, default_root, is_kept_by_default
from trunnion.errors import ArgumentValueError, ArtifactError


@pytest.mark.parametrize("value", [None, "", "1", "0"])
def test_without_a_folder_it_is_below_the_users_caches(monkeypatch: pytest.MonkeyPatch, value) -> None:
    monkeypatch.delenv(VARIABLE)
    if value is not None:
        monkeypatch.setenv(VARIABLE, value)
    assert default_root() == platformdirs.user_cache_path("trunnion") / "artifacts"
    assert is_kept_by_default() == (value != "0")


def test_the_variable_names_another_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv(VARIABLE, str(tmp_path / "\udcff caché"))
    assert default_root() == tmp_path / "\udcff caché"
    assert is_kept_by_default()


@pytest.mark.parametrize(
    "value",
    ["off", "no", "2", "00", " 0", "0\n", "~/cache", "cache", "./cache", "\x1b[31m", "file:///x", "x" * 9999],
)
def test_what_it_may_not_say_is_a_typed_error(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    monkeypatch.setenv(VARIABLE, value)
    for ask in (default_root, is_kept_by_default):
        with pytest.raises(
            ArgumentValueError, match=r"expected 0 .no cache., 1 .the user's. or the abs"
        ) as caught:
            ask()
        assert caught.value.argument == VARIABLE
        assert len(str(caught.value)) < 400
        assert "\x1b" not in str(caught.value)


def test_a_user_without_a_home_has_no_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else it would be one that is called ``~``, wherever the process happens to be."""
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: Path("~/.cache", name))
    with pytest.raises(ArtifactError, match=f"set {VARIABLE} to a folder of yours"):
        default_root()
