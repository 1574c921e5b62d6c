from __future__ import annotations

from pathlib import Path

import cuda.pathfinder
import pytest

from trunnion.model.code import DeviceCode
from trunnion.storage.stamps import stamp
from trunnion.toolchain.search import Place
from trunnion_nvrtc import installation
from trunnion_nvrtc.compiler import headers
from trunnion_nvrtc.compiler.headers import needs_toolkit, toolkit_directories


def reachable_headers(*arguments, **named) -> tuple[str, ...]:
    return headers.reachable_headers(*arguments, **named).names


def code(source: str, **includes: str) -> DeviceCode:
    return DeviceCode("cuda", source, includes=tuple((f"{name}.h", text) for name, text in includes.items()))


@pytest.mark.parametrize(
    ("source", "needed"),
    [
        ("int x;", False),
        ("int include;\n// include <a.h>", False),
        ('#include "mine.h"', False),
        ("#include <mine.h>", False),
        ("#include <cuda_fp16.h>", True),
        ("  #  include<cuda_fp16.h>", True),
        ('\t#include"other.h"', True),
        ("#include MACRO", True),
        ("#include_next <a.h>", True),
        ("#if 0\n#include <cuda_fp16.h>\n#endif", True),
    ],
)
def test_needs_toolkit(source: str, needed: bool) -> None:
    assert needs_toolkit(code(source, mine="")) is needed
    assert needs_toolkit(code('#include "outer.h"', outer=source, mine="")) is needed


