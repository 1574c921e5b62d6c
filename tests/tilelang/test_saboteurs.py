"""An importer that is wrong in one thing is found out by the comparison with the interpreter."""

from __future__ import annotations

from dataclasses import replace

import pytest
from tilelang_corpus.corpus import TARGET
from tilelang_host.bench import synthetic

from trunnion.model.expr import Const


def _exchanged(launches, first=0, second=1):
    args = list(launches[0].args)
    args[first], args[second] = args[second], args[first]
    return (replace(launches[0], args=tuple(args)), *launches[1:])


def _changed(**fields):
    return lambda launches: tuple(replace(launch, **fields) for launch in launches)


def _first_box(launches):
    first, second = launches
    a, _, c = second.args
    return first, replace(second, args=(a, first.args[1], c))


def _one_map(launches):
    first, _, *rest = launches[0].args
    return (replace(launches[0], args=(first, first, *rest)),)


def _one_workspace(launches):
    return tuple(
        replace(launch, args=(launch.args[0], launch.args[0], *launch.args[2:])) for launch in launches
    )


def _fixed_grid(launches):
    return (replace(launches[0], grid=(Const(5), *launches[0].grid[1:])),)


SABOTEURS = {
    "two buffers exchanged": ("vector_add_dynamic", _exchanged),
    "two scalars exchanged": ("transpose", lambda launches: _exchanged(launches, 2, 3)),
    "two maps exchanged": ("attention", lambda launches: _exchanged(launches, 0, 2)),
    "the other kernel's box": ("two_boxes", _first_box),
    "one map for both": ("two_maps", _one_map),
    "another grid": ("odd_grid", _fixed_grid),
    "another block": ("three_axes", _changed(block=(Const(2), Const(8), Const(1)))),
    "no cluster": ("clusters", _changed(cluster=None)),
    "no cooperation": ("grid_sync", _changed(cooperative=False)),
    "no dependence": ("pdl_pair", _changed(pdl=False)),
    "dependence everywhere": ("pdl_pair", _changed(pdl=True)),
    "no window": ("kept_in_l2", _changed(window=None)),
    "no shared memory": ("gemm", _changed(dynamic_smem_bytes=Const(0))),
    "no condition": ("only_large", _changed(when=None)),
    "the other order": ("scale_then_sum", lambda launches: launches[::-1]),
    "a launch too few": ("repeated", lambda launches: launches[1:]),
    "one workspace for both": ("workspaces", _one_workspace),
}


@pytest.mark.parametrize("sabotage", SABOTEURS)
def test_a_wrong_program_is_found_out(sabotage, bench, harnesses):
    name, change = SABOTEURS[sabotage]
    good, harness = bench(name), harnesses[0]
    bad = replace(good, program=replace(good.program, launches=tuple(change(good.program.launches))))
    whole = synthetic(good.artifact, TARGET)

    def tried(subject):
        wanted = [kernel.name for kernel in subject.program.plan().kernels]
        image = replace(whole, kernels=tuple(map(whole.kernel, wanted)))  # in the order that is asked for
        with subject.loaded(harness, image) as loaded:
            for seed in range(5):
                given = subject.given(harness, seed, 0)
                subject.compared(subject.call(harness, loaded, given, 0), given)

    tried(good)
    with pytest.raises(AssertionError):
        tried(bad)
