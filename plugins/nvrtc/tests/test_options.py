from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from trunnion.errors import ProgramError
from trunnion_nvrtc.compiler.options import (
    NVCC_ONLY,
    OPTIONS,
    REFUSED,
    Option,
    linker_options,
    merge_options,
    render_options,
)
from trunnion_nvrtc.compiler.program import Program

if TYPE_CHECKING:
    from pathlib import Path


def words(*given: str, **named: Any) -> tuple[str, ...]:
    return render_options(merge_options(given, named))


@pytest.mark.parametrize(
    ("word", "rendered"),
    [
        ("--std=c++20", "--std=c++20"),
        ("-std=c++20", "--std=c++20"),
        ("-use_fast_math", "--use_fast_math"),
        ("--use-fast-math", "--use_fast_math"),
        ("-G", "--device-debug"),
        ("-lineinfo", "--generate-line-info"),
        ("-w", "--disable-warnings"),
        ("-default-device", "--device-as-default-execution-space"),
        ("--ftz=true", "--ftz=true"),
        ("-maxrregcount=64", "--maxrregcount=64"),
        ("-diag-suppress=177,20", "--diag-suppress=177,20"),
        ("-I/opt/x y", "--include-path=/opt/x y"),
        ("-I=/opt", "--include-path=/opt"),
        ("--include-path=/a=b", "--include-path=/a=b"),
    ],
)
def test_a_word(word: str, rendered: str) -> None:
    assert words(word) == (rendered,)


@pytest.mark.parametrize(
    ("name", "value", "rendered"),
    [
        ("std", "c++20", ("--std=c++20",)),
        ("use_fast_math", True, ("--use_fast_math",)),
        ("use_fast_math", False, ()),
        ("fmad", False, ("--fmad=false",)),
        ("prec_div", True, ("--prec-div=true",)),
        ("maxrregcount", 64, ("--maxrregcount=64",)),
        ("diag_suppress", [177, 20], ("--diag-suppress=177", "--diag-suppress=20")),
        ("include_path", "/opt", ("--include-path=/opt",)),
        ("include_path", ("/b", "/a"), ("--include-path=/b", "--include-path=/a")),
        ("I", "/opt", ("--include-path=/opt",)),
    ],
)
def test_a_name(name: str, value: Any, rendered: tuple[str, ...]) -> None:
    assert words(**{name: value}) == rendered


def test_the_order_is_the_tables_and_that_of_repeated_ones_is_kept() -> None:
    assert words("-I/b", "--ftz=true", "-I/a", "--std=c++17", I="/c") == (
        "--std=c++17",
        "--ftz=true",
        "--include-path=/b",
        "--include-path=/a",
        "--include-path=/c",
    )


def test_the_caller_goes_over_the_program() -> None:
    assert words("--std=c++17", "-G", std="c++20", device_debug=False) == ("--std=c++20",)


def test_the_same_twice_is_once_and_a_contradiction_is_refused() -> None:
    assert words("--std=c++17", "-std=c++17", "-w", "-w") == ("--std=c++17", "--disable-warnings")
    with pytest.raises(ProgramError, match="twice"):
        words("--std=c++17", "--std=c++20")


