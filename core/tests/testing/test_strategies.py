"""The strategies draw what they promise, and other things under other seeds."""

from __future__ import annotations

import hypothesis
import pytest
from hypothesis import strategies as st

from trunnion.errors import ProgramError
from trunnion.model.capability import Capability
from trunnion.model.expr import Const
from trunnion.model.launch import KernelLaunch
from trunnion.model.launch_attributes import LAUNCH_ATTRIBUTES
from trunnion.model.program import KernelProgram
from trunnion.model.tensormap import Im2colTensorMap, Interleave, TensorMap, TiledTensorMap
from trunnion.testing.expected import Expected, Refused
from trunnion.testing.reference import attributes_of, expect
from trunnion.testing.strategies import (
    ATTRIBUTES,
    HOSTILE,
    PROGRAM_CAPABILITIES,
    json_programs,
    mistakes_of_each_kind,
    names,
    programs,
    scenarios,
)


def draws(strategy, count, seed=0):
    found = []

    @hypothesis.seed(seed)
    @hypothesis.settings(
        max_examples=count,
        deadline=None,
        database=None,
        phases=[hypothesis.Phase.generate],
        suppress_health_check=list(hypothesis.HealthCheck),
    )
    @hypothesis.given(strategy)
    def collect(value):
        found.append(value)

    collect()
    return found


def test_seeds_decide_what_is_drawn():
    first, again, other = (draws(scenarios(), 12, seed) for seed in (1, 1, 2))
    assert first == again
    assert [a for a, b in zip(first, other, strict=False) if a != b]


def test_every_class_of_hostile_names_is_drawn():
    drawn = set(draws(names(), 1500))
    for kind, strategy in HOSTILE.items():
        assert drawn & set(draws(strategy, 40)), kind


def test_programs_reach_every_capability_and_plan():
    seen = set()
    for program in draws(programs(), 150):
        seen |= program.plan().requires
    assert seen == PROGRAM_CAPABILITIES


@pytest.mark.parametrize("capability", sorted(PROGRAM_CAPABILITIES))
def test_programs_require_what_they_must(capability):
    for program in draws(programs(frozenset(), {capability}), 5):
        of_clusters = {Capability.PREFERRED_CLUSTER, Capability.COMPUTED_ATTRIBUTES}
        beside = {Capability.CLUSTER} if capability in of_clusters else set()
        assert program.plan().requires == {capability} | beside


def test_there_is_a_strategy_and_an_expectation_for_every_attribute_of_a_launch():
    fields = [row.field for row in LAUNCH_ATTRIBUTES]
    assert list(ATTRIBUTES) == fields
    chosen = {"cluster": (2, 1, 1)}
    for field in fields:
        values = {attribute for value in draws(ATTRIBUTES[field](chosen), 20) for attribute in [value]}
        for value in values:
            said = {"cluster": (2, 1, 1), field: value} if field == "preferred_cluster" else {field: value}
            launch = KernelLaunch("k", (), (Const(48),) * 3, (Const(1),), **said)
            row = next(row for row in LAUNCH_ATTRIBUTES if row.field == field)
            assert dict(attributes_of(launch))[field] == row.values(getattr(launch, field))


def test_programs_stay_within_bounds():
    allowed = {Capability.DYNAMIC_SHAPES, Capability.TMA_TILED}
    for program in draws(programs(allowed, {Capability.TMA_TILED}), 40):
        assert Capability.TMA_TILED in program.plan().requires <= allowed


def test_kernels_repeat_and_maps_are_shared_relabelled_and_different():
    repeated = shared = same_label = 0
    for program in draws(programs(required={Capability.MULTI_LAUNCH, Capability.TMA_TILED}), 80):
        kernels = [launch.kernel for launch in program.launches]
        repeated += len(set(kernels)) < len(kernels)
        maps = [a for launch in program.launches for a in launch.args if isinstance(a, TiledTensorMap)]
        shared += len(set(maps)) < len(maps)
        labels = {}
        same_label += any(labels.setdefault(m.label, m) != m for m in maps if m.label)
    assert min(repeated, shared, same_label) > 3


def test_maps_have_every_interleave_and_element_strides_that_differ():
    seen, steps, inner = set(), 0, 0
    for program in draws(programs(required={Capability.TMA_TILED, Capability.TMA_IM2COL}), 240):
        for argument in (argument for launch in program.launches for argument in launch.args):
            if isinstance(argument, TensorMap):
                seen.add((type(argument), argument.interleave))
                steps += len({*argument.element_steps()[:-1]}) > 1
                inner += argument.element_steps()[-1] > 1
    assert seen == {(kind, word) for kind in (TiledTensorMap, Im2colTensorMap) for word in Interleave}
    assert min(steps, inner) > 3


def test_calls_mostly_fit_and_sometimes_skip_launches():
    told = [expect(scenario.program, scenario.call.imagined()) for scenario in draws(scenarios(), 200)]
    good = [word for word in told if isinstance(word, Expected)]
    assert len(told) > len(good) > 0.6 * len(told)  # 0.75 to 0.9 of those of any seed
    assert sum(1 for word in good if word.skipped) > 5
    assert sum(1 for word in good if word.maps) > 20
    assert {len(word.outputs) for word in good} >= {0, 1, 2}


def test_json_programs_are_read_or_refused_and_nothing_else():
    refused = read = 0
    for text in draws(json_programs(), 300):
        try:
            program = KernelProgram.from_json(text)
        except ProgramError:
            refused += 1
        else:
            assert KernelProgram.from_json(program.to_json()) == program
            read += 1
    assert refused > 200
    assert read


def test_broken_calls_are_refused_and_reach_every_kind():
    kinds = set()
    rare = {Capability.POINTER_PARAMS, Capability.STRUCT_PARAMS, Capability.NULLABLE_TENSORS}
    examples = []
    for strategy, count in ((programs(), 80), (programs(required=rare), 40)):
        examples += draws(strategy.flatmap(lambda p: st.tuples(st.just(p), mistakes_of_each_kind(p))), count)
    for program, (right, *mistakes) in examples:
        assert not isinstance(expect(program, right.call.imagined()), Refused)
        for broken in mistakes:
            assert isinstance(expect(program, broken.call.imagined()), Refused)
            kinds.add(broken.kind)
    assert kinds >= {
        "count", "type", "dtype", "rank", "extent", "stride", "alignment", "device", "scalar type", "scalar range",
        "symbol", "out", "out type", "out dtype", "out rank", "out extent", "out device", "overlap", "absent",
        "pointer type", "pointer range", "pointer null", "pointer alignment", "struct type", "struct size",
        "struct order",
    }  # fmt: skip
