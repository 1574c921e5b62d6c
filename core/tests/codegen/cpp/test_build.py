"""A launcher's text and an image become one library that depends on nothing it need not."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from trunnion.codegen.cpp.build import LAUNCHER, build_launcher, launcher_fingerprint, runtime_folder
from trunnion.contract.compiler import DeviceImage
from trunnion.contract.spec import Target
from trunnion.errors import BackendUnavailableError, CompileError
from trunnion.toolchain.host import find_host_toolchain

pytestmark = pytest.mark.tvm_ffi_abi

_ASK = """
import sys, tvm_ffi
module = tvm_ffi.load_module(sys.argv[1])
print(bytes(module["image"]()).hex(), bytes(module["names"]()).hex(), module["placed"]())
"""


def tool(*words: str) -> str:
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


def needed(library) -> set[str]:
    lines = tool("readelf", "-dW", str(library)).splitlines()
    return {line.partition("[")[2].rstrip("]") for line in lines if "(NEEDED)" in line}


@pytest.fixture
def build(cxx, tmp_path, stand_in, embedded):
    """Build the stand-in, or another text, in a folder of its own."""

    def make(
        text: str = stand_in, name: str = "staging", *, data: bytes = b"image", symbols=("k",), options=()
    ):
        folder = tmp_path / name
        folder.mkdir()
        return build_launcher(text, embedded(data), symbols, folder, plugin="acme", options=options)

    return make


def test_plain_tvm_ffi_loads_it(build, tmp_path) -> None:
    data, symbols = bytes(range(256)) * 5, ['a"b\\', "\u540d\n", "_Z5scaleILi3EEvPfi"]
    (tmp_path / "some.so").write_bytes(build(data=data, symbols=symbols))
    said = tool(sys.executable, "-c", _ASK, str(tmp_path / "some.so")).split()
    assert bytes.fromhex(said[0]) == data
    assert bytes.fromhex(said[1]) == b"".join(symbol.encode() + b"\0" for symbol in symbols)
    assert said[2] == "0"


def test_equal_inputs_give_equal_bytes_wherever_they_are_built(build, tmp_path) -> None:
    text = "static const char* here = __FILE__;\n#include <cuda.h>\n"
    text += 'extern "C" __attribute__((visibility("default"))) const char* __tvm_ffi_f() { return here; }\n'
    text += "namespace { int hidden() { static int count; return ++count; } }\n"
    text += 'extern "C" __attribute__((visibility("default"))) int __tvm_ffi_g() { return hidden(); }\n'
    one = build(text)
    assert one == build(text, "another folder, with spaces = and 'quotes'")
    assert one == build(text, "a-folder-with-a-longer-name" * 5)
    assert one != build(text, "other image", data=b"other")
    assert one != build(text, "other names", symbols=("other",))
    assert b"launcher.cc" in one, "the text is found by its own name"


def test_no_path_of_the_build_is_in_it(build, tmp_path) -> None:
    library = build()
    for path in (tmp_path, runtime_folder(), sys.prefix, Path.cwd()):
        assert os.fsencode(path) not in library
    debug = build(name="debug", options=("-g",))
    assert b".debug_info" in debug
    assert os.fsencode(tmp_path) not in debug
    assert os.fsencode(runtime_folder()) not in debug


def test_it_depends_on_no_library_of_cpp(build, tmp_path) -> None:
    (tmp_path / LAUNCHER).write_bytes(build())
    assert "libtvm_ffi.so" in needed(tmp_path / LAUNCHER)
    system = {
        "libc.so.6",
        "libm.so.6",
        "libdl.so.2",
        "ld-linux-x86-64.so.2",
    }  # the last for what is a thread's own
    assert needed(tmp_path / LAUNCHER) <= {"libtvm_ffi.so", *system}
    assert "PATH)" not in tool("readelf", "-dW", str(tmp_path / LAUNCHER)), "neither rpath nor runpath"


def test_it_shows_what_it_exports_and_nothing_else(build, tmp_path, stand_in) -> None:
    more = '\ntemplate <class T> __attribute__((visibility("default"))) int of_template = 0;\n'
    more += '__attribute__((visibility("default"))) int shown() { return ++of_template<int>; }\n'
    (tmp_path / LAUNCHER).write_bytes(build(stand_in + more))
    lines = tool("nm", "-D", "--defined-only", str(tmp_path / LAUNCHER)).splitlines()
    assert {line.split()[-1] for line in lines} == {"__tvm_ffi_image", "__tvm_ffi_names", "__tvm_ffi_placed"}


def test_the_stack_is_not_executable(build, tmp_path) -> None:
    (tmp_path / LAUNCHER).write_bytes(build())
    (line,) = (
        line for line in tool("readelf", "-lW", str(tmp_path / LAUNCHER)).splitlines() if "GNU_STACK" in line
    )
    assert " RW " in line


def test_no_folder_for_tvm_ffi_is_in_it(build, tmp_path) -> None:
    (tmp_path / LAUNCHER).write_bytes(build())
    ask = "import ctypes, sys; ctypes.CDLL(sys.argv[1])"
    words = [sys.executable, "-c", ask, str(tmp_path / LAUNCHER)]
    bare = {name: value for name, value in os.environ.items() if name != "LD_LIBRARY_PATH"}
    done = subprocess.run(words, env=bare, check=False, capture_output=True, text=True)
    assert "libtvm_ffi.so: cannot open shared object file" in done.stderr
    folder = Path(find_host_toolchain("acme").ffi.library).parent
    subprocess.run(words, env={**bare, "LD_LIBRARY_PATH": str(folder)}, check=True)


def test_two_launchers_share_nothing(build, tmp_path) -> None:
    text = """
