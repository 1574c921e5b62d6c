"""A few of the host's headers that NVRTC lacks: sources for nvcc that include them compile as they are."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any

import pytest
from cuda.bindings import driver

from trunnion.contract.compiler import CompileRequest
from trunnion.contract.spec import Target
from trunnion.errors import CompileError
from trunnion.model.code import DeviceCode
from trunnion.model.plan import KernelSignature
from trunnion_nvrtc.compiler import cuda_part
from trunnion_nvrtc.compiler.compiler import NvrtcCompiler
from trunnion_nvrtc.compiler.headers import host_headers, toolkit_directories

NAMES = sorted(path.name for path in Path(host_headers()).iterdir())
HANDED_ON = ("array", "bit", "climits", "concepts", "functional", "limits", "limits.h", "tuple")
"""Those that are libcu++'s alone."""
OWN = [name for name in NAMES if name not in HANDED_ON]
KERNEL = '\nextern "C" __global__ void k(float* x) { x[0] = 1; }'

HOST_NAMES = """
static_assert(std::numeric_limits<int>::max() == INT_MAX);
static_assert(std::get<1>(std::make_tuple(1, 2L)) == 2L && std::tuple_size_v<std::tuple<int, char>> == 2);
static_assert(std::array<int, 3>{1, 2, 3}[2] == 3 && std::plus<>{}(1, 2) == 3);
#if __cplusplus >= 202002L
static_assert(std::bit_cast<unsigned>(1.0f) == 0x3F800000 && std::integral<int>);
#endif
extern "C" __global__ void k(float* x) {
  x[0] = std::sqrt(std::abs(x[1])) + std::fmax(x[2], 1.0f) + INFINITY + NAN;
  x[1] = std::memcmp(x, x + 1, 4);
}
"""
SOURCE = (Path(__file__).parent / "every_host_header.cu").read_text("utf-8")


def request(
    source: str, *, target: str = "sm_90a", includes: tuple[tuple[str, str], ...] = (), **options: Any
) -> CompileRequest:
    return CompileRequest(
        code=(DeviceCode("cuda", source, includes=includes),),
        kernels=(KernelSignature("k", ()),),
        target=Target.parse(target),
        options=options,
        accepts=("cubin",),
    )


def compiled(source: str, **said: Any) -> bytes:
    return NvrtcCompiler().compile(request(source, **said)).data


@pytest.fixture(params=["with a toolkit", "without"])
def toolkit(request, monkeypatch):
    """CUDA's own headers, which these tests have, or none: libcu++'s texts and our own mean the same."""
    if request.param == "without":
        monkeypatch.setattr(cuda_part, "toolkit_directories", lambda: ())
    return request.param


def test_there_are_a_few() -> None:
    assert OWN == [
        "algorithm", "assert.h", "cassert", "cfloat", "cmath", "cstddef", "cstdint", "cstdio", "cstdlib", "cstring",
        "cuda.h", "cuda_runtime.h", "cuda_runtime_api.h", "float.h", "math.h", "stddef.h", "stdint.h", "stdio.h",
        "stdlib.h", "string.h", "type_traits", "utility",
    ]  # fmt: skip


@pytest.mark.parametrize("name", OWN)
def test_each_compiles_by_itself_and_again(toolkit: str, name: str) -> None:
    assert compiled(f"#include <{name}>\n#include <{name}>{KERNEL}")


@pytest.mark.parametrize("std", ["c++11", "c++14"])
def test_older_standards_than_libcu_s_have_all_but_its_traits(toolkit: str, std: str) -> None:
    names = [name for name in OWN if name not in {"type_traits", "utility"}]
    assert compiled("".join(f"#include <{name}>\n" for name in names) + KERNEL, std=std)


@pytest.mark.parametrize("name", HANDED_ON)
def test_each_that_is_libcu_s_compiles_by_itself_and_again(name: str) -> None:
    assert compiled(f"#include <{name}>\n#include <{name}>{KERNEL}")


