"""Programs over facts of a device: both backends launch the same, and say the same of what is wrong."""

from __future__ import annotations

import pytest

from trunnion.errors import ArgumentError, ArgumentValueError, DeviceRequirementError, DriverError, ExprError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol, ge, gt, minimum
from trunnion.model.facts import device, occupancy
from trunnion.sim.abi import DeviceAttribute
from trunnion.sim.status import Status
from trunnion.testing.strategies import CallSpec, TensorSpec
from trunnion.testing.symbols import kernel_symbol

N = Symbol("n")


def tensor(extent, **said):
    return TensorSpec(dtype="float32", shape=(extent,), strides=(1,), **said)


def builder_of():
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    return builder, builder.input("x", "float32", (N,))


def test_a_persistent_kernel_on_each_device(twins):
    builder, x = builder_of()
    y = builder.output("y", "float32", (N,))
    scratch = builder.workspace("w", "float32", (device.multiprocessor_count, 8), zeroed=True)
    resident = device.multiprocessor_count * occupancy("k", (16, 16), 60_000)
    builder.launch(
        "k",
        (x, y, scratch, scratch.view(), resident, device.compute_capability_major.cast("int32")),
        minimum(N, resident),
        device.warp_size * 4,
        dynamic_smem_bytes=device.max_shared_memory_per_block,
        when=gt(device.multiprocessor_count, N // 4),
    )
    with twins.loaded(builder.build()) as pair:
        for ordinal in (0, 1, 0):
            for extent in (1, 100, 457, 500, 600):
                pair.compare(CallSpec(args=(tensor(extent, device=ordinal),)))
    assert pair.refused == 0


# What is wrong, the text of the first error, and an extent with which it is.
WRONG = {
    "check": (lambda p, x: p.check(ge(device.compute_capability_major, 99), "a later device"), "a later device"),
    "grid": (lambda p, x: p.launch("b", (x,), 7 - N, 1), "expected 0 to 2147483647"),
    "device grid": (lambda p, x: p.launch("b", (x,), 1 - device.warp_size, 1), "a grid of -31 blocks"),
    "block": (lambda p, x: p.launch("b", (x,), 1, device.multiprocessor_count * 32), "4224 threads"),
    "shared": (lambda p, x: p.launch("b", (x,), 1, 1, dynamic_smem_bytes=31 - device.warp_size), "-1 bytes"),
    "quotient": (lambda p, x: p.launch("b", (x,), N // (device.warp_size - 32), 1), "(device.warp_size - 32)"),
    "overflow": (
        lambda p, x: p.launch("b", (x, device.l2_cache_size * N * N * N * N), 1, 1),
        "device.l2_cache_size * n",
    ),
    "cast": (
        lambda p, x: p.launch("b", (x, occupancy("b", 32).cast("int8") * 5, (N * device.warp_size).cast("int8")), 1, 1),
        "int8",
    ),
    "workspace": (
        lambda p, x: p.launch("b", (x, p.workspace("w", "int8", (device.warp_size - N,))), 1, 1),
        "'w'",
    ),
}  # fmt: skip


@pytest.mark.parametrize("wrong", WRONG)
def test_what_is_wrong_on_a_device(twins, wrong):
    plant, words = WRONG[wrong]
    builder, x = builder_of()
    builder.launch("a", (x, device.warp_size), 1, 32)
    plant(builder, x)
    with twins.loaded(builder.build()) as pair:
        pair.compare(CallSpec(args=(tensor(100_000),)))
        assert pair.refused == 1
        for harness, loaded in pair.loaded:
            with pytest.raises((ArgumentError, ExprError)) as caught:
                loaded.call(harness.arguments((tensor(100_000),)))
            assert words in str(caught.value)


def test_the_arguments_are_judged_first(twins):
    builder, x = builder_of()
    b = builder.input("b", "float32", (N,))
    builder.check(ge(device.compute_capability_major, 99), "a later device")
    builder.launch("a", (x, b), 1, 32)
    with twins.loaded(builder.build()) as pair:
        pair.compare(CallSpec(args=(tensor(8), tensor(9))))
        for harness, loaded in pair.loaded:
            with pytest.raises(ArgumentValueError) as caught:
                loaded.call(harness.arguments((tensor(8), tensor(9))))
            assert caught.value.argument == "b"
    assert pair.refused == 1


def test_a_device_that_answers_too_little(twins, simulator):
    builder, x = builder_of()
    builder.launch("a", (x,), device.multiprocessor_count, 32)
    said = []
    with twins.loaded(builder.build()) as pair:
        for harness, loaded in pair.loaded:
            with (
                simulator.configured(attributes={DeviceAttribute.MULTIPROCESSOR_COUNT: 0}),
                pytest.raises(
                    DeviceRequirementError, match=r"at least 1 as device.multiprocessor_count"
                ) as caught,
            ):
                loaded.call(harness.arguments((tensor(8),)))
            said.append(str(caught.value))
            loaded.call(harness.arguments((tensor(8),)))  # nothing was kept of it
    assert len(set(said)) == 1


def test_a_driver_that_fails_names_the_kernel_and_is_asked_again(with_sample, simulator):
    call = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
    builder, x = builder_of()
    builder.launch("a", (x,), occupancy("a", 32), 32)
    said = []
    with with_sample.loaded(builder.build()) as pair:
        for harness, loaded in pair.loaded:
            with simulator.fault(call, Status.UNKNOWN), pytest.raises(DriverError) as caught:
                loaded.preload(1)
            assert caught.value.call == call
            said.append(str(caught.value))
            loaded.call(harness.arguments((tensor(8, device=1),)))
    assert len(set(said)) == 1, said
    assert said[0].endswith(f"the kernel is '{kernel_symbol(0)}' on device 1")
