"""The compiler, against the real NVRTC; none of it needs a device, and none of it CUDA's headers."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.contract.compiler import CompileRequest, DeviceImage, ImageParameter
from trunnion.contract.spec import Target
from trunnion.errors import CompileError, ProgramError, UnsupportedFeatureError
from trunnion.image.cubin import read_cubin
from trunnion.model.code import DeviceCode
from trunnion.model.plan import KernelSignature
from trunnion_nvrtc.compiler import cuda_part, nvrtc
from trunnion_nvrtc.compiler.compiler import NvrtcCompiler
from trunnion_nvrtc.compiler.program import build_id

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

ADD = 'extern "C" __global__ void add(const float* a, float* b, int n) { if (n) b[0] = a[0]; }'


def request(
    source: str,
    *kernels: str,
    target: str = "sm_90a",
    named: Mapping[str, Any] | None = None,
    accepts: tuple[str, ...] = ("cubin",),
    **code: Any,
) -> CompileRequest:
    return CompileRequest(
        code=(DeviceCode("cuda", source, **code),),
        kernels=tuple(KernelSignature(name, ()) for name in kernels),
        target=Target.parse(target),
        options=named or {},
        accepts=accepts,
    )


def build(source: str, *kernels: str, **more: Any) -> DeviceImage:
    return NvrtcCompiler().compile(request(source, *kernels, **more))


def refused(source: str, *kernels: str, **more: Any) -> CompileError:
    with pytest.raises(CompileError) as caught:
        build(source, *kernels, **more)
    return caught.value


def test_a_cubin_with_its_parameter_table() -> None:
    image = build(ADD, "add")
    assert image.kind == "cubin"
    assert image.data.startswith(b"\x7fELF")
    assert image.target == Target("cuda", "sm_90a")
    (kernel,) = image.kernels
    assert (kernel.name, kernel.symbol) == ("add", "add")
    assert kernel.parameters == (
        ImageParameter(0, 0, 8),
        ImageParameter(1, 8, 8),
        ImageParameter(2, 16, 4),
    )
    assert read_cubin(image.data).arch == "sm_90a"
    assert image.log == ""
    assert image.headers_read == ()
    assert image.toolchain["nvrtc"] == build_id()


def test_names_are_lowered_and_kept_in_the_requests_order() -> None:
    source = (
        ADD
        + """
    template <int N, class T> __global__ void scale(T* x) { x[0] *= N; }
    namespace deep { __global__ void inner(char c) {} }
    static __global__ void hidden(double d) {}
    """
    )
    names = ("deep::inner", "scale<2, float>", "add", "scale< 3,double >", "hidden")
    image = build(source, *names)
    assert tuple(kernel.name for kernel in image.kernels) == names
    assert image.kernel("scale<2, float>").symbol == "_Z5scaleILi2EfEvPT0_"
    assert image.kernel("deep::inner").symbol == "_ZN4deep5innerEc"
    assert [[p.size for p in kernel.parameters] for kernel in image.kernels] == [
        [1],
        [8],
        [8, 8, 4],
        [8],
        [8],
    ]
    assert len({kernel.symbol for kernel in image.kernels}) == 5


def test_no_kernel_named_is_no_error() -> None:
    assert build("__device__ int x;").kernels == ()


def test_the_log_is_kept_on_success() -> None:
    image = build("__global__ void k() { int unused; }", "k", name="folder/my kernel.cu")
    assert "never referenced" in image.log
    assert image.log.startswith("my kernel.cu(1): warning")


def test_a_compile_error_says_everything() -> None:
    source = "\n\n__global__ void k(float* p) {\n  int unused;\n  p[0] = oops;\n  p[1] = again; }\n"
    error = refused(source, "k", name="mine.cu", options=("--std=c++20",), defines=(("N", "4"),))
    assert error.compiler == "NVRTC {}.{}".format(*nvrtc.version())
    assert 'identifier "oops" is undefined' in error.log
    assert "mine.cu(5): error" in error.log
    assert error.source == source
    assert error.options[0] == "--gpu-architecture=sm_90a"
    assert error.options[-2:] == ("--std=c++20", "--define-macro=N=4")
    assert (error.arch, error.line) == ("sm_90a", 5)
    assert "> 5 |   p[0] = oops;" in error.numbered_source()
    assert "/trunnion/" not in str(error)
    copied = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (copied.log, copied.line) == (error.log, 5)


@pytest.mark.parametrize("name", ["1 + 1", "&x", "x", "helper", "int"])
def test_what_is_no_kernel_is_refused(name: str) -> None:
    source = "__device__ int x; __device__ void helper() {}" + ADD
    with pytest.raises((CompileError, ProgramError)):
        build(source, name)


@pytest.mark.parametrize("name", ["", "  ", "add\n#error injected", "add\r", "a\0b", "\udc80"])
def test_a_name_that_could_not_be_one_is_refused(name: str) -> None:
    with pytest.raises(ProgramError) as caught:
        build(ADD, "add", name)
    assert caught.value.field == "kernels[1].name"


@pytest.mark.parametrize(
    ("where", "code"),
    [
        ("code.source", {"source": ADD + "\0"}),
        ("code.source", {"source": ADD + "// \udc80"}),
        ("code.name", {"source": ADD, "name": "a\0.cu"}),
        ("code.includes[1]", {"source": ADD, "includes": (("a.h", ""), ("b\0.h", ""))}),
        ("code.includes[0]", {"source": ADD, "includes": (("a.h", "\0"),)}),
        ("code.defines[0]", {"source": ADD, "defines": (("A", "\0"),)}),
        ("code.defines[0]", {"source": ADD, "defines": (("A B", "1"),)}),
        ("code.defines[0]", {"source": ADD, "defines": (("A=1\n", None),)}),
        ("code.defines[0]", {"source": ADD, "defines": (("A", "1\n#error injected"),)}),
    ],
)
def test_text_that_would_not_arrive_whole_is_refused(where: str, code: dict[str, Any]) -> None:
    with pytest.raises(ProgramError) as caught:
        build(code.pop("source"), "add", **code)
    assert caught.value.field == where


def test_text_in_any_script_works() -> None:
    image = build(ADD + "\n// größe 大きさ 🎉\n", "add", name="größe 🎉 \"'\n.cu")
    assert image.kernel("add").symbol == "add"
    error = refused("oops\n", name="größe.cu")
    assert error.log.startswith("größe.cu(1): error")
    assert error.line == 1


def test_headers_in_memory_and_macros() -> None:
    source = '#include "a.h"\n#include <deep/b.h>\nextern "C" __global__ void k(T* p) { p[0] = A + B(2); }'
    image = build(
        source,
        "k",
        includes=(
            ("a.h", "#pragma once\n#include <deep/b.h>\n#define A 1\n"),
            ("deep/b.h", "using T = char;\n#pragma once\n"),
        ),
        defines=(("B(x)", "(x) * C"), ("C", '"text with spaces"[0]'), ("FLAG", None)),
    )
    assert image.headers_read == ("a.h", "deep/b.h")
    assert (
        build(
            source.replace("A +", "FLAG +"),
            "k",
            includes=(("a.h", ""), ("deep/b.h", "using T = char;")),
            defines=(("B(x)", "x"), ("FLAG", None)),
        ).data
        != image.data
    )


def test_an_error_in_a_header_does_not_mark_a_line_of_the_source() -> None:
    error = refused('#include "a.h"\n' + ADD, "add", includes=(("a.h", "\n\n\noops\n"),))
    assert "a.h(4): error" in error.log
    assert error.line == 0


def test_a_header_is_found_beside_the_header_that_includes_it(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "top.h").write_text('#include "beside.h"\n#if 0\n#include "never.h"\n#endif\n')
    (tmp_path / "deep" / "beside.h").write_text("#define VALUE 7\n")
    (tmp_path / "deep" / "never.h").write_text("")
    image = build(
        "#include <deep/top.h>\n" + ADD + "int __device__ x = VALUE;", "add", options=(f"-I{tmp_path}",)
    )
    found = [os.path.relpath(path, tmp_path) for path in image.headers_read]
    assert found == ["deep/beside.h", "deep/never.h", "deep/top.h"]


def test_the_working_directory_is_not_searched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "local.h").write_text("")
    monkeypatch.chdir(tmp_path)
    for name in ("kernel.cu", str(tmp_path / "kernel.cu"), "../kernel.cu"):
        assert "local.h" in refused('#include "local.h"\n' + ADD, "add", name=name).log


def test_a_missing_header_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_part, "toolkit_directories", tuple)
    for include in ("<cuda_fp16.h>", '"mine.h"'):
        error = refused(f"\n#include {include}\n" + ADD, "add")
        assert error.line == 2
        (note,) = error.__notes__
        assert include[1:-1] in note
        assert "pip install nvidia-cuda-runtime" in note
    assert not hasattr(refused("oops"), "__notes__")


def test_cudas_headers_are_looked_for_only_if_a_header_is_not_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "cuda_fp16.h").write_text("typedef short half;\n")
    asked: list[int] = []

    def directories() -> tuple[str, ...]:
        asked.append(1)
        return (str(tmp_path),)

    monkeypatch.setattr(cuda_part, "toolkit_directories", directories)
    build('#include "a.h"\n' + ADD, "add", includes=(("a.h", ""),))
    assert asked == []
    image = build("#include <cuda_fp16.h>\n__global__ void k(half h) {}", "k")
    assert image.kernels[0].parameters == (ImageParameter(0, 0, 2),)
    assert image.headers_read == (str(tmp_path / "cuda_fp16.h"),)


def test_the_same_request_gives_the_same_bytes_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = "namespace { __device__ int x; } static __global__ void k(int* p) { p[0] = x; }"
    script = f"""