def test_cycles_end(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text('#include "b.h"\n')
    (tmp_path / "b.h").write_text('#include <a.h>\n#include "mine.h"\n#include "absent.h"\n')
    found = reachable_headers(
        code('#include "mine.h"', mine='#include "mine.h"\n#include "a.h"'), [str(tmp_path)]
    )
    assert found == tuple(sorted([str(tmp_path / "a.h"), str(tmp_path / "b.h"), "mine.h"]))


def test_a_header_in_memory_goes_before_a_file(tmp_path: Path) -> None:
    (tmp_path / "mine.h").write_text("")
    assert reachable_headers(code('#include "mine.h"', mine=""), [str(tmp_path)]) == ("mine.h",)


def test_the_first_directory_wins_and_beside_the_includer_comes_first(tmp_path: Path) -> None:
    for folder in ("one", "two", "two/deep"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "x.h").write_text("")
    (tmp_path / "two" / "deep" / "top.h").write_text('#include "x.h"\n')
    (tmp_path / "two" / "deep" / "angled.h").write_text("#include <x.h>\n")
    directories = [str(tmp_path / "one"), str(tmp_path / "two")]

    def reached(name: str) -> set[str]:
        found = reachable_headers(code(f"#include <deep/{name}>"), directories)
        return {str(Path(path).relative_to(tmp_path)) for path in found}

    assert reached("top.h") == {"two/deep/top.h", "two/deep/x.h"}
    assert reached("angled.h") == {"two/deep/angled.h", "one/x.h"}


def test_a_changed_file_is_read_again(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("")
    (tmp_path / "b.h").write_text("")
    source = code("#include <a.h>")
    assert len(reachable_headers(source, [str(tmp_path)])) == 1
    (tmp_path / "a.h").write_text("#include <b.h>\n")
    assert len(reachable_headers(source, [str(tmp_path)])) == 2


def test_bytes_in_no_encoding_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_bytes(b"// \xff\xfe\n#include <b.h>\n")
    (tmp_path / "b.h").write_bytes(b"")
    assert len(reachable_headers(code("#include <a.h>"), [str(tmp_path)])) == 2


def test_the_toolkits_directories_are_those_of_pathfinder(monkeypatch: pytest.MonkeyPatch) -> None:
    for directory in toolkit_directories():
        assert Path(directory).is_dir()
    found = {"cudart": "/toolkit/include", "cccl": "/toolkit/include/cccl"}
    monkeypatch.setattr(cuda.pathfinder, "find_nvidia_header_directory", found.get)
    assert toolkit_directories() == ("/toolkit/include", "/toolkit/include/cccl")
    found["cudart"] = "/wheel/include"  # a wheel that has not the C++ library, beside a toolkit that has
    assert toolkit_directories() == ("/wheel/include", "/toolkit/include/cccl", "/toolkit/include")
    monkeypatch.setattr(cuda.pathfinder, "find_nvidia_header_directory", lambda _: None)
    assert toolkit_directories() == ()


def toolkit(folder: Path, version: int, *headers: str) -> str:
    for name in headers:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    (folder / "cuda.h").write_text(f"#define CUDA_VERSION {version}\n")
    (folder / "cuda_runtime_api.h").write_text(f"#define CUDART_VERSION {version}\n")
    return str(folder)


def test_what_a_wheel_lacks_comes_from_a_toolkit_of_its_version(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """``mma.h`` is in the wheel of the headers, ``crt/mma.h`` in another one."""
    wheel = toolkit(tmp_path / "wheel", 13000, "mma.h")
    names = {"old": 12090, "host": 13000, "same": 13010}
    folders = [toolkit(tmp_path / name, version, "crt/mma.h") for name, version in names.items()]
    (tmp_path / "host" / "stdlib.h").write_text("")
    monkeypatch.setattr(cuda.pathfinder, "find_nvidia_header_directory", {"cudart": wheel}.get)
    for count, spare in ((0, ()), (2, ()), (3, (folders[2],))):
        places = [Place("toolkit", ""), *(Place("toolkit", folder) for folder in folders[:count])]
        monkeypatch.setattr(installation, "cuda_places", lambda found=places: found)
        assert toolkit_directories() == (wheel, *spare)
    toolkit(tmp_path / "wheel", 13000, "crt/mma.h")
    assert toolkit_directories() == (wheel,)


def test_the_versions_of_files_are_told(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("12345")
    found = headers.reachable_headers(code('#include <a.h>\n#include "m.h"', m=""), [str(tmp_path)])
    assert (found.held, found.files) == (("m.h",), (str(tmp_path / "a.h"),))
    assert found.versions == (stamp(str(tmp_path / "a.h")),)


def test_what_is_included_first(tmp_path: Path) -> None:
    (tmp_path / "a.h").write_text("#include <b.h>")
    (tmp_path / "b.h").write_text("")
    source = code("int x;", mine='#include "a.h"')
    assert reachable_headers(source, [str(tmp_path)]) == ()
    assert len(reachable_headers(source, [str(tmp_path)], ["a.h"])) == 2
    assert len(reachable_headers(source, [str(tmp_path)], ["mine.h"])) == 3
    assert reachable_headers(source, [], [str(tmp_path / "b.h")]) == (str(tmp_path / "b.h"),)
    assert not needs_toolkit(code("int x;", mine=""), ["mine.h"])
    assert needs_toolkit(source, ["other.h"])


@pytest.mark.parametrize("name", ["../up.h", "deep/../../up.h", "{tmp}/up.h", "./../up.h"])
def test_names_that_lead_elsewhere_are_followed_as_nvrtc_follows_them(tmp_path: Path, name: str) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "up.h").write_text("")
    source = code(f'#include "{name.format(tmp=tmp_path)}"')
    (found,) = reachable_headers(source, [str(tmp_path / "in")])
    assert Path(found).resolve() == tmp_path / "up.h"


@pytest.mark.parametrize("name", ["nul\0.h", "x" * 5000, "folder"])
def test_names_that_no_file_has(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    assert reachable_headers(code(f"#include <{name}>".replace("\0", "\1")), [str(tmp_path)]) == ()


@pytest.mark.parametrize("text", ["// #include <a.h>", "x(); #include <a.h>", "/* */ #include <a.h>"])
def test_more_is_followed_than_is_included(tmp_path: Path, text: str) -> None:
    (tmp_path / "a.h").write_text("")
    assert len(reachable_headers(code(text), [str(tmp_path)])) == 1


def test_a_comment_that_speaks_of_including_needs_no_headers() -> None:
    assert not needs_toolkit(code("int x; // not #include at all"))


def test_a_name_that_a_macro_makes_up_may_be_any_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "in" / "deep").mkdir(parents=True)
    (tmp_path / "in" / "deep" / "a.h").write_text("")
    (tmp_path / "in" / "b.h").write_text("#define C")
    (tmp_path / "out.h").write_text("")
    (tmp_path / "toolkit").mkdir()
    (tmp_path / "toolkit" / "own.h").write_text("#include MACRO")
    places = ([str(tmp_path / "in")], (), [str(tmp_path / "toolkit")])
    assert len(headers.reachable_headers(code("#include <own.h>"), *places).files) == 1
    found = headers.reachable_headers(code(f'#define H "{tmp_path}/out.h"\n#include H'), *places)
    assert {Path(path).name for path in found.files} == {"a.h", "b.h", "out.h"}
    assert found.complete
    monkeypatch.setattr(headers, "_MOST_FILES", 1)
    assert not headers.reachable_headers(code("#include H"), *places).complete
    assert headers.reachable_headers(code("#include <b.h>"), *places).complete
    monkeypatch.setattr(headers, "_MOST_FILES", 100)
    monkeypatch.setattr(headers, "_MOST_BYTES", 8)
    assert not headers.reachable_headers(code("#include H"), *places).complete


ELSEWHERE = [
    pytest.param('#define A "b.h"\n#include A', {"in/b.h": '#define C "OUT/late.h"\n#include C'}, id="chain"),
    pytest.param(
        '#define A "b.h"\n#include A\n#include C', {"in/b.h": '#define C "OUT/late.h"'}, id="later-macro"
    ),
    pytest.param(
        "#define S(x) #x\n#include S(b.h)\n#include C", {"in/b.h": '#define C "OUT/late.h"'}, id="in-a-folder"
    ),
    pytest.param('#define C "late.h"\n#include "OUT/x.h"', {"out/x.h": "#include C"}, id="beside"),
    pytest.param(
        '#include "OUT/x.h"', {"out/x.h": "#define S(x) #x\n#include S(late.h)"}, id="quoted-beside"
    ),
    pytest.param('#define ID(x) x\n#include ID("OUT/late.h")', {}, id="given"),
    pytest.param("#define S(x) #x\n#define T(x) S(x)\n#include T(OUT/late.h)", {}, id="quoted"),
    pytest.param("#define S(x) #x\n#define T(x) S(x)\n#include T(../out/late.h)", {}, id="upwards"),
    pytest.param(
        '#include "m.h"\n#include <a.h>', {"in/a.h": "", "m.h": '#define N "late.h"\n#include N'}, id="held"
    ),
    pytest.param(
        '#define N <late.h>\n#include "m.h"\n#include <a.h>',
        {"in/a.h": "", "m.h": '#include "near.h"', "out/near.h": "#include N", "in/late.h": ""},
        id="near-a-held-one",
    ),
]


@pytest.mark.parametrize(("source", "texts"), ELSEWHERE)
def test_whatever_a_macro_names_is_followed_or_nobody_knows_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, source: str, texts: dict[str, str]
) -> None:
    """An image of an older header would be given out again, else; the working directory is ``out``."""
    for folder in ("in", "out"):
        (tmp_path / folder).mkdir()
    monkeypatch.chdir(tmp_path / "out")
    (tmp_path / "out" / "late.h").write_text("")
    texts = {name: text.replace("OUT", str(tmp_path / "out")) for name, text in texts.items()}
    held = {"m": texts.pop("m.h")} if "m.h" in texts else {}
    for name, text in texts.items():
        (tmp_path / name).write_text(text)
    written = code(source.replace("OUT", str(tmp_path / "out")), **held)
    found = headers.reachable_headers(written, [str(tmp_path / "in")])
    assert not found.complete or "late.h" in {Path(path).name for path in found.files}


def test_a_macro_of_a_file_that_changed_just_now_is_read_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its stamp may be the same."""
    (tmp_path / "in").mkdir()
    (tmp_path / "x.h").write_text("")
    file = tmp_path / "in" / "a.h"
    file.write_text("")
    first = stamp(str(file))
    monkeypatch.setattr(headers, "_settled", lambda _version: False)
    monkeypatch.setattr(headers, "stamp", lambda path: first if path == str(file) else stamp(path))
    for name, length in (("y", 0), ("x", 1)):
        file.write_text(f'#define N "{tmp_path}/{name}.h"\n#include N\n')
        found = headers.reachable_headers(code("#include <a.h>"), [str(tmp_path / "in")])
        assert len([path for path in found.files if path.endswith("x.h")]) == length


def test_the_next_header_of_a_name(tmp_path: Path) -> None:
    for folder in ("one", "two"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "a.h").write_text("#include_next <a.h>")
    directories = [str(tmp_path / "one"), str(tmp_path / "two")]
    assert len(reachable_headers(code("#include <a.h>"), directories)) == 2


def test_the_working_directory_counts_where_nvrtc_looks_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    (tmp_path / "in").mkdir()
    (tmp_path / "here" / "a.h").write_text("")
    (tmp_path / "in" / "b.h").write_text("")
    monkeypatch.chdir(tmp_path / "here")
    directories = [str(tmp_path / "in")]
    alone = headers.reachable_headers(code('#include "m.h"', m='#include "a.h"'), directories)
    assert (alone.files, alone.on_disk) == ((), False)
    both = headers.reachable_headers(code('#include "m.h"\n#include <b.h>', m='#include "a.h"'), directories)
    assert {Path(path).name for path in both.files} == {"a.h", "b.h"}
    assert both.on_disk


@pytest.mark.parametrize(
    ("text", "defines"),
    [
        ("#if ASK(<late.h>)\n#endif", (("ASK", "__has_include"),)),
        ("#if ASK(<late.h>)\n#endif", (("ASK(x)", "__has_include(x)"),)),
        ("#define CAT(a, b) a##b\n#if CAT(__has_, include)(<late.h>)\n#endif", ()),
        ("#if CAT(__has_, include)(<late.h>)\n#endif", (("CAT(a, b)", "a##b"),)),
        ('#include "cat.h"\n#if CAT(<late.h>)\n#endif', ()),
    ],
)
def test_a_question_that_a_macro_makes_up_is_seen(tmp_path: Path, text: str, defines: tuple) -> None:
    (tmp_path / "cat.h").write_text("#define CAT(x) __has_##include(x)\n")
    asked = DeviceCode("cuda", text, defines=defines)
    assert needs_toolkit(asked)
    before = headers.reachable_headers(asked, [str(tmp_path)])
    (tmp_path / "late.h").touch()
    assert not before.complete or headers.reachable_headers(asked, [str(tmp_path)]).files != before.files
