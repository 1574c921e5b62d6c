"""What is built of programs for the CPU: what it needs, who loads it, how it is chosen, kept and refused."""

from __future__ import annotations

import ctypes
import errno
import os
import subprocess
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import platformdirs
import pytest
import torch

import trunnion
from trunnion import DeviceCode, ProgramBuilder
from trunnion.artifacts.store import CorruptArtifactWarning
from trunnion.contract.spec import Capability
from trunnion.errors import (
    CorruptArtifactError,
    DeviceRequirementError,
    UnsupportedFeatureError,
)
from trunnion.examples import load
from trunnion.storage import remembered
from trunnion.storage.refusals import NotKeptWarning
from trunnion.toolchain import host_reading
from trunnion_tvm_ffi.compiler import host_compiler

if TYPE_CHECKING:
    from types import SimpleNamespace

    from forked_python.client import ForkedPython

BLOCK = "#include <trunnion/block.h>\n"


# What is built ------------------------------------------------------------------------------------------------------


def test_a_launcher_needs_neither_cuda_nor_a_library_of_cpp(scale: Any, tmp_path: Path) -> None:
    (tmp_path / "launcher.so").write_bytes(scale.artifact.files["launcher.so"])

    def said(*command: str) -> str:
        return subprocess.run(
            [*command, "launcher.so"], cwd=tmp_path, capture_output=True, text=True, check=True
        ).stdout

    undefined = [line.split()[-1] for line in said("nm", "-D", "--undefined-only").splitlines()]
    assert not [name for name in undefined if name.startswith("cu")]
    defined = {line.split()[-1] for line in said("nm", "-D", "--defined-only").splitlines()}
    assert {name for name in defined if not name.startswith("__tvm_ffi_")} == set()
    needed = [line for line in said("readelf", "-d").splitlines() if "NEEDED" in line]
    assert not [line for line in needed if "libstdc++" in line or "libcuda" in line]


def test_plain_tvm_ffi_loads_an_exported_module(
    scale: Any, tmp_path: Path, forked_python: ForkedPython
) -> None:
    """In a process that never imports trunnion."""
    (tmp_path / "scale.so").write_bytes(scale.artifact.files["launcher.so"])
    source = """
import sys, torch, tvm_ffi
module = tvm_ffi.load_module("./scale.so")
x = torch.arange(5, dtype=torch.float32)
assert module.main(x, 2.0).tolist() == [0, 2, 4, 6, 8]
y = torch.empty(5)
module.main_out(x, 3.0, y)
assert y.tolist() == [0, 3, 6, 9, 12]
try:
    module.main(x.double(), 2.0)
except TypeError as error:
    assert "expected one of float32" in str(error), error
else:
    raise SystemExit("no error")
assert not [name for name in sys.modules if name.startswith("trunnion")]
"""
    done = forked_python(source, cwd=tmp_path)
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("lazy", [False, True])
@pytest.mark.parametrize("how", ["no library", "gone since"])
def test_what_is_kept_and_cannot_be_loaded_is_built_again(
    scale: Any, tmp_path: Path, how: str, lazy: bool
) -> None:
    """Its bytes are those that were kept: a library that it needs has gone since, say."""
    program, x = scale.program, torch.ones(4)
    kept = trunnion.compile(program, cache=tmp_path / "first").artifact
    library = kept.files["launcher.so"]
    broken = {
        "no library": b"no library",
        "gone since": library.replace(b"libtvm_ffi.so\0", b"libtvm_ghost\0\0"),
    }
    store = trunnion.ArtifactStore(tmp_path / "second")
    key = kept.manifest.key
    store.get_or_build(key, lambda _: kept.including("launcher.so", broken[how]))
    with trunnion.compile(program, cache=store, lazy=lazy) as again:
        with pytest.warns(CorruptArtifactWarning, match="was kept and cannot be used; it was built again"):
            assert again(x, 2.0).tolist() == [2.0] * 4
        assert again.artifact.files == kept.files
    assert len(list((store.root / "corrupt").iterdir())) == 1
    with warnings.catch_warnings(), trunnion.compile(program, cache=store) as third:
        warnings.simplefilter("error")
        assert third(x, 3.0).tolist() == [3.0] * 4


