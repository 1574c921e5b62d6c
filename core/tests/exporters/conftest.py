"""Bundles whose index says of its variants what somebody else made up; each is sealed, as any index is."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import trunnion
from trunnion import examples
from trunnion.bundles.conditions import Condition
from trunnion.bundles.index import Index

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Conditions = tuple[Condition, ...]


def without(fact: str) -> Callable[[Conditions], Conditions]:
    return lambda said: tuple(one for one in said if one.fact != fact)


def told(fact: str, rule: str, *values: str) -> Callable[[Conditions], Conditions]:
    return lambda said: (*without(fact)(said), *(Condition(fact, rule, value) for value in values))


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
    index = trunnion.write_bundle(tmp_path / "kernels.trn", {"add": built})
    (variant,) = index.programs["add"]
    other = replace(variant, conditions=MADE_UP[request.param](variant.conditions))
    (tmp_path / "kernels.trn").write_bytes(Index(programs={"add": (other,)}, parts=index.parts).to_json())
    return trunnion.Bundle.open(tmp_path / "kernels.trn")
