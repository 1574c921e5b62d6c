"""The typed stub of an operator."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest

import trunnion
from trunnion.errors import ArgumentTypeError

GIVEN = "self, x: Tensor, bias: Tensor | None, most: int | SymInt, negate: bool = ..."
ROWS = f'''"""The operator mine::rows."""

from collections.abc import Sequence

from torch import SymInt, Tensor

class _rows:
    """(Tensor x, Tensor? bias, SymInt most, bool negate=False) -> (Tensor, Tensor)"""
    def __call__({GIVEN}) -> tuple[Tensor, Tensor]: ...
    def default({GIVEN}) -> tuple[Tensor, Tensor]: ...
    def out({GIVEN}, *, y: Tensor, sums: Tensor) -> None: ...

rows: _rows
'''


def test_it_says_what_an_operator_takes_and_returns(compiled):
    assert trunnion.torch_stub(compiled("rows"), "mine::rows", defaults={"negate": False}) == ROWS


@pytest.mark.parametrize("program", ["add_into", "clamp", "scale"])
def test_it_is_python(compiled, program):
    ast.parse(trunnion.torch_stub(compiled(program), f"mine::{program}"))
    assert "range: Sequence[int]" in trunnion.torch_stub(compiled("clamp"), "mine::clamp")
    assert "# It writes into total." in trunnion.torch_stub(compiled("add_into"), "mine::add_into")


def test_a_type_checker_reads_it(compiled, tmp_path):
    (tmp_path / "ops.pyi").write_text(trunnion.torch_stub(compiled("scale"), "mine::scale"))
    (tmp_path / "torch.pyi").write_text("class SymInt: ...\nclass Tensor: ...\n")
    (tmp_path / "use.py").write_text(
        "from ops import scale\nfrom torch import Tensor\n"
        "def f(x: Tensor) -> Tensor:\n    scale.out(x, 2.0, out=x)\n    return scale(x, 2.0)\n"
        "def g(x: Tensor) -> Tensor:\n    return scale(x, '2')\n"
    )
    command = [
        sys.executable,
        "-m",
        "mypy",
        "--strict",
        "--no-error-summary",
        "--cache-dir",
        "cache",
        "use.py",
    ]
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
    assert [line.partition(" error: ")[0] for line in done.stdout.splitlines()] == ["use.py:7:"], done.stdout


def test_what_is_no_program_is_refused():
    with pytest.raises(ArgumentTypeError):
        trunnion.torch_stub("rows", "mine::rows")
