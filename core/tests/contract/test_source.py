from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import pytest

from trunnion.contract.source import GeneratedSource, SourceWrapper
from trunnion.contract.spec import BackendSpec, Capability
from trunnion.errors import ArgumentTypeError, UnsupportedFeatureError
from trunnion.examples import load

if TYPE_CHECKING:
    from trunnion.model.plan import LaunchPlan


class Wrapper(SourceWrapper):
    version = "1"

    def emit(self, plan: LaunchPlan) -> GeneratedSource:
        return GeneratedSource(language="python", filename="l.py", text="x\n", plan=plan, emitter="acme 1")


def wrapper(*capabilities: Capability) -> Wrapper:
    def absent() -> type:
        raise NotImplementedError

    spec = BackendSpec(
        name="acme",
        contract_version=3,
        targets={"cuda": frozenset(capabilities), "cpu": frozenset()},
        accepts=("cubin",),
        load_wrapper=absent,
        load_adapter=absent,
    )
    return Wrapper(spec)


@pytest.mark.parametrize("name", ["language", "filename", "text", "emitter"])
def test_a_source_whose_text_is_none_is_refused(name: str) -> None:
    source = wrapper().emit(load("vector_add").program.plan())
    with pytest.raises(ArgumentTypeError, match=f"argument '{name}': got NoneType, expected text"):
        replace(source, **{name: None})


def test_what_is_declared_is_let_through() -> None:
    plan = load("vector_add").program.plan()
    assert wrapper(Capability.DYNAMIC_SHAPES).wrap(plan).plan is plan


def test_what_is_not_declared_is_refused_and_named() -> None:
    plan = load("hopper_gemm").program.plan()
    with pytest.raises(UnsupportedFeatureError) as caught:
        wrapper(Capability.DYNAMIC_SHAPES).wrap(plan)
    assert (caught.value.plugin, caught.value.features) == ("acme", ("tma_tiled",))
    with pytest.raises(UnsupportedFeatureError) as caught:
        wrapper(*Capability).wrap(plan, "cpu")
    assert set(caught.value.features) == {str(need) for need in plan.requires}


def test_a_refusal_says_where_each_feature_is_used_and_where_the_backend_has_it() -> None:
    plan = load("hopper_gemm").program.plan()
    with pytest.raises(UnsupportedFeatureError) as caught:
        wrapper(Capability.DYNAMIC_SHAPES).wrap(plan, "cpu")
    assert str(caught.value).splitlines() == [
        "acme does not support dynamic_shapes, tma_tiled; choose another backend, see trunnion.explain()",
        "  dynamic_shapes: symbol 'm'; acme declares it for cuda, not for cpu",
        "  tma_tiled: launches[0].args[0]; acme does not declare it",
    ]


def test_a_kind_of_target_that_is_not_declared_is_refused() -> None:
    with pytest.raises(UnsupportedFeatureError, match="launches on: cpu, cuda") as caught:
        wrapper().wrap(load("vector_add").program.plan(), "rocm")
    assert caught.value.features == ("target 'rocm'",)


def test_the_kind_of_target_reaches_a_wrapper_that_asks_for_it() -> None:
    class ByKind(Wrapper):
        def emit_for(self, plan: LaunchPlan, target_kind: str) -> GeneratedSource:
            return replace(self.emit(plan), text=f"{target_kind}\n")

    spec = replace(wrapper().spec, targets={"cuda": frozenset(Capability), "cpu": frozenset(Capability)})
    plan = load("vector_add").program.plan()
    assert [ByKind(spec).wrap(plan, kind).text for kind in ("cuda", "cpu")] == ["cuda\n", "cpu\n"]
    assert ByKind(spec).wrap(plan).text == "cuda\n"
    assert Wrapper(spec).wrap(plan, "cpu") == Wrapper(spec).emit(plan)
