"""The probes' source compiles, and takes parameters where the oracle says that they lie."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trunnion.contract.spec import Target
from trunnion.errors import CompileError
from trunnion.image import pack_parameters
from trunnion.model.code import DeviceCode
from trunnion.testing.gpu.probes import probe_source
from trunnion.testing.probe_compiler import compile_probes
from trunnion.testing.symbols import kernel_symbol

_TARGET = Target("cuda", "sm_90a")
_SIZES = st.sampled_from(((1, 1), (2, 2), (4, 4), (8, 8), (16, 16), (12, 4), (24, 8), (128, 64), (40, 8)))


def compiled(layouts):
    return compile_probes(DeviceCode("cuda", probe_source(layouts, 1 << 40)), layouts, _TARGET, kind="cubin")


@settings(max_examples=5)
@given(st.lists(st.lists(_SIZES, max_size=9).map(tuple), min_size=1, max_size=3))
def test_parameters_lie_where_a_synthetic_image_has_them(layouts):
    image = compiled(layouts)
    found = {kernel.name: kernel.parameters for kernel in image.kernels}
    assert found == {kernel_symbol(i): pack_parameters(layout) for i, layout in enumerate(layouts)}


def test_a_size_that_no_structure_has_is_told():
    with pytest.raises(CompileError, match="a size that C has not"):
        compiled([[(12, 8)]])
