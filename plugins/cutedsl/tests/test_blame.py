"""An error says whose fault it is: the target's, the text's at its line, or nobody's who could say it."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING

import pytest

from trunnion.contract.compiler import CompileRequest
from trunnion.contract.spec import Target
from trunnion.errors import CompileError, ProgramError
from trunnion_cutedsl.compiler.compiler import CuteDslCompiler
from trunnion_cutedsl.examples.cutedsl_vector_add import EXAMPLE

if TYPE_CHECKING:
    from pathlib import Path


def compiled(text: str | None = None, arch: str = "sm_90a", **fields: object):
    """Compile the example, for another architecture or with another text."""
    (code,) = EXAMPLE.program.code
    program = EXAMPLE.program
    if text is not None:
        program = dataclasses.replace(program, code=(dataclasses.replace(code, source=text, **fields),))
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


@pytest.mark.parametrize("module", ["tiles/sizes.py", "tiles/kernels.py", "sizes.py"])
@pytest.mark.parametrize("fault", ["raise ValueError('too large')", "def :"])
def test_lines_of_a_module_are_that_module_s(module: str, fault: str) -> None:
    """The text's own line is the one that imports it, whatever the module's file is called."""
    includes = ((module, "\n" * 50 + fault),)
    imported = module.removesuffix(".py").replace("/", ".")
    with pytest.raises(CompileError) as caught:
        compiled(f"\nimport {imported}\n", name="kernels.py", includes=includes)
    assert caught.value.line == 2
    assert caught.value.log.splitlines()[1:] == [
        f"  kernels.py:2: import {imported}",
        f"  {module}:51: {fault}",
    ]


def test_a_fault_of_syntax_elsewhere_is_not_the_text_s(tmp_path: Path) -> None:
    other = tmp_path / "kernels.py"
    text = f"\ncompile('\\n' * 50 + 'def :', {str(other)!r}, 'exec')\n"
    with pytest.raises(CompileError, match=rf"{other}:51: def :") as caught:
        compiled(text, name="kernels.py")
    assert caught.value.line == 2
