"""A cubin from elsewhere: read whole, described by a file beside it or not, and launched by its exact names."""

from __future__ import annotations

import copy
import json
import pickle
from dataclasses import replace
from hashlib import sha256

import pytest

import trunnion
from trunnion.contract.compiler import CompileRequest
from trunnion.contract.spec import Target
from trunnion.errors import ArtifactError, CorruptArtifactError, ProgramError
from trunnion.image.lookup import KernelLookupError
from trunnion.image.prebuilt import PrebuiltCompiler, PrebuiltImage
from trunnion.image.synthetic import SyntheticKernel, synthetic_cubin
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.sim.trace import Launched

NAMES = ("kernel_cutlass_gemm_Tensor_0", "kernel_cutlass_gemm_1_Tensor_0", "reduce")
CUBIN = synthetic_cubin([SyntheticKernel(name=name) for name in NAMES], "sm_90a")
FAMILY = synthetic_cubin([SyntheticKernel(name="k")], "sm_100f")
PLAIN = synthetic_cubin([SyntheticKernel(name="k")], "sm_80")


def program(*kernels):
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    for kernel in kernels:
        p.launch(kernel, (), 1, 32)
    return p.build()


def compile_prebuilt(asked):
    return PrebuiltCompiler().compile(asked)


def request(code, *kernels, target="sm_90a"):
    planned = program(*kernels).plan().kernels
    return CompileRequest(code=code, kernels=planned, target=Target.parse(target))


@pytest.fixture
def file(tmp_path):
    path = tmp_path / "gemm.cubin"
    path.write_bytes(CUBIN)
    return path


def described(file, **fields):
    file.with_name("gemm.cubin.json").write_text(json.dumps(fields), "utf-8")


def test_its_kernels_are_found_by_name_and_by_pattern(file):
    image = PrebuiltImage.from_file(file)
    assert [kernel.name for kernel in image.info.kernels] == list(NAMES)
    assert image.kernel("gemm").name == NAMES[0]
    assert image.kernel("gemm_1").name == NAMES[1]
    assert image.kernel(NAMES[2]).name == "reduce"
    assert image.names == {}


def test_a_digest_may_be_in_capitals(file):
    described(file, schema=1, kernels={"sum": "reduce"}, sha256=sha256(CUBIN).hexdigest().upper())
    assert PrebuiltImage.from_file(file).names == {"sum": "reduce"}


def test_what_lies_beside_it_gives_its_kernels_names(file):
    described(file, schema=1, kernels={"main": "gemm", "sum": "reduce"}, sha256=sha256(CUBIN).hexdigest())
    image = PrebuiltImage.from_file(file)
    assert image.names == {"main": NAMES[0], "sum": "reduce"}
    assert image.kernel("main").name == NAMES[0]
    assert PrebuiltImage.from_file(file, kernels={"x": "gemm_1"}).names == {"x": NAMES[1]}


def test_a_pattern_that_says_not_which_kernel_is_refused_when_the_image_is_read(file):
    described(file, schema=1, kernels={"main": "kernel_cutlass"})
    with pytest.raises(KernelLookupError) as caught:
        PrebuiltImage.from_file(file)
    assert caught.value.matches == NAMES[:2]
    with pytest.raises(KernelLookupError, match="matches no kernel"):
        PrebuiltImage.from_file(file, kernels={"main": "nobody"})


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({}, "schema 1"),
        ({"schema": 2}, "schema 1"),
        ({"schema": 1, "kernel": {}}, "not 'kernel'"),
        ({"schema": 1, "sha256": "0"}, "describes another image"),
        ({"schema": 1, "sha256": None}, "'sha256' has to be text"),
        ({"schema": 1, "kernels": ["gemm"]}, "both text"),
        ({"schema": 1, "kernels": {"gemm": 1}}, "both text"),
    ],
)
def test_a_file_that_does_not_describe_it_is_refused(file, fields, said):
    described(file, **fields)
    with pytest.raises(CorruptArtifactError, match=said) as caught:
        PrebuiltImage.from_file(file)
    assert caught.value.what == "'gemm.cubin.json'"


@pytest.mark.parametrize("text", ["", "[1]", "no json", "\udcff"])
def test_a_file_that_is_no_description_at_all(file, text):
    file.with_name("gemm.cubin.json").write_bytes(text.encode(errors="surrogateescape"))
    with pytest.raises(CorruptArtifactError):
        PrebuiltImage.from_file(file)


