"""What a compilation reads is told apart by all that it can depend on, and the compiler is run only if that changed."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import platformdirs
import pytest

from trunnion.errors import CompileError
from trunnion.storage import remembered
from trunnion.storage.stamps import witnessed
from trunnion.toolchain import host_reading as subject
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
        named = "#include H" not in text and "(H)" not in text  # what a macro makes up could be any file
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
        "#define H <late.h>\n#if defined(__has_include) && __has_include(H)\nint late;\n#endif\n",
        "#define H <late.h>\n/* see #else */ #if __has_include(H)\nint late;\n#endif\n",
        "#define H <below/late.h>\n#if defined(__has_include) && __has_include(H)\nint late;\n#endif\n",
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


def test_a_folder_where_a_link_leads_that_becomes_a_header(read, tmp_path) -> None:
    one, elsewhere = folders(tmp_path, "one", "elsewhere")
    (one / "late.h").symlink_to(elsewhere / "later")
    (elsewhere / "later").mkdir()
    text = "#if __has_include(<late.h>)\nint late;\n#endif\n"
    first = read(text, f"-I{one}")
    (elsewhere / "later").rmdir()
    (elsewhere / "later").touch()
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


@pytest.fixture
def tells(real, settled, monkeypatch):
    """Whether anybody can tell what a text reads: else no answer comes twice."""

    def telling(text: str, *options: str, **inputs: str) -> bool:
        monkeypatch.setenv("CXX", real)
        wanted = HostCompilation(
            source="unit.cc",
            text=text,
            output="",
            options=("-c", "-I.", *options, "unit.cc"),
            inputs={f"{name}.h": data.encode() for name, data in inputs.items()},
        )
        first, second = (read_host(host_compiler("acme"), wanted, "acme") for _ in range(2))
        assert (first.text == second.text) is (first.headers == second.headers)
        return first == second

    return telling


@pytest.mark.parametrize(
    "text",
    [
        'asm(".incbin \\"/etc/hostname\\"");\n',
        '#define READS ".inc" "bin \\"x\\""\n#define ALL ".include \\"x\\""\nasm(ALL);\n',
        'asm(".inc"\n    "bin \\"x\\"");\n',
        'asm("\\x2eincbin \\"x\\"");\n',
        '#include "held.h"\n',
    ],
)
def test_nobody_can_tell_where_the_assembler_reads_files(tells, text) -> None:
    assert not tells(text, held='asm(".incbin \\"x\\"");')
    assert tells('int x; const char* said = "no .inc, no bin";\n')


@pytest.mark.parametrize("place", ["v.h.gch", "../earlier/v.h.gch", "forced.h.gch"])
def test_nobody_can_tell_where_a_precompiled_header_lies(tells, tmp_path, place) -> None:
    earlier, folder = folders(tmp_path, "earlier", "in")
    (folder / "v.h").touch()
    (folder / "forced.h").touch()
    options = (f"-I{earlier}", f"-I{folder}", "-include", f"{folder}/forced.h")
    assert tells("#include <v.h>\n", *options)
    (folder / place).touch()
    assert not tells("#include <v.h>\n", *options)


@pytest.mark.parametrize("name", ["early.h", "below/early.h"])
@pytest.mark.parametrize("how", ["#include", "#import", "-include", "-imacros"])
def test_a_header_that_appears_before_the_one_that_is_found(read, tmp_path, name, how) -> None:
    one, two = folders(tmp_path, "one", "two")
    (one / "below").mkdir()
    (two / name).parent.mkdir(exist_ok=True)
    (two / name).write_text("#define FOUND 1\n")
    words = f"-I{one} -I{two}"
    text = "int x;\n"
    if how.startswith("-"):
        words += f" {how} {name}"
    else:
        text = f"{how} <{name}>\n"
    first = read(text, words=words)
    (one / name).write_text("#define FOUND 2\n")
    assert read(text, words=words).text != first.text


@pytest.mark.parametrize("twin", ["one", "nowhere"])
def test_a_link_among_the_folders_that_comes_to_lead_elsewhere(read, tmp_path, monkeypatch, twin) -> None:
    """The compiler leaves out a folder that is another one today, or that is not there."""
    one, two = folders(tmp_path, "one", "two")
    (two / "late.h").write_text("int late;\n")
    link = tmp_path / "link"
    link.symlink_to(tmp_path / twin)
    monkeypatch.setenv("CPATH", f"{one}:{link}")
    text = "#if __has_include(<late.h>)\n#include <late.h>\n#endif\n"
    first = read(text)
    link.unlink()
    link.symlink_to(two)
    assert read(text).text != first.text


@pytest.mark.parametrize("variable", ["PATH", "COMPILER_PATH"])
@pytest.mark.parametrize("tool", ["as", "ld"])
def test_a_part_that_appears_before_another_counts(read, tmp_path, monkeypatch, tool, variable) -> None:
    (folder,) = folders(tmp_path, "parts")
    monkeypatch.setenv(variable, f"{folder}{os.pathsep}{os.environ.get(variable, '')}".rstrip(os.pathsep))
    first = read("int x;\n")
    program = folder / tool
    program.write_text(f'#!/bin/sh\nexec {shutil.which(tool)} "$@"\n')
    program.chmod(0o755)
    assert read("int x;\n").text != first.text


def test_what_was_read_is_witnessed_whether_it_is_asked_or_remembered(read, tmp_path) -> None:
    (folder,) = folders(tmp_path, "in")
    seen = []
    for written in (True, False, True):
        if written:
            (folder / "v.h").write_text("int v;\n")
        with witnessed() as read_now:
            read("#include <v.h>\n", f"-I{folder}")
        seen.append(read_now)
    assert seen[0] == seen[1] != seen[2], "it holds what it held, and was written to"


@pytest.mark.parametrize(
    "text",
    [
        "#define H <late.h>\n#if __has_include(H)\nint late;\n#endif\n",
        '#if __has_include("../../late.h")\nint late;\n#endif\n',
        "#define CAT(a, b) a##b\n#if CAT(__has_,include)(<late.h>)\nint late;\n#endif\n",
        "#if ALIAS(<late.h>)\nint late;\n#endif\n",
        "#if ASK(<late.h>)\nint late;\n#endif\n",
    ],
)
@pytest.mark.parametrize("where", ["an option", "CXX"])
def test_what_nobody_can_name_is_asked_for_each_time(real, runs, tmp_path, monkeypatch, text, where) -> None:
    defines = ("-DALIAS=__has_include", "-DASK(x)=__has_include(x)")
    (tmp_path / "words").write_text(" ".join(f"'{word}'" for word in defines))
    monkeypatch.setattr(remembered, "_SETTLED", -(10**18))
    monkeypatch.setenv("CXX", real if where == "an option" else f"{real} @{tmp_path}/words")
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    options = (f"-I{tmp_path}", *(defines if where == "an option" else ()), "unit.cc")
    wanted = HostCompilation(source="unit.cc", text=text, output="", options=options)
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


@pytest.mark.parametrize("before", ["env", "nice -n 5"])
def test_a_compiler_behind_another_program_counts(real, settled, tmp_path, monkeypatch, before) -> None:
    """By its name alone it is looked for on PATH: its text counts, and one that comes to be found before it."""
    first, second = folders(tmp_path, "first", "second")
    monkeypatch.setenv("PATH", f"{first}:{second}:{os.environ['PATH']}")
    monkeypatch.setenv("CXX", f"{before} compiler")
    wanted = HostCompilation(source="unit.cc", text="int x = X;\n", output="", options=("unit.cc",))
    prints = []
    for place, value in ((second, 1), (second, 2), (first, 3), (first, 4), (first, 3)):
        (place / "compiler").write_text(f'#!/bin/sh\nexec {real} -DX={value} "$@"\n')
        (place / "compiler").chmod(0o755)
        prints.append(read_host(host_compiler("acme"), wanted, "acme").text)
    assert len(set(prints)) == 4
    assert prints[2] == prints[4]


def test_the_text_of_a_script_counts(script, real, settled, monkeypatch) -> None:
    """What it tells the assembler or the linker shows in nothing that the preprocessor says."""
    prints = set()
    for value in (1, 2, 2):
        path = script("wrapped", f'exec {real} -Wa,--defsym,ANSWER={value} "$@"')
        monkeypatch.setenv("CXX", str(path))
        wanted = HostCompilation(source="unit.cc", text="int x;\n", output="", options=("unit.cc",))
        prints.add(read_host(host_compiler("acme"), wanted, "acme").text)
    assert len(prints) == 2


@pytest.mark.parametrize(
    "words", ["-Wa,@{0}", "-Wa,--warn,@{0},-mrelax-relocations=no", "-specs={0}", "@{1}"]
)
def test_a_file_that_cxx_names_counts_by_its_contents(read, tmp_path, words) -> None:
    (tmp_path / "named").mkdir()
    file, options = tmp_path / "named" / "file", tmp_path / "named" / "options"
    options.write_text(f"-O1 -Wa,@{file}")
    prints = []
    for value in ("1", "2", "1"):
        file.write_text(f"--defsym X={value}\n" if "specs" not in words else f"*cc1:\n+ -DX={value}\n\n")
        prints.append(read("int x;\n", words=words.format(file, options)).text)
    assert prints[0] == prints[2] != prints[1]


def test_an_error_is_raised_without_what_nobody_asked_for(real, settled, monkeypatch) -> None:
    monkeypatch.setenv("CXX", real)
    wanted = HostCompilation(source="unit.cc", text="int x;\n#error no\n", output="", options=("unit.cc",))
    with pytest.raises(CompileError) as caught:
        read_host(host_compiler("acme"), wanted, "acme")
    assert caught.value.line == 2
    assert "search starts here" not in caught.value.log
