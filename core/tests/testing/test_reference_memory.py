"""Maps, windows and workspaces of one call, against numbers that were worked out by hand."""

from __future__ import annotations

import pytest

from trunnion.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ExprError,
    TensorMapError,
    UnboundSymbolError,
)
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.constant import const
from trunnion.model.expr import Symbol
from trunnion.model.float_expr import real, sqrt
from trunnion.model.workspace import Workspace
from trunnion.testing.expected import (
    Address,
    CallSignature,
    Expected,
    ExpectedIm2col,
    ExpectedWindow,
    ExpectedWorkspace,
    Refused,
    TensorFacts,
)
from trunnion.testing.reference import expect, parameter_layouts
from trunnion.testing.strategies.calls import row_major


def tensor(shape, dtype="float16", address=0x10000):
    return TensorFacts(dtype=dtype, shape=shape, strides=row_major(shape), address=address, device=0)


def program(build):
    p = ProgramBuilder("p", DeviceCode("cuda", ""))
    build(p)
    return p.build()


def told(build, *args, **call):
    return expect(program(build), CallSignature(args=args, **call))


def test_an_im2col_map_in_driver_order():
    def build(p):
        x = p.input("x", "float16", (2, 5, 6, 7, 16))
        corners = {"pixel_box_lower_corner": (-1, -2, -3), "pixel_box_upper_corner": (1, 2, 3)}
        p.launch("k", (x.im2col(**corners, channels_per_pixel=8, pixels_per_column=32),), grid=1, block=1)

    (launch,) = told(build, tensor((2, 5, 6, 7, 16))).launches
    (found,) = launch.maps
    assert found.dims == (16, 7, 6, 5, 2)
    assert found.strides == (32, 224, 1344, 6720)
    assert found.im2col == ExpectedIm2col(lower=(-3, -2, -1), upper=(3, 2, 1), channels=8, pixels=32)
    assert found.box is None


def test_an_empty_box_of_pixels_is_refused():
    n = Symbol("n", min=0)

    def build(p):
        x = p.input("x", "float16", (1, n, 8))
        corners = {"pixel_box_lower_corner": (2,), "pixel_box_upper_corner": (-3,)}
        p.launch("k", (x.im2col(**corners, channels_per_pixel=8, pixels_per_column=1),), grid=1, block=1)

    assert isinstance(told(build, tensor((1, 6, 8))), Expected)
    refused = told(build, tensor((1, 5, 8)))
    assert isinstance(refused, Refused)
    assert refused.explains(TensorMapError(("the bounding box is not empty",)))
    assert not refused.explains(TensorMapError(("a rule",)))


@pytest.mark.parametrize(("rows", "good"), [(4, True), (3, False)])
def test_a_map_lies_within_its_tensor(rows, good):
    n = Symbol("n")

    def build(p):
        x = p.input("x", "float16", (n, 64))
        own = x.tiled((1, 8), shape=(3, 64), strides=(64, 1), element_offset=64)
        p.launch("k", (own,), grid=1, block=1)

    assert isinstance(told(build, tensor((rows, 64))), Expected if good else Refused)


def test_windows():
    def build(p):
        x = p.input("x", "float32", (100,))
        p.launch("a", (), grid=1, block=1, window=x.window(element_offset=10, hit_ratio=0.5))
        p.launch("b", (), grid=1, block=1, window=x.window(nbytes=8, policy="stream", hit_property="normal"))
        p.launch("c", (), grid=1, block=1)

    a, b, c = told(build, tensor((100,), "float32"), most_window_bytes=256).launches
    fields = {"hit_ratio": 0.5, "hit_property": 2, "miss_property": 1, "policy": "launch"}
    assert a.window == ExpectedWindow(address=Address("x", 40), nbytes=256, **fields)
    assert (b.window.nbytes, b.window.hit_property, b.window.policy) == (8, 0, "stream")
    assert c.window is None
    refused = told(build, tensor((100,), "float32"), most_window_bytes=7)
    assert isinstance(refused, Refused)


