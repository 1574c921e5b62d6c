"""Bundles whose index says of its variants what somebody else made up; each is sealed, as any index is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import trunnion
from trunnion import examples
from trunnion.bundles.conditions import Condition
from trunnion.bundles.index import Index
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Conditions = tuple[Condition, ...]


def without(fact: str) -> Callable[[Conditions], Conditions]:
    return lambda said: tuple(one for one in said if one.fact != fact)


def told(fact: str, rule: str, *values: str) -> Callable[[Conditions], Conditions]:
    return lambda said: (*without(fact)(said), *(Condition(fact, rule, value) for value in values))


WAITING = """
#include <condition_variable>
#include <mutex>
#include <trunnion/block.h>
extern "C" void wait(float* x, const trunnion_block_t*) {
  std::mutex mutex;
  std::condition_variable condition;
  std::unique_lock<std::mutex> lock(mutex);
  if (x[0] > 1.0f) condition.wait(lock);
}
"""


@pytest.fixture
def without_libstdcxx(waiting: trunnion.Bundle) -> trunnion.Bundle:
    """The same of which the index leaves that out, as one does that an earlier version wrote."""
    return reindexed(waiting, without("host.libstdcxx"))


@pytest.fixture
def waiting(tmp_path: Path) -> trunnion.Bundle:
    """A bundle of one launcher that needs the C++ standard library."""
    builder = ProgramBuilder("wait", DeviceCode("c++", WAITING))
    builder.launch("wait", (builder.input("x", "float32", (8,), access="write"),), 1, 1)
    built = trunnion.compile(builder.build(), "tvm_ffi", target="cpu")
    trunnion.write_bundle(tmp_path / "waiting.trn", {"wait": built})
    return trunnion.Bundle.open(tmp_path / "waiting.trn")


def reindexed(bundle: trunnion.Bundle, change: Callable[[Conditions], Conditions]) -> trunnion.Bundle:
    """Return a bundle of one variant, of whose conditions its index says something else."""
    ((name, (variant,)),) = bundle.index.programs.items()
    other = replace(variant, conditions=change(variant.conditions))
    bundle.file.write_bytes(Index(programs={name: (other,)}, parts=bundle.index.parts).to_json())
    return trunnion.Bundle.open(bundle.file)


MADE_UP: dict[str, Callable[[Conditions], Conditions]] = {
    "no processor": without("host.machine"),
    "two processors": told("host.machine", "is", "x86_64", "aarch64"),
    "a path for a processor": told("host.machine", "is", "x/../../evil"),
    "lines for a processor": told("host.machine", "is", "x86_64\nRoot-Is-Purelib: true"),
    "no device": without("device"),
    "a rule of a later version": told("device", "likes", "sm_90a"),
    "no architecture": told("device", "runs", "nonsense"),
    "no version": told("host.libc", "at least", "newest"),
    "a condition more": lambda said: (*said, Condition("tuned.for", "is", "large")),
    "nothing": lambda _: (),
}


@pytest.fixture(params=MADE_UP)
def made_up(request: pytest.FixtureRequest, tmp_path: Path) -> trunnion.Bundle:
    """A bundle of one launcher in C++, of which the index says what is not so."""
    built: Any = trunnion.compile(examples.load("vector_add").program, "tvm_ffi", target="sm_90a")
    trunnion.write_bundle(tmp_path / "kernels.trn", {"add": built})
    return reindexed(trunnion.Bundle.open(tmp_path / "kernels.trn"), MADE_UP[request.param])