def test_what_is_no_cubin_is_refused(tmp_path):
    with pytest.raises(ProgramError, match="cannot read"):
        PrebuiltImage.from_file(tmp_path / "nothing.cubin")
    with pytest.raises(ArtifactError):
        PrebuiltImage.from_file("")
    for data in (b"", b"\x7fELF", CUBIN[:-1], CUBIN[:100]):
        with pytest.raises(CorruptArtifactError):
            PrebuiltImage(data)


def test_a_program_is_served_by_exact_names(file):
    given = program("main", "gemm_1", "main")
    served = PrebuiltImage.from_file(file, kernels={"main": "reduce"}).serve(given)
    assert [launch.kernel for launch in served.launches] == ["reduce", NAMES[1], "reduce"]
    (code,) = served.code
    assert (code.language, code.source, code.name, code.target) == ("cubin", CUBIN, "gemm.cubin", "sm_90a")
    assert served.signature == given.signature
    assert type(served).from_json(served.to_json()) == served
    with pytest.raises(KernelLookupError, match="could be 2 kernels"):
        PrebuiltImage.from_file(file).serve(program("kernel_cutlass"))


def test_a_launch_of_one_part_of_several_is_served_too():
    parts = (DeviceCode("cuda", "// one"), DeviceCode("cuda", "// two"))
    p = ProgramBuilder("p", parts)
    p.launch("k", (), 1, 32, code=parts[1])
    served = PrebuiltImage(PLAIN).serve(p.build())
    assert [(launch.kernel, launch.code) for launch in served.launches] == [("k", None)]


def test_occupancies_are_of_the_image_s_kernels_wherever_they_stand():
    resident = trunnion.occupancy("main", 64)
    p = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x, scratch = p.input("x", "float32", (8,)), p.workspace("w", "float32", (resident,))
    p.check(trunnion.ge(resident, 1), "room")
    held = trunnion.struct(
        ("a", trunnion.array(x.at(resident), scratch.at(0))), ("r", trunnion.sqrt(resident))
    )
    p.launch("main", (held,), resident, 32, when=trunnion.gt(resident, 0), window=x.window(nbytes=resident))
    served = PrebuiltImage(CUBIN, {"main": "gemm"}).serve(p.build())
    (fact,) = served.plan().facts
    assert fact.name == f'occupancy("{NAMES[0]}", 64, 0)'
    assert type(served).from_json(served.to_json()) == served


def test_a_variable_of_one_part_of_several_is_served_in_structs_too():
    parts = (DeviceCode("cuda", "// one"), DeviceCode("cuda", "// two"))
    p = ProgramBuilder("p", parts)
    cells = p.variable("cells", "int32", code=parts[1])
    p.launch("k", (cells, trunnion.struct(("a", trunnion.array(trunnion.struct(("v", cells)))))), 1, 32)
    served = PrebuiltImage(PLAIN).serve(p.build())
    assert [one.code for one in served.variables] == [None]
    assert type(served).from_json(served.to_json()) == served


def test_it_is_a_value():
    one, two = PrebuiltImage(CUBIN, {"a": "gemm"}), PrebuiltImage(CUBIN, {"a": "gemm"})
    assert one == two
    assert hash(one) == hash(two)
    assert one != PrebuiltImage(CUBIN)
    for again in (pickle.loads(pickle.dumps(one)), copy.copy(one), copy.deepcopy(one)):  # noqa: S301 - its own
        assert (again, again.info, again.names) == (one, one.info, one.names)


# As a device compiler's part ------------------------------------------------------------------------------------------


def test_a_cubin_is_an_image_already():
    made = compile_prebuilt(request((PrebuiltImage(CUBIN).code,), "reduce", NAMES[0]))
    assert (made.kind, made.data, str(made.target)) == ("cubin", CUBIN, "cuda:sm_90a")
    assert [(kernel.name, kernel.symbol) for kernel in made.kernels] == [("reduce",) * 2, (NAMES[0],) * 2]
    assert sha256(CUBIN).hexdigest() in made.toolchain["image"]


