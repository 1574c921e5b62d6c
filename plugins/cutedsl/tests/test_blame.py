"""An error says whose fault it is: the target's, the text's at its line, or nobody's who could say it."""

from __future__ import annotations

import dataclasses

import pytest

from trunnion.contract.compiler import CompileRequest
from trunnion.contract.spec import Target
from trunnion.errors import CompileError, ProgramError
from trunnion_cutedsl.compiler.compiler import CuteDslCompiler
from trunnion_cutedsl.examples.cutedsl_vector_add import EXAMPLE


def compiled(text: str | None = None, arch: str = "sm_90a"):
    """Compile the example, for another architecture or with another text."""
    (code,) = EXAMPLE.program.code
    program = EXAMPLE.program
    if text is not None:
        program = dataclasses.replace(program, code=(dataclasses.replace(code, source=text),))
    plan = program.plan()
    request = CompileRequest(code=program.code, kernels=plan.kernels, target=Target("cuda", arch), plan=plan)
    return CuteDslCompiler().compile(request)


@pytest.mark.parametrize("arch", ["sm_75", "sm_99", "sm_999f"])
def test_an_architecture_that_cutedsl_does_not_know_is_the_target_s_fault(arch: str) -> None:
    with pytest.raises(ProgramError) as caught:
        compiled(arch=arch)
    assert caught.value.field == "target"
    assert arch in str(caught.value)


def test_it_says_which_architectures_there_are_before_the_text_runs() -> None:
    with pytest.raises(ProgramError, match=r"got 'sm_75', expected one that CuTeDSL has: sm_80, .*sm_90a"):
        compiled("raise RuntimeError('it ran')\n", "sm_75")


TELLS_NOTHING = """
class Odd(Exception):
    def __str__(self):
        {}

def fail():
    raise Odd

fail()
"""


@pytest.mark.parametrize("ending", ["raise ValueError('no text')", "return 7", "raise SystemExit"])
def test_an_exception_without_a_text_keeps_its_class_and_its_line(ending: str) -> None:
    with pytest.raises(CompileError, match="Odd") as caught:
        compiled(TELLS_NOTHING.format(ending))
    assert caught.value.line == 7
    assert "Odd: (its text cannot be had: " in caught.value.log


def test_exceptions_that_name_each_other_are_followed_once() -> None:
    text = "one, other = KeyError('one'), KeyError('other')\none.__cause__, other.__cause__ = other, one\nraise one\n"
    with pytest.raises(CompileError, match="KeyError: 'one'") as caught:
        compiled(text)
    assert caught.value.line == 3
