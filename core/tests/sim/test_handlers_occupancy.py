import ctypes

import pytest

from trunnion.image import SyntheticKernel, synthetic_cubin
from trunnion.sim.abi import LaunchAttributeId, LaunchAttributeStruct, LaunchConfigStruct
from trunnion.sim.status import Status

IMAGE = synthetic_cubin(
    (
        SyntheticKernel(name="light", registers=16),
        SyntheticKernel(name="heavy", registers=255),
        SyntheticKernel(name="static", registers=16, static_smem_bytes=40000),
        SyntheticKernel(name="clustered", registers=16, cluster=(4, 1, 1)),
        SyntheticKernel(name="bounded", registers=16, max_cluster_blocks=2),
        SyntheticKernel(name="narrow", registers=16, max_threads=(128, 1, 1)),
        SyntheticKernel(name="exact", registers=16, required_threads=(64, 2, 1)),
    )
)


@pytest.fixture
def kernel(library):
    image = library.library(IMAGE)
    return lambda name: library.kernel(name, image)


def number(library, name, *arguments, kind=ctypes.c_int):
    out = kind(99)
    library.ok(name, ctypes.byref(out), *arguments)
    return out.value


@pytest.mark.parametrize(
    ("name", "threads", "smem", "blocks"),
    [
        ("light", 1024, 0, 2),  # 2048 threads
        ("light", 33, 0, 32),  # two warps each: the number of blocks
        ("light", 96, 0, 21),  # three warps of 64
        ("light", 128, 100 << 10, 2),  # 228 KiB, and 1 KiB reserved for each
        ("light", 128, 227 << 10, 1),
        ("light", 128, (227 << 10) + 1, 0),
        ("heavy", 256, 0, 1),  # 256 registers of each thread: 8 warps
        ("static", 128, 0, 5),
        ("static", 128, 40000, 2),
        ("light", 1025, 0, 0),
        # What the kernel was compiled for counts at the launch, and here only in its registers (an H100, driver 580).
        ("narrow", 128, 0, 16),
        ("narrow", 129, 0, 12),
        ("narrow", 1024, 0, 2),
        ("narrow", 1025, 0, 0),
        ("exact", 256, 0, 8),
    ],
)
def test_blocks_of_a_multiprocessor(library, kernel, name, threads, smem, blocks):
    call = "cuOccupancyMaxActiveBlocksPerMultiprocessor"
    size = ctypes.c_uint64(smem)
    library("cuKernelSetAttribute", 8, smem, kernel(name), 0)
    assert number(library, call, kernel(name), threads, size) == blocks
    assert number(library, f"{call}WithFlags", kernel(name), threads, size, 1) == blocks


def test_a_kernel_that_is_not_allowed_so_much_has_no_block(library, kernel):
    call, size = "cuOccupancyMaxActiveBlocksPerMultiprocessor", ctypes.c_uint64
    light = kernel("light")
    assert number(library, call, light, 128, size(49152)) == 4
    assert number(library, call, light, 128, size(49153)) == 0
    library.ok("cuKernelSetAttribute", 8, 49153, light, 0)
    assert number(library, call, light, 128, size(49153)) == 4


@pytest.mark.parametrize(
    ("name", "allowed", "blocks", "nbytes"),
    [
        ("light", None, (1, 4, 5, 8, 32), (49152, 49152, 46592, 29184, 7296)),
        ("light", 0, (1, 32), (0, 0)),
        ("light", 10000, (1, 8, 32), (10000, 10000, 7296)),
        ("light", 49153, (1, 5), (49153, 46592)),
        ("light", 232448, (1, 2, 3, 4), (232448, 116736, 77824, 58368)),
        ("static", None, (1, 4, 5), (9152, 9152, 6592)),
        ("static", 192448, (1, 2, 3, 4, 5), (192448, 76736, 37824, 18368, 6592)),
    ],
)
def test_shared_memory_that_is_left_is_no_more_than_the_kernel_is_allowed(
    library, kernel, name, allowed, blocks, nbytes
):
    """The answers of an H100, driver 580, of blocks of 64 threads: what it reserves for each is not taken off."""
    call = "cuOccupancyAvailableDynamicSMemPerBlock"
    if allowed is not None:
        library.ok("cuKernelSetAttribute", 8, allowed, kernel(name), 0)
    found = tuple(number(library, call, kernel(name), one, 64, kind=ctypes.c_size_t) for one in blocks)
    assert found == nbytes


