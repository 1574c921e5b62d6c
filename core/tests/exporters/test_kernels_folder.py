"""A bundle as a folder for Hugging Face's kernels: its functions launch in a process that has no trunnion."""

from __future__ import annotations

import ast
import base64
import hashlib
import json
import os
import platform
import re
import site
import subprocess
import sys
import sysconfig
import types
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import trunnion
from trunnion import examples
from trunnion.artifacts.manifest import FileRecord
from trunnion.cli import main
from trunnion.codegen.cpp.loader import LEAST_RUNTIME
from trunnion.errors import (
    ArgumentError,
    ArgumentValueError,
    ArtifactError,
    ProgramError,
)
from trunnion.exporters.launchers import Launcher, LauncherFunction, check_machine

if TYPE_CHECKING:
    from pathlib import Path

    from forked_python.client import ForkedPython

HERE = f"{platform.machine()}-linux"
CPU = f"tvm-ffi01-cpu-{HERE}"

ALONE = """
import importlib.util, sys
place, id = sys.argv[1:3]
assert importlib.util.find_spec("trunnion") is None
spec = importlib.util.spec_from_file_location(id, f"{place}/__init__.py")
kernel = importlib.util.module_from_spec(spec)
sys.modules[id] = kernel
spec.loader.exec_module(kernel)
"""
"""What Hugging Face's kernels does to import a variant."""

ON_CPU = """
import torch
x, y = torch.arange(5.0), torch.ones(5)
out = torch.empty(5)
assert kernel.axpy(2.0, x, y, out=out) is out
assert kernel.axpy(2.0, x, y, out=[out]) is out
assert kernel.axpy(2.0, x, y).tolist() == out.tolist() == (2 * x + y).tolist()
zero = type("Zero", (), {"__index__": lambda self: 0})()  # as a number of NumPy's has it
assert kernel.axpy(2.0, x, y, device=zero).tolist() == out.tolist()
rows, peaks = kernel.softmax(torch.zeros(2, 4), 0)
assert rows.tolist() == [[0.25] * 4] * 2 and peaks.sum() == 2, peaks
for wrong in (lambda: kernel.axpy(2.0, x, y[:3]), lambda: kernel.axpy(2.0, x, y, out=[out, out]),
              lambda: kernel.axpy(2.0, x, torch._neg_view(y)), lambda: kernel.axpy(2.0, "x", y),
              lambda: kernel.axpy(2.0, x, y, device="cpu"), lambda: kernel.axpy(2.0, x, y, device=False)):
    try:
        wrong()
    except (TypeError, ValueError) as error:
        print(error)
    else:
        raise AssertionError
"""

ON_CUDA = """
import torch
x = torch.ones(8)
try:
    kernel.add(x, x)
except (RuntimeError, ValueError) as error:
    print(error)
else:
    raise AssertionError
"""

SIMULATED = """
import importlib.util, sys
from trunnion import examples, sim
simulator = sim.start()
simulator.torch_mode().__enter__()
import torch
place, id = sys.argv[1:3]
spec = importlib.util.spec_from_file_location(id, f"{place}/__init__.py")
kernel = importlib.util.module_from_spec(spec)
sys.modules[id] = kernel
spec.loader.exec_module(kernel)
example = examples.load("vector_add")
for name in sys.argv[3:]:
    simulator.register_body(name, example.bodies["vector_add"])
a, b = (torch.arange(8, dtype=torch.float32, device="cuda") for _ in range(2))
out = torch.empty(8, device="cuda")
assert kernel.add(a, b, out=out, stream=1) is out
assert kernel.add(a, b).cpu().tolist() == out.cpu().tolist() == [2.0 * i for i in range(8)]
print(len([one for one in simulator.trace if type(one).__name__ == "Launched"]))
"""


