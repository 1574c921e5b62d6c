"""Where a function wants its outputs."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from trunnion import errors
from trunnion.model.params import ScalarParam, Signature, TensorParam
from trunnion_tvm_ffi.foreign.layout import argument_places, result_places


def signature(inputs, outputs):
    return Signature(
        tuple(ScalarParam(f"s{i}", "int8") for i in range(inputs)),
        tuple(TensorParam(f"y{i}", "int8", ()) for i in range(outputs)),
    )


@given(st.integers(0, 5), st.integers(0, 4), st.data())
def test_every_parameter_has_its_place(inputs, outputs, data):
    described, count = signature(inputs, outputs), inputs + outputs
    places = data.draw(st.permutations(range(count)))[:outputs]
    given_as = [place - count if data.draw(st.booleans()) else place for place in places]
    results = result_places(described, data.draw(st.sampled_from((given_as, tuple(given_as)))))
    assert results == tuple(places)
    order = argument_places(described, results)
    assert sorted(order) == list(range(count))
    for index, place in enumerate(places):
        assert order[place] == inputs + index
    rest = [entry for entry in order if entry < inputs]
    assert rest == list(range(inputs)), "inputs keep their order"


@given(st.integers(0, 5), st.integers(0, 4))
def test_outputs_come_last_unless_said(inputs, outputs):
    described = signature(inputs, outputs)
    assert result_places(described, None) == tuple(range(inputs, inputs + outputs))
    assert argument_places(described, ()) == tuple(range(inputs))


def test_one_output_may_be_a_number():
    assert result_places(signature(2, 1), -3) == (0,)


@pytest.mark.parametrize(
    "places", [3, -4, (0,), (0, 1, 2), (1, 1), (0, -3), (0, True), (0, 1.0), "01", None.__class__, (0, 3), []]
)
def test_places_that_do_not_fit_are_refused(places):
    with pytest.raises(errors.ProgramError) as caught:
        result_places(signature(1, 2), places)
    assert caught.value.field == "result_idx"


def test_the_caller_s_list_stays_as_it_is():
    places = [-1, 0]
    result_places(signature(1, 2), places)
    assert places == [-1, 0]
