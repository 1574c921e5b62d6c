from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trunnion.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, DeviceRequirementError
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import symbols

if TYPE_CHECKING:
    from trunnion.model.program import KernelProgram


def program(alignment: int = 16) -> KernelProgram:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    (n,) = symbols("n")
    x, y = p.input("x", "float32", (n, 4)), p.input("y", "int32", (n,))
    z = p.output("z", "float32", (n,), alignment=alignment)
    p.launch("k", (x, y, z), 1, 1)
    return p.build()


@pytest.mark.parametrize(
    ("x", "y", "out", "error", "argument"),
    [
        (("float16", 3, 4), ("int32", 3), None, ArgumentTypeError, "x"),
        (("float32", 3), ("int32", 3), None, ArgumentValueError, "x"),
        (("float32", 3, 5), ("int32", 3), None, ArgumentValueError, "x"),
        (("float32", 3, 4), ("int32", 2), None, ArgumentValueError, "y"),
        (("float32", 3, 4, {"strides": (8, 1)}), ("int32", 3), None, ArgumentValueError, "x"),
        (("float32", 3, 4, {"address": 2}), ("int32", 3), None, ArgumentValueError, "x"),
        (("float32", 3, 4, {"address": 0}), ("int32", 3), None, ArgumentTypeError, "x"),
        (("float32", 3, 4, {"layout": None}), ("int32", 3), None, ArgumentTypeError, "x"),
        (("float32", 3, 4, {"room": 47}), ("int32", 3), None, ArgumentValueError, "x"),
        (("float32", 3, 4), ("int32", 3), ("float32", 3, {"room": 11}), ArgumentValueError, "z"),
        (("float32", 3, 4, {"is_cuda": False}), ("int32", 3), None, ArgumentValueError, "x"),
        (("float32", 3, 4), ("int32", 3, {"ordinal": 1}), None, ArgumentValueError, "y"),
        (None, ("int32", 3), None, ArgumentTypeError, "x"),
        (("float32", 3, 4), ("int32", 3), ("float16", 3), ArgumentTypeError, "z"),
        (("float32", 3, 4), ("int32", 3), ("float32", 3, 1), ArgumentValueError, "z"),
        (("float32", 3, 4), ("int32", 3), ("float32", 4), ArgumentValueError, "z"),
        (("float32", 3, 4), ("int32", 3), ("float32", 3, {"ordinal": 1}), ArgumentValueError, "z"),
        (("float32", 3, 4), ("int32", 3), ("float32", 3, {"address": 8}), ArgumentValueError, "z"),
        (("float32", 3, 4), ("int32", 3), ("float32", 3, {"strides": (2,)}), ArgumentValueError, "z"),
    ],
)
def test_a_wrong_tensor_is_refused_by_name(  # noqa: PLR0913, PLR0917 - a row of the table, and two fixtures
    rig: Any, tensor: Any, x: Any, y: Any, out: Any, error: type[ArgumentError], argument: str
) -> None:
    def make(spec: Any) -> Any:
        if spec is None:
            return None
        fields = spec[-1] if isinstance(spec[-1], dict) else {}
        return tensor(*(part for part in spec if not isinstance(part, dict)), **fields)

    r = rig(program())
    with pytest.raises(error) as caught:
        r.program.call((make(x), make(y)), out=None if out is None else (make(out),))
    assert caught.value.argument == argument
    assert r.facade.launched == []


def test_a_number_of_arguments_or_outputs_is_refused(rig: Any, tensor: Any) -> None:
    r = rig(program())
    x, y, z = tensor("float32", 3, 4), tensor("int32", 3), tensor("float32", 3)
    for args in ((), (x,), (x, y, z)):
        with pytest.raises(ArgumentTypeError, match="expected 2"):
            r.program.entry(*args)
    with pytest.raises(ArgumentTypeError, match="got 2 tensors, expected 1"):
        r.program.call((x, y), out=(z, z))


@pytest.mark.parametrize("device", [1, -1, 2])
def test_a_device_must_be_the_tensors(rig: Any, tensor: Any, device: Any) -> None:
    r = rig(program())
    with pytest.raises(ArgumentValueError, match="where the tensors lie"):
        r.program.call((tensor("float32", 3, 4), tensor("int32", 3)), device=device)


def test_without_a_tensor_the_device_is_needed(rig: Any) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    s = p.scalar("s", "int32")
    p.launch("k", (s,), 1, 1)
    r = rig(p.build())
    with pytest.raises(DeviceRequirementError, match="device="):
        r.program.entry(5)
    for wrong in (-1, 2, None, "0"):
        with pytest.raises((ArgumentError, DeviceRequirementError)):
            r.program.call((5,), device=wrong)
    r.program.call((5,), device=1)
    assert r.facade.launched[0].stream == 101


def test_known_addresses_are_few_and_outlive_no_judgement(rig: Any, tensor: Any) -> None:
    """What is kept is about addresses alone: memory that is freed and used again is judged by the same rule."""
    r = rig(program())
    x, y = tensor("float32", 3, 4, address=1 << 40), tensor("int32", 3)
    good = r.program._context.good_addresses(4)
    most = 0
    for offset in range(1_000_000):
        address = (1 << 40) + 4 * offset
        if address not in good:
            r.program._context.check_pointer("x", x, address, 4)
        most = max(most, len(good))
    assert most == 1024
    for address in [(1 << 40) + 4 * (offset * 7 % 5000) for offset in range(3000)]:
        x.address = address
        r.program.entry(x, y)
    assert len(good) <= 1024
    assert len(r.facade.launched) == 3000
    for wrong in ((1 << 40) + 2, 0, (1 << 40) + 1):
        for known in (1 << 40, (1 << 40) + 4):
            r.program.entry(tensor("float32", 3, 4, address=known), y)  # freed after the call
            with pytest.raises(ArgumentError):
                r.program.entry(tensor("float32", 3, 4, address=wrong), y)
            r.program.entry(tensor("float32", 3, 4, address=known), y)
    assert not [address for address in good if not address or address % 4]
