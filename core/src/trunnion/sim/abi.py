"""The driver's structures and constants, as C lays them out.

Source: CUDA Driver API, Data types used by CUDA driver; the layouts are those of ``cuda.h`` on a 64-bit
machine.
"""

from __future__ import annotations

import ctypes
import enum
from typing import Final

__all__ = [
    "GEOMETRY_FIELDS",
    "TENSOR_MAP_BYTES",
    "AccessPolicyWindowStruct",
    "DeviceAttribute",
    "FunctionAttribute",
    "LaunchAttributeId",
    "LaunchAttributeStruct",
    "LaunchAttributeValue",
    "LaunchConfigStruct",
    "Limit",
]

TENSOR_MAP_BYTES: Final = 128
"""``sizeof(CUtensorMap)``."""


class _Dim3(ctypes.Structure):
    _fields_ = (("x", ctypes.c_uint32), ("y", ctypes.c_uint32), ("z", ctypes.c_uint32))


class AccessPolicyWindowStruct(ctypes.Structure):
    """``CUaccessPolicyWindow``: 32 bytes."""

    _fields_ = (
        ("base_ptr", ctypes.c_void_p),
        ("num_bytes", ctypes.c_size_t),
        ("hitRatio", ctypes.c_float),
        ("hitProp", ctypes.c_int32),
        ("missProp", ctypes.c_int32),
    )


class LaunchAttributeValue(ctypes.Union):
    """``CUlaunchAttributeValue``: 64 bytes, of which only the members that the simulator reads are named."""

    _fields_ = (
        ("pad", ctypes.c_char * 64),
        ("accessPolicyWindow", AccessPolicyWindowStruct),
        ("cooperative", ctypes.c_int32),
        ("clusterDim", _Dim3),
        ("programmaticStreamSerializationAllowed", ctypes.c_int32),
        ("priority", ctypes.c_int32),
        ("clusterSchedulingPolicyPreference", ctypes.c_int32),
        ("memSyncDomain", ctypes.c_int32),
        ("preferredClusterDim", _Dim3),
        ("sharedMemCarveout", ctypes.c_uint32),
        ("syncPolicy", ctypes.c_int32),
    )


class LaunchAttributeStruct(ctypes.Structure):
    """``CUlaunchAttribute``: 72 bytes."""

    _fields_ = (
        ("id", ctypes.c_int32),
        ("pad", ctypes.c_char * 4),
        ("value", LaunchAttributeValue),
    )


GEOMETRY_FIELDS = tuple(
    (name, ctypes.c_uint32)
    for name in ("gridDimX", "gridDimY", "gridDimZ", "blockDimX", "blockDimY", "blockDimZ", "sharedMemBytes")
)
"""How structures say the geometry of a launch: the grid counts blocks, the block threads, the shared memory bytes."""


class LaunchConfigStruct(ctypes.Structure):
    """``CUlaunchConfig``: 56 bytes."""

    _fields_ = (
        *GEOMETRY_FIELDS,
        ("hStream", ctypes.c_void_p),
        ("attrs", ctypes.c_void_p),
        ("numAttrs", ctypes.c_uint32),
    )


class LaunchAttributeId(enum.IntEnum):
    """``CUlaunchAttributeID``."""

    IGNORE = 0
    ACCESS_POLICY_WINDOW = 1
    COOPERATIVE = 2
    SYNCHRONIZATION_POLICY = 3
    CLUSTER_DIMENSION = 4
    CLUSTER_SCHEDULING_POLICY_PREFERENCE = 5
    PROGRAMMATIC_STREAM_SERIALIZATION = 6
    PROGRAMMATIC_EVENT = 7
    PRIORITY = 8
    MEM_SYNC_DOMAIN_MAP = 9
    MEM_SYNC_DOMAIN = 10
    PREFERRED_CLUSTER_DIMENSION = 11
    LAUNCH_COMPLETION_EVENT = 12
    DEVICE_UPDATABLE_KERNEL_NODE = 13
    PREFERRED_SHARED_MEMORY_CARVEOUT = 14
    NVLINK_UTIL_CENTRIC_SCHEDULING = 16


class Limit(enum.IntEnum):
    """``CUlimit``, as far as a context has it."""

    STACK_SIZE = 0
    PRINTF_FIFO_SIZE = 1
    MALLOC_HEAP_SIZE = 2
    DEV_RUNTIME_SYNC_DEPTH = 3
    DEV_RUNTIME_PENDING_LAUNCH_COUNT = 4
    MAX_L2_FETCH_GRANULARITY = 5
    PERSISTING_L2_CACHE_SIZE = 6


class FunctionAttribute(enum.IntEnum):
    """``CUfunction_attribute``."""

    MAX_THREADS_PER_BLOCK = 0
    SHARED_SIZE_BYTES = 1
    CONST_SIZE_BYTES = 2
    LOCAL_SIZE_BYTES = 3
    NUM_REGS = 4
    PTX_VERSION = 5
    BINARY_VERSION = 6
    CACHE_MODE_CA = 7
    MAX_DYNAMIC_SHARED_SIZE_BYTES = 8
    PREFERRED_SHARED_MEMORY_CARVEOUT = 9
    CLUSTER_SIZE_MUST_BE_SET = 10
    REQUIRED_CLUSTER_WIDTH = 11
    REQUIRED_CLUSTER_HEIGHT = 12
    REQUIRED_CLUSTER_DEPTH = 13
    NON_PORTABLE_CLUSTER_SIZE_ALLOWED = 14
    CLUSTER_SCHEDULING_POLICY_PREFERENCE = 15


class DeviceAttribute(enum.IntEnum):
    """The rows of ``CUdevice_attribute`` that the simulator itself reads."""

    MAX_THREADS_PER_BLOCK = 1
    MAX_BLOCK_DIM_X = 2
    MAX_BLOCK_DIM_Y = 3
    MAX_BLOCK_DIM_Z = 4
    MAX_GRID_DIM_X = 5
    MAX_GRID_DIM_Y = 6
    MAX_GRID_DIM_Z = 7
    MAX_SHARED_MEMORY_PER_BLOCK = 8
    WARP_SIZE = 10
    MAX_REGISTERS_PER_BLOCK = 12
    MULTIPROCESSOR_COUNT = 16
    L2_CACHE_SIZE = 38
    MAX_THREADS_PER_MULTIPROCESSOR = 39
    COMPUTE_CAPABILITY_MAJOR = 75
    COMPUTE_CAPABILITY_MINOR = 76
    MAX_SHARED_MEMORY_PER_MULTIPROCESSOR = 81
    MAX_REGISTERS_PER_MULTIPROCESSOR = 82
    COOPERATIVE_LAUNCH = 95
    MAX_SHARED_MEMORY_PER_BLOCK_OPTIN = 97
    MAX_BLOCKS_PER_MULTIPROCESSOR = 106
    MAX_PERSISTING_L2_CACHE_SIZE = 108
    MAX_ACCESS_POLICY_WINDOW_SIZE = 109
    RESERVED_SHARED_MEMORY_PER_BLOCK = 111
    CLUSTER_LAUNCH = 120
    TENSOR_MAP_ACCESS_SUPPORTED = 127
    MPS_ENABLED = 133
