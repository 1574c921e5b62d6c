"""The device compiler of the CPU target: what it makes runs, and what it refuses it refuses by name and line."""

from __future__ import annotations

import ctypes
import platform
import subprocess
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.codegen.cpp.build import runtime_folder
from trunnion.contract.compiler import CompileRequest, DeviceImage
from trunnion.contract.spec import Target
from trunnion.errors import (
    BackendUnavailableError,
    CompileError,
)
from trunnion.image import read_host_object
from trunnion.image.match import match_parameters
from trunnion.model.code import DeviceCode
from trunnion.model.plan import KernelParameter, KernelSignature
from trunnion.storage.stamps import stamp, witnessed
from trunnion_tvm_ffi.compiler import host_compiler as subject
from trunnion_tvm_ffi.compiler.host_compiler import CpuCompiler

if TYPE_CHECKING:
    from types import SimpleNamespace

POINTER = KernelParameter(8, 8, "a pointer")
LONG = KernelParameter(8, 8, "int64 (8 bytes)")
INT = KernelParameter(4, 4, "int32 (4 bytes)")
BYTE = KernelParameter(1, 1, "bool (1 byte)")
FLOAT = KernelParameter(4, 4, "float32 (4 bytes)")
SCALE_PARAMETERS = (POINTER, POINTER, LONG, FLOAT)
FILL_PARAMETERS = (POINTER, BYTE, INT)


class Block(ctypes.Structure):
    _fields_ = (
        ("index", ctypes.c_uint32 * 3),
        ("grid", ctypes.c_uint32 * 3),
        ("block", ctypes.c_uint32 * 3),
        ("shared", ctypes.c_void_p),
        ("shared_bytes", ctypes.c_uint64),
    )


class Linked:
    """An image in this process."""

    def __init__(self, image: DeviceImage, folder: Path) -> None:
        (folder / "image.o").write_bytes(image.data)
        lines = ["#include <trunnion/block.h>", 'extern "C" {', "bool trunnion_fits();"]
        lines.append("extern const uint32_t trunnion_threads;")
        for one in image.kernels:
            lines.append(f"void {one.symbol}(void* const*, const trunnion_block_t*);")
            lines.append(
                f"void call_{one.symbol}(void* const* a, const trunnion_block_t* b) {{ {one.symbol}(a, b); }}"
            )
        lines += [
            "bool fits() { return trunnion_fits(); }",
            "uint32_t threads() { return trunnion_threads; }",
            "}",
        ]
        (folder / "driver.cc").write_text("\n".join(lines))
        command = ["c++", "-shared", "-fPIC", f"-I{runtime_folder()}", "-Wl,-z,defs"]
        subprocess.run([*command, "driver.cc", "image.o", "-o", "linked.so"], cwd=folder, check=True)
        self.library = ctypes.CDLL(str(folder / "linked.so"))
        self.image = image

    def call(self, name: str, *values: Any, **block: Any) -> None:
        """Call a kernel once."""
        arguments = (ctypes.c_void_p * len(values))(*(ctypes.addressof(value) for value in values))
        said = Block(**{field: tuple(value) for field, value in block.items()})
        getattr(self.library, f"call_{self.image.kernel(name).symbol}")(arguments, ctypes.byref(said))


# What runs ----------------------------------------------------------------------------------------------------------