@pytest.mark.parametrize(
    ("refused", "number"), [("rename", errno.EXDEV), ("mkdir", errno.ENOSPC)], ids=["overlay", "full disk"]
)
def test_what_cannot_be_loaded_is_built_again_where_it_cannot_be_moved(
    scale: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, refused: str, number: int
) -> None:
    """An overlay does not rename what lies in a lower layer; a full disk has no room for another folder."""
    kept = trunnion.compile(scale.program, cache=tmp_path / "first").artifact
    store = trunnion.ArtifactStore(tmp_path / "second")
    broken = kept.including("launcher.so", b"no library")
    store.get_or_build(kept.manifest.key, lambda _: broken)
    call = getattr(os, refused)

    def refusing(place: Any, *rest: Any, **named: Any) -> Any:
        if Path(place).is_relative_to(store.root):
            raise OSError(number, os.strerror(number))
        return call(place, *rest, **named)

    monkeypatch.setattr(os, refused, refusing)
    for _ in range(2):
        with (
            trunnion.compile(scale.program, cache=store) as again,
            pytest.warns(CorruptArtifactWarning, match="it was built again"),
            pytest.warns(NotKeptWarning, match="cannot keep"),
        ):
            assert again(torch.ones(4), 2.0).tolist() == [2.0] * 4
        assert again.artifact.files == kept.files
    assert store.get(kept.manifest.key) == broken


def test_what_cannot_be_loaded_and_was_not_kept_is_an_error(scale: Any, tmp_path: Path) -> None:
    scale.artifact.including("launcher.so", b"no library").save(tmp_path / "saved")
    with pytest.raises(CorruptArtifactError, match="cannot be loaded"):
        trunnion.load(tmp_path / "saved")(torch.ones(4), 2.0)


def test_the_key_does_not_say_where_the_sources_lay(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    for name in ("one", "another/below"):
        folder = tmp_path / name
        (folder / "tmp").mkdir(parents=True)
        text = BLOCK + '#include "size.h"\nvoid k(float* x, const trunnion_block_t*) { x[0] = SIZE; }'
        (folder / "kernel.cc").write_text(text)
        monkeypatch.chdir(folder)
        monkeypatch.setattr("tempfile.tempdir", str(folder / "tmp"))
        p = ProgramBuilder(
            "p", DeviceCode.from_file(folder / "kernel.cc", includes=(("size.h", "#define SIZE 3\n"),))
        )
        p.launch("k", args=(p.input("x", "float32", (4,), access="write"),), grid=1, block=1)
        made.append(trunnion.compile(p.build(), target="cpu", cache=folder / "store").artifact)
    assert made[0].manifest.key == made[1].manifest.key
    assert made[0] == made[1]


def test_artifacts_are_kept_and_told_apart(tmp_path: Path) -> None:
    example = load("cpu_axpy")
    header = tmp_path / "number.h"
    header.write_text("#define NUMBER 1\n")
    first = trunnion.compile(example.program, cache=tmp_path / "cache")
    assert (
        trunnion.compile(example.program, cache=tmp_path / "cache").artifact.digest == first.artifact.digest
    )
    with trunnion.load(first.artifact.save(tmp_path / "saved") or tmp_path / "saved") as loaded:
        inputs = example.inputs(torch.Generator().manual_seed(0), "cpu")
        assert example.largest_error(loaded(*inputs), inputs) <= example.tolerance
    keys = {first.artifact.manifest.key}
    for options in ({"threads": 2}, {"O": 3}, {"I": str(tmp_path)}):
        made = trunnion.compile(example.program, cache=tmp_path / "cache", options={"tvm_ffi": options})
        keys.add(made.artifact.manifest.key)
    assert len(keys) == 4


VALUE = """
#if __has_include(<late.h>)
#include <late.h>
#else
#define VALUE 1
#endif
void fill(float* y, const trunnion_block_t*) { *y = VALUE; }
"""


def filling(folder: Path) -> Any:
    p = ProgramBuilder("fill", DeviceCode("c++", BLOCK + VALUE, options=(f"-I{folder}",)))
    p.launch("fill", args=(p.output("y", "float32", (1,)),), grid=1, block=1)
    return p.build()


def test_a_program_is_never_one_of_other_headers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, late = filling(tmp_path), tmp_path / "late.h"

    def value() -> float:
        with trunnion.compile(program, cache=tmp_path / "cache") as compiled:
            return float(compiled(device="cpu"))

    assert value() == 1
    late.write_text("#define VALUE 2\n")
    assert value() == 2
    late.write_text("#define VALUE 3\n")
    compile_part = host_compiler._compiled

    def edited(*given: Any) -> Any:
        """Compile what an editor leaves for the moment."""
        late.write_text("#define VALUE 4\n")
        try:
            return compile_part(*given)
        finally:
            late.write_text("#define VALUE 5\n")

    with monkeypatch.context() as patched:
        patched.setattr(host_compiler, "_compiled", edited)
        assert value() == 4
    assert value() == 5
    late.write_text("#define VALUE 3\n")
    assert value() == 3
    late.unlink()
    assert value() == 1


@pytest.mark.parametrize("edited", ["trunnion_glue.hpp", "trunnion/block.h"])
def test_what_kernels_include_of_ours_is_part_of_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edited: str
) -> None:
    def key() -> str:
        return trunnion.compile(filling(tmp_path), cache=tmp_path / "cache").artifact.manifest.key

    before, own = key(), host_compiler._own_headers()
    assert key() == before
    monkeypatch.setattr(host_compiler, "_own_headers", lambda: {**own, edited: own[edited] + b"\n"})
    assert key() != before