@pytest.fixture(scope="module")
def artifacts() -> dict[str, Any]:
    wanted = {
        "add nvrtc sm_90a": "vector_add",
        "add tvm_ffi sm_90a": "vector_add",
        "add tvm_ffi sm_80": "vector_add",
        "add tvm_ffi compute_75": "vector_add",
        "add cutedsl sm_90a": "vector_add",
        "axpy tvm_ffi cpu": "cpu_axpy",
        "softmax tvm_ffi cpu": "cpu_softmax",
    }
    return {
        words: trunnion.compile(
            examples.load(name).program, words.split()[1], target=words.split()[2]
        ).artifact
        for words, name in wanted.items()
    }


def bundled(folder: Path, artifacts: dict[str, Any], *words: str) -> trunnion.Bundle:
    programs: dict[str, list[Any]] = {}
    for one in words:
        programs.setdefault(one.split()[0], []).append(artifacts[one])
    trunnion.write_bundle(folder / "kernels.trn", programs)
    return trunnion.Bundle.open(folder / "kernels.trn")


def exported(bundle: trunnion.Bundle, folder: Path, **named: Any) -> Path:
    given = {"name": "my-kernels", "version": 1, "license_id": "apache-2.0", **named}
    return trunnion.export_kernels(bundle, folder, **given)


def metadata(variant: Path) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((variant / "metadata.json").read_bytes())
    return document


def alone(variant: Path, text: str, *words: str, module: str = "") -> subprocess.CompletedProcess[str]:
    """Run a text where the packages of this environment are, and what is installed to be edited is not."""
    packages = os.pathsep.join(
        {sysconfig.get_path("purelib"), sysconfig.get_path("platlib"), *site.getsitepackages()}
    )
    environment = {**os.environ, "PYTHONPATH": packages, "PATH": ""}
    command = [
        sys.executable,
        "-S",
        "-c",
        (module or ALONE) + text,
        str(variant),
        metadata(variant)["id"],
        *words,
    ]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False)


def test_on_the_cpu_it_runs_without_trunnion(tmp_path: Path, artifacts: dict[str, Any]) -> None:
    bundle = bundled(tmp_path, artifacts, "axpy tvm_ffi cpu", "softmax tvm_ffi cpu")
    (variant,) = (exported(bundle, tmp_path / "out") / "build").iterdir()
    assert variant.name == CPU
    done = alone(variant, ON_CPU)
    assert done.returncode == 0, done.stderr
    assert "got extent 3 along dimension 0, expected 5 (n)" in done.stdout
    assert "got 2 tensors, expected 1" in done.stdout
    assert "negation is lazy" in done.stdout
    for got in ("str", "bool"):
        assert f"got {got}, expected an ordinal or a torch.device" in done.stdout


def test_a_call_from_within_its_own_loading_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a signal's handler makes it, or a finalizer: it would wait for itself."""
    made = []

    def load() -> None:
        with pytest.raises(RuntimeError, match="f is being loaded in this thread"):
            function((1,), device=0)

    module = types.SimpleNamespace(load=load, main=lambda *given: made.append(given))
    monkeypatch.setitem(sys.modules, "tvm_ffi", types.SimpleNamespace(load_module=lambda _: module))
    function = LauncherFunction(tmp_path, "f", [Launcher("f.so")], 0)
    for _ in range(2):
        function((1,), device=0)
    assert [given[0] for given in made] == [1, 1]


@pytest.mark.parametrize("number", [1 << 64, (1 << 64) + 16, -(1 << 63) - 1, 1 << 6400])
def test_an_integer_that_no_type_holds_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    module = types.SimpleNamespace(load=lambda: None, main=lambda *given: None)
    monkeypatch.setitem(sys.modules, "tvm_ffi", types.SimpleNamespace(load_module=lambda _: module))
    function = LauncherFunction(tmp_path, "f", [Launcher("f.so")], 0)
    function(((1 << 64) - 1, -(1 << 63)), device=0)
    with pytest.raises(
        ValueError, match=f"an integer of {number.bit_length()} bits, expected one of 64 at most"
    ):
        function((number,), device=0)