@pytest.mark.parametrize(
    ("word", "said"),
    [
        ("--bogus", "supported: relocatable-device-code, "),
        ("-arch=sm_90", "target"),
        ("--gpu-architecture=sm_90", "target"),
        ("-DX=1", "DeviceCode.defines"),
        ("-DX", "DeviceCode.defines"),
        ("--define-macro=X", "DeviceCode.defines"),
        ("--fdevice-time-trace=x", "time=-"),
        ("--time=/etc/x", "expected -, which is the log"),
        ("--optix-ir", "Program"),
        ("--use-pch=x", "use pch"),
        ("--frandom-seed=1", "derived"),
        ("--relocatable-device-code=maybe", "expected true or false"),
        ("-UA=1", "the name of a macro"),
        ("-U", "takes a value"),
        ("-Xptxas=-o", "supported: opt-level"),
        ("-Xptxas=--output-file=x", "supported: opt-level"),
        ("-Xptxas=-v -o x", "one option of ptxas"),
        ("-Xptxas=-v,-o,x", "one option of ptxas"),
        ("-Xptxas=v", "one option of ptxas"),
        ("--pre-include=a\nb", "the name of a header"),
        ("--pre-include=a\0b", "the name of a header"),
        ("--std=c++17 --time=x", "a standard such as c++17"),
        ("--ftz=true\n--time=x", "expected true or false"),
        ("-I/a\0-arch=sm_80", "absolute path"),
        ("--ftz --time", "may not be given"),
        ("std=c++17", "dash"),
        ("", "dash"),
        ("--std", "takes a value"),
        ("--std=", "a standard such as c++17"),
        ("--std=c++17\n", "a standard such as c++17"),
        ("--use_fast_math=true", "takes no value"),
        ("--ftz=1", "expected true or false"),
        ("--maxrregcount=-1", "a number of at most 9 digits"),
        ("-Irelative", "absolute"),
        ("-I", "takes a value"),
        ("--include-path=/a\0b", "absolute path"),
    ],
)
def test_a_word_that_is_refused(word: str, said: str) -> None:
    with pytest.raises(ProgramError) as caught:
        words(word)
    assert said in caught.value.message
    assert caught.value.field == "code.options"


@pytest.mark.parametrize("option", [one for one in OPTIONS if one.value], ids=lambda one: one.name)
def test_the_form_of_a_value_is_told_in_words(option: Option) -> None:
    """A regular expression is no answer to what may be given."""
    assert not set(option.form) & set("\\()[]{}?*|")
    assert option.form


@pytest.mark.parametrize(
    ("name", "value", "field"),
    [
        ("bogus", 1, "options"),
        ("arch", "sm_90", "options"),
        ("std", 17, "options.std"),
        ("std", None, "options.std"),
        ("std", ["c++17"], "options.std"),
        ("use_fast_math", "true", "options.use_fast_math"),
        ("ftz", 1, "options.ftz"),
        ("include_path", ["relative"], "options.include-path"),
        ("maxrregcount", 6.5, "options.maxrregcount"),
    ],
)
def test_a_name_that_is_refused(name: str, value: Any, field: str) -> None:
    with pytest.raises(ProgramError) as caught:
        words(**{name: value})
    assert caught.value.field == field


@pytest.mark.parametrize("row", REFUSED, ids=lambda row: row.name)
def test_what_is_refused_says_what_to_do_instead(row: Any) -> None:
    for name in (row.name, *row.aliases):
        with pytest.raises(ProgramError) as caught:
            words(f"--{name}=1")
        assert caught.value.message.endswith(row.instead)
        with pytest.raises(ProgramError, match="may not be given here"):
            words(**{name.replace("-", "_"): "1"})


@pytest.mark.parametrize("row", NVCC_ONLY, ids=lambda row: row.name)
def test_what_only_nvcc_has_says_what_stands_for_it(row: Any) -> None:
    for name in (row.name, *row.aliases):
        for said in (f"--{name}", f"-{name}", f"--{name}=1"):
            with pytest.raises(ProgramError) as caught:
                words(said)
            assert caught.value.message == f"NVRTC has no option '{name}'; {row.instead}"
        with pytest.raises(ProgramError, match="NVRTC has no option"):
            words(**{name.replace("-", "_"): True})


@pytest.mark.parametrize(
    "word", ["-std c++17", "-Xptxas -v", "--ftz\ttrue", " -G", "-G ", "-maxrregcount 64"]
)
def test_one_word_is_one_option(word: str) -> None:
    with pytest.raises(ProgramError, match=r"one word is one option|starts with a dash"):
        words(word)


@pytest.mark.parametrize("word", ["-", "--", "- ", "-\xa0"])
def test_a_word_without_a_name_is_refused(word: str) -> None:
    with pytest.raises(ProgramError, match="may not be given here"):
        words(word)


def test_a_space_hides_no_option_that_only_nvcc_has() -> None:
    with pytest.raises(ProgramError, match="NVRTC has no option 'Xcompiler'; there is no host code"):
        words("-Xcompiler -fPIC")


@pytest.mark.parametrize("word", ["-Wno-unused", "-Werror=all-warnings", "-L/opt/lib"])
def test_a_value_may_follow_at_once_what_only_nvcc_has(word: str) -> None:
    with pytest.raises(ProgramError, match="NVRTC has no option"):
        words(word)