def test_a_program_from_the_cache_takes_no_compiler(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remembered, "_SETTLED", -(10**18))
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / name)
    first = trunnion.compile(filling(tmp_path), cache=tmp_path / "cache").artifact
    monkeypatch.setattr(host_reading, "run_host", None)
    assert trunnion.compile(filling(tmp_path), cache=tmp_path / "cache").artifact.digest == first.digest


def test_only_what_needs_a_gpu_is_refused() -> None:
    p = ProgramBuilder("clusters", DeviceCode("c++", BLOCK + "void k(const trunnion_block_t*) {}"))
    p.launch("k", args=(), grid=2, block=1, cluster=2)
    for backend in ("tvm_ffi", "auto"):
        with pytest.raises(UnsupportedFeatureError) as caught:
            trunnion.compile(p.build(), backend)
        assert "cluster" in caught.value.features
    declared = trunnion.default_registry().backend("tvm_ffi").targets
    assert declared["cpu"] < declared["cuda"] == frozenset(Capability)


def test_a_cpp_program_goes_to_the_cpu_and_cuda_does_not(host: SimpleNamespace) -> None:
    choices = {choice.backend: choice for choice in trunnion.explain(host.scaling())}
    assert choices["tvm_ffi"].chosen
    assert "no installed device compiler makes of c++" in choices["nvrtc"].reason
    vector_add = load("vector_add").program
    assert not {choice.backend: choice for choice in trunnion.explain(vector_add)}["tvm_ffi"].chosen
    with pytest.raises(UnsupportedFeatureError, match="cuda on cpu"):
        trunnion.compile(vector_add, "tvm_ffi", target="cpu")
    with pytest.raises(UnsupportedFeatureError, match=r"c\+\+ on cuda"):
        trunnion.compile(host.scaling(), "tvm_ffi", target="sm_90a")


def test_a_machine_that_lacks_instructions_is_told_so(host: SimpleNamespace, tmp_path: Path) -> None:
    """An object whose own word is that it does not fit, in the place of one for another machine."""
    program = trunnion.compile(host.scaling())
    adapter_spec = trunnion.default_registry().backend("tvm_ffi")
    text = (
        "#include <trunnion/block.h>\n"
        '#define HIDDEN extern "C" __attribute__((visibility("hidden"), used))\n'
        "HIDDEN void trunnion_kernel_0(void* const*, const trunnion_block_t*) { __builtin_trap(); }\n"
        "HIDDEN constexpr uint32_t trunnion_threads = 1;\n"
        'HIDDEN constexpr char trunnion_architecture[] = "x86-64-v9";\n'
        "HIDDEN bool trunnion_fits() noexcept { return false; }\n"
    )
    from trunnion.codegen.cpp.build import runtime_folder
    from trunnion.contract.compiler import DeviceImage, ImageKernel
    from trunnion.torch_runtime import default_runtime

    (tmp_path / "k.cc").write_text(text)
    subprocess.run(
        ["c++", "-std=c++17", "-fPIC", f"-I{runtime_folder()}", "-c", "k.cc"], cwd=tmp_path, check=True
    )
    kernels = program.artifact.manifest.kernels
    image = DeviceImage(
        kind="host-object",
        data=(tmp_path / "k.o").read_bytes(),
        target=program.target,
        kernels=tuple(ImageKernel(one.name, "trunnion_kernel_0", one.parameters) for one in kernels),
    )
    source = adapter_spec.load_wrapper()(adapter_spec).wrap(program.plan, "cpu")
    adapter = adapter_spec.load_adapter()(adapter_spec)
    artifact = adapter.build(source, image, tmp_path)
    with pytest.raises(DeviceRequirementError, match="x86-64-v9"):
        adapter.load(artifact, default_runtime("cpu"))


def test_ctypes_structures_arrive_as_they_are() -> None:
    class Point(ctypes.Structure):
        _fields_ = (("x", ctypes.c_double), ("n", ctypes.c_int32))

    text = """
    struct Point { double x; int n; };
    void k(Point point, double* y, uint64_t address, const trunnion_block_t*) {
      y[0] = point.x * point.n;
      y[1] = address;
    }
    """
    p = ProgramBuilder("struct", DeviceCode("c++", BLOCK + text))
    point, address = p.struct("point", 16, alignment=8), p.pointer("address")
    y = p.output("y", "float64", (2,))
    p.launch("k", args=(point, y, address), grid=1, block=1)
    with trunnion.compile(p.build()) as program:
        assert program(Point(2.5, 4), 4096).tolist() == [10.0, 4096.0]
