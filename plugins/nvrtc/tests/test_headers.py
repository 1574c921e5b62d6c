from __future__ import annotations

from pathlib import Path

import cuda.pathfinder
import pytest

from trunnion.model.program import DeviceCode
from trunnion_nvrtc.headers import needs_toolkit, reachable_headers, toolkit_directories


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
    monkeypatch.setattr(cuda.pathfinder, "find_nvidia_header_directory", lambda _: None)
    assert toolkit_directories() == ()
