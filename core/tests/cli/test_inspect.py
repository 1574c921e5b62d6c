"""``trunnion inspect``: programs, artifacts and images are told whole, and nothing of them runs."""

from __future__ import annotations

import io
import json
import shutil
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import fields
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings

import trunnion
from trunnion import DeviceCode, ProgramBuilder, Symbol, array, const, device, examples, ge, sqrt, struct
from trunnion.artifacts.artifact import Artifact
from trunnion.cli.application import run
from trunnion.cli.document import plan_document, told
from trunnion.cli.inspect import _show
from trunnion.cli.inspection import device_sources, program_document
from trunnion.image import SyntheticKernel, pack_parameters, synthetic_cubin
from trunnion.model.plan import LaunchPlan
from trunnion.testing.strategies import json_programs, programs

if TYPE_CHECKING:
    from pathlib import Path

    from trunnion.model.program import KernelProgram

KEYS = {
    "kind",
    "name",
    "program",
    "plan",
    "manifest",
    "images",
    "host_source",
    "device_source",
    "digest",
    "variants",
}


@pytest.fixture(scope="module")
def artifact(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An artifact of the vector add."""
    place = tmp_path_factory.mktemp("artifacts") / "vector_add"
    trunnion.compile(examples.load("vector_add").program, target="sm_90a").artifact.save(place)
    return place


def inspect(capsys: pytest.CaptureFixture[str], *words: str, status: int = 0) -> dict[str, Any]:
    assert run(["inspect", *words, "--json"]) == status
    return json.loads(capsys.readouterr().out)


def test_a_bundle_is_told_with_what_it_lacks_here(
    artifact: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "kernels.trn"
    index = trunnion.write_bundle(place, {"add": trunnion.load(artifact)})
    document = inspect(capsys, str(place))
    assert document.keys() == KEYS
    assert (document["kind"], document["digest"]) == ("bundle", index.digest)
    (row,) = document["variants"]
    assert (row["program"], row["target"], row["part"]) == ("add", "cuda:sm_90a", index.parts["sm_90a"].file)
    assert row["lacks"] == list(trunnion.Bundle.open(place).fits("add")[0].lacks)
    assert run(["inspect", str(place)]) == 0
    assert index.digest in capsys.readouterr().out.replace("\n", "")
    assert "give no options" in inspect(capsys, str(place), "--compile", status=1)["error"]["message"]
    part = place.with_name(row["part"])
    part.unlink()
    (row,) = inspect(capsys, str(place))["variants"]
    assert row["lacks"][-1] == f"{part.name}, which is not here"


@pytest.mark.parametrize("name", examples.EXAMPLES)
def test_an_example_is_told_without_compiling(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    program = examples.load(name).program
    document = inspect(capsys, name)
    assert document.keys() == KEYS
    assert (document["kind"], document["name"]) == ("example", name)
    assert document["plan"]["hash"] == program.plan().hash
    assert document["plan"]["requires"] == sorted(program.plan().requires)
    assert [one["name"] for one in document["program"]["params"]] == [
        param.name for param in program.signature.params
    ]
    assert all("source" not in part and part["nbytes"] > 0 for part in document["program"]["code"])
    assert document["images"] is document["manifest"] is document["host_source"] is None


def test_sources_are_shown_when_they_are_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    document = inspect(capsys, "vector_add", "--host-source", "--device-source")
    (launcher,) = document["host_source"]
    assert launcher["language"] == "python"
    assert document["plan"]["hash"] in launcher["text"]
    (code,) = document["device_source"]
    assert code["text"] == examples.load("vector_add").program.code[0].source


def test_a_program_is_compiled_only_if_that_is_asked_for(capsys: pytest.CaptureFixture[str]) -> None:
    document = inspect(capsys, "vector_add", "--compile", "--target", "sm_90a")
    (image,) = document["images"]
    (kernel,) = image["kernels"]
    assert (image["kind"], image["arch"], kernel["name"]) == ("cubin", "sm_90a", "vector_add")
    assert [one["size"] for one in kernel["parameters"]] == [8, 8, 8, 4]
    assert kernel["parameters"][3]["passed"] == "int32 (4 bytes)"
    assert kernel["registers"] > 0
    assert document["manifest"]["target"] == "cuda:sm_90a"


def test_an_artifact_is_told_as_it_lies_there(artifact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = inspect(capsys, str(artifact), "--host-source")
    assert document["kind"] == "artifact"
    assert document["manifest"]["digest"] == trunnion.load(artifact).artifact.digest
    assert document["host_source"][0]["text"] == (artifact / "launcher.py").read_text()
    assert document["images"][0]["sha256"] == document["manifest"]["files"]["image.cubin"]["sha256"]


def test_long_inputs_of_a_key_are_told_by_digest(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    program = examples.load("vector_add").program
    trunnion.compile(program, target="sm_90a", cache=tmp_path)
    (kept,) = (tmp_path / "entries").iterdir()
    inputs = inspect(capsys, str(kept))["manifest"]["key_inputs"]
    assert inputs["target"] == "cuda:sm_90a"
    assert inputs["program"] == told(program.to_json())
    assert all(len(value) <= 100 for value in inputs.values())


def test_an_artifact_of_a_backend_that_is_not_installed_is_told_too(
    artifact: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trunnion, "default_registry", lambda: pytest.fail("asked"), raising=False)
    assert inspect(capsys, str(artifact), "--host-source")["host_source"]


def test_a_damaged_artifact_is_refused(
    artifact: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place = tmp_path / "damaged"
    shutil.copytree(artifact, place)
    launcher = place / "launcher.py"
    launcher.write_text(launcher.read_text() + "raise SystemExit('run')\n")
    document = inspect(capsys, str(place), status=1)
    assert document["error"]["type"] == "CorruptArtifactError"
    assert document["error"]["attributes"]["what"] == "launcher.py"


def test_an_image_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    table = pack_parameters(((8, 8), (128, 64), (4, 4)), "sm_90a")
    kernels = [
        SyntheticKernel(name="one", parameters=table, cluster=(2, 1, 1)),
        SyntheticKernel(name="\x1b[31mtwo"),
    ]
    data = synthetic_cubin(kernels, "sm_90a")
    (tmp_path / "x.cubin").write_bytes(data)
    document = inspect(capsys, str(tmp_path / "x.cubin"))
    assert document["kind"] == "image"
    (image,) = document["images"]
    assert [kernel["name"] for kernel in image["kernels"]] == ["one", "\x1b[31mtwo"]
    assert [(one["offset"], one["size"]) for one in image["kernels"][0]["parameters"]] == [
        (one.offset, one.size) for one in table
    ]
    assert image["kernels"][0]["cluster"] == [2, 1, 1]
    assert run(["inspect", str(tmp_path / "x.cubin")]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    assert "\\x1b[31mtwo" in out


_PTX = """
.version 9.0
.target sm_90a
.address_size 64
.visible .entry scale(.param .u64 .ptr .align 4 x, .param .f32 k, .param .align 64 .b8 map[128])
.maxntid 256, 1, 1
{ ret; }
"""


def test_a_ptx_text_is_told(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.ptx").write_text(_PTX)
    (image,) = inspect(capsys, str(tmp_path / "x.ptx"))["images"]
    assert (image["kind"], image["target"], image["version"]) == ("ptx", "sm_90a", "9.0")
    (kernel,) = image["kernels"]
    assert (kernel["name"], kernel["max_threads"]) == ("scale", [256, 1, 1])
    assert [one["size"] for one in kernel["parameters"]] == [8, 4, 128]
    (tmp_path / "x.ptx").write_text(_PTX[:120])
    assert inspect(capsys, str(tmp_path / "x.ptx"), status=1)["error"]["type"] == "CorruptArtifactError"


@pytest.mark.parametrize("target", ["sm_80", "sm_90a", "sm_120"])
def test_the_memory_of_a_kernel_is_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], target: str
) -> None:
    source = """
__constant__ int table[9];
extern "C" __global__ void k(int* x) {
  __shared__ int s[300];
  int kept[50];
  for (int i = 0; i < 50; ++i) kept[i] = x[i] + table[i % 9];
  s[threadIdx.x] = x[1];
  for (int i = 0; i < s[7]; ++i) x[i] += kept[i * 7 % 50];
}
"""
    p = ProgramBuilder("k", DeviceCode("cuda", source))
    x = p.input("x", "int32", (50,), access="read_write")
    p.launch("k", args=(x,), grid=1, block=32)
    (tmp_path / "k.json").write_text(p.build().to_json())
    (image,) = inspect(capsys, str(tmp_path / "k.json"), "--compile", "--target", target)["images"]
    (kernel,) = image["kernels"]
    assert (kernel["static_smem_bytes"], kernel["local_bytes"], image["constant_bytes"]) == (1200, 200, 36)
    assert run(["inspect", str(tmp_path / "k.json"), "--compile", "--target", target]) == 0
    assert "local_bytes" in capsys.readouterr().out


@pytest.mark.parametrize("data", [b"", b"\x7fELF", b"\x7fELF" + bytes(4000), b"nonsense"])
def test_a_damaged_image_is_refused(tmp_path: Path, data: bytes, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "x.cubin").write_bytes(data)
    document = inspect(capsys, str(tmp_path / "x.cubin"), status=1)
    assert document["error"]["type"] == "CorruptArtifactError"


@pytest.mark.parametrize("kernels", [("vector_add",), ("vector_add", "other")], ids=["arguments", "kernels"])
def test_a_program_that_is_not_the_artifact_s_is_refused(
    artifact: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], kernels: tuple[str, ...]
) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//", target="sm_90a"))
    x = p.input("x", "float32", (Symbol("n"),))
    for kernel in kernels:
        p.launch(kernel, (x,), 1, 1)
    other = Artifact.open(artifact).including("program.json", p.build().to_json().encode())
    other.save(tmp_path / "other")
    error = inspect(capsys, str(tmp_path / "other"), status=1)["error"]
    assert (error["type"], error["attributes"]["what"]) == ("CorruptArtifactError", "program.json")


def test_parameters_that_nobody_passes_are_shown_without_what_is_passed(
    artifact: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """An image may be any: nobody matched it with the program since it was exchanged by hand."""
    parameters = pack_parameters([(8, 8)] * 3 + [(4, 4)] * 2, "sm_90a")
    image = synthetic_cubin([SyntheticKernel(name="vector_add", parameters=parameters)], arch="sm_90a")
    Artifact.open(artifact).including("image.cubin", image).save(tmp_path / "other")
    (shown,) = inspect(capsys, str(tmp_path / "other"))["images"]
    assert ["passed" in one for one in shown["kernels"][0]["parameters"]] == [True] * 4 + [False]


@pytest.mark.parametrize("words", [["--compile"], ["--target", "sm_90a"], ["--backend", "x"]])
def test_what_is_built_is_not_built_again(
    artifact: Path, words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    document = inspect(capsys, str(artifact), *words, status=1)
    assert document["error"]["type"] == "ProgramError"


def test_hostile_names_do_not_reach_the_terminal(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bad = "\x1b]0;owned\x07\u202e"
    p = ProgramBuilder(bad, DeviceCode("cuda", f"// {bad}", name=bad))
    n = Symbol(bad)
    x = p.input(bad, "float32", (n,))
    p.launch("kernel", args=(x, n), grid=n, block=1)
    path = tmp_path / f"{bad[:3]}.json"
    path.write_text(p.build().to_json())
    assert run(["inspect", str(path), "--device-source", "--host-source"]) == 0
    for stream in capsys.readouterr():
        assert not {"\x1b", "\x07", "\u202e"} & set(stream)


def test_people_see_the_tables(artifact: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", str(artifact), "--host-source", "--device-source"]) == 0
    out = capsys.readouterr().out
    for word in ("program.params", "plan.bindings", "image.kernels[0].parameters", "manifest", "registers"):
        assert word in out
    assert "-- host_source: launcher.py" in out
    assert 'extern "C" __global__ void vector_add' in out


def test_what_kernels_take_stands_beside_what_the_program_passes(
    artifact: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A plan is long: below it nobody finds the table of parameters."""
    assert run(["inspect", str(artifact)]) == 0
    sections = [
        line
        for line in capsys.readouterr().out.splitlines()
        if line in {"program", "image", "plan", "manifest"}
    ]
    assert sections == ["program", "image", "plan", "manifest"]


def test_people_see_the_words_of_the_model_and_names(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", "hopper_gemm"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    for words in (
        ["data_type", "float16"],
        ["swizzle", "128B"],
        ["l2_promotion", "L2_128B"],
        ["interleave", "NONE"],
        ["oob_fill", "NONE"],
        ["results", "c"],
        ["memory", "tensor", "a"],
        ["kernel", "hopper_gemm<3>"],
        ["readers", "launch", "0"],
    ):
        assert words in lines, words
    cells = [" ".join(words) for words in lines]
    for said in (
        "tensor param a, interleave",
        "tensor param b, interleave",
        "map 0, of tensor a",
        "| - | c | - |",
    ):
        assert any(said in cell.replace("│", "|") for cell in cells), said
    document = inspect(capsys, "hopper_gemm")
    assert document["program"]["launches"][0]["args"][2] == {"output": 0}  # and positions
    assert document["plan"]["encodes"][0]["swizzle"] == 3  # the document keeps the driver's number


def test_a_floating_point_expression_is_shown_as_it_is_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    n = Symbol("n")
    p.input("x", "float32", (n,))
    p.launch("k", ((1 / sqrt(n - 1)).cast("float16"),), 1, 32)
    path = tmp_path / "p.json"
    path.write_text(p.build().to_json())
    assert run(["inspect", str(path)]) == 0
    program, plan = capsys.readouterr().out.replace("│", "|").split("\nplan\n")
    assert "| (1.0 / sqrt(real(n - 1))), float16 " in program
    assert "(1.0 / sqrt(real(n - 1)))" in plan
    args = inspect(capsys, str(path))["program"]["launches"][0]["args"]
    assert args == [{"float": {"expr": "(1.0 / sqrt(real(n - 1)))", "dtype": "float16"}}]


STRUCT = """struct Inner { float scale; unsigned char flag; };
struct Params { float* x; Inner rows[2]; int m; double flags; };
extern "C" __global__ void k(Params p) { p.x[0] = p.rows[0].scale + p.m; }
"""
STRUCT_FIELDS = [
    (0, 8, ".x", "PointerArgument(memory tensor x)", "a pointer to float32 (8 bytes)"),
    (8, 4, ".rows[0].scale", "ScalarArgument(scalar k)", "float32 (4 bytes)"),
    (12, 1, ".rows[0].flag", "ConstantArgument(data 7, dtype uint8)", "uint8 (1 byte)"),
    (16, 4, ".rows[1].scale", "FloatArgument(value (1.0 / sqrt(m)), dtype float32)", "float32 (4 bytes)"),
    (20, 1, ".rows[1].flag", "ConstantArgument(data 0, dtype uint8)", "uint8 (1 byte)"),
    (24, 4, ".m", "ExprArgument(value cast(int32, (m + 1)), dtype int32)", "int32 (4 bytes)"),
    (32, 8, ".flags", "StructArgument(struct flags)", "a struct (8 bytes)"),
]
"""Offset, size, path and source of each field, and what the kernel is told of it."""


def given_a_struct() -> KernelProgram:
    """Launches a kernel that is given a struct, with structs in an array in it."""
    p = ProgramBuilder("p", DeviceCode("cuda", STRUCT))
    m = Symbol("m")
    x, k, flags = p.input("x", "float32", (m,)), p.scalar("k", "float32"), p.struct("flags", 8, 8)
    rows = array(
        struct(("scale", k), ("flag", const(7, "uint8"))),
        struct(("scale", (1 / sqrt(m)).cast("float32")), ("flag", const(0, "uint8"))),
    )
    whole = struct(("x", x), ("rows", rows), ("m", (m + 1).cast("int32")), ("flags", flags))
    p.launch("k", (whole,), 1, 32)
    return p.build()


def test_the_fields_of_a_struct_are_told_with_their_places_and_sources(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "p.json"
    file.write_text(given_a_struct().to_json())
    document = inspect(capsys, str(file), "--compile", "--target", "sm_90a")
    (argument,) = document["plan"]["launches"][0]["args"]
    told_fields = [
        (one["offset"], one["size"], one["path"], one["argument"]["type"]) for one in argument["fields"]
    ]
    assert told_fields == [(*row, source.partition("(")[0]) for *row, source, _ in STRUCT_FIELDS]
    (parameter,) = document["images"][0]["kernels"][0]["parameters"]
    assert [(one["offset"], one["path"], one["description"]) for one in parameter["passed_fields"]] == [
        (offset, path, description) for offset, _, path, _, description in STRUCT_FIELDS
    ]


def test_people_see_a_struct_field_by_field(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "p.json"
    file.write_text(given_a_struct().to_json())
    assert run(["inspect", str(file), "--compile", "--target", "sm_90a"]) == 0
    rows = [
        [cell.strip() for cell in line.strip("\u2502 ").split("\u2502")]
        for line in capsys.readouterr().out.splitlines()
        if line.startswith("\u2502")
    ]
    for offset, size, path, source, description in STRUCT_FIELDS:
        written, compiled, planned, kernel = [row for row in rows if path in row]
        assert (written[0], len(written)) == (path, 2)
        assert planned == [str(offset), str(size), path, source]
        assert compiled == kernel == [str(offset), path, description]  # beside the image, and in the plan
    assert [".rows[0].scale", "param k"] in rows
    assert [".m", "expr cast(int32, (m + 1))"] in rows


def test_a_null_pointer_is_called_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x = p.input("x", "float32", (Symbol("n"),))
    p.launch("k", (const(None), const(0.5, "float32"), x.at(Symbol("n"))), 1, 32)
    path = tmp_path / "p.json"
    path.write_text(p.build().to_json())
    assert run(["inspect", str(path)]) == 0
    program, plan = capsys.readouterr().out.replace("│", "|").split("\nplan\n")
    for said, where in (
        ("| null ", program),
        ("| 0.5, float32 ", program),
        ("| memory param x, offset n ", program),
        ("| null ", plan),
        ("| 0.5 ", plan),
    ):
        assert said in where, said
    args = inspect(capsys, str(path))["program"]["launches"][0]["args"]
    assert args[0] == {"const": {"value": None, "dtype": None}}  # a document keeps what it is


def test_every_number_of_the_driver_has_a_word(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x = p.input("x", "int8", (64, 64), alignment=16)
    w = x.window(hit_ratio=1.0, nbytes=64, hit_property="persisting", miss_property="streaming")
    p.launch(
        "k",
        (x, x.tiled(box_dim=(8, 16), dtype="uint8")),
        (2, 1),
        32,
        cluster=2,
        pdl=ge(device.multiprocessor_count, 100),
        scheduling_policy="load_balancing",
        mem_sync_domain="remote",
        window=w,
    )
    path = tmp_path / "p.json"
    path.write_text(p.build().to_json())
    assert run(["inspect", str(path)]) == 0
    plan = capsys.readouterr().out.split("\nplan\n")[1]
    for said in (
        "uint8",
        "persisting",
        "streaming",
        "load_balancing",
        "remote",
        "2, 1, 1",
        "ge(device.multiprocessor_count, 100)",
    ):
        assert said in plan, said


def _printed(document: dict[str, Any]) -> str:
    out = io.StringIO()
    with redirect_stdout(out):
        _show(document)
    return out.getvalue()


@given(programs())
@settings(max_examples=60)
def test_every_program_is_told_whole_and_shown_in_plain_text(program: KernelProgram) -> None:
    """Whatever a program holds, hostile names too: its document is JSON, and no character moves a cursor."""
    plan = plan_document(program.plan())
    document = dict.fromkeys(KEYS) | {"kind": "program", "name": program.name}
    document |= {"program": program_document(program), "plan": plan}
    document["device_source"] = device_sources(program)
    assert json.loads(json.dumps(document, allow_nan=False)) == document
    assert {field.name for field in fields(LaunchPlan)} - {"signature"} < plan.keys()
    assert all(one.isprintable() or one == "\n" for one in _printed(document))


@given(json_programs())
@settings(max_examples=150)
def test_a_hostile_document_is_told_or_refused(tmp_path_factory: pytest.TempPathFactory, text: str) -> None:
    path = tmp_path_factory.getbasetemp() / "hostile.json"
    path.write_text(text, "utf-8", "surrogatepass")
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        assert run(["inspect", str(path)]) in (0, 1)
    assert all(one.isprintable() or one == "\n" for one in out.getvalue() + err.getvalue())


@pytest.mark.parametrize("words", [["--backend", "zzz"], ["--target", "nonsense"]])
def test_a_backend_that_nothing_needs_is_refused(words: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert run(["inspect", "vector_add", *words]) == 1
    assert "--compile" in capfd.readouterr().err


def test_trust_that_nothing_needs_is_refused(artifact: Path, capfd: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["--host-source"]):
        assert run(["inspect", "vector_add", "--trust", *words]) == 1
        assert "got no --compile" in capfd.readouterr().err
    assert run(["inspect", str(artifact), "--trust"]) == 1
    assert "is built already: give no --compile, --backend, --target or --trust" in " ".join(
        capfd.readouterr().err.split()
    )


def test_what_does_not_fit_is_shown_beside_the_kernels_parameters(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    symbol = "_Z1kPfid"
    cubin = synthetic_cubin(
        [SyntheticKernel(name=symbol, parameters=pack_parameters([(8, 8), (4, 4), (8, 8)], "sm_90a"))],
        arch="sm_90a",
    )
    p = ProgramBuilder("p", DeviceCode("cubin", cubin))
    x = p.input("x", "float32", (Symbol("n"),))
    p.launch(symbol, (x, Symbol("n")), 1, 32)
    file = tmp_path / "p.json"
    file.write_text(p.build().to_json())
    error = inspect(capsys, str(file), "--compile", "--target", "sm_90a", status=1)["error"]
    assert error["type"] == "ParameterMismatchError"
    assert error["attributes"]["table"][1:] == [
        {"ordinal": 1, "offset": 8, "size": 4, "kind": "an integer", "passed": "int64 (8 bytes)"},
        {"ordinal": 2, "offset": 16, "size": 8, "kind": "a floating-point number", "passed": None},
    ]
    assert run(["inspect", str(file), "--compile", "--target", "sm_90a"]) == 1
    shown = capsys.readouterr()
    assert "a floating-point number" in shown.out
    assert "2 arguments, the compiled kernel takes 3 parameters" in shown.err


def test_the_kinds_that_a_mangled_name_tells_are_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "p.json"
    p = ProgramBuilder("p", DeviceCode("cuda", "__global__ void k(float *x, int n) { if (n) *x = 1; }"))
    x = p.input("x", "float32", (Symbol("n"),), access="read_write")
    p.launch("k", (x, Symbol("n").cast("int32")), 1, 32)
    file.write_text(p.build().to_json())
    (image,) = inspect(capsys, str(file), "--compile", "--target", "sm_90a")["images"]
    assert [one["kind"] for one in image["kernels"][0]["parameters"]] == ["a pointer", "an integer"]
