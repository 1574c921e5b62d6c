"""The simulated driver's entry points, against the declarations that ``cuda.bindings`` is built from."""

import ctypes
import re
from importlib import resources

import pytest
from cuda.bindings import driver

from trunnion.sim.abi import Limit
from trunnion.sim.abi_graph import EdgeDataStruct, KernelNodeParamsStruct, MemsetNodeParamsStruct
from trunnion.sim.graph import NodeKind
from trunnion.sim.objects import CaptureMode, CaptureStatus

LETTERS = {
    "size_t": "L",
    "cuuint64_t": "L",
    "CUdeviceptr": "L",
    "unsigned long long": "L",
    "unsigned int": "U",
    "cuuint32_t": "U",
    "unsigned char": "B",
    "unsigned short": "H",
    "int": "I",
    "CUdevice": "I",
}
HANDLES = {
    "CUcontext",
    "CUstream",
    "CUevent",
    "CUfunction",
    "CUkernel",
    "CUlibrary",
    "CUgraph",
    "CUgraphExec",
    "CUgraphNode",
    "CUdevResourceDesc",
    "CUgreenCtx",
}
# Renamed in the bindings: the name under which cuGetProcAddress finds what they declare.
RENAMED = {"cuGraphInstantiate": "cuGraphInstantiateWithFlags"}
# Not declared there: older than they are, or none of their business.
UNDECLARED = {"cuGetProcAddress"}


def declarations():
    text = resources.files("cuda.bindings").joinpath("cydriver.pxd").read_text()
    found = {}
    for name, parameters in re.findall(r"^cdef CUresult (cu\w+)\((.*?)\) except", text, re.MULTILINE):
        found[RENAMED.get(name, name)] = [part.rsplit(" ", 1)[0] for part in parameters.split(", ") if part]
    return found


def letter(kind):
    plain = kind.removeprefix("const ")
    if "*" in plain or plain in HANDLES:
        return "P"
    return LETTERS.get(plain, "I")  # every other type here is an enumeration


def test_every_entry_point_has_the_declared_parameters(running_simulator):
    declared = declarations()
    newest = {}
    for entry in running_simulator._shim.entries:
        if not entry.per_thread and entry.since >= newest.get(entry.base, entry).since:
            newest[entry.base] = entry
    missing = newest.keys() - declared.keys() - UNDECLARED
    assert not missing
    compared = 0
    for base, entry in newest.items():
        versioned = declared.get(f"{base}_v2") if entry.symbol.endswith("_v2") else None
        kinds = versioned or declared.get(base)
        if kinds is not None:
            assert entry.signature == "".join(letter(kind) for kind in kinds), base
            compared += 1
    assert compared > 90


def test_both_abis_of_an_entry_point_take_the_same(running_simulator):
    entries = {entry.symbol: entry for entry in running_simulator._shim.entries}
    twins = [entry for entry in entries.values() if entry.per_thread]
    assert len(twins) > 40
    for entry in twins:
        assert entries[entry.handler].signature == entry.signature


@pytest.mark.parametrize(
    ("ours", "prefix", "theirs"),
    [
        (Limit, "CU_LIMIT_", driver.CUlimit),
        (CaptureMode, "CU_STREAM_CAPTURE_MODE_", driver.CUstreamCaptureMode),
        (CaptureStatus, "CU_STREAM_CAPTURE_STATUS_", driver.CUstreamCaptureStatus),
        (NodeKind, "CU_GRAPH_NODE_TYPE_", driver.CUgraphNodeType),
    ],
)
def test_constants_are_the_drivers(ours, prefix, theirs):
    names = {row.name.removeprefix(prefix): int(row) for row in theirs}
    assert {row.name: int(row) for row in ours}.items() <= names.items()


def test_structures_have_the_drivers_layout():
    kernel = driver.CUDA_KERNEL_NODE_PARAMS()
    kernel.gridDimX, kernel.blockDimZ, kernel.sharedMemBytes = 5, 6, 7
    kernel.kern = driver.CUkernel(0x1234)
    ours = KernelNodeParamsStruct.from_address(int(kernel.getPtr()))
    assert (ours.gridDimX, ours.blockDimZ, ours.sharedMemBytes, ours.kern) == (5, 6, 7, 0x1234)
    memset = driver.CUDA_MEMSET_NODE_PARAMS()
    memset.dst, memset.pitch, memset.value = driver.CUdeviceptr(0x88), 1, 2
    memset.elementSize, memset.width, memset.height = 4, 5, 6
    ours = MemsetNodeParamsStruct.from_address(int(memset.getPtr()))
    assert (ours.dst, ours.pitch, ours.value, ours.elementSize) == (0x88, 1, 2, 4)
    assert (ours.width, ours.height) == (5, 6)
    edge = driver.CUgraphEdgeData()
    edge.from_port, edge.to_port, edge.type = 1, 2, 1
    ours = EdgeDataStruct.from_address(int(edge.getPtr()))
    assert (ours.from_port, ours.to_port, ours.type, ctypes.sizeof(ours)) == (1, 2, 1, 8)