def test_functions_and_templates_get_what_they_take(host: SimpleNamespace, cxx: str, tmp_path: Path) -> None:
    kernels = {
        "scale<float, 1>": SCALE_PARAMETERS,
        "scale<double,-2>": (POINTER, POINTER, LONG, LONG),
        "fill": FILL_PARAMETERS,
    }
    asked = host.request(host.scale, kernels=kernels)
    image = CpuCompiler().compile(asked)
    match_parameters(asked.kernels, image)
    assert (image.kind, str(image.target)) == ("host-object", "cpu")
    assert [(one.name, one.symbol) for one in image.kernels] == [
        (name, f"trunnion_kernel_{index}") for index, name in enumerate(kernels)
    ]
    assert list(image.toolchain) == [cxx]
    linked = Linked(image, tmp_path)
    x, y = (ctypes.c_float * 4)(1, 2, 3, 4), (ctypes.c_float * 4)()
    given = (ctypes.c_void_p(ctypes.addressof(x)), ctypes.c_void_p(ctypes.addressof(y)))
    linked.call(
        "scale<float, 1>", *given, ctypes.c_int64(4), ctypes.c_float(0.5), index=(1, 0, 0), grid=(2, 1, 1)
    )
    assert list(y) == [0, 2, 0, 3]
    z = (ctypes.c_double * 3)()
    pointer = ctypes.c_void_p(ctypes.addressof(z))
    linked.call("fill", pointer, ctypes.c_bool(False), ctypes.c_int(3), index=(7, 0, 2))
    assert list(z) == [0, 0, 0]
    linked.call("fill", pointer, ctypes.c_bool(True), ctypes.c_int(2), index=(7, 0, 2))
    assert list(z) == [207, 207, 0]
    assert linked.library.threads() == 1
    assert linked.library.fits()


def test_structures_of_any_alignment_travel_by_value(host: SimpleNamespace, tmp_path: Path) -> None:
    text = """
    struct alignas(64) Wide { unsigned char bytes[128]; };
    struct Odd { unsigned char bytes[3]; };
    void k(Odd odd, Wide wide, signed char tail, unsigned char* out, const trunnion_block_t*) {
      for (int i = 0; i < 3; ++i) *out++ = odd.bytes[i];
      for (int i = 0; i < 128; ++i) *out++ = wide.bytes[i];
      *out = tail;
    }"""
    image = host.kernel(text)
    assert [(one.offset, one.size) for one in image.kernels[0].parameters] == [
        (0, 3),
        (64, 128),
        (192, 1),
        (200, 8),
    ]
    linked = Linked(image, tmp_path)
    room = (ctypes.c_ubyte * 400)(*(index % 251 for index in range(400)))
    out = (ctypes.c_ubyte * 132)()
    start = ctypes.addressof(room)
    unaligned = start + 1 if start % 64 != 63 else start + 2  # the caller's alignment is not the type's
    linked.call(
        "k",
        (ctypes.c_ubyte * 3).from_address(start),
        (ctypes.c_ubyte * 128).from_address(unaligned),
        ctypes.c_byte(-5),
        ctypes.c_void_p(ctypes.addressof(out)),
    )
    wide = bytes(room[unaligned - start : unaligned - start + 128])
    assert bytes(out) == bytes(room[:3]) + wide + bytes([251])


@pytest.mark.parametrize("name", ["image.o", "image.d", "assembled.d"])
@pytest.mark.parametrize("below", ["", "/x.h"])
def test_no_header_is_in_the_way_of_the_compilers_own_files(
    host: SimpleNamespace, tmp_path: Path, name: str, below: str
) -> None:
    header = name + below
    source = (
        f'#include <trunnion/block.h>\n#include "{header}"\n'
        "void k(int* out, const trunnion_block_t*) { *out = ONE; }"
    )
    image = host.compiled(
        DeviceCode("c++", source, includes=((header, "#define ONE 1"),)), kernels={"k": (POINTER,)}
    )
    out = ctypes.c_int()
    Linked(image, tmp_path).call("k", ctypes.c_void_p(ctypes.addressof(out)))
    assert out.value == 1


def test_headers_macros_and_options_reach_the_compiler(host: SimpleNamespace, tmp_path: Path) -> None:
    code = DeviceCode(
        "c++",
        '#include <trunnion/block.h>\n#include "deep/er/one.h"\n#include <two.h>\n'
        "static_assert(__cplusplus >= 202002L);\n"
        "void k(int* out, const trunnion_block_t*) { *out = ONE + TWO + VALUE; }",
        includes=(("deep/er/one.h", '#include "../../two.h"\n#define ONE 1'), ("two.h", "#define TWO 20")),
        defines=(("VALUE", "0x100 + 0x1000"), ("UNUSED", None)),
        options=("-std=c++17", "-Wall"),
    )
    image = host.compiled(code, kernels={"k": (POINTER,)}, std="c++20", O=0, threads=6)
    linked, out = Linked(image, tmp_path), ctypes.c_int()
    linked.call("k", ctypes.c_void_p(ctypes.addressof(out)))
    assert out.value == 0x1100 + 21
    assert linked.library.threads() == 6
    assert any(name.endswith("/stdint.h") for name in image.headers_read)


