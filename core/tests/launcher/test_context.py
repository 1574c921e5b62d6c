"""What a launcher asks of devices and streams before it launches."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.errors import ArgumentValueError, CaptureError, DeviceRequirementError, DriverError
from trunnion.launcher import context
from trunnion.launcher.entered import EnteredContexts
from trunnion.launcher.walk import Walk
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import symbols
from trunnion.model.program import DeviceCode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.model.plan.steps import Step


def plain(**fields: Any) -> Any:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    (n,) = symbols("n")
    x = p.input("x", "float32", (n,))
    p.launch("k", (x,), 1, 32, **fields)
    return p.build()


def test_a_launch_that_was_not_prepared_cannot_be_captured(any_rig: Any, tensor: Any) -> None:
    r = any_rig(plain())
    r.facade.captured.update({9, 100})
    x = tensor("float32", 5)
    for how in ({"stream": 9}, {}):
        with pytest.raises(CaptureError, match=r"preload\(0\)"):
            r.program.call((x,), **how)
    r.program.preload(0)
    r.program.call((x,), stream=9)
    assert [launch.stream for launch in r.facade.launched] == [9]


@pytest.mark.parametrize("stream", [9, 3, 1 << 60])
def test_a_stream_of_another_device_is_refused(any_rig: Any, tensor: Any, stream: int) -> None:
    r = any_rig(plain())
    r.facade.stream_devices[stream] = 1
    with pytest.raises(ArgumentValueError) as caught:
        r.program.call((tensor("float32", 5),), stream=stream)
    assert caught.value.argument == "stream"
    r.program.call((tensor("float32", 5, ordinal=1),), stream=stream)
    assert len(r.facade.launched) == 1


@pytest.mark.parametrize("stream", [0, 1, 2])
def test_the_drivers_own_streams_are_those_of_the_tensors_device(
    any_rig: Any, tensor: Any, stream: int
) -> None:
    r = any_rig(plain())
    r.facade.stream_devices[stream] = 1
    r.program.preload(0)
    r.facade.log.clear()
    r.program.call((tensor("float32", 5),), stream=stream)
    assert [entry[0] for entry in r.facade.log] == ["enter", "launch"]


def test_any_other_stream_knows_its_device(any_rig: Any, tensor: Any) -> None:
    r = any_rig(plain())
    r.program.preload(0)
    r.facade.log.clear()
    r.program.entry(tensor("float32", 5))
    assert [entry[0] for entry in r.facade.log] == ["launch"]


@pytest.mark.parametrize(("version", "fine"), [(12070, False), (12080, True)])
def test_an_attribute_that_the_driver_does_not_know_is_refused(
    any_rig: Any, tensor: Any, version: int, *, fine: bool
) -> None:
    r = any_rig(plain(cluster=1, preferred_cluster=1))
    r.facade.version = version
    if fine:
        r.program.entry(tensor("float32", 5))
        return
    with pytest.raises(DeviceRequirementError, match=r"CUDA 12\.8 .* preferred_cluster.* CUDA 12\.7"):
        r.program.entry(tensor("float32", 5))
    assert r.facade.launched == []


@pytest.mark.parametrize(
    ("cluster", "preferred", "asked"), [((2,), None, 0), ((2,), (8,), 0), ((2,), (16,), 1), ((16,), (16,), 1)]
)
def test_a_preferred_cluster_too_may_be_larger_than_every_device_allows(
    any_rig: Any, tensor: Any, cluster: Any, preferred: Any, asked: int
) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x = p.input("x", "float32", (4,))
    p.launch("k", (x,), 16, 32, cluster=cluster, preferred_cluster=preferred)
    r = any_rig(p.build())
    r.program.entry(tensor("float32", 4))
    assert r.facade.log.count(("set_kernel_attribute", "k", 0, 14, 1)) == asked


@pytest.mark.parametrize(("blocks", "fine"), [(0, True), (2, False), (4, True), (6, False), (8, True)])
def test_a_grid_consists_of_whole_preferred_clusters(
    any_rig: Any, tensor: Any, blocks: int, *, fine: bool
) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    (n,) = symbols("n")
    x = p.input("x", "float32", (n,))
    p.launch("k", (x,), n, 32, cluster=2, preferred_cluster=4)
    r = any_rig(p.build())
    if fine:
        r.program.entry(tensor("float32", blocks))
    else:
        with pytest.raises(ArgumentValueError, match=f"{blocks} blocks along x .*a multiple of .* 4"):
            r.program.entry(tensor("float32", blocks))
    assert len(r.facade.launched) == (fine and blocks > 0)


@pytest.mark.parametrize("dynamic", [False, True])
def test_more_shared_memory_than_the_device_allows_is_refused(
    any_rig: Any, tensor: Any, *, dynamic: bool
) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    (n,) = symbols("n")
    x = p.input("x", "float32", (n,))
    p.launch("k", (x,), 1, 32, dynamic_smem_bytes=n if dynamic else 300_000)
    r = any_rig(p.build())

    def refuse(_kernel: str, _device: int, _attribute: int, nbytes: int) -> None:
        if nbytes > 232_448:
            raise DriverError("cuKernelSetAttribute", 1, "CUDA_ERROR_INVALID_VALUE")

    r.facade.on["set_kernel_attribute"] = refuse
    for call in (
        lambda: r.program.entry(tensor("float32", 300_000)),
        *(() if dynamic else (lambda: r.program.preload(0),)),
    ):
        with pytest.raises(
            DeviceRequirementError, match=r"300000 bytes .*'k'.* device 0, .* 232448"
        ) as caught:
            call()
        assert isinstance(caught.value.__cause__, DriverError)
    assert r.facade.launched == []
    if dynamic:
        r.program.entry(tensor("float32", 232_448))
        assert len(r.facade.launched) == 1


@pytest.mark.parametrize(
    "refusal",
    [
        DriverError("cuKernelSetAttribute", 700, "CUDA_ERROR_ILLEGAL_ADDRESS", "why"),
        DriverError("cuDeviceGet", 1, "CUDA_ERROR_INVALID_VALUE"),
    ],
)
def test_another_refusal_of_an_attribute_is_the_drivers_own(
    any_rig: Any, tensor: Any, refusal: DriverError
) -> None:
    r = any_rig(plain(dynamic_smem_bytes=64))

    def refuse(*_: object) -> None:
        raise refusal

    r.facade.on["set_kernel_attribute"] = refuse
    with pytest.raises(DriverError) as caught:
        r.program.entry(tensor("float32", 5))
    if refusal.call == "cuDeviceGet":
        assert caught.value is refusal
    else:  # it says of which kernel
        assert caught.value.explanation == "why; the kernel is 'k' on device 0"
        assert (caught.value.code, caught.value.code_name) == (refusal.code, refusal.code_name)


def test_what_was_refused_is_not_launched_if_nothing_is_wrong_with_it_any_more(
    rig: Any, tensor: Any, monkeypatch: Any
) -> None:
    """Another thread changed it between the check and the walk that asks what comes first."""
    r, x = rig(plain()), tensor("float32", 5)

    class Later(Walk):
        def run(self) -> Iterator[Step]:
            x.address -= 1
            yield from super().run()

    monkeypatch.setattr(context, "Walk", Later)
    x.address += 1
    with pytest.raises(ArgumentValueError, match=r"'x': got address 0x\w+, expected a multiple of 4 bytes"):
        r.program.entry(x)
    assert r.facade.launched == []
    r.program.entry(x)
    assert len(r.facade.launched) == 1


def test_a_call_that_fails_while_a_device_is_prepared_leaves_the_context_of_that(
    rig: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    r = rig(plain(dynamic_smem_bytes=1024))
    stack: list[int] = []
    seen: list[tuple[int, ...]] = []
    entered = EnteredContexts(lambda: stack[-1] if stack else None, stack.pop)

    def push(device: int) -> bool:
        entered.note(sys._getframe(1))
        stack.append(device)
        return True

    def leave() -> None:
        stack.pop()
        entered.left()

    def failing_call() -> None:  # as a finalizer makes one
        push(0)
        recover()

    def recover() -> None:
        entered.recover()

    def meanwhile(*_: object) -> None:
        failing_call()
        seen.append(tuple(stack))

    for name, method in (("enter", push), ("leave", leave)):
        monkeypatch.setattr(r.facade, name, method)
    r.facade.on["set_kernel_attribute"] = meanwhile
    r.program.preload(1)
    assert (seen, stack) == ([(1,)], [])