def test_the_metadata_has_each_file_s_digest(tmp_path: Path, artifacts: dict[str, Any]) -> None:
    bundle = bundled(tmp_path, artifacts, "axpy tvm_ffi cpu")
    (variant,) = (exported(bundle, tmp_path / "out", version=3) / "build").iterdir()
    document = metadata(variant)
    assert re.fullmatch(r"_my_kernels_cpu_[0-9a-f]{12}", document.pop("id"))
    digest = document.pop("digest")
    assert document == {
        "name": "my-kernels",
        "version": 3,
        "license": "apache-2.0",
        "python-depends": ["tvm-ffi"],
        "backend": {"type": "cpu"},
    }
    files = {file.name: file.read_bytes() for file in variant.iterdir() if file.name != "metadata.json"}
    assert digest["algorithm"] == "sha256"
    assert digest["files"] == {
        name: base64.b64encode(hashlib.sha256(data).digest()).decode() for name, data in files.items()
    }
    again = exported(bundle, tmp_path / "again", version=3) / "build" / CPU
    assert {file.name: file.read_bytes() for file in again.iterdir()} == {
        **files,
        "metadata.json": (variant / "metadata.json").read_bytes(),
    }
    assert (
        metadata(exported(bundle, tmp_path / "new", version=4) / "build" / CPU)["id"] != metadata(again)["id"]
    )


def test_for_cuda_it_loads_and_wants_a_driver(tmp_path: Path, artifacts: dict[str, Any]) -> None:
    words = ("add tvm_ffi sm_90a", "add tvm_ffi compute_75")
    (variant,) = (exported(bundled(tmp_path, artifacts, *words), tmp_path / "out") / "build").iterdir()
    assert variant.name == f"tvm-ffi01-cu130-{HERE}"
    assert metadata(variant)["backend"] == {"type": "cuda", "archs": ["7.5+PTX", "9.0a"]}
    done = alone(variant, ON_CUDA)
    assert done.returncode == 0, done.stderr
    assert "libcuda.so.1" in done.stdout


def test_for_cuda_it_launches_what_is_for_the_device(
    tmp_path: Path, artifacts: dict[str, Any], forked_python: ForkedPython
) -> None:
    words = ("add tvm_ffi sm_80", "add cutedsl sm_90a")
    (variant,) = (exported(bundled(tmp_path, artifacts, *words), tmp_path / "out") / "build").iterdir()
    assert [file.suffix for file in sorted(variant.iterdir())].count(
        ".cubin"
    ) == 1  # of the one that is handed it
    symbols = [kernel.symbol for one in words for kernel in artifacts[one].manifest.kernels]
    done = forked_python(SIMULATED, variant, metadata(variant)["id"], *symbols)
    assert (done.stdout, done.returncode) == ("2\n", 0), done.stderr


def test_each_processor_has_its_variant(tmp_path: Path, artifacts: dict[str, Any]) -> None:
    one = artifacts["axpy tvm_ffi cpu"]
    library = bytearray(one.files["launcher.so"])
    library[18:20] = (243).to_bytes(2, "little")  # e_machine of RISC-V
    files = {**one.manifest.files, "launcher.so": FileRecord.of(bytes(library))}
    other = type(one)(replace(one.manifest, files=files), {**one.files, "launcher.so": bytes(library)})
    trunnion.write_bundle(tmp_path / "x.trn", {"axpy": [one, other]})
    with pytest.raises(ArtifactError, match="a processor 'ELF machine 243'"):
        exported(trunnion.Bundle.open(tmp_path / "x.trn"), tmp_path / "out")
    library[18:20] = (183).to_bytes(2, "little")  # of AArch64
    files = {**one.manifest.files, "launcher.so": FileRecord.of(bytes(library))}
    other = type(one)(replace(one.manifest, files=files), {**one.files, "launcher.so": bytes(library)})
    trunnion.write_bundle(tmp_path / "x.trn", {"axpy": [one, other]})
    made = exported(trunnion.Bundle.open(tmp_path / "x.trn"), tmp_path / "out")
    names = sorted(variant.name for variant in (made / "build").iterdir())
    assert names == sorted({CPU, "tvm-ffi01-cpu-aarch64-linux"})