@pytest.mark.parametrize("std", ["c++17", "c++20"])
def test_what_libcu_has_is_found_by_the_host_s_names(std: str) -> None:
    """Sources of CUTLASS, FlashAttention and ThunderKittens include them."""
    assert set(HANDED_ON) < set(NAMES)
    assert compiled("".join(f"#include <{name}>\n" for name in NAMES) + HOST_NAMES, std=std)


def test_what_libcu_has_needs_libcu(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cuda_part, "toolkit_directories", lambda: ())
    with pytest.raises(CompileError, match="pip install nvidia-cuda-runtime nvidia-cuda-cccl"):
        compiled(f"#include <tuple>{KERNEL}")


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"std": "c++20"},
        {"relocatable_device_code": True},
        {"builtin_move_forward": False},
        {"default_device": True},
        {"target": "sm_80"},
    ],
    ids=str,
)
def test_all_of_them_mean_what_the_host_s_mean(toolkit: str, options: Any) -> None:
    if options == {"builtin_move_forward": False} and toolkit == "with a toolkit":
        options = {}  # CUDA's own cuda_fp16.h, which libcu++ includes, cannot be compiled so
    assert compiled("".join(f"#include <{name}>\n" for name in OWN) + SOURCE, **options)


MATH = (
    """
std::abs(x) std::fabs(x) std::sqrt(x) std::exp(x) std::pow(x, x) std::isnan(x) std::isinf(x) std::floor(x) std::ceil(x)
std::log(x) std::fmax(x, x) std::round(x) std::tanh(x) std::sin(x) std::lround(x) std::signbit(x) std::isfinite(x)
std::isnormal(x) std::fpclassify(x) std::isgreater(x, x) std::isunordered(x, x)
""".strip()
    .replace(") std", ")\nstd")
    .splitlines()
)


def calls(said: str, types: tuple[str, ...]) -> str:
    """Return a kernel that calls every function of `MATH` with values of each type."""
    given = "".join(f"template <class T> __device__ void f{i}(T x) {{ {said} auto y = {call}; (void)y; }}\n"
                    for i, call in enumerate(MATH))  # fmt: skip
    values = "".join(f"f{i}({kind}(x[0]));" for kind in types for i in range(len(MATH)))
    return f'{given}extern "C" __global__ void k(float* x) {{ {values} }}'


@pytest.mark.parametrize("std", ["c++11", "c++14", "c++17", "c++20"])
def test_functions_of_std_take_what_a_host_s_take(toolkit: str, std: str) -> None:
    assert compiled("#include <cmath>\n" + calls("", ("float", "double", "int")), std=std)


@pytest.mark.parametrize("std", ["c++17", "c++20"])
@pytest.mark.parametrize("includes", ["{cmath}{rest}", "{rest}{cmath}"], ids=["first", "last"])
def test_functions_of_std_are_the_global_ones(includes: str, std: str) -> None:
    rest = "".join(f"#include <{name}>\n" for name in NAMES if name != "cmath")
    text = includes.format(cmath="#include <cmath>\n", rest=rest)
    plain = calls("", ("float", "double")).replace("std::", "")
    assert compiled(f"{text}using namespace std;\n{plain}", std=std)
    used = "".join(f"using {call.partition('(')[0]};\n" for call in MATH)
    assert compiled(f"{text}{used}{plain}", std=std)


def test_functions_of_std_take_16_bit_floats() -> None:
    source = """#include <cuda_fp16.h>
#include <cuda_bf16.h>
#include <cmath>
extern "C" __global__ void k(__half* h, __nv_bfloat16* b) {
  static_assert(std::is_same_v<decltype(std::sqrt(h[0])), __half>);
  h[0] = std::sqrt(h[0]) + std::fmax(h[1], h[2]) + std::abs(h[3]) + std::pow(h[4], h[5]);
  b[0] = std::exp(b[0]) + __nv_bfloat16(std::isnan(b[1])) + std::abs(b[2]);
}"""
    assert compiled(source)


