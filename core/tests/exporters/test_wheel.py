"""A bundle as a wheel: it installs as any other, and its functions launch where there is no compiler."""

from __future__ import annotations

import ast
import builtins
import csv
import json
import platform
import subprocess
import sys
import zipfile
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import trunnion
from trunnion import examples
from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.manifest import FileRecord
from trunnion.bundles.conditions import Condition, conditions_of
from trunnion.cli import main
from trunnion.errors import ArgumentValueError, ArtifactError, CorruptArtifactError, ProgramError
from trunnion.exporters import wheel as exported
from trunnion.exporters.python_module import emit_module
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode

if TYPE_CHECKING:
    from pathlib import Path

    from forked_python.client import ForkedPython

CODE = DeviceCode("cuda", 'extern "C" __global__ void k(float* x) {}')

CALL = """
import os, sys
from trunnion import sim
simulator = sim.start()
os.environ["PATH"] = ""
for compiler in ("cuda.bindings.nvrtc", "cutlass"):
    sys.modules[compiler] = None
simulator.torch_mode().__enter__()
import torch, my_kernels
from trunnion import examples
from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.manifest import FileRecord
from trunnion.bundles.conditions import conditions_of
example = examples.load("vector_add")
for kernel in my_kernels.bundle()["vector_add"].artifact.manifest.kernels:
    simulator.register_body(kernel.symbol, example.bodies[kernel.name])
a, b = (torch.arange(8, dtype=torch.float32, device="cuda") for _ in range(2))
out = torch.empty(8, device="cuda")
assert my_kernels.vector_add(a, b, out=out) is out
print(my_kernels.vector_add(a, b).cpu().tolist() == out.cpu().tolist() == [2.0 * i for i in range(8)])
"""


@pytest.fixture(scope="module")
def artifacts() -> dict[str, Any]:
    program = examples.load("vector_add").program
    return {name: trunnion.compile(program, name, target="sm_90a").artifact for name in ("nvrtc", "tvm_ffi")}


def bundled(folder: Path, programs: dict[str, Any]) -> trunnion.Bundle:
    trunnion.write_bundle(folder / "kernels.trn", programs)
    return trunnion.Bundle.open(folder / "kernels.trn")


@pytest.mark.parametrize("backend", ["nvrtc", "tvm_ffi"])
def test_it_installs_and_launches_without_a_compiler(
    tmp_path: Path, artifacts: dict[str, Any], backend: str, forked_python: ForkedPython
) -> None:
    bundle = bundled(tmp_path, {"vector_add": artifacts[backend]})
    wheel = trunnion.export_wheel(bundle, tmp_path / "dist", name="My.kernels", version="1.0")
    tag = wheel.stem.split("-")[-1]
    assert tag == "any" if backend == "nvrtc" else tag.startswith("manylinux_2_")
    install = [sys.executable, "-m", "pip", "install", "--no-deps", "--no-index", "--quiet", "--target"]
    subprocess.run([*install, tmp_path / "site", wheel], check=True, capture_output=True)
    script = f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n{CALL}"
    done = forked_python(script)
    assert (done.stdout, done.returncode) == ("True\n", 0), done.stderr


def test_what_it_needs_is_in_its_metadata_and_equal_bundles_give_equal_wheels(
    tmp_path: Path, artifacts: dict[str, Any]
) -> None:
    bundle = bundled(tmp_path, {"add": [artifacts["nvrtc"], artifacts["tvm_ffi"]]})
    one, other = (
        trunnion.export_wheel(bundle, tmp_path / place, name="my-kernels", version="2.0rc1")
        for place in ("a", "b")
    )
    assert one.read_bytes() == other.read_bytes()
    with zipfile.ZipFile(one) as archive:
        metadata = archive.read("my_kernels-2.0rc1.dist-info/METADATA").decode()
        record = archive.read("my_kernels-2.0rc1.dist-info/RECORD").decode()
        assert sorted(line.split(",")[0] for line in record.splitlines()) == sorted(archive.namelist())
    needed = [
        line.removeprefix("Requires-Dist: ")
        for line in metadata.splitlines()
        if line.startswith("Requires-Dist")
    ]
    assert sorted(one.split("==")[0] for one in needed) == ["trunnion", "trunnion-nvrtc", "trunnion-tvm-ffi"]


