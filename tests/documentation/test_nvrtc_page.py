"""The compiler's page names every function of NVRTC, and every option, output and language that there is."""

from __future__ import annotations

import re
from importlib import import_module
from pathlib import Path
from pkgutil import resolve_name

import pytest

from trunnion_nvrtc.compiler.options import NVCC_ONLY, OPTIONS, REFUSED
from trunnion_nvrtc.compiler.outputs import OUTPUTS
from trunnion_nvrtc.hooks import trunnion_register_compilers

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "nvrtc-compiler.md").read_text("utf-8")
OURS = dict(re.findall(r"^\| `(nvrtc\w+)` \| `(trunnion_nvrtc\.[\w.]+)` \|$", PAGE, re.MULTILINE))

NVRTC = (
    "nvrtcCreateProgram",
    "nvrtcDestroyProgram",
    "nvrtcCompileProgram",
    "nvrtcGetProgramLogSize",
    "nvrtcGetProgramLog",
    "nvrtcGetPTXSize",
    "nvrtcGetPTX",
    "nvrtcGetCUBINSize",
    "nvrtcGetCUBIN",
    "nvrtcGetLTOIRSize",
    "nvrtcGetLTOIR",
    "nvrtcGetOptiXIRSize",
    "nvrtcGetOptiXIR",
    "nvrtcVersion",
    "nvrtcGetErrorString",
    "nvrtcGetLoweredName",
    "nvrtcAddNameExpression",
    "nvrtcResult",
)
"""Everything that the description of NVRTC's functions lists."""


@pytest.mark.parametrize("function", NVRTC)
def test_every_function_of_nvrtc_has_a_place_here(function: str) -> None:
    resolve_name(OURS[function])


def test_nothing_in_the_table_is_made_up() -> None:
    bindings = import_module("cuda.bindings.nvrtc")
    assert [name for name in OURS if not hasattr(bindings, name)] == []
    assert set(NVRTC) <= set(OURS)


def rows(heading: str) -> list[list[str]]:
    """Return the cells of the table whose head starts so."""
    lines = PAGE.split(f"\n{heading}", 1)[1].split("\n\n", 1)[0].splitlines()[2:]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_option_is_listed_with_its_names() -> None:
    listed = {cells[0]: cells for cells in rows("| option | value")}
    assert list(listed) == [f"`{option.name}`" for option in OPTIONS]
    for option in OPTIONS:
        _, value, also, linker = listed[f"`{option.name}`"]
        assert bool(option.value) is bool(value)
        assert also == ", ".join(f"`{alias}`" for alias in option.aliases)
        assert linker == " ".join(f"`{word.replace('{}', '…')}`" for word in option.linker)


def test_every_refused_option_is_listed_with_what_to_do() -> None:
    assert rows("| option | instead") == [[f"`{row.name}`", row.instead] for row in REFUSED]


def test_every_option_that_only_nvcc_has_is_listed_with_what_stands_for_it() -> None:
    assert rows("| nvcc's option") == [
        [f"`{row.name}`", ", ".join(f"`{name}`" for name in row.aliases), row.instead] for row in NVCC_ONLY
    ]


def test_every_output_and_language_is_listed() -> None:
    listed = rows("| output | option")
    assert [cells[0] for cells in listed] == [f"`{row.kind}`" for row in OUTPUTS]
    for cells, row in zip(listed, OUTPUTS, strict=True):
        assert cells[1] == (f"`{row.option}`" if row.option else "")
        assert ("virtual" in cells[2]) is row.virtual
    (spec,) = trunnion_register_compilers()
    assert [cells[0] for cells in rows("| language |")] == [f"`{language}`" for language in spec.languages]