def test_workspaces_are_there_for_those_who_read_them():
    n = Symbol("n", min=-5)
    spaces = [Workspace(name, "float32", (n + 3, 2), alignment=512, zeroed=name == "b") for name in "ab"]

    def build(p):
        p.scalar("n", "int32", n)
        p.launch("k", (spaces[0],), grid=1, block=1)
        p.launch("l", (spaces[1], spaces[0]), grid=1, block=1, when=n)

    assert told(build, 0, device=0).workspaces == (
        ExpectedWorkspace(name="a", nbytes=24, alignment=512, zeroed=False),
    )
    both = told(build, 1, device=0)
    assert [(one.nbytes, one.zeroed) for one in both.workspaces] == [(32, False), (32, True)]
    assert both.launches[1].parameters == (Address("b", 0, workspace=True), Address("a", 0, workspace=True))
    assert parameter_layouts(program(build)) == {("k", 0): ((8, 8),), ("l", 0): ((8, 8), (8, 8))}
    refused = told(build, -4, device=0)
    assert isinstance(refused, Refused)
    assert refused.explains(ArgumentValueError("a", "extent -3", "at least 0"))
    assert not refused.explains(ExprError("negative"))


def nullable(p):
    n = Symbol("n", min=1)
    x = p.input("x", "float16", (n, 16), nullable=True)
    p.input("y", "float16", (n + 1, n), nullable=True)
    p.launch("k", (x, n), grid=1, block=1)
    p.launch("l", (x.tiled((1, 16)),), grid=1, block=1, when=n - 3)


def test_what_is_left_out():
    x, y = tensor((3, 16)), tensor((4, 3), address=0x20000)
    (launch,) = told(nullable, None, y).launches
    assert launch.parameters == (bytes(8), (3).to_bytes(8, "little"))
    assert isinstance(told(nullable, x, None), Expected)
    assert told(nullable, x, tensor((4, 2))).explains(ArgumentValueError("y", "a", "b"))
    absent = told(nullable, None, tensor((5, 4)))
    assert absent.explains(ArgumentTypeError("x", "None", "a tensor"))
    assert not absent.explains(ArgumentTypeError("y", "None", "a tensor"))
    nothing = told(nullable, None, None, device=0)
    assert nothing.explains(UnboundSymbolError("n"))
    assert not nothing.explains(UnboundSymbolError("m"))
    assert isinstance(told(nullable, None, None), Refused)


def test_filled_outputs():
    def build(p):
        p.output("o", "float16", (2,), fill=-2)
        p.output("e", "float8_e4m3fn", (0,))
        p.launch("k", (), grid=1, block=1)

    assert [output.fill for output in told(build, device=0).outputs] == [b"\0\xc0", None]


def test_destinations_that_share_memory():
    def build(p):
        p.output("o", "float16", (2,))
        p.output("e", "float16", (3,))
        p.launch("k", (), grid=1, block=1)

    apart = (tensor((2,)), tensor((3,), address=0x10004))
    assert isinstance(told(build, out=apart, device=0), Expected)
    refused = told(build, out=(tensor((2,)), tensor((3,), address=0x10002)), device=0)
    assert isinstance(refused, Refused)
    assert refused.explains(ArgumentValueError("e", "memory of 'o'", "memory of its own", "out[1]"))
    assert not refused.explains(ArgumentValueError("e", "memory of 'o'", "memory of its own", "out"))


def test_a_wrong_destination_is_placed():
    def build(p):
        p.output("o", "float16", (2,))
        p.launch("k", (), grid=1, block=1)

    refused = told(build, out=(tensor((3,)),), device=0)
    assert isinstance(refused, Refused)
    assert refused.explains(ArgumentValueError("o", "shape (3,)", "(2,)", "out"))
    assert not refused.explains(ArgumentValueError("o", "shape (3,)", "(2,)"))


