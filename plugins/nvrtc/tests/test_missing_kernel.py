"""What is said of a kernel that is not in the source."""

from __future__ import annotations

import pickle
import time

import pytest

from trunnion.contract.compiler import CompileRequest
from trunnion.contract.spec import Target
from trunnion.errors import CompileError
from trunnion.model.code import DeviceCode
from trunnion.model.plan import KernelSignature
from trunnion_nvrtc.compiler.compiler import NvrtcCompiler
from trunnion_nvrtc.compiler.missing_kernel import kernel_names

ADD = 'extern "C" __global__ void add(int* p, int q) { p[0] = q; }'


def refused(source: str, *names: str) -> CompileError:
    request = CompileRequest(
        code=(DeviceCode("cuda", source),),
        kernels=tuple(KernelSignature(name, ()) for name in names),
        target=Target.parse("sm_90a"),
        options={},
        accepts=("cubin",),
    )
    with pytest.raises(CompileError) as caught:
        NvrtcCompiler().compile(request)
    return caught.value


def test_a_kernel_that_is_not_in_the_source() -> None:
    error = refused(ADD, "subtract")
    assert "subtract" in error.log
    assert error.line == 0
    first, *rest = str(error).splitlines()
    assert first == "kernel 'subtract' is not in the source"
    assert rest[0] == "the source's kernels: 'add'"
    assert rest[1].endswith(", for sm_90a")  # NVRTC says nothing that is not said already
    assert "__nv_name_map" not in str(error)
    copied = pickle.loads(pickle.dumps(error))  # noqa: S301 - our own bytes
    assert (str(copied), copied.log) == (str(error), error.log)


def test_what_the_compiler_says_besides_is_pointed_at() -> None:
    error = refused("__device__ int f() { int x; return 1; }\n" + ADD, "subtract")
    assert "it said more: .log" in str(error)
    assert "never referenced" in error.log


def test_of_a_kernel_that_is_not_in_a_source_with_another_mistake_the_mistake_is_told() -> None:
    error = refused(ADD + "\nint x = oops;", "subtract")
    assert 'identifier "oops" is undefined' in str(error)
    assert type(error) is CompileError


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("ad", "kernel 'ad' is not in the source; did you mean 'add'?"),
        ("near", "kernel 'near' cannot be had by that name: identifier \"near\" is undefined"),
        (
            "many",
            "kernel 'many' cannot be had by that name: cannot determine which instance of function template",
        ),
        (
            "helper",
            "kernel 'helper' is not in the source: Name expression cannot form address of a non-__global__",
        ),
        ("add<int>", "kernel 'add<int>' cannot be had by that name: type name is not allowed"),
    ],
)
def test_why_a_name_is_no_kernel_is_told_in_the_first_line(name: str, said: str) -> None:
    more = "__device__ void helper() {}\nnamespace far { __global__ void near() {} }\n"
    more += "template <class T> __global__ void many(T* p) {}\n"
    first, known, *_ = str(refused(more + ADD, "add", name)).splitlines()
    assert first.startswith(said)
    assert known == "the source's kernels, without their namespaces: 'near', 'many<...>', 'add'"


@pytest.mark.parametrize(
    ("source", "names"),
    [
        ("", ()),
        ("__global__ void __launch_bounds__(128, (2)) a(int) {}", ("a",)),
        ("__launch_bounds__(1) __global__ __cluster_dims__(2, 1, 1) void\na ()", ("a",)),
        ("// __global__ void a() {}\n/* __global__ void b() {} */", ()),
        ('__global__ void a(); __global__ void a() {} extern "C" __global__ void b() {}', ("a", "b")),
        (
            "template <class T = int, int N = 3> __global__ void a(T) {} __global__ void b() {}",
            ("a<...>", "b"),
        ),
        ("template <class T> struct S { T t; }; __global__ void a(S<int> s) {}", ("a",)),
    ],
)
def test_the_kernels_of_a_text_are_seen(source: str, names: tuple[str, ...]) -> None:
    assert kernel_names(source) == names


@pytest.mark.parametrize(
    "word",
    ["template ", "__global__ ", "__global__ __launch_bounds__(1) ", "__global__ a", "alignas(("],
)
def test_a_text_made_for_it_takes_no_quadratic_time(word: str) -> None:
    def seconds(count: int) -> float:
        start = time.thread_time()
        kernel_names(word * count)
        return time.thread_time() - start

    few = min(seconds(500) for _ in range(3))
    assert min(seconds(8000) for _ in range(3)) < 64 * few + 1, (
        "16 times as much, of which quadratic time would make 256"
    )


def test_a_comment_that_does_not_end_is_looked_through_once() -> None:
    start = time.thread_time()
    assert kernel_names("__global__ void seen();" + "/* " * 20_000) == ("seen",)
    assert time.thread_time() - start < 1, "quadratic time took ten"