struct State { static int& count() { static int calls = 0; return calls; } };
inline int shared = 0;
template <class T> int of_template = 0;
#define SHOWN extern "C" __attribute__((visibility("default")))
int untold() { return 0; }
SHOWN int __tvm_ffi_next() { return ++State::count() + ++shared + ++of_template<int>; }
"""
    paths = [tmp_path / "one.so", tmp_path / "two.so"]
    for path in paths:
        path.write_bytes(build(text, path.stem))
    ask = "import ctypes, sys, tvm_ffi\none, two = (ctypes.CDLL(path, ctypes.RTLD_GLOBAL) for path in sys.argv[1:])\n"
    ask += "print(one.__tvm_ffi_next(), one.__tvm_ffi_next(), two.__tvm_ffi_next())"
    assert tool(sys.executable, "-c", ask, *map(str, paths)).split() == ["3", "6", "3"]


def test_more_options_come_last(build, tmp_path) -> None:
    said = "#ifdef __OPTIMIZE__\n#error optimised\n#endif\n"
    with pytest.raises(CompileError, match="optimised"):
        build(said)
    exported = 'extern "C" __attribute__((visibility("default"))) int __tvm_ffi_main() { return 0; }\n'
    assert build(said + exported, "without", options=("-O0",))


def test_the_headers_of_others_give_no_warnings(build) -> None:
    assert build(options=("-Wall", "-Wextra", "-Wpedantic", "-Werror"))


@pytest.mark.parametrize(
    "text",
    ["#include <string>\nextern std::string a; std::string a(99, 'x');", "int* f() { return new int[3]; }"],
)
def test_a_use_of_the_library_of_cpp_is_refused(build, text) -> None:
    with pytest.raises(CompileError, match="undefined"):
        build(text)


def test_an_undefined_name_is_refused(build) -> None:
    with pytest.raises(CompileError, match="cuInit"):
        build("#include <cuda.h>\nint f() { return cuInit(0); }")


def test_the_first_line_that_is_wrong_is_named(build) -> None:
    with pytest.raises(CompileError) as caught:
        build("int one;\nint two = nonsense;\nint three = worse;\n")
    assert caught.value.line == 2
    assert "> 2 | int two = nonsense;" in str(caught.value)


def test_the_fingerprint_tells_all_that_counts(cxx, monkeypatch, tmp_path) -> None:
    first = launcher_fingerprint("acme")
    assert first == launcher_fingerprint("another")
    for part in ("cuda.h: ", "tvm-ffi: ", "-std=c++17", "headers: "):
        assert part in first
    assert "cuda.h" not in launcher_fingerprint("acme", cuda=False)
    monkeypatch.setenv("CXX", f"{cxx} -O3")
    assert launcher_fingerprint("acme") != first


def test_the_fingerprint_changes_with_the_headers_of_launchers(cxx, monkeypatch, tmp_path) -> None:
    folder = tmp_path / "include"
    shutil.copytree(runtime_folder(), folder)
    first = launcher_fingerprint("acme")
    monkeypatch.setattr("trunnion.codegen.cpp.build.runtime_folder", lambda: folder)
    assert launcher_fingerprint("acme") == first, "where they lie does not count"
    header = folder / "trunnion" / "numbers.hpp"
    header.write_text(header.read_text() + "enum { added };\n")
    second = launcher_fingerprint("acme")
    (folder / "trunnion" / "scalars.hpp").unlink()
    assert len({first, second, launcher_fingerprint("acme")}) == 3


@pytest.mark.parametrize("name", ["CPATH", "CPLUS_INCLUDE_PATH"])
def test_the_fingerprint_changes_with_what_the_environment_brings(cxx, monkeypatch, tmp_path, name) -> None:
    first = launcher_fingerprint("acme")
    monkeypatch.setenv(name, str(tmp_path))
    prints = {first, launcher_fingerprint("acme")}
    for text in ("#include_next <string.h>\n#define one\n", "#include_next <string.h>\n#define two\n"):
        (tmp_path / "string.h").write_text(text)
        prints.add(launcher_fingerprint("acme"))
    assert len(prints) == 4
    monkeypatch.delenv(name)
    assert launcher_fingerprint("acme") == first


@pytest.mark.parametrize(
    "name", ["GCC_EXEC_PREFIX", "COMPILER_PATH", "LIBRARY_PATH", "SOURCE_DATE_EPOCH", "CCACHE_PREFIX"]
)
def test_the_fingerprint_changes_with_the_environment(cxx, monkeypatch, name) -> None:
    first = launcher_fingerprint("acme")
    value = "1" if name == "SOURCE_DATE_EPOCH" else "/nowhere/"
    monkeypatch.setenv(name, value)
    try:
        assert launcher_fingerprint("acme") != first
    except BackendUnavailableError:  # some compilers find nothing of their own there
        assert name == "GCC_EXEC_PREFIX"
    monkeypatch.delenv(name)
    assert launcher_fingerprint("acme") == first


def test_an_object_is_linked_and_may_use_the_library_of_cpp(cxx, tmp_path) -> None:
    (tmp_path / "o.cc").write_text(
        '#include <string>\nextern "C" __attribute__((visibility("hidden"))) int kernel(int n) '
        "{ return std::string(n, 'x').size(); }\n"
        'extern "C" __attribute__((visibility("hidden"))) bool trunnion_fits() noexcept { return true; }\n'
        'extern "C" __attribute__((visibility("hidden"))) const char trunnion_architecture[] = "any";'
    )
    tool(cxx, "-fPIC", "-c", "-o", str(tmp_path / "o.o"), str(tmp_path / "o.cc"))
    image = DeviceImage(
        kind="host-object", data=(tmp_path / "o.o").read_bytes(), target=Target("cpu", "x86_64"), kernels=()
    )
    text = (
        '#include <tvm/ffi/c_api.h>\nextern "C" {\n__attribute__((visibility("hidden"))) int kernel(int);\n'
    )
    text += (
        '__attribute__((visibility("default"))) int32_t __tvm_ffi_main(void*, const TVMFFIAny*, int32_t n,'
    )
    text += " TVMFFIAny* r) {\n  r->type_index = kTVMFFIInt;\n  r->zero_padding = 0;\n"
    text += "  r->v_int64 = kernel(41 + n);\n  return 0;\n}\n}\n"
    (tmp_path / "staging").mkdir()
    library = build_launcher(text, image, (), tmp_path / "staging", plugin="acme")
    (tmp_path / "cpu.so").write_bytes(library)
    ask = "import sys, tvm_ffi; print(tvm_ffi.load_module(sys.argv[1])['main'](1))"
    assert tool(sys.executable, "-c", ask, str(tmp_path / "cpu.so")).strip() == "42"


def test_sanitizers_watch_a_launcher_of_gcc(monkeypatch, tmp_path, stand_in, embedded) -> None:
    monkeypatch.setenv("CXX", "g++")
    broken = """
