"""``trunnion build``: one bundle of what was named, for every target and backend that was named."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

import trunnion
from trunnion import examples
from trunnion.cli import main
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "kernels.trn"


def test_each_program_for_each_target_by_each_backend(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["vector_add", "affine", "--target", "sm_90a", "--target", "sm_80", "--backend", "nvrtc"]
    assert main(["build", *words, "-o", str(place), "--json"]) == 0
    captured = capsys.readouterr()
    document = json.loads(captured.out)
    found = [
        (row["program"], row["target"], row["part"].rpartition(".")[0].rpartition(".")[0])
        for row in document["variants"]
    ]
    assert found == [
        (program, f"cuda:{arch}", f"kernels.{arch}")
        for program in ("affine", "vector_add")
        for arch in ("sm_90a", "sm_80")
    ]
    told = [line for line in captured.err.splitlines() if line.endswith(": built")]
    assert len(told) == 4
    bundle = trunnion.load(place, digest=document["digest"])
    assert sorted(bundle) == ["affine", "vector_add"]


def test_each_program_is_built_for_the_targets_of_its_languages(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["vector_add", "cpu_axpy", "--target", "sm_90a", "--target", "cpu"]
    assert main(["build", *words, "-o", str(place), "--json"]) == 0
    found = {(row["program"], row["target"]) for row in json.loads(capsys.readouterr().out)["variants"]}
    assert {(name, target.partition("-")[0]) for name, target in found} == {
        ("vector_add", "cuda:sm_90a"),
        ("cpu_axpy", "cpu"),
    }


def test_each_program_is_built_by_the_backends_that_launch_on_its_target(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["vector_add", "cpu_axpy", "--backend", "nvrtc", "--backend", "tvm_ffi", "--target", "sm_90a"]
    assert main(["build", *words, "--target", "cpu", "-o", str(place), "--json"]) == 0
    captured = capsys.readouterr()
    assert sorted(line for line in captured.err.splitlines() if line.endswith(": built")) == [
        "'cpu_axpy' by 'tvm_ffi' for cpu: built",
        "'vector_add' by 'nvrtc' for cuda:sm_90a: built",
        "'vector_add' by 'tvm_ffi' for cuda:sm_90a: built",
    ]


@pytest.mark.parametrize("named", [["--target", "cpu"], []])
def test_a_backend_that_launches_on_no_such_target_is_told(
    place: Path, capsys: pytest.CaptureFixture[str], named: list[str]
) -> None:
    assert main(["build", "cpu_axpy", "--backend", "nvrtc", *named, "-o", str(place), "--json"]) == 1
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert "nvrtc" in error["message"]
    assert not place.exists()


def test_a_target_that_no_compiler_of_a_language_has_is_told(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["build", "vector_add", "--target", "cpu", "-o", str(place), "--json"]) == 1
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert "cpu" in error["message"]


def test_for_people_it_is_a_table_and_the_digest(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["vector_add", "--target", "sm_90a", "--backend", "nvrtc", "--jobs", "1"]
    assert main(["build", *words, "-o", str(place)]) == 0
    shown = capsys.readouterr().out
    assert "kernels.sm_90a." in shown
    assert f"digest {trunnion.load(place).digest}" in shown.replace("\n", "")


def test_an_artifact_is_taken_as_it_is_beside_a_program(tmp_path: Path, place: Path) -> None:
    program = examples.load("vector_add").program
    trunnion.compile(program, "tvm_ffi", target="sm_90a").artifact.save(tmp_path / "saved")
    (tmp_path / "program.json").write_text(program.to_json())
    words = [
        str(tmp_path / "saved"),
        str(tmp_path / "program.json"),
        "--target",
        "sm_80",
        "--backend",
        "nvrtc",
    ]
    assert main(["build", *words, "-o", str(place)]) == 0
    variants = trunnion.load(place).index.programs["vector_add"]
    assert [(one.backend, one.target) for one in variants] == [
        ("tvm_ffi", "cuda:sm_90a"),
        ("nvrtc", "cuda:sm_80"),
    ]


def broken_program(folder: Path, source: str, language: str = "cuda") -> str:
    """Write a program of a source that no compiler takes; return its file."""
    builder = ProgramBuilder("broken", DeviceCode(language, source))
    builder.launch("k", (), 1, 1)
    file = folder / "broken.json"
    file.write_text(builder.build().to_json())
    return str(file)


def test_what_cannot_be_built_is_told_and_nothing_is_written(
    tmp_path: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = broken_program(tmp_path, 'extern "C" __global__ void k() { no; }')
    words = [file, "vector_add", "--target", "sm_90a", "--backend", "nvrtc"]
    assert main(["build", *words, "-o", str(place), "--json"]) == 1
    (error,) = json.loads(capsys.readouterr().out)["errors"]
    assert error["type"] == "CompileError"
    assert error["notes"] == ["it was to be built: 'broken' by 'nvrtc' for cuda:sm_90a"]
    assert main(["build", *words, "--backend", "tvm_ffi", "-o", str(place)]) == 1
    told = capsys.readouterr().err
    assert told.count('identifier "no" is undefined') == 1  # by both alike
    assert [f"'broken' by '{by}' for cuda:sm_90a" in told for by in ("nvrtc", "tvm_ffi")] == [True, True]
    assert not place.exists()


@pytest.mark.parametrize("broken", ["no;", "this line is fine; }\nand this is not {"])
def test_what_a_compiler_says_for_every_target_is_told_once(
    tmp_path: Path, place: Path, capsys: pytest.CaptureFixture[str], broken: str
) -> None:
    file = broken_program(tmp_path, f'extern "C" __global__ void k() {{ {broken} }}')
    pairs = [(by, arch) for by in ("nvrtc", "tvm_ffi") for arch in ("sm_90", "sm_90a", "sm_80")]
    words = [file, "-o", str(place), "--backend", "nvrtc", "--backend", "tvm_ffi"]
    words += ["--target", "sm_90", "--target", "sm_90a", "--target", "sm_80", "--jobs", "1"]
    assert main(["build", *words]) == 1
    told = capsys.readouterr().err
    assert told.count("refused the source") == 1
    assert all(f"it was to be built: 'broken' by '{by}' for cuda:{arch}\n" in told for by, arch in pairs)
    assert main(["build", *words, "--json"]) == 1
    errors = json.loads(capsys.readouterr().out)["errors"]
    assert sorted(one["attributes"]["arch"] for one in errors) == sorted(arch for _, arch in pairs)


def test_what_differs_between_targets_is_told_of_each(
    tmp_path: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    source = """extern "C" __global__ void k() {
#if __CUDA_ARCH__ >= 900
  hopper;
#else
  older;
#endif
}"""
    words = [broken_program(tmp_path, source), "-o", str(place), "--backend", "nvrtc", "--jobs", "1"]
    assert main(["build", *words, "--target", "sm_90", "--target", "sm_80", "--target", "sm_86"]) == 1
    told = capsys.readouterr().err
    assert (told.count('"hopper" is undefined'), told.count('"older" is undefined')) == (1, 1)


def test_a_target_that_is_compiled_for_with_other_options_is_told_with_them(
    tmp_path: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = broken_program(tmp_path, "#include <trunnion/block.h>\nno;", "c++")
    words = [file, "-o", str(place), "--backend", "tvm_ffi", "--jobs", "1"]
    assert main(["build", *words, "--target", "cpu:x86-64-v2", "--target", "cpu:x86-64-v3"]) == 1
    told = capsys.readouterr().err
    assert told.count("refused the source") == 1
    assert "for cpu:x86-64-v3\n  with the options:" in told
    assert told.count("-march=x86-64-v3") == 1


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["vector_add", "-o", "kernels"], "that ends in .trn"),
        (["nothing", "-o", "x.trn"], "expected a file, an artifact's folder or an example"),
        (["vector_add"], "Missing option"),
    ],
)
def test_what_is_asked_for_wrongly(
    words: list[str],
    said: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["build", *words, "--target", "sm_90a", "--backend", "nvrtc"]) in (1, 2)
    assert said in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_two_programs_of_one_name_are_refused(
    tmp_path: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    builder = ProgramBuilder("vector_add", DeviceCode("cuda", 'extern "C" __global__ void k() {}'))
    builder.launch("k", (), 1, 1)
    (tmp_path / "other.json").write_text(builder.build().to_json())
    words = ["vector_add", str(tmp_path / "other.json"), "--target", "sm_90a", "-o", str(place)]
    assert main(["build", *words]) == 1
    said = capsys.readouterr().err
    assert (
        "is another program that is called 'vector_add', too, and both are for cuda: give it a name" in said
    )


CUDA_SCALE = 'extern "C" __global__ void scale(const float* x, float* y, long long n) {}'
CPU_SCALE = """#include <trunnion/block.h>
extern "C" void scale(const float* x, float* y, int64_t n, const trunnion_block_t*) {}
"""


def scale(place: Path, language: str, source: str, length: str = "n") -> str:
    """Write a program that is called scale; return its file."""
    builder, n = ProgramBuilder("scale", DeviceCode(language, source)), Symbol(length)
    x, y = builder.input("x", "float32", (n,)), builder.output("y", "float32", (n,))
    builder.launch("scale", (x, y, n), 1, 1)
    place.write_text(builder.build().to_json())
    return str(place)


def test_two_for_different_kinds_of_device_go_by_one_name(tmp_path: Path, place: Path) -> None:
    files = [
        scale(tmp_path / "gpu.json", "cuda", CUDA_SCALE),
        scale(tmp_path / "cpu.json", "c++", CPU_SCALE),
    ]
    words = ["--target", "sm_90a", "--target", "cpu", "--backend", "nvrtc", "--backend", "tvm_ffi"]
    assert main(["build", *files, *words, "-o", str(place)]) == 0
    found = {(one.kind, one.backend) for one in trunnion.load(place).index.programs["scale"]}
    assert found == {("cuda", "nvrtc"), ("cuda", "tvm_ffi"), ("cpu", "tvm_ffi")}
    trunnion.compile(
        trunnion.KernelProgram.from_json((tmp_path / "cpu.json").read_text()), "tvm_ffi", target="cpu"
    ).artifact.save(tmp_path / "saved")
    files[1] = str(tmp_path / "saved")
    assert main(["build", *files, "--target", "sm_90a", "--backend", "nvrtc", "-o", str(place)]) == 0
    assert {one.kind for one in trunnion.load(place).index.programs["scale"]} == {"cuda", "cpu"}


@pytest.mark.parametrize(
    ("other", "why"),
    [
        (
            ("c++", CPU_SCALE, "m"),
            "takes other parameters: parameter 0, 'x', has shape (m) and (n): give it a name",
        ),
        (("cuda", CUDA_SCALE + "// other", "n"), "both are for cuda: give it a name"),
    ],
)
def test_others_of_one_name_are_refused(
    tmp_path: Path, place: Path, capsys: pytest.CaptureFixture[str], other: tuple[str, str, str], why: str
) -> None:
    """One takes other parameters, as its length is called; one is for the same kind of device."""
    first = scale(tmp_path / "gpu.json", "cuda", CUDA_SCALE)
    second = scale(tmp_path / "other.json", *other)
    assert main(["build", first, second, "--target", "sm_90a", "--target", "cpu", "-o", str(place)]) == 1
    assert why in capsys.readouterr().err.replace("\n", " ")
    assert not place.exists()


def test_an_image_is_no_program(tmp_path: Path, place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifact = trunnion.compile(examples.load("vector_add").program, "nvrtc", target="sm_90a").artifact
    (tmp_path / "k.cubin").write_bytes(artifact.images["cubin"])
    assert main(["build", str(tmp_path / "k.cubin"), "-o", str(place)]) == 1
    assert "is a device image: no program is in it" in capsys.readouterr().err


def test_what_is_named_twice_is_built_once(place: Path) -> None:
    words = ["vector_add", "vector_add", "--target", "sm_90a", "--target", "sm_90a", "--backend", "nvrtc"]
    assert main(["build", *words, "-o", str(place)]) == 0
    assert len(trunnion.load(place).index.programs["vector_add"]) == 1


def test_an_artifact_that_others_can_write_is_not_bundled(
    tmp_path: Path, place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    trunnion.compile(examples.load("vector_add").program, "nvrtc", target="sm_90a").artifact.save(
        tmp_path / "saved"
    )
    (tmp_path / "saved").chmod(0o777)
    assert main(["build", str(tmp_path / "saved"), "-o", str(place)]) == 1
    assert "can be written by others" in capsys.readouterr().err


def test_into_a_folder_of_everybodys_it_is_written_and_told(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place.parent.chmod(0o777)
    words = ["vector_add", "--target", "sm_90a", "--backend", "nvrtc", "-o", str(place), "--json"]
    assert main(["build", *words]) == 0
    digest = json.loads(capsys.readouterr().out)["digest"]
    assert trunnion.load(place, digest=digest).digest == digest


def test_the_place_is_judged_before_anything_is_built(
    place: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    place.mkdir()
    assert main(["build", "vector_add", "--target", "sm_90a", "-o", str(place)]) == 1
    captured = capsys.readouterr()
    assert "a folder is at" in captured.err
    assert "built" not in captured.err


def test_a_target_that_no_program_is_for_is_refused(place: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["vector_add", "--target", "sm_90a", "--target", "cpu"]
    assert main(["build", *words, "-o", str(place), "--json"]) == 1
    said = json.loads(capsys.readouterr().out)["error"]
    assert "no program is in a language that is compiled for 'cpu'" in said["message"]
    assert not place.exists()
