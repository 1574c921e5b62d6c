"""torch's own tensors in front of a launcher, over a fake driver: each kind that has no memory as it is."""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING, Any

import pytest
import torch
from torch._subclasses.fake_tensor import FakeTensorMode

from trunnion.call_helper import installed_helper, no_helper
from trunnion.codegen.python.emitter import emit_launcher
from trunnion.errors import ArgumentTypeError, ArgumentValueError, TrunnionError
from trunnion.launcher.program import LauncherModule, PythonProgram
from trunnion.model.builder import ProgramBuilder
from trunnion.model.expr import symbols
from trunnion.model.program import DeviceCode
from trunnion.torch_runtime import TorchRuntime

if TYPE_CHECKING:
    from collections.abc import Callable


class OnTheHost(TorchRuntime):
    """Takes the host's tensors for those of a device: what is asked of them is the same."""

    def presents_device(self, tensor: Any) -> bool:
        return tensor.device.type == "cpu"

    def current_stream_getter(self) -> Callable[[int], int]:
        return lambda _: 100


HELPERS = {"installed": installed_helper, "none": no_helper}


@pytest.fixture(params=HELPERS)
def find_helper(request: Any) -> Any:
    """With the call helper of this environment, if it has one, and without."""
    return HELPERS[request.param]


def launcher_of(plan: Any) -> LauncherModule:
    return LauncherModule.execute(emit_launcher(plan), "launcher.py", plan=lambda: plan)


@pytest.fixture(params=["float32", "complex64", "int32"])
def taking(request: Any, rig: Any, find_helper: Any) -> Any:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    m, n = symbols("m n")
    kind = request.param
    p.launch("k", (p.input("x", kind, (m, n)), p.input("y", kind, (m, n))), 1, 32)
    plan = p.build().plan()
    facade = rig(p.build()).facade
    program = PythonProgram(launcher_of(plan), b"image", ["k"], facade, OnTheHost(find_helper))
    return program, facade, getattr(torch, kind)


def fake(dtype: torch.dtype) -> torch.Tensor:
    with FakeTensorMode():
        return torch.empty(2, 3, dtype=dtype)


def no_storage(dtype: torch.dtype) -> torch.Tensor:
    freed = torch.zeros(2, 3, dtype=dtype)
    freed.untyped_storage().resize_(0)
    return freed


BAD: dict[str, Callable[[torch.dtype], Any]] = {
    "sparse": lambda d: torch.zeros(2, 3, dtype=d).to_sparse(),
    "sparse rows": lambda d: torch.zeros(2, 3, dtype=d).to_sparse_csr(),
    "nested": lambda d: torch.nested.nested_tensor([torch.zeros(3, dtype=d), torch.zeros(2, dtype=d)]),
    "fake": fake,
    "on no device": lambda d: torch.zeros(2, 3, dtype=d, device="meta"),
    "without storage": no_storage,
    "efficient zeros": lambda d: torch._efficientzerotensor((2, 3), dtype=d),
    "a list": lambda d: [[0.0] * 3] * 2,
    "nothing": lambda d: None,
}


@pytest.mark.filterwarnings("ignore:The PyTorch API of nested tensors", "ignore:Sparse CSR tensor support")
@pytest.mark.parametrize("kind", BAD)
def test_what_has_no_memory_of_its_own_is_refused_before_and_after_good_calls(taking: Any, kind: str) -> None:
    program, facade, dtype = taking
    good = torch.zeros(2, 3, dtype=dtype)
    bad = BAD[kind](dtype)
    for _ in range(3):
        for args, name in (((good, bad), "y"), ((bad, good), "x")):
            with pytest.raises((ArgumentTypeError, ArgumentValueError)) as caught:
                program.entry(*args)
            assert caught.value.argument == name
        before = len(facade.launched)
        for _ in range(3):
            program.entry(good, torch.ones(2, 3, dtype=dtype))
        assert len(facade.launched) == before + 3


def test_lazy_views_are_refused_and_what_they_were_resolved_to_is_not(taking: Any) -> None:
    program, facade, dtype = taking
    good = torch.ones(2, 3, dtype=dtype)
    lazy = [torch._neg_view(good)] + ([good.conj()] if dtype.is_complex else [])
    for view in lazy:
        for _ in range(4):
            program.entry(good, good.clone())
            with pytest.raises(ArgumentTypeError) as caught:
                program.entry(good, view)
            assert caught.value.argument == "y"
            # torch negates no bool.
            program.entry(good, view.resolve_neg().resolve_conj() if dtype is not torch.bool else good)
    assert len(facade.launched) == 8 * len(lazy)


