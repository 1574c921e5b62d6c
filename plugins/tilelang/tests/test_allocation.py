"""Outputs that the host function allocates itself: the same program as where the caller gives them."""

import pytest
import tilelang.language as T

from trunnion.errors import ProgramError


def sums(outputs=None):
    m, n = T.dynamic("m"), T.dynamic("n")

    @T.prim_func
    def main(
        total: T.Tensor((m,), "float32"),
        x: T.Tensor((m, n), "float32"),
        packed: T.Tensor((m, n), "int4"),
        a: T.float32,
    ):
        with T.Kernel(m, threads=32) as row:
            for i in T.Parallel(32):
                packed[row, i] = T.cast(x[row, i], "int4")
            total[row] = x[row, 0] * a

    if outputs is None:
        return main
    return main.with_attr("tilelang_out_idx", outputs).with_attr("tilelang_callee_allocated_outputs", 1)


@pytest.mark.parametrize("outputs", [[0], [2], [0, 2], [2, 0], [-2]])
def test_it_is_the_program_of_the_function_that_is_given_its_outputs(imported, outputs):
    given, allocating = imported(sums(), out_idx=outputs), imported(sums(outputs))
    assert allocating.signature.params == given.signature.params
    assert allocating.signature.outputs == given.signature.outputs
    assert {check.condition for check in given.signature.checks} <= {
        check.condition for check in allocating.signature.checks
    }
    assert allocating.launches == given.launches


def test_outputs_are_returned_in_the_order_in_which_they_are_named(imported):
    assert [output.name for output in imported(sums([2, 0])).signature.outputs] == ["packed", "total"]


def test_other_outputs_than_the_functions_own_are_refused(imported):
    with pytest.raises(ProgramError) as caught:
        imported(sums([0]), out_idx=[2])
    assert caught.value.field == "out_idx"