def test_each_parameter_has_its_type_whatever_it_is_called(tmp_path: Path) -> None:
    builder = ProgramBuilder('odd """ \\ name', CODE)
    x = builder.input("class", "float32", (8,), access="write")
    builder.scalar("\u202e", "bfloat16")
    builder.launch("k", (x,), 1, 8)
    affine = trunnion.compile(examples.load("affine").program, "nvrtc", target="sm_90a")
    odd = trunnion.compile(builder.build(), "nvrtc", target="sm_90a")
    bundle = bundled(tmp_path, {"affine": affine, "odd": odd})
    wheel = trunnion.export_wheel(bundle, tmp_path, name="kernels", version="1")
    with zipfile.ZipFile(wheel) as archive:
        tree = ast.parse(archive.read("kernels/__init__.py"))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    typed = {
        name: {
            one.arg: ast.unparse(one.annotation) for one in functions[name].args.posonlyargs if one.annotation
        }
        for name in ("affine", "odd")
    }
    assert typed["affine"] == {
        "x": "Tensor",
        "bias": "Tensor | None",
        "gain": "float",
        "offset": "int",
        "rectify": "bool",
        "slope": "float",
    }
    assert typed["odd"] == {"arg0": "Tensor", "arg1": "float"}
    assert [ast.unparse(functions[name].returns or ast.Constant("")) for name in ("affine", "odd")] == [
        "Tensor",
        "None",
    ]


@pytest.mark.parametrize("name", ["_chosen", "_on", "bundle"])
def test_no_parameter_hides_what_a_function_calls(name: str) -> None:
    builder = ProgramBuilder("odd", CODE)
    x = builder.input(name, "float32", (8,), access="write")
    builder.launch("k", (x,), 1, 8)
    tree = ast.parse(emit_module("kernels", "index.trn", "", {"odd": builder.build()}))
    functions = {node.name: node for node in tree.body if isinstance(node, ast.FunctionDef)}
    assert [one.arg for one in functions["odd"].args.posonlyargs] == ["arg0"]


@pytest.mark.parametrize(
    "name",
    ["class", "2d", "a b", "bundle", "trunnion", "pathlib", "_private", "out", "int", "\ufb01", 'x"""'],
)
def test_a_name_that_no_function_can_have_is_refused(
    tmp_path: Path, artifacts: dict[str, Any], name: str
) -> None:
    bundle = bundled(tmp_path, {name: artifacts["nvrtc"]})
    with pytest.raises(ArgumentValueError, match="names of Python functions"):
        trunnion.export_wheel(bundle, tmp_path / "dist", name="kernels", version="1")
    assert not (tmp_path / "dist").exists()


def test_no_function_is_called_like_a_builtin_that_the_module_uses() -> None:
    program = examples.load("vector_add").program
    tree = ast.parse(emit_module("kernels", "index.trn", "", {"add": program}))
    used = {one.id for one in ast.walk(tree) if isinstance(one, ast.Name)} & {*vars(builtins)}
    assert {"getattr", "next", "TypeError"} <= used
    for name in sorted(used):
        with pytest.raises(ArgumentValueError, match=f"names of Python functions.*{name}"):
            emit_module("kernels", "index.trn", "", {name: program})


@pytest.mark.parametrize(
    ("name", "version"),
    [
        ("", "1"),
        ("../x", "1"),
        ("a/b", "1"),
        ("x", ""),
        ("x", "1/2"),
        ("x", "one"),
        *(
            (name, "1")
            for name in ("class", "2d", "torch", "Trunnion", "os", "trunnion.nvrtc", "tvm-ffi", "cuda")
        ),
    ],
)
def test_what_is_no_name_and_no_version_is_refused(
    tmp_path: Path, artifacts: dict[str, Any], name: str, version: str
) -> None:
    bundle = bundled(tmp_path, {"add": artifacts["nvrtc"]})
    with pytest.raises(ArgumentValueError):
        trunnion.export_wheel(bundle, tmp_path / "dist", name=name, version=version)