def test_parts_are_linked(tmp_path: Path) -> None:
    """One calls the other, and each has a kernel of the same name that no other part can see."""
    local = "static void same(int* out, const trunnion_block_t*) { *out = add(HERE, 100); }"
    first = DeviceCode(
        "c++", f"#include <trunnion/block.h>\nint add(int, int);\n{local}", defines=(("HERE", "1"),)
    )
    second = DeviceCode(
        "c++",
        f"#include <trunnion/block.h>\nint add(int x, int y) {{ return x + y; }}\nnamespace {{ {local} }}",
        defines=(("HERE", "2"),),
        options=("-O0",),
    )
    asked = CompileRequest(
        code=(first, second),
        kernels=(KernelSignature("same", (POINTER,), 0), KernelSignature("same", (POINTER,), 1)),
        target=Target("cpu"),
    )
    image = CpuCompiler().compile(asked)
    match_parameters(asked.kernels, image)
    assert {"trunnion_kernel_0", "trunnion_kernel_1", "trunnion_threads"} <= set(
        read_host_object(image.data).definitions
    )
    linked, out = Linked(image, tmp_path), ctypes.c_int()
    found = []
    for one in image.kernels:
        pointer = ctypes.c_void_p(ctypes.addressof(out))
        arguments = (ctypes.c_void_p * 1)(ctypes.addressof(pointer))
        getattr(linked.library, f"call_{one.symbol}")(arguments, ctypes.byref(Block()))
        found.append(out.value)
    assert found == [101, 102]


def test_exceptions_and_the_standard_library_can_be_had(host: SimpleNamespace, tmp_path: Path) -> None:
    text = """#include <vector>
    void k(int* out, const trunnion_block_t*) {
      try { std::vector<int>().at(3); } catch (const std::exception&) { *out = 7; }
    }"""
    with pytest.raises(CompileError, match=r"-fexceptions|fno-exceptions"):
        host.kernel(text)
    linked, out = Linked(host.kernel(text, fexceptions=True), tmp_path), ctypes.c_int()
    linked.call("k", ctypes.c_void_p(ctypes.addressof(out)))
    assert out.value == 7


def test_warnings_are_in_the_log_and_name_the_programs_lines(host: SimpleNamespace) -> None:
    image = host.kernel("void k(const trunnion_block_t* block) { int unused; }", W=["all", "extra"])
    assert "kernel.cc:2:" in image.log
    assert "unused" in image.log
    assert host.kernel("void k(const trunnion_block_t*) {}").log == ""


@pytest.mark.skipif(platform.machine() != "x86_64", reason="its architectures are those of x86-64")
@pytest.mark.parametrize("level", ["", "-v2", "-v3", "-v4"])
def test_an_architecture_is_compiled_for_and_asked_for(
    host: SimpleNamespace, level: str, tmp_path: Path
) -> None:
    macro = {"": "__SSE2__", "-v2": "__SSE4_2__", "-v3": "__AVX2__", "-v4": "__AVX512F__"}[level]
    text = f"#ifndef {macro}\n#error\n#endif\nvoid k(const trunnion_block_t*) {{}}"
    linked = Linked(host.kernel(text, target=f"cpu:x86-64{level}"), tmp_path)
    lines = Path("/proc/cpuinfo").read_text("utf-8").splitlines()
    flags = set(next(line for line in lines if line.startswith("flags")).split())
    needed = {"": set(), "-v2": {"sse4_2"}, "-v3": {"avx2", "fma"}, "-v4": {"avx512f", "avx512vl"}}[level]
    linked.library.fits.restype = ctypes.c_bool
    assert linked.library.fits() == (needed <= flags)