def test_a_moved_address_lies_within_what_the_memory_spans():
    n, start = Symbol("n", min=0), Symbol("start", min=-(2**63))

    def build(p):
        x = p.input("x", "float16", (n, 4), strides=(8, 1), nullable=True)
        p.input("shown", "float16", (n,))
        p.scalar("start", "int64", start)
        scratch = p.workspace("scratch", "int32", (n, 4))
        p.launch("k", (x.at(start), scratch.at(start)), grid=1, block=1)

    def calls(start, rows=2):
        x = TensorFacts(dtype="float16", shape=(rows, 4), strides=(8, 1), address=0x10000, device=0)
        return told(build, x, tensor((rows,)), start)

    (launch,) = calls(8).launches
    assert launch.parameters == (Address("x", 16), Address("scratch", 32, workspace=True))
    assert parameter_layouts(program(build)) == {("k", 0): ((8, 8), (8, 8))}
    refused = calls(9)  # of x, whose rows lie apart, 12 elements are spanned; of the workspace 8
    assert isinstance(refused, Refused)
    assert [problem.arguments for problem in refused.problems] == [("scratch",)]
    assert {problem.arguments for problem in calls(13).problems} == {("x",), ("scratch",)}
    assert {problem.errors for problem in calls(-1).problems} == {(ArgumentValueError,)}
    assert isinstance(calls(0, rows=0), Expected)
    assert isinstance(calls(1, rows=0), Refused)
    (launch,) = told(build, None, tensor((2,)), 8).launches
    assert launch.parameters[0] == bytes(8)


def test_an_offset_of_what_is_left_out_is_no_number_that_anybody_needs():
    n, k = Symbol("n"), Symbol("k")

    def build(p):
        x = p.input("x", "float16", (n,), nullable=True)
        p.input("shown", "float16", (n,))
        p.scalar("k", "int64", k)
        p.launch("k", (x.at(n // k),), grid=1, block=1)

    assert isinstance(told(build, None, tensor((4,)), 0), Expected)
    refused = told(build, tensor((4,)), tensor((4,)), 0)
    assert {problem.errors for problem in refused.problems} == {(ExprError,)}


def test_a_constant_is_rounded_by_the_oracle_itself():
    def build(p):
        p.launch("k", (const(0.1, "float16"), const(None), const(-2, "int8"), const(True)), grid=1, block=1)

    (launch,) = told(build, device=0).launches
    assert launch.parameters == (b"\x66\x2e", bytes(8), b"\xfe", b"\x01")
    assert parameter_layouts(program(build)) == {("k", 0): ((2, 2), (8, 8), (1, 1), (1, 1))}


def test_a_floating_point_expression_is_rounded_by_the_oracle_itself():
    n, d = Symbol("n", min=-(2**63)), Symbol("d", min=-(2**63))

    def build(p):
        p.scalar("n", "int64", n)
        p.scalar("d", "int64", d)
        args = (1 / sqrt(d), (n / d).cast("float16"), (real(n) + 0.5).cast("float32"))
        p.launch("k", args, grid=n, block=1)

    (launch,) = told(build, 1, 4, device=0).launches
    assert launch.parameters == (bytes(6) + b"\xe0\x3f", b"\0\x34", b"\0\0\xc0\x3f")
    assert parameter_layouts(program(build)) == {("k", 0): ((8, 8), (2, 2), (4, 4))}
    (launch,) = told(build, 2**24 + 1, 2**24 - 1, device=0).launches
    assert launch.parameters[2] == b"\1\0\x80\x4b"  # 2**24 + 1.5 lies nearest to 2**24 + 2
    for wrong in ((1, 0), (1, -1), (65520, 1)):
        refused = told(build, *wrong, device=0)
        assert {problem.errors for problem in refused.problems} == {(ExprError,)}
    assert isinstance(told(build, 0, 0, device=0), Expected)  # nothing is launched