def test_variants_that_are_called_otherwise_are_refused(
    tmp_path: Path, artifacts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    other = trunnion.compile(examples.load("affine").program, "nvrtc", target="sm_80").artifact
    with pytest.raises(
        ProgramError,
        match=r"take different parameters.*: parameter 0 is the tensor 'a' and",
    ):
        bundled(tmp_path, {"add": [artifacts["nvrtc"], other]})
    monkeypatch.setattr(
        "trunnion.bundles.writing.program_of_variants", lambda *_: None
    )  # as it was written before
    bundle = bundled(tmp_path, {"add": [artifacts["nvrtc"], other]})
    with pytest.raises(ProgramError, match="take different parameters"):
        trunnion.export_wheel(bundle, tmp_path, name="kernels", version="1")


def test_a_broken_part_and_no_place_are_typed_errors(tmp_path: Path, artifacts: dict[str, Any]) -> None:
    bundle = bundled(tmp_path, {"add": artifacts["nvrtc"]})
    (tmp_path / "file").write_text("")
    with pytest.raises(ArtifactError, match="cannot write"):
        trunnion.export_wheel(bundle, tmp_path / "file", name="kernels", version="1")
    (part,) = tmp_path.glob("kernels.sm_90a.*.trn")
    part.write_bytes(part.read_bytes()[:-100])
    with pytest.raises(CorruptArtifactError):
        trunnion.export_wheel(bundle, tmp_path, name="kernels", version="1")


def test_the_command(tmp_path: Path, artifacts: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    bundled(tmp_path, {"add": artifacts["nvrtc"]})
    words = ["export", "wheel", str(tmp_path / "kernels.trn"), "--name", "kernels", "--version", "1"]
    assert main([*words, "-o", str(tmp_path / "dist"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["functions"] == ["add"]
    assert document["wheel"].endswith("kernels-1-py3-none-any.whl")
    assert main(words[:4]) == 2


def test_what_the_index_makes_up_is_refused(made_up: trunnion.Bundle, tmp_path: Path) -> None:
    """What it says beyond what is so, the wheel's bundle goes on saying."""
    (variant,) = made_up.index.programs["add"]
    if {*conditions_of(made_up.artifact(variant))} <= {*variant.conditions}:
        wheel = trunnion.export_wheel(made_up, tmp_path / "dist", name="my-kernels", version="1.0")
        assert wheel.stem.endswith(platform.machine())
        return
    with pytest.raises(CorruptArtifactError, match=r"the index.*lacks conditions"):
        trunnion.export_wheel(made_up, tmp_path / "dist", name="my-kernels", version="1.0")
    assert not (tmp_path / "dist").exists()


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"backend": "nobody"}, r"by 'nobody'.*needs the backend 'nobody', which is not installed"),
        ({"emitter": "python/0"}, r"by 'nvrtc'.*was built by 'python/0, contract \d+', this is python/"),
    ],
)
def test_what_no_backend_here_can_load_is_exported_where_it_was_built(
    tmp_path: Path, artifacts: dict[str, Any], changes: dict[str, str], said: str
) -> None:
    """What is installed here is what the wheel requires: where that is installed nothing could load it either."""
    one = artifacts["nvrtc"]
    other = Artifact(replace(one.manifest, **changes), one.files)
    bundle = bundled(tmp_path, {"add": [artifacts["tvm_ffi"], other]})
    with pytest.raises(ArtifactError, match=f"{said}.*; export it where it was built"):
        trunnion.export_wheel(bundle, tmp_path / "dist", name="my-kernels", version="1.0")
    assert not (tmp_path / "dist").exists()


@pytest.mark.parametrize("owner", ["this process", "unknown"])
def test_a_backend_that_no_distribution_brings_is_in_no_wheel(
    tmp_path: Path, artifacts: dict[str, Any], owner: str
) -> None:
    """No installer could read, or find, what such a wheel would require."""
    plugins = trunnion.Registry(())
    plugins.register(trunnion.default_registry().backend("nvrtc"), owner)
    bundle = bundled(tmp_path, {"add": artifacts["nvrtc"]})
    with pytest.raises(
        ArtifactError, match=f"got backend 'nvrtc' of '{owner}', expected one that an installed"
    ):
        trunnion.export_wheel(bundle, tmp_path / "dist", name="my-kernels", version="1.0", registry=plugins)
    assert not (tmp_path / "dist").exists()


def test_launchers_for_two_processors_are_for_both(
    tmp_path: Path, artifacts: dict[str, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    one = artifacts["tvm_ffi"]
    library = bytearray(one.files["launcher.so"])
    library[18:20] = (183).to_bytes(2, "little")  # e_machine: AArch64
    record = FileRecord.of(bytes(library))
    manifest = replace(one.manifest, files={**one.manifest.files, "launcher.so": record})
    other = Artifact(manifest, {**one.files, "launcher.so": bytes(library)})
    bundle = bundled(tmp_path, {"add": [one, other]})
    wheel = trunnion.export_wheel(bundle, tmp_path, name="my-kernels", version="1.0")
    tags = wheel.stem.split("-")[-1].split(".")
    assert [tag.partition("_")[0] + tag[-7:] for tag in tags] == ["manylinuxaarch64", "manylinux_x86_64"]
    with zipfile.ZipFile(wheel) as archive:
        said = archive.read("my_kernels-1.0.dist-info/WHEEL").decode().splitlines()
    assert [line for line in said if line.startswith("Tag: ")] == [f"Tag: py3-none-{tag}" for tag in tags]


@pytest.mark.parametrize(
    ("libc", "libstdcxx", "tag"),
    [
        ("2.34", "3.4.29", "2_34"),
        ("2.34", "3.4.30", "2_35"),
        ("2.14", "3.4", "2_17"),
        ("2.14", "3.4.20", "2_24"),
        ("2.38", "3.4.19", "2_38"),
        ("2.34", "3.4.999", "2_39"),
        ("2.41", "3.4.999", "2_41"),
    ],
)
def test_a_platform_is_one_that_has_the_standard_library_of_c_plus_plus(
    waiting: trunnion.Bundle, monkeypatch: pytest.MonkeyPatch, libc: str, libstdcxx: str, tag: str
) -> None:
    needed = [("machine", "is", "x86_64"), ("libc", "at least", libc), ("libstdcxx", "at least", libstdcxx)]
    own = tuple(Condition(f"host.{fact}", rule, value) for fact, rule, value in needed)
    monkeypatch.setattr(exported, "own_conditions", lambda *_: own)
    wheel = trunnion.export_wheel(waiting, waiting.file.parent, name="my-kernels", version="1.0")
    assert wheel.stem.endswith(f"-manylinux_{tag}_x86_64")


def test_an_index_that_leaves_out_the_standard_library_is_not_exported(
    without_libstdcxx: trunnion.Bundle, tmp_path: Path
) -> None:
    """One of an earlier version is opened as ever."""
    assert not without_libstdcxx.fits("wait", "cpu")[0].lacks
    with pytest.raises(CorruptArtifactError, match=r"lacks conditions.*host\.libstdcxx at least 3\.4"):
        trunnion.export_wheel(without_libstdcxx, tmp_path / "dist", name="my-kernels", version="1.0")


def test_a_launcher_for_a_processor_without_wheels_is_refused(
    tmp_path: Path, artifacts: dict[str, Any]
) -> None:
    one = artifacts["tvm_ffi"]
    library = bytearray(one.files["launcher.so"])
    library[18:20] = (243).to_bytes(2, "little")  # RISC-V
    record = FileRecord.of(bytes(library))
    manifest = replace(one.manifest, files={**one.manifest.files, "launcher.so": record})
    bundle = bundled(tmp_path, {"add": Artifact(manifest, {**one.files, "launcher.so": bytes(library)})})
    with pytest.raises(ArtifactError, match="a processor 'ELF machine 243'"):
        trunnion.export_wheel(bundle, tmp_path, name="my-kernels", version="1.0")


def test_the_index_s_own_name_breaks_no_list(tmp_path: Path, artifacts: dict[str, Any]) -> None:
    bundled(tmp_path, {"add": artifacts["nvrtc"]})
    (tmp_path / "a,b.trn").write_bytes((tmp_path / "kernels.trn").read_bytes())
    bundle = trunnion.Bundle.open(tmp_path / "a,b.trn")
    wheel = trunnion.export_wheel(bundle, tmp_path, name="my-kernels", version="1.0")
    with zipfile.ZipFile(wheel) as archive:
        listed = csv.reader(archive.read("my_kernels-1.0.dist-info/RECORD").decode().splitlines())
        assert {row[0] for row in listed} == set(archive.namelist())


@pytest.mark.parametrize(
    "name", ["k\udcff\U0001f600.trn", "__init__.py", "py.typed", "__init__.abi3.so", "kernels"]
)
def test_an_index_that_no_wheel_can_hold_is_to_be_renamed(
    tmp_path: Path, artifacts: dict[str, Any], name: str
) -> None:
    """Where its name is no UTF-8, or may be one that the package itself needs."""
    bundled(tmp_path, {"add": artifacts["nvrtc"]})
    (tmp_path / "kernels.trn").rename(tmp_path / name)
    bundle = trunnion.Bundle.open(tmp_path / name)
    with pytest.raises(ArgumentValueError, match=r"expected an index whose name.*: rename it"):
        trunnion.export_wheel(bundle, tmp_path / "dist", name="my-kernels", version="1.0")
    assert not (tmp_path / "dist").exists()


def test_a_bundle_of_no_programs_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ArgumentValueError, match="one that has a program"):
        trunnion.export_wheel(bundled(tmp_path, {}), tmp_path / "dist", name="my-kernels", version="1.0")
    assert not (tmp_path / "dist").exists()


DEVICES = """
import sys
from trunnion import sim
simulator = sim.start(arch=("sm_80", "sm_90a"))
simulator.torch_mode().__enter__()
import torch, my_kernels
from trunnion import examples
from trunnion.errors import ArgumentError
example = examples.load("vector_add")
for device in range(2):
    for kernel in my_kernels.bundle().on("vector_add", device).artifact.manifest.kernels:
        simulator.register_body(kernel.symbol, example.bodies[kernel.name])
for device in (1, 0):
    a, out = (torch.ones(8, device=f"cuda:{device}") for _ in range(2))
    for found in (my_kernels.vector_add(a, a), my_kernels.vector_add(a, a, device=device),
                  my_kernels.vector_add(a, a, out=out)):
        assert found.device.index == device, found.device
try:
    my_kernels.vector_add(torch.ones(8, device="meta"), a)
except ArgumentError as error:
    assert "'a'" in str(error) and "meta" in str(error), error
for current in (0, 1, 0):  # which names a device that is another one each time
    with simulator.current(current):
        made = my_kernels.vector_add(*(torch.ones(8, device=f"cuda:{current}") for _ in range(2)), device="cuda")
        assert made.device.index == current, (made.device, current)
for wrong in ([], "moon"):
    try:
        my_kernels.vector_add(a, a, device=wrong)
    except ArgumentError:
        print("refused")
"""


def test_each_device_gets_its_own_variant(tmp_path: Path, forked_python: ForkedPython) -> None:
    program = examples.load("vector_add").program
    built = [trunnion.compile(program, "nvrtc", target=target).artifact for target in ("sm_80", "sm_90a")]
    wheel = trunnion.export_wheel(
        bundled(tmp_path, {"vector_add": built}), tmp_path / "dist", name="my-kernels", version="1"
    )
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(tmp_path / "site")
    script = f"import sys; sys.path.insert(0, {str(tmp_path / 'site')!r})\n{DEVICES}"
    done = forked_python(script)
    assert (done.stdout, done.returncode) == ("refused\n" * 2, 0), done.stderr
