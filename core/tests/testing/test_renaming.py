from __future__ import annotations

import pytest

from trunnion import DeviceCode, ProgramBuilder
from trunnion.examples import load
from trunnion.testing.renaming import blank_literals, renamed


def test_every_name_is_another_one():
    program = load("hopper_gemm").program
    other = renamed(program)
    names = {param.name for param in (*program.signature.params, *program.signature.outputs)}
    names |= {symbol.name for symbol in program.signature.symbols()} | {
        launch.kernel for launch in program.launches
    }
    found = {param.name for param in (*other.signature.params, *other.signature.outputs)}
    found |= {symbol.name for symbol in other.signature.symbols()} | {
        launch.kernel for launch in other.launches
    }
    assert not names & found
    assert len(found) == len(names)
    assert other.plan().requires == program.plan().requires


def test_what_is_copied_to_a_variable_goes_by_its_other_name():
    p = ProgramBuilder("program", DeviceCode("cuda", "//"))
    taps = p.input("taps", "float32", (3,))
    filt = p.variable("filter", "float32", (3,))
    p.copy(filt, taps)
    p.launch("kernel", (filt,), 1, 32)
    program = p.build()
    other = renamed(program)
    (copy,) = other.copies
    assert copy.variable == other.variables[0]
    assert copy.tensor == other.signature.params[0]
    assert not {"taps", "filter"} & {copy.variable.name, copy.tensor.name}


def test_python_literals_are_blanked_and_nothing_else():
    assert blank_literals("python", "x = 'a'  # one\n") == blank_literals("python", 'x = "b"\n')
    assert blank_literals("python", "x = 'a'\n") != blank_literals("python", "y = 'a'\n")
    assert blank_literals("python", "x = 1\n") != blank_literals("python", "x = 2\n")


def test_cpp_literals_are_blanked_and_nothing_else():
    blank = blank_literals("c++", 'f("a\\"b", R"x(one)x"); // c\n')
    assert blank == 'f("", ""); \n'


def test_another_language_has_no_rule():
    with pytest.raises(ValueError, match="cobol"):
        blank_literals("cobol", "")


def test_json_is_compared_without_its_texts():
    assert blank_literals("json", '{"a": ["x", 1]}') == blank_literals("json", '{"a": ["y", 1]}')
    assert blank_literals("json", '{"a": ["x", 1]}') != blank_literals("json", '{"b": ["x", 1]}')
    assert blank_literals("json", '{"a": ["x", 1]}') != blank_literals("json", '{"a": ["x", 2]}')
