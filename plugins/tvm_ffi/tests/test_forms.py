"""Functions that return their outputs, that nobody described, that raise; and how long they may be called."""

from __future__ import annotations

import numpy as np
import pytest
import torch
import tvm_ffi
from foreign_signatures import AXPY, VECTOR, N, ramp

from trunnion import errors
from trunnion.model.params import ScalarParam, Signature, TensorParam
from trunnion_tvm_ffi import ModuleProgram, from_module

pytestmark = pytest.mark.tvm_ffi_abi

# In place, callee, unsigned -------------------------------------------------------------------------------------------

SCALE = Signature((TensorParam("x", "float32", (N,), access="read_write"), ScalarParam("by", "int64")))


def test_a_tensor_may_be_changed_in_place(function):
    scale = function("scale", SCALE)
    for x in (ramp(), np.arange(5, dtype=np.float32)):
        assert scale(x, 3) is None
        assert x.tolist() == (3 * ramp()).tolist()


TWICE = Signature((VECTOR,), (TensorParam("y", "float32", (N,)),))


def test_a_function_may_return_its_outputs(function):
    twice = function("twice", TWICE, returns="callee")
    assert twice.result_idx == ()
    out = twice(ramp())
    assert type(out) is torch.Tensor
    assert torch.equal(out, 2 * ramp())
    two = Signature((VECTOR,), (TensorParam("y", "float32", (N,)), TensorParam("z", "float32", (N,))))
    first, second = function("both", two, returns="callee")(ramp())
    assert torch.equal(first, ramp())
    assert torch.equal(second, ramp())


def test_what_it_returns_is_compared_with_the_signature(function):
    def outputs(*rows):
        return Signature((VECTOR,), tuple(TensorParam(f"y{i}", *row) for i, row in enumerate(rows)))

    for name, signature, message in (
        ("twice", outputs(("float64", (N,))), "float64"),
        ("twice", outputs(("float32", (N + 1,))), "shape"),
        ("twice", outputs(("float32", (N, 1))), "shape"),
        ("twice", outputs(("float32", (N,)), ("float32", (N,))), "returned Tensor, expected 2"),
        ("both", outputs(("float32", (N,))), "returned 2 values, expected 1"),
        ("seven", outputs(("float32", (N,))), "returned int, expected a tensor"),
        ("nothing", outputs(("float32", (N,))), "returned NoneType, expected a tensor"),
    ):
        with pytest.raises(errors.ProgramError, match=message) as caught:
            function(name, signature, returns="callee")(ramp())
        assert caught.value.field.startswith("outputs")


def test_it_returns_nothing_where_it_is_given_its_outputs(function):
    with pytest.raises(errors.ProgramError, match="returned int") as caught:
        function("seven", TWICE)(ramp())
    assert caught.value.field == "outputs"
    assert "callee" in str(caught.value)


def test_without_torch_tensors_it_has_nothing_to_allocate_with(function):
    twice = function("twice", TWICE, returns="callee")
    with pytest.raises(RuntimeError, match="allocator") as caught:
        twice(np.ones(3, np.float32))
    assert any("torch" in note for note in caught.value.__notes__)
    kept = function("both", Signature((VECTOR,), TWICE.outputs * 1), returns="callee")
    with pytest.raises(errors.ProgramError, match="2 values"):
        kept(np.ones(3, np.float32))


def test_destinations_are_refused_where_the_function_allocates(function):
    with pytest.raises(errors.ArgumentTypeError) as caught:
        function("twice", TWICE, returns="callee")(ramp(), out=ramp())
    assert caught.value.argument == "out"


def test_without_a_signature_arguments_are_passed_as_they_are(function):
    axpy = function("axpy")
    out = np.zeros(3, np.float32)
    assert axpy(2.0, ramp(3), np.ones(3, np.float32), out) is None
    assert out.tolist() == [1, 3, 5]
    assert axpy.signature is axpy.plan is None
    assert (axpy.symbol_map, axpy.result_idx) == ({}, ())
    assert function("seven")() == 7
    assert torch.equal(function("twice")(ramp()), 2 * ramp())
    with pytest.raises(errors.ArgumentTypeError) as caught:
        axpy(2.0, ramp(), ramp(), out=ramp())
    assert caught.value.argument == "out"