@pytest.mark.parametrize("row", NVCC_ONLY, ids=lambda row: row.name)
def test_nvrtc_lacks_what_only_nvcc_has(row: Any) -> None:
    for name in (row.name, *row.aliases):
        with Program("__global__ void k() {}", "k.cu", []) as program:
            result = program.run(["--gpu-architecture=sm_90", f"{'-' if len(name) < 3 else '--'}{name}"])
        assert result.code_name == "NVRTC_ERROR_INVALID_OPTION", name


def test_no_name_stands_twice() -> None:
    names = [name for row in (*OPTIONS, *REFUSED, *NVCC_ONLY) for name in (row.name, *row.aliases)]
    assert len(set(names)) == len(names)


def test_the_linkers_words() -> None:
    given = (
        "--ftz=true",
        "--prec-div=false",
        "-maxrregcount=64",
        "-Xptxas=-O1",
        "-Xptxas=-v",
        "-G",
        "--std=c++20",
    )
    merged = merge_options(given, {})
    assert linker_options(merged) == (
        "-ftz=1",
        "-prec-div=0",
        "-maxrregcount=64",
        "-Xptxas=-O1",
        "-Xptxas=-v",
        "-g",
    )
    assert linker_options(merge_options(("-use_fast_math",), {})) == (
        "-ftz=1",
        "-prec-div=0",
        "-prec-sqrt=0",
        "-fma=1",
    )
    exact = ("-use_fast_math", "--ftz=false", "--fmad=true", "-Xptxas=-v", "-Xptxas=-v")
    assert linker_options(merge_options(exact, {})) == (
        "-prec-div=0",
        "-prec-sqrt=0",
        "-ftz=0",
        "-fma=1",
        "-Xptxas=-v",
        "-Xptxas=-v",
    )


def test_how_parts_are_linked_is_not_handed_on() -> None:
    assert words("-dc", "-dlto", "-rdc=true", "--device-w", "--std=c++20") == ("--std=c++20",)


VALUES = {
    "true|false": "true",
    r"\d+(,\d+)*": "177",
    r"\d{1,9}": "32",
    r"\d{1,3}": "50",
    r"\d{1,4}": "2",
    r"c\+\+\d\d": "c++17",
    "(?s:.+)": "/opt",
    r"(?a:[A-Za-z_]\w*)": "MACRO",
    '[^"<>\n\r]+': "mine.h",
}
SPOKEN = {"time", "pch", "ptxas-options"}
"""Options that print something of their own."""


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_nvrtc_knows_every_option_of_the_table(option: Option, tmp_path: Path) -> None:
    value = VALUES.get(option.value, option.value.split("|")[-1])
    if option.name == "ptxas-options":
        value = "-v"
    word = f"--{option.name}={value}" if option.value else f"--{option.name}"
    assert words(word) == (() if option.linking else (word,))
    with Program("__global__ void k() {}", "k.cu", [("mine.h", "")]) as program:
        # __float128 needs sm_100.
        result = program.run(["--gpu-architecture=sm_100", f"--pch-dir={tmp_path}", word])
    assert result.code_name == "NVRTC_SUCCESS"
    assert (result.log != "") is (option.name in SPOKEN)


def test_ptxas_options_with_a_value_act() -> None:
    source = "__global__ void k(float* x) { for (int i = 0; i < 64; ++i) x[i] = sinf(x[i]) * x[63 - i]; }"
    found = []
    for word in (
        "--fmad=true",
        "-Xptxas=-O0",
        "-Xptxas=-maxrregcount=24",
        "-Xptxas=--register-usage-level=10",
    ):
        assert words(word)
        with Program(source) as program:
            program.compile(["-arch=sm_90a", word])
            found.append(program.get_cubin().data)
    assert found[0] != found[1]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("use_fast_mth", r"did you mean 'use_fast_math'\?"),
        ("lineinf", r"did you mean 'lineinfo'\?"),
        ("zzz", "supported: "),
    ],
)
def test_a_mistyped_option_is_answered_with_the_nearest(name: str, said: str) -> None:
    with pytest.raises(ProgramError, match=said) as caught:
        merge_options((), {name: True}, "code[0]")
    assert ("supported" in str(caught.value)) == (name == "zzz")
