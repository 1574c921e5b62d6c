"""Where a program runs, on machines with and without a GPU."""

from __future__ import annotations

import pytest

from trunnion.cli import place


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return what this process was asked for, of a torch that sees no device."""
    said: list[str] = []
    monkeypatch.setattr("torch.cuda.is_available", lambda: said.append("is_available") is not None)
    return said


def test_torch_looks_for_a_gpu_in_a_process_of_its_own(
    asked: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """It loads the driver to look, and beside that none can be simulated."""
    monkeypatch.setattr(place, "_is_driver_loaded", lambda: False)
    assert place.gpu_name() == ""
    assert asked == []


def test_where_the_driver_is_loaded_it_looks_there(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    """A child has no driver that its parent initialised."""
    monkeypatch.setattr(place, "_is_driver_loaded", lambda: True)
    assert place.gpu_name() == ""
    assert asked == ["is_available"]


@pytest.mark.parametrize("loaded", [False, True])
def test_a_gpu_that_torch_sees_is_named(loaded: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(place, "_is_driver_loaded", lambda: loaded)
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.get_device_name", lambda index: f"GPU {index}")
    assert place.gpu_name() == "GPU 0"
