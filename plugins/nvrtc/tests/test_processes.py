"""Compilers at once: threads, forked children, and precompiled headers, which live as long as their process."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from trunnion.contract.compiler import CompileRequest, DeviceImage
from trunnion.contract.spec import Target
from trunnion.errors import CompileError
from trunnion.model.code import DeviceCode
from trunnion.model.plan import KernelSignature
from trunnion_nvrtc.compiler import pch
from trunnion_nvrtc.compiler.compiler import NvrtcCompiler

ADD = 'extern "C" __global__ void add(const float* a, float* b, int n) { if (n) b[0] = a[0]; }'
VALUE = '#include "v.h"\nextern "C" __global__ void k(int* p) { p[0] = VALUE; }'


def build(*code: DeviceCode, **named: Any) -> DeviceImage:
    return NvrtcCompiler().compile(
        CompileRequest(code=code, kernels=(), target=Target("cuda", "sm_90a"), options=named)
    )


def value(number: int, **named: Any) -> DeviceImage:
    return build(DeviceCode("cuda", VALUE, includes=(("v.h", f"#define VALUE {number}\n"),)), **named)


def test_threads_compile_and_link_at_once() -> None:
    one = DeviceCode("cuda", ADD)
    two = (DeviceCode("cuda", ADD), DeviceCode("cuda", "__device__ int f(int x) { return x; }"))
    expected = build(one), build(*two)

    def work(index: int) -> bool:
        with pytest.raises(CompileError):
            build(DeviceCode("cuda", f"oops{index}"))
        return build(one) == expected[0] and build(*two) == expected[1]

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(16)))


FORKED = """
import os, sys
sys.path[:0] = {path!r}
from trunnion.contract.compiler import CompileRequest
from trunnion.contract.spec import Target
from trunnion.model.code import DeviceCode
from trunnion_nvrtc.compiler.compiler import NvrtcCompiler
from trunnion_nvrtc.compiler.pch import _folder

def build(*code):
    request = CompileRequest(code=code, kernels=(), target=Target("cuda", "sm_90a"), options={{"pch": True}})
    return NvrtcCompiler().compile(request).data

one = DeviceCode("cuda", {source!r}, includes=(("v.h", "#define VALUE 1"),))
two = DeviceCode("cuda", "__device__ int x;")
before = build(one), build(one, two)
child = os.fork()
if child == 0:
    same = (build(one), build(one, two)) == before
    print("child", same, len(os.listdir(_folder(os.getpid()))), flush=True)
    sys.exit(0)
_, status = os.waitpid(child, 0)
print("parent", status, (build(one), build(one, two)) == before, _folder(os.getpid()))
"""


def test_a_forked_child_compiles_and_leaves_its_parents_headers_alone() -> None:
    script = FORKED.format(path=sys.path, source=VALUE)
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    child, parent = done.stdout.splitlines()
    assert child == "child True 3"
    assert parent.startswith("parent 0 True ")
    assert not Path(parent.rpartition(" ")[2]).exists()


def kept() -> list[Path]:
    return sorted(pch._folder(os.getpid()).glob("*/*.pch"))


def test_a_precompiled_header_changes_no_byte_and_is_used_again() -> None:
    plain = value(41)
    before = kept()
    made, again = value(41, pch=True), value(41, pch=True)
    assert made == again == plain
    (new,) = set(kept()) - set(before)
    state = new.stat()
    assert value(41, pch=True) == plain
    assert new.stat() == state or new.stat().st_mtime_ns == state.st_mtime_ns


def test_a_folder_that_somebody_removed_is_made_anew() -> None:
    """As those do who clean up among temporary files, of a process that runs for weeks."""
    plain = value(43)
    assert value(43, pch=True) == plain
    first = pch._folder(os.getpid())
    shutil.rmtree(first)
    assert value(43, pch=True) == plain
    assert kept()
    new = pch._folder(os.getpid())
    assert new != first
    assert new.stat().st_mode & 0o777 == 0o700


HIDDEN = """
namespace { __device__ int hidden[2]; }
template <class T> __global__ void t(T* x) { auto f = [](int i) { return atomicAdd(&hidden[i], 1); }; x[0] = f(0); }
"""


def test_the_next_source_uses_what_the_first_one_made_and_changes_no_byte() -> None:
    def hidden(number: int, **named: Any) -> DeviceImage:
        text = f'#include "h.h"\nnamespace {{ __device__ int own; }}\n__global__ void k(int* p) {{ p[0] = {number}; }}'
        code = DeviceCode(
            "cuda", text + "template __global__ void t<int>(int*);", includes=(("h.h", HIDDEN),)
        )
        kernels = (KernelSignature("k", ()), KernelSignature("t<int>", ()))
        request = CompileRequest(
            code=(code,), kernels=kernels, target=Target("cuda", "sm_90a"), options=named
        )
        return NvrtcCompiler().compile(request)

    before = set(kept())
    assert hidden(1, pch=True) == hidden(1)
    (made,) = set(kept()) - before
    state = made.stat().st_mtime_ns
    assert hidden(2, pch=True) == hidden(2)
    assert set(kept()) - before == {made}
    assert made.stat().st_mtime_ns == state


def test_a_header_that_has_changed_is_read_again(tmp_path: Path) -> None:
    """NVRTC alone would compile the old text: in memory and on disk."""
    assert value(1, pch=True).data != value(2, pch=True).data
    (tmp_path / "v.h").write_text("#define VALUE 1\n")
    code = DeviceCode("cuda", VALUE, options=(f"-I{tmp_path}",))
    first = build(code, pch=True)
    status = (tmp_path / "v.h").stat()
    (tmp_path / "v.h").write_text("#define VALUE 2\n")
    os.utime(tmp_path / "v.h", ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    second = build(code, pch=True)
    assert first.data != second.data
    assert second == build(code)
    assert build(code, pch=True, std="c++20") == build(code, std="c++20")


def test_threads_share_precompiled_headers() -> None:
    expected = [value(number) for number in range(100, 104)]
    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(lambda index: value(100 + index % 4, pch=True), range(32)))
    assert all(found[index] == expected[index % 4] for index in range(32))


def test_a_huge_source() -> None:
    source = ADD + "\n" + "\n".join(f"// {'x' * 100} {index}" for index in range(40_000))
    image = NvrtcCompiler().compile(
        CompileRequest(
            code=(DeviceCode("cuda", source),),
            kernels=(KernelSignature("add", ()),),
            target=Target("cuda", "sm_90a"),
        )
    )
    assert image.kernels[0].symbol == "add"
    deep = "#include <a.h>\n"
    with pytest.raises(CompileError, match="include"):
        build(DeviceCode("cuda", deep, includes=(("a.h", deep),)))


@pytest.mark.parametrize("name", ["../v.h", "/v.h", "a/../v.h", "a b.h", "'v'.h", "größe.h", "-DX.h"])
def test_headers_in_memory_are_found_by_their_exact_name_only(name: str) -> None:
    source = VALUE.replace("v.h", name)
    build(DeviceCode("cuda", source, includes=((name, "#define VALUE 3"),)))
    with pytest.raises(CompileError):
        build(DeviceCode("cuda", source, includes=(("v.h", "#define VALUE 3"),)))


def test_a_header_that_is_included_first() -> None:
    source = VALUE.replace('#include "v.h"', "")
    held = DeviceCode("cuda", source, includes=(("v.h", "#define VALUE 3"),), options=("--pre-include=v.h",))
    assert build(held).headers_read == ("v.h",)
    with pytest.raises(CompileError):
        build(DeviceCode("cuda", source, includes=held.includes))
