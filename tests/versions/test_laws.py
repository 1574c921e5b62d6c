"""A few laws on few examples, for each version of apache-tvm-ffi: those whose subject passes through its ABI."""

from __future__ import annotations

import pytest

from trunnion.registry import default_registry
from trunnion.testing.harness import Harness
from trunnion.testing.kept_launchers import launcher_folder
from trunnion.testing.laws import catalogue
from trunnion.testing.machine import SimulatedMachine

pytestmark = pytest.mark.tvm_ffi_abi

_EXAMPLES = 2

# Arguments and their errors, what is returned or given, streams and devices, the driver's errors, numbers of every
# type, addresses, structs, tensors that are left out, maps, a bound call, memory of the launcher's own, a window.
_LAWS = ("A1", "O1", "O2", "N1", "N2", "N3", "N5", "V1", "V2", "V3", "V4", "T1", "C5", "W1", "P1")


@pytest.mark.parametrize("law_id", _LAWS)
def test_law(running_simulator, law_id):
    spec = default_registry().backend("tvm_ffi")
    harness = Harness(spec=spec, machine=SimulatedMachine(running_simulator), kept=launcher_folder())
    assert catalogue()[law_id].check(harness, examples=_EXAMPLES, shrink=False).examples >= _EXAMPLES
