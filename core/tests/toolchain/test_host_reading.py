"""What a compilation reads is told apart by all that it can depend on, and the compiler is run only if that changed."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING

import platformdirs
import pytest

from trunnion.errors import CompileError
from trunnion.toolchain import host_reading as subject
from trunnion.toolchain import remembered
from trunnion.toolchain.host_compilation import HostCompilation
from trunnion.toolchain.host_compiler import host_compiler
from trunnion.toolchain.host_reading import HostReading, read_host

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=["asked", "remembered"])
def settled(request, tmp_path, monkeypatch):
    """Whether what files were before the question may be remembered: then only a change of them is noticed."""
    monkeypatch.setattr(platformdirs, "user_cache_path", lambda name: tmp_path / "cache" / name)
    remembered._memory.cache_clear()
    monkeypatch.setattr(remembered, "_SETTLED", -(10**18) if request.param == "remembered" else 10**18)
    return request.param == "remembered"


@pytest.fixture
def runs(monkeypatch):
    """How often the preprocessor ran."""
    seen = []

    def run_host(compiler, wanted, folder, plugin, *, run=subject.run_host):
        seen.append(wanted)
        return run(compiler, wanted, folder, plugin)

    monkeypatch.setattr(subject, "run_host", run_host)
    return seen


@pytest.fixture
def read(real, settled, runs, monkeypatch):
    """Read a text with each compiler; what remembers is asked twice, and must not run it again."""

    def reading(text: str, *options: str, words: str = "", **inputs: str) -> HostReading:
        monkeypatch.setenv("CXX", f"{real} {words}".strip())
        wanted = HostCompilation(
            source="unit.cc",
            text=text,
            output="",
            options=("-c", "-I.", *options, "unit.cc"),
            inputs={f"{name}.h": data.encode() for name, data in inputs.items()},
        )
        first = read_host(host_compiler("acme"), wanted, "acme")
        before = len(runs)
        assert read_host(host_compiler("acme"), wanted, "acme") == first
        named = "#include H" not in text  # what a macro makes up could be any file
        assert (len(runs) == before) is (settled and named)
        return first

    return reading


def folders(tmp_path: Path, *names: str) -> list[Path]:
    made = [tmp_path / name for name in names]
    for folder in made:
        folder.mkdir()
    return made


@pytest.mark.parametrize(
    "text",
    [
        '#if __has_include("late.h")\nint late;\n#endif\n',
        "#if __has_include(<late.h>)\n#define LATE 1\n#endif\n",
        "#if __has_include(<below/late.h>)\nint late;\n#endif\n",
        '#include "asks.h"\n',
        '#include "early.h"\n',
    ],
)
def test_a_header_that_appears(read, tmp_path, text) -> None:
    one, two = folders(tmp_path, "one", "two")
    (two / "asks.h").write_text(
        "#ifdef __cplusplus\n#if __has_include(<late.h>)\nint late;\n#endif\n#endif\n"
    )
    (two / "early.h").write_text("int early;\n")
    places = (f"-I{one}", f"-I{tmp_path}/nowhere", f"-I{two}")
    prints = [read(text, *places)]
    for place, name in ((one, "late.h"), (one, "below/late.h"), (one, "early.h")):
        (place / name).parent.mkdir(exist_ok=True)
        (place / name).write_text(f"long {place.name};\n")
    prints.append(read(text, *places))
    (tmp_path / "nowhere").mkdir()
    (tmp_path / "nowhere" / "early.h").write_text("long nowhere;\n")
    (one / "early.h").unlink()
    if "early" in text:
        prints.append(read(text, *places))
    assert len({one.text for one in prints}) == len(prints)


@pytest.mark.parametrize("link", ["late.h", "below"])
def test_a_header_that_appears_where_a_link_leads(read, tmp_path, link) -> None:
    one, elsewhere = folders(tmp_path, "one", "elsewhere")
    (one / link).symlink_to(elsewhere / "later")
    text = f"#if __has_include(<{'late.h' if link == 'late.h' else 'below/late.h'}>)\nint late;\n#endif\n"
    first = read(text, f"-I{one}")
    if link == "below":
        (elsewhere / "later").mkdir()
        assert read(text, f"-I{one}") == first
    (elsewhere / "later" / "late.h" if link == "below" else elsewhere / "later").touch()
    assert read(text, f"-I{one}").text != first.text


@pytest.mark.parametrize(
    "text",
    ['#include "v.h"\n', "#define H <v.h>\n#include H\n", "#include <next.h>\n", '#include "link.h"\n'],
)
def test_a_header_that_changes(read, tmp_path, text) -> None:
    first, second = folders(tmp_path, "first", "second")
    (first / "next.h").write_text("#include_next <next.h>\n")
    (second / "next.h").write_text('#include "v.h"\n')
    (first / "link.h").symlink_to(second / "v.h")
    prints = []
    for value in ("1", "2", "1 "):
        (second / "v.h").write_text(f"int v = {value.strip()};//{value}\n")
        prints.append(read(text, f"-I{first}", f"-I{second}"))
    (second / "w.h").write_text("int w;\n")
    (second / "v.h").unlink()
    (second / "v.h").symlink_to(second / "w.h")
    prints.append(read(text, f"-I{first}", f"-I{second}"))
    assert len({one.headers for one in prints}) == 4
    assert prints[0].text == prints[2].text, "a comment makes no other code"
    assert len({one.text for one in prints}) == 3


def test_where_headers_lie_does_not_count_for_the_text(read, tmp_path) -> None:
    one, two = folders(tmp_path, "one", "two")
    for folder in (one, two):
        (folder / "v.h").write_text("int v;\n")
    prints = [read("#include <v.h>\n", f"-I{folder}") for folder in (one, two)]
    assert prints[0].text == prints[1].text
    assert prints[0].headers != prints[1].headers


def test_the_order_of_folders_counts(read, tmp_path) -> None:
    one, two = folders(tmp_path, "one", "two")
    for folder in (one, two):
        (folder / "v.h").write_text(f"int {folder.name};\n")
    prints = {
        read("#include <v.h>\n", *order).text
        for order in ((f"-I{one}", f"-I{two}"), (f"-I{two}", f"-I{one}"))
    }
    assert len(prints) == 2


@pytest.mark.parametrize("name", ["CPATH", "CPLUS_INCLUDE_PATH"])
def test_what_an_environment_brings_goes_with_it(read, tmp_path, monkeypatch, name) -> None:
    (folder,) = folders(tmp_path, "brought")
    (folder / "stdint.h").write_text("#include_next <stdint.h>\n#define BROUGHT\n")
    first = read("#include <stdint.h>\n")
    monkeypatch.setenv(name, str(folder))
    brought = read("#include <stdint.h>\n")
    (folder / "stdint.h").write_text("#include_next <stdint.h>\n")
    changed = read("#include <stdint.h>\n")
    monkeypatch.delenv(name)
    assert len({first.text, brought.text}) == 2
    assert changed.text == read("#include <stdint.h>\n").text == first.text


def test_what_the_words_of_cxx_name_counts(read, tmp_path) -> None:
    forced, words = tmp_path / "forced.h", tmp_path / "words"
    prints = []
    for value in ("one", "two"):
        forced.write_text(f"int {value};\n")
        words.write_text(f"-DNAME={value} -m{'avx' if value == 'one' else 'sse3'}")
        prints += [read("int x;\n", words=f"-include {forced}"), read("int NAME;\n", words=f"@{words}")]
    assert len({one.text for one in prints}) == 4


@pytest.mark.parametrize("words", ["-mavx", "-O3", "-ffast-math", "-fwrapv"])
def test_the_options_that_a_compiler_is_given_count(read, words) -> None:
    assert read("int x;\n", words=words).text != read("int x;\n").text


@pytest.mark.parametrize("tool", ["cc1plus", "as", "ld"])
def test_a_part_that_is_replaced_in_place_counts(read, real, tmp_path, tool) -> None:
    if "clang" in real and tool == "cc1plus":
        return  # it has no such part: it is one program
    found = subprocess.run([real, f"-print-prog-name={tool}"], capture_output=True, text=True, check=True)
    (folder,) = folders(tmp_path, "parts")
    prints = []
    for version in "12":
        program = folder / tool
        program.write_text(f'#!/bin/sh\n# {version}\nexec {shutil.which(found.stdout.strip())} "$@"\n')
        program.chmod(0o755)
        prints.append(read("int x;\n", words=f"-B{folder}/"))
    assert prints[0].text != prints[1].text


@pytest.mark.parametrize(
    "text",
    [
        'asm(".incbin \\"/etc/hostname\\"");\n',
        '#define READS ".inc" "bin \\"x\\""\n#define ALL ".include \\"x\\""\nasm(ALL);\n',
        '#include "held.h"\n',
    ],
)
def test_a_file_that_the_assembler_reads_is_said_not_to_be_known(read, text) -> None:
    assert not read(text, held='asm(".incbin \\"x\\"");').whole
    assert read("int x;\n").whole


def test_a_precompiled_header_beside_a_header_is_said_not_to_be_known(read, tmp_path) -> None:
    (folder,) = folders(tmp_path, "in")
    (folder / "v.h").touch()
    assert read("#include <v.h>\n", f"-I{folder}").whole
    (folder / "v.h.gch").touch()
    assert not read("#include <v.h>\n", f"-I{folder}").whole


@pytest.mark.parametrize(
    "text",
    [
        "#define H <late.h>\n#if __has_include(H)\nint late;\n#endif\n",
        '#if __has_include("../../late.h")\nint late;\n#endif\n',
    ],
)
def test_what_nobody_can_name_is_asked_for_each_time(real, runs, tmp_path, monkeypatch, text) -> None:
    monkeypatch.setattr(remembered, "_SETTLED", -(10**18))
    monkeypatch.setenv("CXX", real)
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    wanted = HostCompilation(source="unit.cc", text=text, output="", options=(f"-I{tmp_path}", "unit.cc"))
    prints = set()
    for _ in range(2):
        prints.add(read_host(host_compiler("acme"), wanted, "acme").text)
        (tmp_path / "late.h").touch()
    assert len(prints) == len(runs) == 2


def test_what_a_script_runs_is_asked_for_each_time(script, real, runs, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(remembered, "_SETTLED", -(10**18))
    (tmp_path / "setting").write_text("-DX=1")
    monkeypatch.setenv("CXX", str(script("wrapped", f'exec {real} $(cat {tmp_path}/setting) "$@"')))
    wanted = HostCompilation(source="unit.cc", text="int x = X;\n", output="", options=("unit.cc",))
    first = read_host(host_compiler("acme"), wanted, "acme")
    (tmp_path / "setting").write_text("-DX=2")
    assert read_host(host_compiler("acme"), wanted, "acme") != first


def test_an_error_is_raised_without_what_nobody_asked_for(real, settled, monkeypatch) -> None:
    monkeypatch.setenv("CXX", real)
    wanted = HostCompilation(source="unit.cc", text="int x;\n#error no\n", output="", options=("unit.cc",))
    with pytest.raises(CompileError) as caught:
        read_host(host_compiler("acme"), wanted, "acme")
    assert caught.value.line == 2
    assert "search starts here" not in caught.value.log