def test_a_launcher_in_python_is_refused_by_name(tmp_path: Path, artifacts: dict[str, Any]) -> None:
    bundle = bundled(tmp_path, artifacts, "add nvrtc sm_90a")
    with pytest.raises(ProgramError, match=r"launcher of 'add' for 'cuda:sm_90a' by 'nvrtc' is Python"):
        exported(bundle, tmp_path / "out")
    assert not (tmp_path / "out").exists()
    both = bundled(tmp_path, artifacts, "add nvrtc sm_90a", "add tvm_ffi sm_90a")
    (variant,) = (exported(both, tmp_path / "out") / "build").iterdir()
    assert len([*variant.glob("*.so")]) == 1


def test_each_variant_offers_the_same(tmp_path: Path, artifacts: dict[str, Any]) -> None:
    bundle = bundled(tmp_path, artifacts, "add tvm_ffi sm_90a", "axpy tvm_ffi cpu")
    with pytest.raises(ProgramError, match=r"'\w+' has no launcher for \w+ on"):
        exported(bundle, tmp_path / "out")


@pytest.mark.parametrize("name", ["class", "2d", "a-b", "Launcher", "pathlib", "_x", "int", "\ufb01"])
def test_a_name_that_no_function_can_have_is_refused(
    tmp_path: Path, artifacts: dict[str, Any], name: str
) -> None:
    trunnion.write_bundle(tmp_path / "x.trn", {name: artifacts["axpy tvm_ffi cpu"]})
    with pytest.raises(ArgumentValueError, match="names of Python functions"):
        exported(trunnion.Bundle.open(tmp_path / "x.trn"), tmp_path / "out")


@pytest.mark.parametrize(
    "wrong",
    [
        *({"name": name} for name in ("", "a", "My-kernels", "1x", "a_b", "../x", "x-", "x\n", 3)),
        *({"version": version} for version in (-1, 1 << 31, "1", True, None)),
        *({"license_id": words} for words in ("", "  ", None)),
        *({"cuda": cuda} for cuda in ("13", "cu130", "13.0\n", "", 13.0)),
    ],
)
def test_what_it_must_say_of_itself_is_checked(
    tmp_path: Path, artifacts: dict[str, Any], wrong: dict[str, Any]
) -> None:
    bundle = bundled(tmp_path, artifacts, "axpy tvm_ffi cpu")
    with pytest.raises(ArgumentError) as caught:
        exported(bundle, tmp_path / "out", **wrong)
    assert next(iter(wrong)) in str(caught.value)
    assert not (tmp_path / "out").exists()


def test_what_is_there_is_not_touched(tmp_path: Path, artifacts: dict[str, Any]) -> None:
    bundle = bundled(tmp_path, artifacts, "axpy tvm_ffi cpu")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("")
    (tmp_path / "file").write_text("")
    (tmp_path / "link").symlink_to(tmp_path / "nowhere")
    for taken in ("full", "file", "link"):
        with pytest.raises(ArtifactError, match="something is at"):
            exported(bundle, tmp_path / taken)
    with pytest.raises(ArtifactError, match="cannot write"):
        exported(bundle, tmp_path / "file" / "below")
    assert [file.name for file in (tmp_path / "full").iterdir()] == ["mine"]
    (tmp_path / "empty").mkdir()
    (tmp_path / "to empty").symlink_to(tmp_path / "empty")
    exported(bundle, tmp_path / "to empty")
    assert ((tmp_path / "to empty").is_symlink(), (tmp_path / "empty" / "build").is_dir()) == (True, True)
    assert sorted(one.name for one in tmp_path.iterdir() if one.name.startswith(".")) == []


