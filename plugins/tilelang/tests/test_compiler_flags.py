"""What an author writes for nvcc reaches NVRTC in its own words, or is known to mean nothing there."""

from __future__ import annotations

import enum
from pathlib import Path

import pytest

from trunnion.errors import ProgramError
from trunnion_tilelang.compiler_flags import WITHOUT_EFFECT, CompilerFlags, compiler_flags


class PassConfigKey(str, enum.Enum):  # noqa: UP042 - so it is, and its text is another than a StrEnum's
    """As TileLang spells its settings."""

    FAST = "tl.enable_fast_math"
    OTHER = "tl.disable_tma_lower"


def test_nothing_asked_is_nothing_said():
    assert compiler_flags() == compiler_flags({}, []) == compiler_flags({"x": 1}, "") == CompilerFlags()


@pytest.mark.parametrize(
    ("flags", "options", "defines"),
    [
        ("-lineinfo --use_fast_math", ("-lineinfo", "--use_fast_math"), ()),
        (["-lineinfo -w", "-G"], ("-lineinfo", "-w", "-G"), ()),
        ("-DX -DY=2 -D Z=a=b --define-macro=W", (), (("X", None), ("Y", "2"), ("Z", "a=b"), ("W", None))),
        ("-I/a -I /b --include-path=/c", tuple(f"--include-path=/{x}" for x in "abc"), ()),
        ("-Xptxas -v,-O3", ("--ptxas-options=-v", "--ptxas-options=-O3"), ()),
        ("--ptxas-options=--verbose", ("--ptxas-options=--verbose",), ()),
        ("-std=c++17 -maxrregcount 64", ("--std=c++17", "--maxrregcount=64"), ()),
        ("-Xcompiler -fPIC --compiler-options=-O2 -G", ("-G",), ()),
        ("--what-nobody-knows", ("--what-nobody-knows",), ()),
        ("-lineinfo -lineinfo", ("-lineinfo",), ()),
        ("-DX=7 -DY '-DX(a)=a' -UX", ("--undefine-macro=X",), (("Y", None),)),
        ("-U X -DX=7", ("--undefine-macro=X",), (("X", "7"),)),
    ],
)
def test_words_for_nvcc(flags, options, defines):
    assert compiler_flags(None, flags) == CompilerFlags(options, defines)
    assert compiler_flags({"tl.device_compile_flags": flags}) == CompilerFlags(options, defines)


@pytest.mark.parametrize("word", sorted(WITHOUT_EFFECT))
def test_what_has_no_effect_is_left_out(word):
    assert compiler_flags(None, [word]) == CompilerFlags()


def test_a_relative_include_path_is_what_it_is_now():
    (option,) = compiler_flags(None, "-Iheaders").options
    assert option == f"--include-path={Path.cwd() / 'headers'}"


def test_settings_of_tilelang():
    configs = {PassConfigKey.FAST: True, PassConfigKey.OTHER: True, "tl.ptxas_register_usage_level": 7}
    options = ("--ptxas-options=--register-usage-level=7",)
    assert compiler_flags(configs) == CompilerFlags(options, fast_math=True)
    assert (
        compiler_flags({"tl.enable_fast_math": False, "tl.ptxas_register_usage_level": None})
        == CompilerFlags()
    )


@pytest.mark.parametrize("flags", ["-Xptxas", "-D", "--include-path=", "-I"])
def test_a_flag_without_its_value_is_refused(flags):
    with pytest.raises(ProgramError, match="without a value"):
        compiler_flags(None, flags)


def test_a_quotation_that_does_not_end_is_refused():
    with pytest.raises(ProgramError, match="No closing quotation"):
        compiler_flags(None, "-DX='a")


@pytest.mark.parametrize(
    ("configs", "flags"),
    [
        ({}, 5),
        ({"tl.ptxas_register_usage_level": "high"}, None),
        ({"tl.ptxas_register_usage_level": float("inf")}, None),
        ({}, object()),
    ],
)
def test_what_is_no_flag_and_no_level_is_refused(configs, flags):
    with pytest.raises(ProgramError, match="expected"):
        compiler_flags(configs, flags)
