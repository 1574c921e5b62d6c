"""Names of parameters that a Python function would take for its own."""

from __future__ import annotations

import pytest

from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol
from trunnion.testing.observed import observe
from trunnion.testing.strategies import CallSpec, TensorSpec


@pytest.mark.parametrize("name", ["self", "args", "given", "cls"])
def test_any_parameter_goes_by_name(every_backend, name):
    builder = ProgramBuilder("p", DeviceCode("cuda", "//"))
    x = builder.input(name, "float32", (Symbol("n"),))
    factor = builder.scalar("factor", "float32")
    builder.launch("k", (x, factor), grid=1, block=32)
    program = builder.build()
    call = CallSpec(args=(TensorSpec(dtype="float32", shape=(5,), strides=(1,)), 2.0))
    for harness in every_backend.harnesses:
        with harness.loaded(program) as loaded:
            tensor, number = harness.given(call).args
            said = {name: tensor, "factor": number}
            observed = observe(harness, lambda entry=loaded.entry, said=said: entry(**said))
            assert observed.error is None, harness.name
            assert len(observed.launches) == 1, harness.name
