from __future__ import annotations

from typing import Any

import pytest

from trunnion.model.builder import ProgramBuilder
from trunnion.model.capability import BACKEND_CAPABILITIES, Capability
from trunnion.model.code import DeviceCode
from trunnion.model.constant import const
from trunnion.model.expr import Const, Symbol
from trunnion.model.facts import device
from trunnion.model.plan.requirements import requirements
from trunnion.model.struct import array, struct

N = Symbol("n")


def builder() -> ProgramBuilder:
    return ProgramBuilder("p", DeviceCode("cuda", "// text"))


def required(*launches: dict[str, Any], shape: tuple[Any, ...] = (64, 64), **tensor: Any) -> set[str]:
    p = builder()
    a = p.input("a", "float16", shape, **tensor)
    for fields in launches or ({},):
        args = (a.tiled((8, 64)),) if fields.pop("map", False) else (a,)
        p.launch("k", args, fields.pop("grid", 1), 1, **fields)
    return {str(capability) for capability in p.build().plan().requires}


@pytest.mark.parametrize(
    ("needed", "launches", "tensor"),
    [
        (set(), [], {}),
        ({"dynamic_shapes"}, [], {"shape": (N, 64)}),
        ({"strided_tensors"}, [], {"strides": (64, 1)}),
        ({"multi_launch"}, [{}, {}], {}),
        ({"tma_tiled"}, [{"map": True}], {}),
        ({"cluster"}, [{"cluster": (1, 1, 1)}], {}),
        ({"nullable_tensors"}, [], {"nullable": True}),
        ({"conditional_launch"}, [{"when": 1}], {}),
        ({"priority"}, [{"priority": 0}], {}),
        ({"carveout"}, [{"carveout": 0}], {}),
        ({"cluster", "preferred_cluster"}, [{"grid": 4, "cluster": 2, "preferred_cluster": 4}], {}),
        ({"cluster_scheduling"}, [{"scheduling_policy": "spread"}], {}),
        ({"mem_sync_domain"}, [{"mem_sync_domain": "remote"}], {}),
        ({"cooperative"}, [{"cooperative": True}], {}),
        ({"pdl"}, [{"pdl": True}], {}),
        ({"pdl", "computed_attributes"}, [{"pdl": Const(1).cast("int32")}], {}),
        ({"cluster", "computed_attributes"}, [{"cluster": Const(1).cast("int32")}], {}),
    ],
    ids=lambda part: "+".join(sorted(part)) if isinstance(part, set) else "",
)
def test_requirements_follow_from_what_is_used(
    needed: set[str], launches: list[Any], tensor: dict[str, Any]
) -> None:
    assert required(*launches, **tensor) == needed


def test_what_stands_in_a_struct_is_required_too() -> None:
    p = builder()
    a = p.input("a", "float16", (64, 64))
    inner = struct(("maps", array(a.tiled((8, 64)), a.tiled((16, 64)))), ("view", a.view()))
    p.launch("k", (a, struct(("a", a), ("inner", inner))), 1, 1)
    plan = p.build().plan()
    found = requirements(plan.signature, plan.workspaces, plan.launches, plan.encodes)
    assert {str(capability): place for capability, place in found.items()} == {
        "built_structs": "launches[0].args[1]",
        "tma_tiled": "launches[0].args[1].inner.maps[0]",
        "tensor_views": "launches[0].args[1].inner.view",
    }


FIRST_USES = {
    "dynamic_shapes": "symbol 'n'",
    "strided_tensors": "the strides of tensor 'a'",
    "nullable_tensors": "tensor 'a', which may be None",
    "pointer_params": "pointer 'address'",
    "struct_params": "struct 'record'",
    "output_fill": "the fill of output 'out'",
    "workspace": "workspace 'scratch'",
    "multi_launch": "2 launches",
    "tma_im2col": "launches[0].args[0]",
    "tma_tiled": "launches[0].args[1]",
    "cluster": "launches[0].cluster",
    "preferred_cluster": "launches[0].preferred_cluster",
    "tensor_views": "launches[1].args[1]",
    "constants_and_offsets": "launches[1].args[2]",
    "built_structs": "launches[1].args[4]",
    "float_expressions": "launches[1].args[5]",
    "access_policy_window": "launches[1].window",
    "conditional_launch": "launches[1].when",
    "cooperative": "launches[1].cooperative",
    "pdl": "launches[1].pdl",
    "computed_attributes": "launches[1].pdl",
    "priority": "launches[1].priority",
    "carveout": "launches[1].carveout",
    "cluster_scheduling": "launches[1].scheduling_policy",
    "mem_sync_domain": "launches[1].mem_sync_domain",
    "module_variables": "variable 'ns::filter'",
    "device_facts": "device.warp_size",
}


def test_every_capability_of_programs_can_be_required() -> None:
    p = builder()
    a = p.input("a", "float16", (N, 8, 8, 64), strides=(8 * 8 * 64, 8 * 64, 64, 1), nullable=True)
    address, record = p.pointer("address"), p.struct("record", nbytes=16, alignment=8)
    out = p.output("out", "float32", (N,), fill=1.0)
    scratch = p.workspace("scratch", "float32", (N,), zeroed=True)
    corners = {"pixel_box_lower_corner": (0, 0), "pixel_box_upper_corner": (-2, -1)}
    im2col = a.im2col(channels_per_pixel=64, pixels_per_column=32, **corners)
    tiled = a.tiled((1, 8, 8, 64))
    p.variable("ns::filter", "float32", (4,))
    p.launch("k", (im2col, tiled, address, record, out, scratch), 4, 32, cluster=2, preferred_cluster=4)
    p.launch(
        "l",
        (a, out.view(), const(None), a.at(1), struct(("a", a)), N / 3),
        1,
        1,
        window=a.window(),
        when=N,
        cooperative=True,
        pdl=N,
        priority=-1,
        carveout=50,
        scheduling_policy="spread",
        mem_sync_domain="remote",
    )
    p.check(device.warp_size, "a warp")
    plan = p.build().plan()
    assert plan.requires == set(Capability) - BACKEND_CAPABILITIES
    first_uses = requirements(
        plan.signature, plan.workspaces, plan.launches, plan.encodes, plan.facts, plan.variables
    )
    assert {str(capability): place for capability, place in first_uses.items()} == FIRST_USES