def test_functions_of_std_take_integers_by_every_way() -> None:
    """But abs next to <array> or <functional>: for these libcu++ has another abs(int)."""
    plain = calls("", ("int",)).replace("std::", "")
    assert compiled(f"#include <cmath>\n#include <cstdlib>\n#include <tuple>\nusing namespace std;\n{plain}")


@pytest.mark.parametrize("name", ["cmath", "math.h"])
def test_a_constant_of_the_author_hides_no_other(toolkit: str, name: str) -> None:
    source = "__device__ double d() { return M_PI + M_E + M_SQRT2 + HUGE_VAL; }"
    assert compiled(f"#define M_PI 3.0\n#include <{name}>\n{source}{KERNEL}")


@pytest.mark.parametrize("std", ["c++11", "c++14", "c++17", "c++20"])
@pytest.mark.parametrize("name", ["cmath", "math.h"])
def test_infinity_is_a_constant(toolkit: str, name: str, std: str) -> None:
    source = 'constexpr float low = -INFINITY, none = NAN;\nstatic_assert(low < 0 && none != none, "");'
    assert compiled(f"#include <{name}>\n{source}{KERNEL}", std=std)


DRIVER_ENUMS = (
    "CUresult", "CUtensorMapDataType", "CUtensorMapInterleave", "CUtensorMapSwizzle", "CUtensorMapL2promotion",
    "CUtensorMapFloatOOBfill",
)  # fmt: skip


@pytest.mark.parametrize("name", DRIVER_ENUMS)
def test_the_driver_s_enumerators_have_their_values(name: str) -> None:
    words = set(re.findall(r"\w+", (Path(host_headers()) / "cuda.h").read_text("utf-8")))
    members = getattr(driver, name).__members__
    asked = "".join(
        f"static_assert({said} == {int(value)});\n" for said, value in members.items() if said in words
    )
    assert asked.count("static_assert") > 1
    assert compiled(f"#include <cuda.h>\nstatic_assert(sizeof({name}) == 4);\n{asked}{KERNEL}")


def test_the_driver_s_types_are_there() -> None:
    handles = ("Context", "Module", "Function", "Library", "Kernel", "Stream", "Event", "Array", "MipmappedArray",
               "Graph", "GraphNode", "GraphExec")  # fmt: skip
    names = [f"CU{word[0].lower()}{word[1:]}" for word in handles] + ["CUmemoryPool"]
    checks = "".join(f"static_assert(sizeof({name}) == sizeof(void*));\n" for name in names)
    pointer = "typedef CUresult(CUDAAPI* Launch)(CUfunction, CUdevice, CUdeviceptr);\n"
    assert compiled(f"#include <cuda.h>\n{checks}{pointer}{KERNEL}")


@pytest.mark.parametrize("std", ["c++11", "c++14", "c++17", "c++20"])
@pytest.mark.parametrize("name", ["cstdint", "cstdlib", "cstring", "cstdio", "cstddef"])
def test_size_t_is_in_std(toolkit: str, name: str, std: str) -> None:
    assert compiled(f"#include <{name}>\nusing count = std::size_t;{KERNEL}", std=std)


def test_an_offset_is_constant_whatever_came_before() -> None:
    source = "struct P { int a, b; };\nstatic_assert(offsetof(P, b) == 4);"
    assert compiled(f"#include <array>\n#include <cstddef>\n{source}{KERNEL}")


def test_functions_of_std_mix_types_as_a_host_s(toolkit: str) -> None:
    source = """#include <cmath>
#include <type_traits>
static_assert(std::is_same_v<decltype(std::pow(2, 3)), double>);
static_assert(std::is_same_v<decltype(std::fmax(1.0f, 2.0)), double>);
static_assert(std::is_same_v<decltype(std::fmax(1.0f, 2.0f)), float>);
extern "C" __global__ void k(float* x) { x[0] = std::hypot(x[0], x[1], x[2]) + std::lerp(x[0], x[1], x[2]); }"""
    assert compiled(source)