@pytest.mark.parametrize("wrap", ["vmap", "grad"])
def test_tensors_inside_of_a_transform_are_refused(taking: Any, wrap: str) -> None:
    program, _, dtype = taking
    if dtype is not torch.float32:
        return
    good = torch.zeros(2, 3)
    seen: list[TrunnionError] = []

    def call(x: torch.Tensor) -> torch.Tensor:
        try:
            program.entry(good, x)
        except TrunnionError as error:
            seen.append(error)
        return x.sum()

    for _ in range(3):
        program.entry(good, good.clone())
        if wrap == "vmap":
            torch.func.vmap(call)(torch.zeros(4, 2, 3))
        else:
            torch.func.grad(call)(torch.zeros(2, 3))
    assert [type(error) for error in seen] == [ArgumentTypeError] * 3
    assert {error.argument for error in seen} == {"y"}


def test_what_does_not_matter_is_let_pass(taking: Any) -> None:
    program, facade, dtype = taking
    good = torch.zeros(2, 3, dtype=dtype)
    with torch.inference_mode():
        made = torch.ones(2, 3, dtype=dtype)
    kinds = [good, made, torch.zeros(4, 3, dtype=dtype)[1:3]]
    if dtype.is_floating_point or dtype.is_complex:
        kinds += [torch.nn.Parameter(good.clone()), good.clone().requires_grad_()]
    for _ in range(3):
        for tensor in kinds:
            for _ in range(3):
                program.entry(good, tensor)
                program.entry(tensor, tensor)
            passed = [struct.unpack("<Q", raw)[0] for raw in facade.launched[-1].parameters]
            assert passed == [tensor.data_ptr()] * 2
    assert len(facade.launched) == 18 * len(kinds)


def test_extents_and_strides_that_change_in_place_are_seen(taking: Any) -> None:
    program, _, dtype = taking
    x, y = (torch.zeros(2, 3, dtype=dtype) for _ in range(2))
    for _ in range(4):
        program.entry(x, y)
    y.resize_(3, 2)
    with pytest.raises(ArgumentValueError, match="extent 3"):
        program.entry(x, y)
    y.resize_(2, 3)
    program.entry(x, y)
    y.t_().resize_(2, 3).as_strided_((2, 3), (1, 2))
    with pytest.raises(ArgumentValueError, match="contiguous"):
        program.entry(x, y)


def shrunk(shape: tuple[int, ...], nbytes: int, strides: tuple[int, ...] | None = None) -> torch.Tensor:
    whole = torch.zeros(64)
    tensor = whole[4:].as_strided(shape, strides or torch.zeros(shape).stride())
    whole.untyped_storage().resize_(nbytes)
    return tensor


STORAGES = {
    "one byte too few": ((2, 3), None, (4 + 6) * 4 - 1, False),
    "just enough": ((2, 3), None, (4 + 6) * 4, True),
    "only the offset": ((2, 3), None, 16, False),
    "less than the offset": ((2, 3), None, 4, False),
    "freed, with an address that is no null": ((2, 3), None, 0, False),
    "no elements": ((0, 3), None, 4, True),
}


@pytest.mark.parametrize("kind", STORAGES)
def test_a_storage_that_shrank_is_seen_before_and_after_good_calls(taking: Any, kind: str) -> None:
    program, facade, dtype = taking
    if dtype is not torch.float32:
        return
    shape, strides, nbytes, fine = STORAGES[kind]
    good = torch.zeros(shape)
    for _ in range(3):
        tensor = shrunk(shape, nbytes, strides)
        for args, name in (((good, tensor), "y"), ((tensor, good), "x")):
            if fine:
                program.entry(*args)
                continue
            with pytest.raises(ArgumentValueError, match="storage") as caught:
                program.entry(*args)
            assert caught.value.argument == name
        for _ in range(3):
            program.entry(good, torch.ones(shape))
    assert len(facade.launched) == (15 if fine else 9)


def test_a_storage_that_was_freed_is_the_same_error_on_every_path(taking: Any) -> None:
    program, _, dtype = taking
    good = torch.zeros(2, 3, dtype=dtype)
    for _ in range(4):
        for call in (program.entry, lambda *args: program.call(args), lambda *args: program.bind(args)):
            with pytest.raises(ArgumentTypeError, match="null address"):
                call(good, no_storage(dtype))
        program.entry(good, good.clone())


def test_the_storage_of_a_strided_tensor_reaches_its_last_element(rig: Any) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    m, n, s = symbols("m n s")
    p.launch("k", (p.input("x", "float32", (m, n), strides=(s, 1)),), 1, 32)
    plan = p.build().plan()
    facade = rig(p.build()).facade
    program = PythonProgram(launcher_of(plan), b"image", ["k"], facade, OnTheHost())
    span = 4 + 2 * 10 + 5
    program.entry(shrunk((3, 5), span * 4, (10, 1)))
    with pytest.raises(ArgumentValueError, match=f"{span * 4 - 17} bytes.*{span * 4 - 16} bytes"):
        program.entry(shrunk((3, 5), span * 4 - 1, (10, 1)))
    assert len(facade.launched) == 1
