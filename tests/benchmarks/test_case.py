from __future__ import annotations

import ast

import pytest

import trunnion
from launching.case import CASES, KERNEL, MIXED, Case
from launching.others import triton_text
from launching.tilelang_style import launcher_text


@pytest.mark.parametrize(
    ("case", "allocating"),
    # An output's extents come from an input.
    [(case, False) for case in CASES] + [(case, True) for case in CASES if case.tensors > 1],
)
def test_the_kernel_takes_what_the_program_passes(case: Case, allocating: bool) -> None:
    # Building compares the kernel's parameter table with the launch.
    program = trunnion.compile(case.program(allocating=allocating), "nvrtc", target="sm_90a")
    (kernel,) = program.artifact.manifest.kernels
    assert kernel.symbol == KERNEL
    assert len(program.plan.launches) == case.launches
    for launch in program.plan.launches:
        assert len(launch.args) == (1 if case.packed else case.tensors + len(case.numbers) + 1)
    assert len(program.plan.encodes) == case.maps
    assert len(program.plan.results) == allocating


def test_the_cases_are_those_of_the_table() -> None:
    assert {case.tensors for case in CASES if case.plain and not case.maps} == {0, 1, 3, 9, 19}
    assert {case.maps for case in CASES if case.tensors == 3} == {0, 1, 3}
    labels = [case.label for case in CASES]
    assert labels[-4:-2] == ["5 (10 scalars)", "3 (8 launches)"]
    assert labels[-2:] == ["3 (struct of 8)", "3 (3 maps, struct of 8)"]
    assert len(set(labels)) == len(CASES)


def test_a_number_is_the_same_as_bits() -> None:
    numbers = {number.name: number for number in MIXED}
    assert numbers["whole"].bits == 2**32 - 3
    assert numbers["scale"].bits == 0x3F000000
    assert numbers["range"].bits.to_bytes(8, "little", signed=True) == numbers["range"].value


PLAIN = [case for case in CASES if case.plain]


@pytest.mark.parametrize("case", PLAIN, ids=lambda case: case.label)
def test_what_is_written_for_others_is_python_of_that_case(case: Case) -> None:
    for text, name in ((launcher_text(case), "call"), (triton_text(case), KERNEL)):
        functions = {node.name: node for node in ast.parse(text).body if isinstance(node, ast.FunctionDef)}
        parameters = [argument.arg for argument in functions[name].args.args]
        assert [name for name in parameters if name not in ("kernel", "stream")] == [*case.names, "word"]
    assert launcher_text(case).count("cuTensorMapEncodeTiled(") == case.maps
