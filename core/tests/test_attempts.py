"""Whatever a plugin's code raises is its failure; only an interrupt passes."""

from __future__ import annotations

import asyncio

import pytest

from trunnion.attempts import Failure, PluginRuleError, attempt, probe
from trunnion.contract.spec import Availability, BackendSpec

ENDINGS = (SystemExit, GeneratorExit, asyncio.CancelledError, BaseException, MemoryError, RecursionError)


def raising(error: BaseException) -> Availability:
    raise error


def spec(error: BaseException) -> BackendSpec:
    def absent() -> type:
        raise NotImplementedError

    return BackendSpec(
        name="local",
        contract_version=3,
        targets={"cuda": frozenset()},
        accepts=("cubin",),
        load_wrapper=absent,
        load_adapter=absent,
        probe=lambda: raising(error),
    )


@pytest.mark.parametrize("ending", ENDINGS)
def test_what_is_raised_becomes_a_value_with_its_place(ending: type[BaseException]) -> None:
    found = attempt(lambda: raising(ending("a reason")))
    assert isinstance(found, Failure)
    assert found.reason.endswith(f"{ending.__name__}: a reason")
    assert "in raising" in found.traceback


def test_the_reason_is_the_exception_and_no_note_of_it() -> None:
    error = ImportError("libfoo.so.3 is missing")
    error.add_note("raised while importing foo")
    found = attempt(lambda: raising(error))
    assert isinstance(found, Failure)
    assert found.reason == "ImportError: libfoo.so.3 is missing"
    assert "raised while importing foo" in found.traceback
    assert error.__notes__ == ["raised while importing foo"]


@pytest.mark.parametrize("ending", ENDINGS)
def test_a_probe_has_no_say_in_the_end_of_the_process(ending: type[BaseException]) -> None:
    found = probe(spec(ending("a reason")))
    assert not found.usable
    assert found.detail.startswith("its probe failed: ")
    assert found.detail.endswith(f"{ending.__name__}: a reason")


def test_an_interrupt_passes() -> None:
    with pytest.raises(KeyboardInterrupt):
        attempt(lambda: raising(KeyboardInterrupt()))
    with pytest.raises(KeyboardInterrupt):
        probe(spec(KeyboardInterrupt()))


def test_a_broken_rule_needs_no_traceback() -> None:
    assert attempt(lambda: raising(PluginRuleError("it breaks one"))) == Failure("it breaks one", "")
