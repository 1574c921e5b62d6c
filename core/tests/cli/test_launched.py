"""Launches in the words of the program: names, types and values of what the kernels were given."""

from __future__ import annotations

from struct import pack as struct_pack
from typing import TYPE_CHECKING, Any

import pytest

from trunnion import DeviceCode, ProgramBuilder, Symbol, array, const, sqrt, struct
from trunnion.cli.launch_text import print_launches
from trunnion.cli.launched import Reading
from trunnion.cli.traced import launches_in, trace_document
from trunnion.sim.launch_attributes import AccessProperty, LaunchAttributes, WindowAttribute
from trunnion.sim.tensormap import Im2colRequest, Swizzle, TensorMapDataType, TiledRequest, encode
from trunnion.sim.trace import Launched

if TYPE_CHECKING:
    from trunnion.model.program import KernelProgram


def launched(kernel: str, *parameters: bytes, **said: Any) -> Launched:
    """A launch as the trace has it."""
    shape: dict[str, Any] = {"grid": (4, 1, 1), "block": (32, 1, 1), "cluster": None}
    shape |= {"dynamic_smem_bytes": 0, "attributes": LaunchAttributes()}
    return Launched(kernel=kernel, library=1, device=0, stream=0, parameters=parameters, **(shape | said))


def told(program: KernelProgram, *events: Launched) -> list[dict[str, Any]]:
    """Return the launches as documents; in the image a kernel's name begins with an underscore."""
    plan = program.plan()
    reading = Reading(plan, [f"_{kernel.name}" for kernel in plan.kernels])
    return launches_in(trace_document(events, reading))


def address(number: int) -> bytes:
    return number.to_bytes(8, "little")


def int32(number: int) -> bytes:
    return struct_pack("<i", number)


def every_kind() -> KernelProgram:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    m, n = Symbol("m"), Symbol("n", multiple_of=4)
    x = p.input("x", "float32", (m, n), alignment=16)
    alpha, phase = p.scalar("alpha", "float32"), p.scalar("phase", "complex64")
    flags, table = p.struct("flags", 3, 1), p.pointer("table")
    space = p.workspace("space", "int8", (n,))
    maps = (x.tiled(box_dim=(2, 16), swizzle="64B"),)
    p.launch("k", (x, space, x.view(), *maps, alpha, phase, flags, table, (m * 2).cast("int32"), n), m, 32)
    return p.build()


def test_constants_and_moved_addresses_are_told_as_the_program_says_them() -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n = Symbol("n")
    x = p.input("x", "float32", (n,))
    args = (x.at(n - 2), const(0.5, "float32"), const(None), const(True), const(1 - 2j, "complex64"))
    p.launch("k", args, 1, 32)
    parameters = (address(0x1008), struct_pack("<f", 0.5), address(0), b"\1", struct_pack("<2f", 1.0, -2.0))
    (launch,) = told(p.build(), launched("_k", *parameters))
    assert [(one["name"], one["kind"], one["type"], one["value"]) for one in launch["arguments"]] == [
        ("x.at((n - 2))", "tensor", "float32*", 0x1008),
        ("const(0.5)", "constant", "float32", 0.5),
        ("null", "constant", "void*", 0),
        ("const(True)", "constant", "bool", True),
        ("const((1-2j))", "constant", "complex64", "(1-2j)"),
    ]


def test_floating_point_expressions_are_told_as_the_program_says_them() -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n = Symbol("n")
    p.input("x", "float32", (n,))
    p.launch("k", ((1 / sqrt(n)).cast("float32"), (n - 1) / 3), 1, 32)
    (launch,) = told(p.build(), launched("_k", struct_pack("<f", 0.5), struct_pack("<d", 1.25)))
    assert [(one["name"], one["kind"], one["type"], one["value"]) for one in launch["arguments"]] == [
        ("1.0 / sqrt(n)", "expression", "float32", 0.5),
        ("real(n - 1) / 3.0", "expression", "float64", 1.25),
    ]


def tiled() -> bytes:
    """The map that every_kind's kernel is given."""
    request = TiledRequest(
        address=0x1000,
        data_type=TensorMapDataType.FLOAT32,
        dims=(8, 4),
        strides=(32,),
        element_strides=(1, 2),
        swizzle=Swizzle.B64,
        box=(16, 2),
    )
    return encode(request)


def its_launch() -> Launched:
    """A launch of every_kind's kernel."""
    view = address(0x1000) + int32(4) + int32(8) + address(8)
    parameters = (
        address(0x1000),
        address(0x2000),
        view,
        tiled(),
        struct_pack("<f", 0.5),
        struct_pack("<2f", 1.0, -2.0),
        b"\1\2\3",
        address(0x3000),
        int32(8),
        address(8),
    )
    window = WindowAttribute(0x1000, 64, 0.5, AccessProperty.PERSISTING, AccessProperty.STREAMING)
    return launched(
        "_k",
        *parameters,
        cluster=(2, 1, 1),
        window=window,
        attributes=LaunchAttributes(
            cluster=(2, 1, 1), scheduling_policy=1, programmatic_stream_serialization=True
        ),
    )


def test_every_argument_has_its_name_and_its_value() -> None:
    (row,) = told(every_kind(), its_launch())
    assert row["name"] == "k"
    assert row["parameters"][0] == address(0x1000).hex()
    found = [(one["name"], one["kind"], one["type"]) for one in row["arguments"]]
    assert found == [
        ("x", "tensor", "float32*"),
        ("space", "workspace", "int8*"),
        ("x", "view", "float32"),
        ("x", "tensor map", "tiled"),
        ("alpha", "scalar", "float32"),
        ("phase", "scalar", "complex64"),
        ("flags", "struct", "3 bytes"),
        ("table", "pointer", "void*"),
        ("(m * 2)", "expression", "int32"),
        ("n", "expression", "int64"),
    ]
    values = [one["value"] for one in row["arguments"]]
    assert values[2] == {"address": 0x1000, "shape": [4, 8], "strides": [8, 1]}
    assert (values[3]["box"], values[3]["swizzle"]) == ([16, 2], 2)
    assert [values[0], values[1], *values[4:]] == [0x1000, 0x2000, 0.5, "(1-2j)", "010203", 0x3000, 8, 8]