def test_a_block_that_the_image_requires_is_compared_by_the_build():
    data = synthetic_cubin([SyntheticKernel(name="k", required_threads=(64, 1, 1))], "sm_90a")
    served = PrebuiltImage(data).serve(program("k"))
    with pytest.raises(ProgramError, match="was compiled for 64 threads") as caught:
        trunnion.compile(served, compiler="prebuilt")
    assert caught.value.field == "launches[0].block[0]"


@pytest.mark.parametrize(
    ("fields", "field"),
    [({"options": ("-G",)}, "code[0].options"), ({"defines": (("N", "1"),)}, "code[0].defines")],
)
def test_what_says_how_to_compile_has_nothing_to_say_to_a_cubin(fields, field):
    code = replace(PrebuiltImage(CUBIN).code, **fields)
    with pytest.raises(ProgramError) as caught:
        compile_prebuilt(request((code,), "reduce"))
    assert caught.value.field == field


def test_several_parts_and_options_are_refused():
    cubin = PrebuiltImage(CUBIN).code
    with pytest.raises(ProgramError, match="got 2 parts, expected one cubin"):
        compile_prebuilt(request((cubin, cubin), "reduce"))
    with pytest.raises(ProgramError, match="got 'x', expected none"):
        compile_prebuilt(replace(request((cubin,), "reduce"), options={"x": 1}))


def test_it_is_announced_and_taken_where_nothing_better_is(simulator):
    served = PrebuiltImage(synthetic_cubin([SyntheticKernel(name="k_kernel_0")], "sm_90a")).serve(
        program("k")
    )
    with trunnion.compile(served, compiler="prebuilt") as compiled, simulator.torch_mode():
        compiled(device=0)
        assert str(compiled.target) == "cuda:sm_90a"
    assert [event.kernel for event in simulator.trace if isinstance(event, Launched)] == ["k_kernel_0"]


def test_a_name_that_is_not_exact_is_refused_with_what_there_is():
    with pytest.raises(ProgramError, match="PrebuiltImage finds one") as caught:
        compile_prebuilt(request((PrebuiltImage(CUBIN).code,), "reduce", "gemm"))
    assert caught.value.field == "kernels[1].name"
    assert all(name in str(caught.value) for name in NAMES)


@pytest.mark.parametrize(
    ("cubin", "kernel", "target", "runs"),
    [
        (CUBIN, "reduce", "sm_90a", True),
        (CUBIN, "reduce", "sm_90", False),
        (CUBIN, "reduce", "sm_100a", False),
        (PLAIN, "k", "sm_80", True),
        (PLAIN, "k", "sm_86", True),
        (PLAIN, "k", "sm_89", True),
        (PLAIN, "k", "sm_75", False),
        (PLAIN, "k", "sm_90", False),
        (PLAIN, "k", "compute_80", False),
        (PLAIN, "k", "cpu", False),
        (FAMILY, "k", "sm_100f", True),
        (FAMILY, "k", "sm_103", True),
        (FAMILY, "k", "sm_103a", True),
        (FAMILY, "k", "sm_120", False),
    ],
)
def test_it_has_to_run_on_the_target(cubin, kernel, target, runs):
    asked = request((PrebuiltImage(cubin).code,), kernel, target=target)
    if runs:
        made = compile_prebuilt(asked)
        assert str(made.target) == f"cuda:{target}"
    else:
        with pytest.raises(ProgramError, match="does not run on"):
            compile_prebuilt(asked)


@pytest.mark.parametrize(
    "fields",
    [
        {"data": "x"},
        {"data": None},
        {"data": bytearray(b"\x7fELF")},
        {"names": ["a"]},
        {"names": {"a": 1}},
        {"names": {None: "fill"}},
        {"file": 5},
    ],
    ids=str,
)
def test_what_is_of_another_type_is_refused_by_its_field(file, fields):
    with pytest.raises(ProgramError) as caught:
        PrebuiltImage(**{"data": file.read_bytes(), **fields})
    assert caught.value.field == next(iter(fields))


@pytest.mark.parametrize(
    "text", ['{"schema": true}', '{"schema": 1, "kernels": {"a": "fill", "a": "fill_1"}}', '{"schema": 1.0}']
)
def test_metadata_that_could_mean_two_things_is_refused(file, text):
    file.with_name(f"{file.name}.json").write_text(text)
    with pytest.raises(CorruptArtifactError):
        PrebuiltImage.from_file(file)
