"""Probes are compiled by what is installed; without a compiler that is said."""

from __future__ import annotations

import pytest

from trunnion.contract.spec import Target
from trunnion.errors import DeviceRequirementError
from trunnion.model.code import DeviceCode
from trunnion.testing.probe_compiler import compile_probes


@pytest.mark.parametrize(
    ("language", "target", "kind"),
    [("fortran", "cpu", ""), ("c++", "sm_90a", ""), ("c++", "cpu", "cubin")],
)
def test_a_compiler_that_is_not_there_is_named(language, target, kind):
    with pytest.raises(DeviceRequirementError, match=r"a device compiler of (fortran|c\+\+) for (cpu|cuda)"):
        compile_probes(DeviceCode(language, ""), [()], Target.parse(target), kind=kind)
