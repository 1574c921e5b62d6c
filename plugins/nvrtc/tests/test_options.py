from __future__ import annotations

from typing import Any

import pytest

from trunnion.errors import ProgramError
from trunnion_nvrtc import nvrtc
from trunnion_nvrtc.options import OPTIONS, Option, merge_options, render_options


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
        ("--bogus", "supported: std, use_fast_math"),
        ("-arch=sm_90", "target"),
        ("--gpu-architecture=sm_90", "target"),
        ("-DX=1", "DeviceCode.defines"),
        ("-DX", "DeviceCode.defines"),
        ("--define-macro=X", "DeviceCode.defines"),
        ("--fdevice-time-trace=x", "supported"),
        ("--relocatable-device-code=true", "supported"),
        ("std=c++17", "dash"),
        ("", "dash"),
        ("--std", "takes a value"),
        ("--std=", "expected the form"),
        ("--std=c++17\n", "expected the form"),
        ("--use_fast_math=true", "takes no value"),
        ("--ftz=1", "true|false"),
        ("--maxrregcount=-1", "expected the form"),
        ("-Irelative", "absolute"),
        ("-I", "takes a value"),
        ("--include-path=/a\0b", "expected the form"),
    ],
)
def test_a_word_that_is_refused(word: str, said: str) -> None:
    with pytest.raises(ProgramError) as caught:
        words(word)
    assert said in caught.value.message
    assert caught.value.field == "code.options"


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


VALUES = {"true|false": "true", r"\d+(,\d+)*": "177", r"\d+": "32", r"c\+\+\d\d": "c++17", "(?s:.+)": "/opt"}


@pytest.mark.parametrize("option", OPTIONS, ids=lambda option: option.name)
def test_nvrtc_knows_every_option_of_the_table(option: Option) -> None:
    value = VALUES.get(option.value, option.value.split("|")[-1])
    (word,) = words(f"--{option.name}={value}" if option.value else f"--{option.name}")
    with nvrtc.open_program(b"__global__ void k() {}", b"k.cu", ()) as program:
        # __float128 needs sm_100.
        result = program.compile([b"--gpu-architecture=sm_100", word.encode()])
    assert (result.code_name, result.log) == ("NVRTC_SUCCESS", "")