#define SHOWN extern "C" __attribute__((visibility("default")))
SHOWN int __tvm_ffi_over(int index) { volatile int values[3] = {}; return values[index]; }
SHOWN int __tvm_ffi_sum(int one, int two) { return one + two; }
"""
    watch = ("-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-lasan", "-lubsan")
    library = build_launcher(stand_in + broken, embedded(), ("k",), tmp_path, plugin="acme", options=watch)
    (tmp_path / LAUNCHER).write_bytes(library)
    preload = [tool("g++", f"-print-file-name={name}").strip() for name in ("libasan.so", "libubsan.so")]
    settings = {"LD_PRELOAD": ":".join(preload), "ASAN_OPTIONS": "detect_leaks=0"}

    def run(call: str) -> subprocess.CompletedProcess[str]:
        ask = f"import sys, ctypes, tvm_ffi\nlauncher = ctypes.CDLL(sys.argv[1])\n{call}"
        words = [sys.executable, "-c", ask, str(tmp_path / LAUNCHER)]
        return subprocess.run(
            words, env={**os.environ, **settings}, check=False, capture_output=True, text=True
        )

    assert run("print(launcher.__tvm_ffi_sum(1, 2), launcher.__tvm_ffi_over(1))").stdout == "3 0\n"
    assert "signed integer overflow" in run("launcher.__tvm_ffi_sum(2**31 - 1, 1)").stderr
    assert "out of bounds" in run("launcher.__tvm_ffi_over(3)").stderr