def test_the_cuda_version_is_said_or_read(tmp_path: Path, artifacts: dict[str, Any]) -> None:
    bundle = bundled(tmp_path, artifacts, "add tvm_ffi sm_90a")
    (variant,) = (exported(bundle, tmp_path / "said", cuda="13.1") / "build").iterdir()
    assert variant.name == f"tvm-ffi01-cu131-{HERE}"
    for another in ("12.8", "99.9", "\u0661\u0663.\u0660"):
        with pytest.raises(ArgumentValueError, match="cuda"):
            exported(bundle, tmp_path / "another", cuda=another)
    one = artifacts["add tvm_ffi sm_90a"]
    image = one.files["image.cubin"]
    for number, new in enumerate((b"release 12.9, V", b"release __._, V")):
        data = image.replace(b"release 13.0, V", new)
        files = {**one.manifest.files, "image.cubin": FileRecord.of(data)}
        other = type(one)(replace(one.manifest, files=files), {**one.files, "image.cubin": data})
        place = tmp_path / f"{number}.trn"
        trunnion.write_bundle(place, {"add": [one, other] if number == 0 else other})
        with pytest.raises(ArgumentValueError, match="images of one major version"):
            exported(trunnion.Bundle.open(place), tmp_path / "out")


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (("sparc", "", "0.1"), "expected sparc"),
        ((platform.machine(), "99.1", "0.1"), "expected glibc 99.1 or later"),
        ((platform.machine(), "2.2", "99"), "expected 99 or later: pip install"),
    ],
)
def test_another_machine_is_refused(asked: tuple[str, str, str], said: str) -> None:
    with pytest.raises(ImportError, match=said):
        check_machine(*asked)
    check_machine(platform.machine(), "2.2", "0.1.11")
    check_machine("", "", "0")


def test_it_asks_for_its_machine_when_it_is_imported(tmp_path: Path, artifacts: dict[str, Any]) -> None:
    bundle = bundled(tmp_path, artifacts, "axpy tvm_ffi cpu")
    file = exported(bundle, tmp_path / "out") / "build" / CPU / "__init__.py"
    asked = re.search(r"(?m)^check_machine\((.*)\)$", file.read_text())
    assert asked
    (libc,) = (one.value for one in bundle.index.variants[0].conditions if one.fact == "host.libc")
    assert ast.literal_eval(f"({asked[1]})") == (platform.machine(), libc, LEAST_RUNTIME)


def test_a_bundle_of_no_programs_is_refused(tmp_path: Path) -> None:
    trunnion.write_bundle(tmp_path / "none.trn", {})
    with pytest.raises(ArgumentValueError, match="one that has a program"):
        trunnion.export_kernels(
            trunnion.Bundle.open(tmp_path / "none.trn"),
            tmp_path / "k",
            name="kk",
            version=1,
            license_id="mit",
        )
    assert not (tmp_path / "k").exists()


def test_the_command(tmp_path: Path, artifacts: dict[str, Any], capsys: pytest.CaptureFixture[str]) -> None:
    bundled(tmp_path, artifacts, "axpy tvm_ffi cpu")
    words = ["export", "kernels", str(tmp_path / "kernels.trn"), "--name", "my-kernels", "--version", "1"]
    assert main([*words, "--license", "mit", "-o", str(tmp_path / "out"), "--json"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert (document["functions"], document["variants"]) == (["axpy"], [CPU])
    assert main([*words, "--license", "mit", "-o", str(tmp_path / "out")]) == 1
    assert "something is at" in capsys.readouterr().err
    assert main(words) == 2


def test_what_the_index_makes_up_is_refused(made_up: trunnion.Bundle, tmp_path: Path) -> None:
    with pytest.raises(ArtifactError, match=r"the index.*lacks conditions|has the conditions .* no place"):
        trunnion.export_kernels(made_up, tmp_path / "out", name="my-kernels", version=1, license_id="mit")
    assert not (tmp_path / "out").exists()