@pytest.mark.parametrize(
    ("name", "blocks", "threads"),
    [("light", 33, 64), ("light", 1, 1025), ("static", 8, 64), ("heavy", 9, 1024)],
)
def test_of_more_blocks_than_there_is_room_for_no_shared_memory_is_said(
    library, kernel, name, blocks, threads
):
    out = ctypes.c_size_t(77)
    asked = library(
        "cuOccupancyAvailableDynamicSMemPerBlock", ctypes.byref(out), kernel(name), blocks, threads
    )
    assert (asked, out.value) == (Status.INVALID_VALUE, 77)


def config_of(cluster=None, block=128, smem=0):
    attribute = LaunchAttributeStruct(id=LaunchAttributeId.CLUSTER_DIMENSION)
    dims = attribute.value.clusterDim
    dims.x, dims.y, dims.z = cluster or (1, 1, 1)
    array = (LaunchAttributeStruct * 1)(attribute)
    config = LaunchConfigStruct(
        16, 1, 1, block, 1, 1, smem, None, ctypes.addressof(array), int(cluster is not None)
    )
    config.held = array
    return config


def test_clusters_of_a_device(library, kernel):
    def clusters(name, *given, **fields):
        return number(
            library, "cuOccupancyMaxActiveClusters", kernel(name), ctypes.byref(config_of(*given, **fields))
        )

    one = clusters("light", (1, 1, 1), block=1024)
    assert one == 2 * 132
    assert clusters("light", (2, 1, 1), block=1024) == 132
    assert clusters("light", (8, 1, 1), block=1024, smem=200 << 10) == 8 * (16 // 8)
    assert clusters("clustered") > 0
    assert clusters("light", (8, 1, 1), smem=228 << 10) == 0
    # In clusters a multiprocessor has at most 8 blocks, and none that are too large (an H100, driver 580).
    assert [clusters("light", (1, 1, 1), block=threads) for threads in (32, 128, 256)] == [8 * 132] * 3
    assert clusters("light", (2, 1, 1), block=64) == 4 * 132
    assert clusters("narrow", (2, 1, 1), block=129) == 4 * 132
    assert clusters("light", (2, 1, 1), block=1025) == 0


@pytest.mark.parametrize(
    ("name", "cluster", "status"),
    [
        ("light", None, Status.INVALID_VALUE),
        ("light", (16, 1, 1), Status.INVALID_CLUSTER_SIZE),
        ("clustered", (2, 1, 1), Status.INVALID_VALUE),
    ],
)
def test_clusters_that_are_refused(library, kernel, name, cluster, status):
    out, config = ctypes.c_int(), config_of(cluster)
    asked = library("cuOccupancyMaxActiveClusters", ctypes.byref(out), kernel(name), ctypes.byref(config))
    assert asked is status


def test_the_largest_cluster(library, kernel):
    def largest(handle, **fields):
        config = config_of((2, 1, 1), **fields)  # the documentation: it is ignored
        return number(library, "cuOccupancyMaxPotentialClusterSize", handle, ctypes.byref(config))

    light = kernel("light")
    assert largest(light) == 8
    library.ok("cuKernelSetAttribute", 14, 1, light, 0)
    assert largest(light) == 16
    assert largest(light, smem=228 << 10) == 0
    assert largest(light, block=1025) == 0
    assert largest(kernel("clustered")) == 4
    assert largest(kernel("bounded")) == 2


def test_wrong_questions_are_refused(library, kernel):
    out = ctypes.byref(ctypes.c_int())
    call, light, zero = "cuOccupancyMaxActiveBlocksPerMultiprocessor", kernel("light"), ctypes.c_uint64(0)
    assert library(call, out, light, 0, zero) is Status.INVALID_VALUE
    assert library(call, out, 77, 32, zero) is Status.INVALID_HANDLE
    assert library(f"{call}WithFlags", out, light, 32, zero, 2) is Status.INVALID_VALUE
    library.ok("cuCtxSetCurrent", None)
    assert library(call, out, light, 32, zero) is Status.INVALID_CONTEXT