# The function ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("several", [False, True])
def test_without_a_signature_destinations_are_arguments(function, several):
    nothing, out = function("nothing"), ramp()
    for call in (nothing, nothing.bind):
        with pytest.raises(errors.ArgumentTypeError, match="destinations are arguments"):
            call(out=(out,) if several else out)


def test_a_module_or_a_function_will_do(foreign):
    module = tvm_ffi.load_module(str(foreign))
    for source in (foreign, str(foreign), module, module["axpy"]):
        axpy = from_module(source, "axpy", AXPY)
        assert isinstance(axpy, ModuleProgram)
        assert torch.equal(axpy(1.0, ramp(), ramp()), 2 * ramp())
        assert axpy.name == "axpy"
        assert "axpy" in repr(axpy)
        assert axpy.source == ""
    assert from_module(foreign, "axpy").function.path == foreign
    assert from_module(module, "axpy").function.module is module


def test_what_a_function_raises_passes_with_a_note(function, foreign):
    for signature in (None, TWICE):
        with pytest.raises(ValueError, match="does not like that") as caught:
            function("refuse", signature)(ramp())
        assert type(caught.value) is ValueError
        assert caught.value.__notes__ == [f"raised by function 'refuse' of {str(foreign)!r}"]


def test_a_bound_call_can_be_repeated(function):
    x, y = ramp(), np.ones(5, np.float32)
    bound = function("axpy", AXPY).bind(3.0, x, y)
    first = bound()
    assert first.tolist() == (3 * ramp() + 1).tolist()
    y += 1
    x += 1
    assert bound() is first
    assert first.tolist() == (3 * x + 2).tolist()
    assert (bound.device, bound.stream, bound.name) == (None, None, "axpy")


def test_a_closed_program_is_not_called(function):
    with function("axpy", AXPY) as axpy:
        bound, entry = axpy.bind(1.0, ramp(), ramp()), axpy.entry
        untouched, before = ramp(), entry(1.0, ramp(), ramp())
    axpy.close()
    for call in (axpy, lambda *_: axpy.entry, axpy.bind, lambda *_: bound(), entry):
        with pytest.raises(errors.LifecycleError, match="the program was closed"):
            call(1.0, before, untouched)
    assert torch.equal(untouched, ramp())


def test_entry_takes_positional_arguments(function):
    entry = function("axpy", AXPY).entry
    assert torch.equal(entry(1.0, ramp(), ramp()), 2 * ramp())
    with pytest.raises(errors.ArgumentTypeError):
        entry(1.0, ramp())
    for named in ({"out": [ramp()]}, {"stream": "abc"}, {"device": 0}):
        with pytest.raises(TypeError, match="keyword argument"):
            entry(1.0, ramp(), ramp(), **named)


@pytest.mark.parametrize(
    ("form", "field"),
    [
        ({"result_idx": 4}, "result_idx"),
        ({"returns": "both"}, "returns"),
        ({"returns": "callee", "result_idx": 0}, "result_idx"),
    ],
)
def test_forms_that_contradict_are_refused(function, form, field):
    with pytest.raises(errors.ProgramError) as caught:
        function("axpy", AXPY, **form)
    assert caught.value.field == field


def test_a_form_without_outputs_is_refused(function):
    with pytest.raises(errors.ProgramError, match="no outputs"):
        function("seven", Signature(), returns="callee")
    with pytest.raises(errors.ProgramError, match="result_idx"):
        function("seven", result_idx=0)
    filled = Signature((VECTOR,), (TensorParam("y", "float32", (N,), fill=0),))
    with pytest.raises(errors.ProgramError) as caught:
        function("twice", filled, returns="callee")
    assert caught.value.field == "outputs[0].fill"
    with pytest.raises(errors.ArgumentTypeError) as caught:
        function("seven", "main")
    assert caught.value.argument == "signature"