# What is equal ------------------------------------------------------------------------------------------------------


def test_equal_requests_make_equal_bytes_and_the_folder_does_not_show(
    host: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = host.request(host.scale, kernels={"fill": FILL_PARAMETERS}, g=True)
    first = CpuCompiler().compile(asked)
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    assert CpuCompiler().compile(asked) == first
    assert str(tmp_path).encode() not in first.data
    assert b"trunnion-" not in first.data.replace(b"-frandom-seed=trunnion", b"")
    for macro in ("__DATE__", "__TIME__"):
        with pytest.raises(CompileError, match="date-time"):
            host.kernel(f"const char* const now = {macro};\nvoid k(const trunnion_block_t*) {{}}")


def test_the_key_knows_the_headers_of_this_machine(host: SimpleNamespace, tmp_path: Path) -> None:
    header = tmp_path / "a b$c#d.h"
    header.write_text("#define X 1\n")
    asked = host.request(f'#include <trunnion/block.h>\n#include "{header.name}"\n', I=str(tmp_path))
    compiler = CpuCompiler()
    before = compiler.environment(asked)
    assert set(before) == {"headers"}
    assert compiler.environment(asked) == before
    assert str(header) in compiler.compile(asked).headers_read
    header.write_text("#define X 2\n")
    assert compiler.environment(asked) != before
    header.unlink()
    missing = compiler.environment(asked)
    assert compiler.environment(asked) != missing, "nobody knows what it would find"


ASKED = """#if __has_include(<late.h>)
#define VALUE 2
#else
#define VALUE 1
#endif
void k(int* x, const trunnion_block_t*) { *x = VALUE; }
"""


@pytest.mark.parametrize(
    "text",
    [
        ASKED,
        "#define LATE <late.h>\n" + ASKED.replace("<late.h>", "LATE"),
        '#include "asks.h"\n' + ASKED.replace("__has_include(<late.h>)", "LATE"),
        "#include <early.h>\n" + ASKED.replace("__has_include(<late.h>)", "LATE"),
    ],
)
def test_the_key_knows_a_header_that_appears(host: SimpleNamespace, tmp_path: Path, text: str) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    first.mkdir()
    second.mkdir()
    (second / "asks.h").write_text("#if __has_include(<late.h>)\n#define LATE 1\n#endif\n")
    (second / "early.h").write_text("#define LATE 0\n")
    asked = host.request(
        "#include <trunnion/block.h>\n" + text, kernels={"k": (POINTER,)}, I=[str(first), str(second)]
    )
    compiler = CpuCompiler()
    key, image = compiler.environment(asked), compiler.compile(asked).data
    assert compiler.environment(asked) == key
    (first / "late.h").touch()
    (first / "early.h").write_text("#define LATE 1\n")
    assert compiler.environment(asked) != key
    assert compiler.compile(asked).data != image


def test_the_key_knows_what_the_environment_brings(
    host: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = host.request("#include <trunnion/block.h>\n" + ASKED, kernels={"k": (POINTER,)})
    compiler = CpuCompiler()
    first = (compiler.fingerprint(), compiler.environment(asked))
    (tmp_path / "late.h").touch()
    monkeypatch.setenv("CPLUS_INCLUDE_PATH", str(tmp_path))
    brought = (compiler.fingerprint(), compiler.environment(asked))
    monkeypatch.delenv("CPLUS_INCLUDE_PATH")
    assert (compiler.fingerprint(), compiler.environment(asked)) == first
    assert brought[0] != first[0]
    assert brought[1] != first[1]


def test_what_the_assembler_reads_has_no_key(host: SimpleNamespace, tmp_path: Path) -> None:
    (tmp_path / "data").write_bytes(b"data")
    text = f'#include <trunnion/block.h>\nasm(".incbin \\"{tmp_path}/data\\"");\nvoid k(const trunnion_block_t*) {{}}\n'
    asked = host.request(text, kernels={"k": ()})
    assert CpuCompiler().compile(asked).data
    assert CpuCompiler().environment(asked) != CpuCompiler().environment(asked)


def test_gccs_assembler_says_what_it_reads(
    host: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this text nobody sees it: the compiler makes up the directive of the name of a symbol."""
    monkeypatch.setenv("CXX", "g++")
    data = tmp_path / "data"
    data.write_bytes(b"data")
    text = f"""
#include <trunnion/block.h>
static void named() __asm__("incbin");
__attribute__((used)) static void named() {{}}
void k(const trunnion_block_t*) {{
  asm volatile(".pushsection .rodata\\n.%c0 \\"{data}\\"\\n.popsection" : : "i"(named));
}}
"""
    asked = host.request(text, kernels={"k": ()})
    with witnessed() as known:
        CpuCompiler().environment(asked)
    with witnessed() as read:
        made = CpuCompiler().compile(asked)
    assert str(data) in made.headers_read
    assert (str(data), stamp(str(data))) in read - known


@pytest.mark.parametrize("options", [(), ("-g",)])
def test_what_is_read_is_what_the_key_knows(
    host: SimpleNamespace, tmp_path: Path, options: tuple[str, ...]
) -> None:
    (tmp_path / "v.h").write_text("#include <stdint.h>\n#include <cmath>\n")
    text = "#include <trunnion/block.h>\n#include <v.h>\nvoid k(const trunnion_block_t*) {}\n"
    code = DeviceCode("c++", text, options=(*options, f"-I{tmp_path}"))
    asked = host.request(code, kernels={"k": ()})
    with witnessed() as known:
        CpuCompiler().environment(asked)
    with witnessed() as read:
        CpuCompiler().compile(asked)
    assert (str(tmp_path / "v.h"), stamp(str(tmp_path / "v.h"))) in read <= known


def test_a_header_that_was_read_and_is_gone_is_noted(
    host: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It came first where the compiler looked, and went before anybody looked at it again."""
    early, late = tmp_path / "early", tmp_path / "late"
    for folder in (early, late):
        folder.mkdir()
    (late / "v.h").touch()
    text = "#include <trunnion/block.h>\n#include <v.h>\nvoid k(const trunnion_block_t*) {}\n"
    asked = host.request(DeviceCode("c++", text, options=(f"-I{early}", f"-I{late}")), kernels={"k": ()})

    def run_host(*arguments, run=subject.run_host):
        (early / "v.h").touch()
        try:
            return run(*arguments)
        finally:
            (early / "v.h").unlink()

    monkeypatch.setattr(subject, "run_host", run_host)
    with witnessed() as read:
        CpuCompiler().compile(asked)
    assert (str(early / "v.h"), None) in read


@pytest.mark.parametrize("parts", [1, 2])
def test_the_key_knows_headers_beside_the_compilers_folder(
    host: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, parts: int
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    outside = tmp_path / "outside.h"
    outside.write_text("#define X 1\n")
    held = DeviceCode(
        "c++", '#include "in/held.h"\n', includes=[("in/held.h", '#include "../../../outside.h"\n')]
    )
    asked = host.request(*[held, DeviceCode("c++", '#include "../0/in/held.h"\n')][:parts])
    compiler = CpuCompiler()
    before = compiler.environment(asked)
    assert (compiler.environment(asked) == before) is (parts == 1), (
        "what a part finds in another's folder is its own"
    )
    image = compiler.compile(asked)
    assert [name for name in image.headers_read if name.startswith(str(tmp_path))] == [str(outside)]
    outside.write_text("#define X 2\n")
    assert compiler.environment(asked) != before


def test_the_fingerprint_is_the_toolchains(
    host: SimpleNamespace, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fingerprint = CpuCompiler().fingerprint()
    assert "version" in fingerprint
    assert CpuCompiler().fingerprint() == fingerprint
    assert CpuCompiler().default_target() == Target("cpu")
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    for use in (CpuCompiler().fingerprint, lambda: host.compiled(host.scale)):
        with pytest.raises(BackendUnavailableError, match="install one"):
            use()
