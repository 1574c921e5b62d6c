"""The options of the host's compiler: a closed table, and an answer for what is not in it."""

from __future__ import annotations

import re

import pytest

from trunnion.errors import ProgramError
from trunnion_tvm_ffi.compiler.host_option_table import OPTIONS, REFUSED
from trunnion_tvm_ffi.compiler.host_options import (
    MOST_THREADS,
    option_words,
    read_caller_options,
)


def words(*given: str, **caller: object) -> tuple[str, ...]:
    named = {name.replace("_", "-"): value for name, value in caller.items()}
    return option_words(given, read_caller_options(named).words, "code")


def test_the_defaults() -> None:
    assert words() == ("-std=c++17", "-O2")


def test_a_program_says_something_else() -> None:
    given = ("-ffast-math", "-O3", "-std=gnu++20", "-I/opt/a b", "-Wall", "-I/c", "-Wno-unused", "-g")
    assert words(*given) == (
        "-std=gnu++20",
        "-O3",
        "-ffast-math",
        "-g",
        "-I/opt/a b",
        "-I/c",
        "-Wall",
        "-Wno-unused",
    )
    assert words("-O1", "-O1") == ("-std=c++17", "-O1")


def test_the_caller_comes_last() -> None:
    assert words("-O1", "-ffast-math", "-I/a", O=3, ffast_math=False, I=["/b", "/c"], g=True) == (
        "-std=c++17",
        "-O3",
        "-g",
        "-I/a",
        "-I/b",
        "-I/c",
    )
    assert words(O="fast", std="c++20") == ("-std=c++20", "-Ofast")


@pytest.mark.parametrize(
    ("word", "advice"),
    [
        ("-march=native", "name the architecture as the target"),
        ("-mavx2", "name the architecture as the target"),
        ("-DX=1", "DeviceCode.defines"),
        ("-Ioutside", "absolute path"),
        ("-I", "absolute path"),
        ("-include", "DeviceCode.includes"),
        ("-lm", "no library"),
        ("-Wl,-rpath,/x", "no library"),
        ("-Wp,-MD,/x", "change the compiler"),
        ("-fplugin=/x.so", "change the compiler"),
        ("-B/x", "change the compiler"),
        ("-fopenmp", "'threads'"),
        ("-fsanitize=address", "a library of its own"),
        ("-flto", "linked as they are"),
        ("-fPIC", "as a launcher needs"),
        ("-o/x", "names it by itself"),
        ("-c", "names it by itself"),
        ("-O9", "the form -O[0-3sg]|fast"),
        ("-std=c++14", "the form -std="),
        ("-ffp-contract", "the form -ffp-contract=off"),
        ("-WALL", "the form -W"),
        ("-unheard-of", "expected one of -std=..., "),
        ("kernel.cc", "expected one of"),
        ("@file", "expected one of"),
        ("", "expected one of"),
        ("-", "expected one of"),
        ("-g\0", "expected one of"),
        ("-O3\n-x", "the form -O"),
    ],
)
def test_what_may_not_be_given_is_answered(word: str, advice: str) -> None:
    with pytest.raises(ProgramError) as caught:
        words(word)
    assert caught.value.field == "code.options"
    assert advice in caught.value.message


def test_one_option_has_one_value() -> None:
    with pytest.raises(ProgramError, match="got -O3 and -O1; give it once"):
        words("-O1", "-O3")


@pytest.mark.parametrize(
    ("given", "field", "problem"),
    [
        ({"threads": -1}, "options.threads", "expected 0 "),
        ({"threads": MOST_THREADS + 1}, "options.threads", f"to {MOST_THREADS}"),
        ({"threads": True}, "options.threads", "got bool 'True'"),
        ({"threads": "4"}, "options.threads", ""),
        ({"ffast-math": 1}, "options.ffast-math", "expected True or False"),
        ({"O": 5}, "options.O", "the form -O"),
        ({"O": True}, "options.O", "the form -O"),
        ({"O": [1]}, "options.O", "the form -O"),
        ({"I": "relative"}, "options.I", "the form -I"),
        ({"march": "native"}, "options.march", "name the architecture as the target"),
        ({"speed": 9}, "options.speed", "expected one of"),
    ],
)
def test_a_callers_mistake_is_named(given: dict[str, object], field: str, problem: str) -> None:
    with pytest.raises(ProgramError) as caught:
        read_caller_options(given)
    assert caught.value.field == field
    assert problem in caught.value.message


def test_threads_are_no_word_for_the_compiler() -> None:
    found = read_caller_options({"threads": 0, "w": True})
    assert (found.threads, dict(found.words)) == (0, {"w": ("",)})
    assert read_caller_options({}).threads == 1


def test_the_table_takes_nothing_that_it_refuses() -> None:
    assert len({option.name for option in OPTIONS}) == len(OPTIONS)
    for option in OPTIONS:
        refused = [row.instead for row in REFUSED if re.fullmatch(row.pattern, option.name)]
        # A program's word is looked for in the table first, so these are told apart by their values.
        assert not refused or option.name in {"I", "mtune", "mprefer-vector-width"}, option.name