def test_people_see_what_a_launch_was(capsys: pytest.CaptureFixture[str]) -> None:
    print_launches(told(every_kind(), its_launch()))
    out = capsys.readouterr().out
    assert "launch 0: k" in out
    for said in (
        ("symbol", "_k"),
        ("grid", "(4,", "1,", "1)"),
        ("cluster", "(2,", "1,", "1)"),
        ("scheduling_policy", "spread"),
        ("pdl", "yes"),
        ("stream", "0,", "the", "default", "one"),
    ):
        assert list(said) in [line.split() for line in out.splitlines()], said
    assert "64 bytes at 0x1000, persisting for 0.5 of them, else streaming" in out
    assert "0x1000, float32 (8, 4), box (16, 2), element strides (1, 2), swizzle 64B" in out
    assert "0x1000, shape (4, 8), strides (8, 1)" in out
    assert "carveout" not in out
    assert "None" not in out


def test_an_im2col_map_is_told_too(capsys: pytest.CaptureFixture[str]) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x = p.input("x", "float16", (1, 8, 8, 64), alignment=16)
    corners: dict[str, Any] = {"pixel_box_lower_corner": (-1, -1), "pixel_box_upper_corner": (-1, -1)}
    p.launch("k", (x.im2col(**corners, channels_per_pixel=64, pixels_per_column=32),), 1, 32)
    request = Im2colRequest(
        address=0x1000,
        data_type=TensorMapDataType.FLOAT16,
        dims=(64, 8, 8, 1),
        strides=(128, 1024, 8192),
        element_strides=(1, 1, 1, 1),
        lower=(-1, -1),
        upper=(-1, -1),
        channels=64,
        pixels=32,
    )
    print_launches(told(p.build(), launched("_k", encode(request))))
    said = "lower corner (-1, -1), upper corner (-1, -1), 64 channels, 32 pixels"
    assert said in capsys.readouterr().out


def test_a_struct_is_told_field_by_field(capsys: pytest.CaptureFixture[str]) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    m, n = Symbol("m"), Symbol("n", multiple_of=4)
    x = p.input("x", "float32", (m, n), alignment=16)
    k = p.scalar("k", "float32")
    inner = struct(("map", x.tiled(box_dim=(2, 16), swizzle="64B")), ("v", x.view()))
    p.launch("k", (struct(("x", x), ("ks", array(k, k)), ("inner", inner)), struct()), 1, 32)
    view = address(0x1000) + int32(4) + int32(8) + address(8)
    data = address(0x1000) + struct_pack("<2f", 0.5, 0.25) + bytes(48) + tiled() + view + bytes(40)
    (row,) = told(p.build(), launched("_k", data, b"\0"))
    built, empty = row["arguments"]
    assert (built["name"], built["kind"], built["type"]) == (
        "struct(...)",
        "built struct",
        f"{len(data)} bytes",
    )
    assert [(one["path"], one["offset"], one["name"], one["kind"]) for one in built["value"]] == [
        (".x", 0, "x", "tensor"),
        (".ks[0]", 8, "k", "scalar"),
        (".ks[1]", 12, "k", "scalar"),
        (".inner.map", 64, "x", "tensor map"),
        (".inner.v", 192, "x", "view"),
    ]
    assert [one["value"] for one in built["value"][:3]] == [0x1000, 0.5, 0.25]
    assert empty["value"] == []
    print_launches([row])
    out = capsys.readouterr().out
    assert ".x = 0x1000, .ks[0] = 0.5, .ks[1] = 0.25, .inner.map = 0x1000, float32 (8, 4)" in " ".join(
        out.split()
    )
    assert "nothing" in out


def pairs() -> KernelProgram:
    """Launches k over a, j over a, k over b; each may be skipped."""
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n = Symbol("n")
    a, b = (p.input(name, "int8", (n,)) for name in "ab")
    for kernel, tensor in (("k", a), ("j", a), ("k", b)):
        p.launch(kernel, (tensor,), n, 32)
    return p.build()


@pytest.mark.parametrize(
    ("kernels", "names"),
    [
        ("kjk", ["a", "a", "b"]),
        ("kj", ["a", "a"]),
        ("jk", ["a", "b"]),
        ("kk", ["a", "b"]),
        ("j", ["a"]),
        ("k", [None]),  # the first or the last: nobody can tell
        ("jj", [None, None]),  # not of this program
        ("z", [None]),
        ("", []),
    ],
)
def test_nothing_is_guessed_where_launches_were_skipped(
    kernels: str, names: list[str | None], capsys: pytest.CaptureFixture[str]
) -> None:
    rows = told(pairs(), *(launched(f"_{kernel}", address(64)) for kernel in kernels))
    found = [None if row["arguments"] is None else row["arguments"][0]["name"] for row in rows]
    assert found == names
    print_launches(rows)
    assert capsys.readouterr().out.count("cannot be told; parameters of 8 bytes") == names.count(None)


def test_equal_launches_need_not_be_told_apart() -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    a = p.input("a", "int8", (Symbol("n"),))
    for _ in range(2):
        p.launch("k", (a,), Symbol("n"), 32)
    (row,) = told(p.build(), launched("_k", address(64)))
    assert row["arguments"][0]["name"] == "a"