import hashlib, sys
from trunnion.contract.compiler import CompileRequest
from trunnion.contract.spec import Target
from trunnion.model.plan import KernelSignature
from trunnion.model.code import DeviceCode
from trunnion_nvrtc.compiler.compiler import NvrtcCompiler
from trunnion_nvrtc.compiler.program import build_id
for options in ((), ("--generate-line-info",)):
    code = DeviceCode("cuda", {source!r}, options=options)
    kernels = (KernelSignature("k", ()),)
    request = CompileRequest(code=(code,), kernels=kernels, target=Target("cuda", "sm_90a"))
    print(NvrtcCompiler().compile(request).data.hex())
"""
    monkeypatch.chdir(tmp_path)
    here = [build(source, "k", options=options).data.hex() for options in ((), ("--generate-line-info",))]
    assert str(tmp_path).encode().hex() not in "".join(here)
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        done = subprocess.run(
            [sys.executable, "-c", script],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path / folder,
            env={"PYTHONPATH": os.pathsep.join(sys.path), "TMPDIR": str(tmp_path / folder)},
        )
        assert done.stdout.split() == here


def test_the_surroundings_follow_every_file_that_could_be_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.h").write_text('#if 0\n#include "b.h"\n#endif\n')
    (tmp_path / "b.h").write_text("")
    (tmp_path / "never.h").write_text("")

    def environment(**more: Any) -> dict[str, str]:
        source = '#include "mine.h"\n#include <a.h>\n' + ADD
        asked = request(source, "add", includes=(("mine.h", ""),), named={"I": str(tmp_path)}, **more)
        return NvrtcCompiler().environment(asked)

    before = environment()
    assert before.keys() == {str(tmp_path / "a.h"), str(tmp_path / "b.h")}
    (tmp_path / "b.h").write_text("// changed")
    after = environment()
    assert [path for path in before if before[path] != after[path]] == [str(tmp_path / "b.h")]
    assert environment(options=("-G",)) == {**after, "working directory": str(tmp_path)}
    assert NvrtcCompiler().environment(request(ADD, "add")) == {}


def test_options_reach_the_compiler() -> None:
    plain = build(ADD, "add").data
    assert build(ADD, "add", options=("-lineinfo",)).data != plain
    assert build(ADD, "add", named={"lineinfo": True}).data == build(ADD, "add", options=("-lineinfo",)).data
    source = "__global__ void k() { static_assert(__cplusplus == EXPECTED); }"
    for year, number in (("14", "201402L"), ("20", "202002L")):
        build(source, "k", options=(f"-std=c++{year}",), defines=(("EXPECTED", number),))
    build(source, "k", options=("--std=c++14",), named={"std": "c++20"}, defines=(("EXPECTED", "202002L"),))


def test_an_option_that_nvrtc_itself_refuses() -> None:
    with pytest.raises(ProgramError, match="NVRTC") as caught:
        build(ADD, "add", options=("--std=c++99",))
    assert caught.value.field == "code.options"


@pytest.mark.parametrize("arch", ["sm_80", "sm_89", "sm_90", "sm_90a", "sm_100a", "sm_120f"])
def test_architectures(arch: str) -> None:
    assert read_cubin(build(ADD, "add", target=arch).data).arch.startswith(arch.rstrip("f"))


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("compute_90", "'sm_90'"),
        ("compute_90a", "'sm_90a'"),
        ("sm_91", "sm_90, "),
        ("sm_35", "sm_90, "),
        ("sm_80a", "from sm_90"),
        ("sm_90f", "from sm_100"),
        ("sm_", "such as"),
        ("cuda", "such as"),
        ("cuda:90", "such as"),
        ("cpu", "such as"),
        ("sm_90b", "such as"),
    ],
)
def test_a_target_without_a_cubin_is_refused(target: str, said: str) -> None:
    with pytest.raises(ProgramError, match="got") as caught:
        build(ADD, "add", target=target)
    assert caught.value.field == "target"
    assert said in caught.value.message


def test_no_code_and_no_image_that_anybody_loads() -> None:
    one = request(ADD, "add")
    with pytest.raises(UnsupportedFeatureError):
        NvrtcCompiler().compile(CompileRequest(code=(), kernels=(), target=one.target))
    with pytest.raises(UnsupportedFeatureError, match="host-object"):
        build(ADD, "add", accepts=("host-object",))
    with pytest.raises(ProgramError) as caught:
        NvrtcCompiler().compile(
            CompileRequest(code=(DeviceCode("opencl", "kernel"),), kernels=(), target=one.target)
        )
    assert caught.value.field == "code.language"


def test_every_program_is_destroyed(monkeypatch: pytest.MonkeyPatch) -> None:
    bindings = nvrtc.bindings()
    alive = 0

    def counted(name: str, change: int) -> None:
        call = getattr(bindings, name)

        def wrapped(*args: Any) -> Any:
            nonlocal alive
            alive += change
            return call(*args)

        monkeypatch.setattr(bindings, name, wrapped)

    counted("nvrtcCreateProgram", +1)
    counted("nvrtcDestroyProgram", -1)
    build(ADD, "add")
    assert alive == 0
    refused("oops")
    refused(ADD, "subtract")
    with pytest.raises(ProgramError):
        build(ADD, "add", options=("--std=c++99",))
    monkeypatch.setattr(bindings, "nvrtcCompileProgram", lambda *_: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        build(ADD, "add")
    assert alive == 0


def test_the_fingerprint_names_the_exact_build() -> None:
    fingerprint = NvrtcCompiler().fingerprint()
    major, minor = nvrtc.version()
    assert f" {major}.{minor}." in fingerprint
    assert "CL-" in fingerprint
    assert fingerprint == NvrtcCompiler().fingerprint()