def test_an_assertion_is_none_where_the_source_says_so(toolkit: str) -> None:
    source = '#define NDEBUG\n#include <cassert>\nextern "C" __global__ void k(int* x) { assert(no_such); }'
    assert compiled(source)


def test_the_author_s_own_header_comes_first(tmp_path: Path) -> None:
    (tmp_path / "utility").write_text("#define WHOSE 1\n")

    def asked(whose: int) -> str:
        return f"#include <utility>\n#if WHOSE != {whose}\n#error another header\n#endif{KERNEL}"

    assert compiled(asked(1), include_path=str(tmp_path))
    assert compiled(asked(2), includes=(("utility", "#define WHOSE 2\n"),))
    assert compiled(asked(0))


def test_cuda_s_own_runtime_header_is_what_it_is(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "cuda_runtime.h").write_text("#define WHOSE 1\n")
    monkeypatch.setattr(cuda_part, "toolkit_directories", lambda: (str(tmp_path),))
    source = "#include <cuda_runtime.h>\n#if WHOSE != 1\n#error ours alone\n#endif\n"
    assert compiled(f"{source}__device__ void f() {{ cudaGridDependencySynchronize(); }}{KERNEL}")


@pytest.mark.parametrize("name", ["cuda_runtime.h", "cuda_runtime_api.h"])
def test_cuda_s_own_is_found_where_nvrtc_has_no_has_include_next(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NVRTC 13.5 takes it for a function."""
    folder = Path(shutil.copytree(host_headers(), tmp_path / "headers"))
    for path in folder.glob("cuda_runtime*.h"):
        text = path.read_text("utf-8")
        assert text.count("#ifdef __has_include_next") == 1
        path.write_text(text.replace("#ifdef __has_include_next", "#if 0"), "utf-8")
    monkeypatch.setattr(cuda_part, "host_headers", lambda: str(folder))
    assert compiled(f"#include <{name}>\n#ifndef __CUDA_RUNTIME_API_H__\n#error ours alone\n#endif{KERNEL}")


def test_a_grid_dependency_is_waited_for() -> None:
    source = '#include <cuda_runtime.h>\nextern "C" __global__ void k() { cudaGridDependencySynchronize(); }'
    image = NvrtcCompiler().compile(
        CompileRequest(
            code=(DeviceCode("cuda", source),),
            kernels=(KernelSignature("k", ()),),
            target=Target.parse("compute_90"),
            options={},
            accepts=("ptx",),
        )
    )
    assert b"griddepcontrol.wait" in image.data


def test_a_source_that_includes_nothing_reaches_none_of_them() -> None:
    assert NvrtcCompiler().environment(request(KERNEL)) == {}


def test_their_content_counts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """For the cache's key, and for what is precompiled."""
    folder = tmp_path / "ours"
    shutil.copytree(host_headers(), folder)
    monkeypatch.setattr(cuda_part, "host_headers", lambda: str(folder))
    asked = request(
        "#include <cassert>\n#ifndef VALUE\n#define VALUE 0\n#endif\n"
        'extern "C" __global__ void k(int* x) { x[0] = VALUE; }',
        pch=True,
    )
    compiler = NvrtcCompiler()
    before, image = compiler.environment(asked), compiler.compile(asked)
    assert {str(folder / name) for name in ("cassert", "assert.h")} <= set(before)
    assert str(folder / "assert.h") in image.headers_read
    (folder / "assert.h").write_text("#define VALUE 41\n")
    assert compiler.environment(asked) != before
    assert compiler.compile(asked).data != image.data


def test_libcudacxx_s_is_taken_where_it_is_found() -> None:
    (library,) = {folder for folder in toolkit_directories() if (Path(folder) / "cuda/std/cstdint").is_file()}
    for name in ("cstddef", "cstdint", "type_traits", "utility"):
        found = NvrtcCompiler().environment(request(f"#include <{name}>{KERNEL}"))
        assert {str(Path(library) / "cuda/std" / name), str(Path(host_headers()) / name)} <= set(found)
