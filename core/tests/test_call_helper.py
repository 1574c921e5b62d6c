"""The call helper: which is chosen, why not another, and that a broken one hurts nobody."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import EntryPoint
from types import ModuleType, SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import torch

from trunnion.call_helper import GROUP, HelpedRuntime, choose, installed_choice, no_helper
from trunnion.torch_runtime import HostRuntime, TorchRuntime, default_runtime

if TYPE_CHECKING:
    from pathlib import Path


class Made(tuple[Any, ...]):
    """What was made of what, in the place of a function."""

    __slots__ = ()

    def __call__(self) -> None:
        """Do nothing."""


def helper(**changed: Any) -> ModuleType:
    """A module that says what it was asked."""
    module = ModuleType("made_helper")
    facts = {
        "contract_version": 1,
        "tensor_reader": lambda *given: Made(("reader", given)),
        "caller": lambda *given: Made(("caller", given)),
    }
    module.__dict__.update(facts | changed)
    return module


@pytest.fixture
def points(monkeypatch: pytest.MonkeyPatch) -> Any:
    def make(**modules: ModuleType) -> list[EntryPoint]:
        for name, module in modules.items():
            monkeypatch.setitem(sys.modules, f"made_{name}", module)
        return [EntryPoint(name, f"made_{name}", GROUP) for name in modules]

    return make


def test_one_that_is_installed_is_used(points: Any) -> None:
    one = helper()
    choice = choose(points(quick=one))
    assert (choice.helper, choice.name, choice.reason, choice.broken) == (
        one,
        "quick",
        "it is installed",
        False,
    )


def test_none_is_normal() -> None:
    choice = choose([])
    assert (choice.helper, choice.reason, choice.broken) == (None, "none is installed", False)


def test_it_can_be_turned_off(points: Any) -> None:
    choice = choose(points(quick=helper()), "none")
    assert (choice.helper, choice.reason, choice.broken) == (None, "TRUNNION_CALL_HELPER is none", False)


def test_of_several_one_has_to_be_named(points: Any) -> None:
    one, other = helper(), helper()
    found = points(quick=one, swift=other)
    choice = choose(found)
    assert choice.helper is None
    assert choice.broken
    assert "quick" in choice.reason
    assert "swift" in choice.reason
    assert "TRUNNION_CALL_HELPER" in choice.advice
    assert choose(found, "swift").helper is other
    assert choose(found, "swift").reason == "TRUNNION_CALL_HELPER names it"


def test_a_name_that_is_not_there(points: Any) -> None:
    choice = choose(points(quick=helper()), "quikc")
    assert choice.helper is None
    assert choice.broken
    assert "'quikc'" in choice.reason
    assert "quick" in choice.reason
    assert choice.advice == "unset TRUNNION_CALL_HELPER, or set it to quick"
    assert "install what brings" in choose([], "quikc").advice


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"contract_version": 2}, "its contract_version is 2, expected 1"),
        ({"contract_version": None}, "its contract_version is NoneType, expected 1"),
        ({"caller": None}, "it has no function caller"),
        ({"caller": 1, "tensor_reader": 2}, "it has no function tensor_reader and no function caller"),
    ],
)
def test_what_is_no_helper_is_not_used(points: Any, changed: dict[str, Any], reason: str) -> None:
    choice = choose(points(quick=helper(**changed)))
    assert choice.helper is None
    assert choice.broken
    assert choice.reason == f"it cannot be used: {reason}"


def test_what_cannot_be_imported_is_not_used() -> None:
    choice = choose([EntryPoint("quick", "no_such_module", GROUP)])
    assert choice.helper is None
    assert choice.broken
    assert "No module named 'no_such_module'" in choice.reason


def test_a_runtime_hands_on_to_its_helper() -> None:
    one, asked = helper(), []
    runtime = HostRuntime(lambda: asked.append(0) or one)
    assert asked == [], "nothing is looked for before it is wanted"
    tensors = (torch.zeros(2), torch.zeros(2, dtype=torch.complex64), torch.zeros(2, dtype=torch.int64))
    neg, conj = torch.Tensor.is_neg, torch.Tensor.is_conj
    questions = ((neg,), (neg, conj), (neg,))
    given = (runtime.exchange_api(), torch.Tensor, tensors, questions)
    assert runtime.reader(tensors) == ("reader", given)
    assert runtime.caller(1, (2, 3, 4, 5), None) == ("caller", (1, (2, 3, 4, 5), None))


def _fail(*_: object) -> None:
    raise OSError("no such thing")


@pytest.mark.parametrize("find", [no_helper, lambda: helper(tensor_reader=_fail, caller=_fail)])
def test_without_a_helper_that_works_there_is_no_reader_and_no_caller(find: Any) -> None:
    runtime = TorchRuntime(find)
    assert runtime.reader((torch.zeros(2),)) is None
    assert runtime.caller(1, (2, 3, 4, 5), None) is None


def test_a_library_without_an_exchange_api_has_no_reader() -> None:
    runtime = HelpedRuntime(helper)
    tensors = (SimpleNamespace(dtype=torch.float32),)
    assert runtime._reader(0, torch.Tensor, tensors) is None


def test_a_runtime_of_a_choice_of_ones_own() -> None:
    assert default_runtime("cpu", helper).caller(1, (2, 3, 4, 5), None) is not None
    assert default_runtime("cpu", no_helper).caller(1, (2, 3, 4, 5), None) is None


def test_a_simulated_runtime_of_a_choice_of_ones_own(simulator: Any) -> None:
    with_one, without = default_runtime("cuda", helper), default_runtime("cuda", no_helper)
    tensor = simulator.tensor(torch.zeros(3))
    kind, (_, tensor_type, models, _) = with_one.reader((tensor,))  # type: ignore[misc]  # a made helper's
    assert (kind, tensor_type, models) == ("reader", type(tensor), (tensor,))
    assert without.reader((tensor,)) is None
    assert with_one.reader((torch.zeros(3),)) is None
    assert default_runtime("cuda") is simulator.runtime


@pytest.mark.parametrize(("value", "reason"), [("none", "TRUNNION_CALL_HELPER is none"), ("gone", "'gone'")])
def test_the_environment_decides(monkeypatch: pytest.MonkeyPatch, value: str, reason: str) -> None:
    monkeypatch.setenv("TRUNNION_CALL_HELPER", value)
    text = "from trunnion.call_helper import installed_choice as i; print(i().helper, i().reason)"
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.startswith("None ")
    assert reason in done.stdout


def test_what_another_distribution_announces_hurts_no_launch(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "broken-1.0.dist-info").mkdir()
    (tmp_path / "broken-1.0.dist-info" / "entry_points.txt").write_text("[scripts]\nno script\n")
    monkeypatch.syspath_prepend(str(tmp_path))
    assert not installed_choice.__wrapped__().broken


class Raising:
    """A helper that raises where it is looked at."""

    def __init__(self, where: str) -> None:
        self.where = where

    def __getattr__(self, name: str) -> Any:
        if name == self.where:
            raise RuntimeError("not today")
        return {"contract_version": 1, "tensor_reader": print, "caller": print}[name]


@pytest.mark.parametrize("where", ["contract_version", "tensor_reader", "caller"])
def test_one_that_raises_where_it_is_looked_at_is_told(where: str) -> None:
    point = SimpleNamespace(name="made", dist=None, value="made", load=lambda: Raising(where))
    choice = choose([point])  # type: ignore[list-item]  # what is used of an entry point
    assert (choice.helper, choice.broken) == (None, True)
    assert "not today" in choice.reason


def test_a_version_is_an_integer(points: Any) -> None:
    assert choose(points(odd=helper(contract_version=True))).helper is None


@pytest.mark.parametrize("made", [7, None])
def test_what_a_helper_makes_must_be_callable(made: Any) -> None:
    runtime = HostRuntime(lambda: helper(tensor_reader=lambda *_: made, caller=lambda *_: made))
    assert runtime.reader((torch.zeros(2),)) is None
    assert runtime.caller(1, (0, 0, 0, 0), None) is None
