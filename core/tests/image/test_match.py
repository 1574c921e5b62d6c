from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

from trunnion.contract.compiler import DeviceImage, ImageKernel
from trunnion.contract.spec import Target
from trunnion.errors import DeviceRequirementError, ParameterMismatchError, ProgramError
from trunnion.image.layout import pack_parameters_for
from trunnion.image.match import match_launches, match_parameters
from trunnion.image.synthetic import SyntheticKernel, synthetic_cubin
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Const, Symbol, eq, minimum
from trunnion.model.plan import KernelField, KernelParameter, KernelSignature
from trunnion.model.struct import struct

if TYPE_CHECKING:
    from trunnion.model.expr import ExprLike
    from trunnion.model.plan import LaunchPlan

N = Symbol("n")

POINTER = KernelParameter(8, 8, "a pointer to float16 (8 bytes)")
INT = KernelParameter(4, 4, "int32 (4 bytes)")
BYTE = KernelParameter(1, 1, "int8 (1 byte)")
MAP = KernelParameter(128, 64, "a tensor map (128 bytes)")
STRUCT = KernelParameter(
    24,
    8,
    "a struct of the launcher's (24 bytes)",
    (KernelField(0, ".x", "a pointer to float16 (8 bytes)"), KernelField(20, ".n[1]", "int32 (4 bytes)")),
)


def image(
    *kernels: tuple[str, tuple[KernelParameter, ...]], arch: str = "sm_90a", kind: str = "cuda"
) -> DeviceImage:
    target = Target(kind, arch)
    tables = (
        ImageKernel(name, name, pack_parameters_for(((p.size, p.alignment) for p in parameters), target))
        for name, parameters in kernels
    )
    return DeviceImage(kind="cubin", data=b"", target=target, kernels=tuple(tables))


@pytest.mark.parametrize("arch", ["sm_80", "sm_90a", "sm_100a"])
def test_what_fits_passes(arch: str) -> None:
    parameters = (BYTE, POINTER, INT, MAP, BYTE)
    match_parameters(
        [KernelSignature("k", parameters), KernelSignature("none", ())],
        image(("k", parameters), ("none", ()), ("more", ()), arch=arch),
    )


@pytest.mark.parametrize("kernels", [("b", "a"), ("more", "a", "b")])
def test_kernels_in_another_order_are_refused_whose_signatures_are_equal(kernels: tuple[str, ...]) -> None:
    """Launchers take kernels by position: each would launch another's code."""
    made = image(*((name, (POINTER,)) for name in kernels))
    with pytest.raises(ProgramError, match="in the request's order") as caught:
        match_parameters([KernelSignature(name, (POINTER,)) for name in "ab"], made)
    assert caught.value.field == "image.kernels"


@pytest.mark.parametrize(
    ("passed", "taken", "ordinal", "declared", "actual"),
    [
        (
            (POINTER, POINTER),
            (POINTER, INT),
            1,
            "a pointer to float16 (8 bytes) at offset 8",
            "4 bytes at offset 8",
        ),
        ((INT, POINTER), (BYTE, POINTER), 0, "int32 (4 bytes) at offset 0", "1 byte at offset 0"),
        ((INT, INT, INT), (INT, INT, POINTER), 2, "int32 (4 bytes) at offset 8", "8 bytes at offset 8"),
        (
            (POINTER,),
            (MAP,),
            0,
            "a pointer to float16 (8 bytes) at offset 0",
            "128 bytes at offset 48 (byte 576 of the constant bank, a multiple of 64: parameters begin at 528)",
        ),
        (
            (STRUCT,),
            (POINTER,),
            0,
            (
                "a struct of the launcher's (24 bytes) at offset 0, of the fields "
                ".x at 0: a pointer to float16 (8 bytes); .n[1] at 20: int32 (4 bytes)"
            ),
            "8 bytes at offset 0",
        ),
        (
            (POINTER,),
            (STRUCT,),
            0,
            "a pointer to float16 (8 bytes) at offset 0",
            "24 bytes at offset 0, and may be a struct (struct(...) builds one)",
        ),
        (
            (POINTER, INT),
            (STRUCT,),
            -1,
            "2 arguments",
            "1 parameters, of which number 0 has 24 bytes, and may be a struct (struct(...) builds one)",
        ),
        (
            (POINTER,),
            (KernelParameter(16, 8, "a pointer and two numbers"),),
            0,
            "a pointer to float16 (8 bytes) at offset 0",
            "16 bytes at offset 0, and may be a struct (struct(...) builds one)",
        ),
        (
            (INT, replace(STRUCT, alignment=16)),
            (INT, STRUCT),
            1,
            (
                "a struct of the launcher's (24 bytes) at offset 16, of the fields "
                ".x at 0: a pointer to float16 (8 bytes); .n[1] at 20: int32 (4 bytes)"
            ),
            "24 bytes at offset 8, so it is aligned otherwise (struct(..., alignment=...) says it)",
        ),
        ((INT,), (INT, INT), -1, "1 arguments", "2 parameters"),
        ((INT,), (), -1, "1 arguments", "0 parameters"),
        ((), (INT,), -1, "0 arguments", "1 parameters"),
    ],
)
def test_a_mismatch_names_kernel_and_ordinal(
    passed: tuple[KernelParameter, ...],
    taken: tuple[KernelParameter, ...],
    ordinal: int,
    declared: str,
    actual: str,
) -> None:
    good = KernelSignature("good", (INT,))
    with pytest.raises(ParameterMismatchError) as caught:
        match_parameters(
            [good, KernelSignature("bad<1>", passed)], image(("good", (INT,)), ("bad<1>", taken))
        )
    error = caught.value
    assert (error.kernel, error.ordinal, error.declared, error.actual) == (
        "bad<1>",
        ordinal,
        declared,
        actual,
    )


def test_of_a_large_struct_the_first_fields_are_told() -> None:
    fields = tuple(KernelField(4 * index, f".f{index}", "int32 (4 bytes)") for index in range(1000))
    large = KernelParameter(4000, 4, "a struct of the launcher's (4000 bytes)", fields)
    with pytest.raises(
        ParameterMismatchError, match=r"\.f23 at 92: int32 \(4 bytes\); and 976 more, the compiled"
    ):
        match_parameters([KernelSignature("k", (large,))], image(("k", (INT,))))


@pytest.mark.parametrize("arch", ["", "x86-64-v3"])
def test_another_kind_of_target_needs_no_architecture(arch: str) -> None:
    """Its table is laid out from zero, whatever its architecture is called."""
    parameters = (BYTE, POINTER, INT, MAP, BYTE)
    fitting = image(("k", parameters), arch=arch, kind="cpu")
    assert [place.offset for place in fitting.kernels[0].parameters] == [0, 8, 16, 64, 192]
    match_parameters([KernelSignature("k", parameters)], fitting)
    with pytest.raises(ParameterMismatchError) as caught:
        match_parameters([KernelSignature("k", (POINTER, POINTER))], image(("k", (POINTER, INT)), kind="cpu"))
    assert caught.value.ordinal == 1


WIDE_MAP = KernelParameter(MAP.size, 128, "a tensor map as CUDA 13's cuda.h has it")


@pytest.mark.parametrize("arch", ["sm_90a", "sm_100a"])
@pytest.mark.parametrize(
    "taken",
    [(WIDE_MAP, POINTER, WIDE_MAP, INT), (POINTER, MAP, INT, WIDE_MAP), (BYTE, WIDE_MAP, MAP), (WIDE_MAP,)],
)
def test_a_tensor_map_may_be_aligned_as_its_type_in_the_code(
    taken: tuple[KernelParameter, ...], arch: str
) -> None:
    passed = tuple(MAP if one is WIDE_MAP else one for one in taken)
    match_parameters([KernelSignature("k", passed)], image(("k", taken), arch=arch))


def test_a_tensor_map_at_any_other_place_is_a_mismatch() -> None:
    wider = KernelParameter(MAP.size, 256, "another")
    with pytest.raises(ParameterMismatchError) as caught:
        match_parameters([KernelSignature("k", (INT, MAP))], image(("k", (INT, wider))))
    assert caught.value.ordinal == 1


def test_of_a_struct_with_a_map_the_error_tells_how_maps_are_aligned() -> None:
    fields = (KernelField(0, ".x", "a pointer"), KernelField(64, ".m", "a tensor map (128 bytes)"))
    built = KernelParameter(192, 64, "a struct of the launcher's (192 bytes)", fields)
    with pytest.raises(ParameterMismatchError, match="CUDA 13's CUtensorMap is aligned"):
        match_parameters([KernelSignature("k", (built,))], image(("k", (KernelParameter(256, 128, ""),))))


def test_equal_sizes_at_other_offsets_are_a_mismatch() -> None:
    packed = KernelParameter(4, 1, "four bytes")
    with pytest.raises(ParameterMismatchError) as caught:
        match_parameters([KernelSignature("k", (BYTE, packed))], image(("k", (BYTE, INT))))
    assert (caught.value.ordinal, caught.value.declared, caught.value.actual) == (
        1,
        "four bytes at offset 1",
        "4 bytes at offset 4",
    )


def test_a_kernel_that_the_image_lacks_is_named() -> None:
    with pytest.raises(ProgramError, match=r"no kernel 'k' \(it has: 'K', 'k<1>'\)"):
        match_parameters([KernelSignature("k", ())], image(("K", ()), ("k<1>", ())))


# How kernels are launched --------------------------------------------------------------------------------------------


def launched(
    smem: ExprLike = 0,
    block: tuple[ExprLike, ...] = (32,),
    when: ExprLike | None = None,
    grid: tuple[ExprLike, ...] = (1,),
    **said: Any,
) -> LaunchPlan:
    p = ProgramBuilder("p", DeviceCode("cuda", ""))
    p.input("x", "int8", (N,))
    p.launch("k", (), grid, block, dynamic_smem_bytes=smem, when=when, **said)
    return p.build().plan()


def compiled(smem: int = 0, arch: str = "sm_90a", kind: str = "cuda", **bounds: Any) -> DeviceImage:
    """Return an image of a kernel that uses so much dynamic shared memory, with its own bounds."""
    data = synthetic_cubin([SyntheticKernel(name="k_0", **bounds)])
    kernel = ImageKernel("k", "k_0", (), dynamic_smem_bytes=smem)
    return DeviceImage(kind="cubin", data=data, target=Target(kind, arch), kernels=(kernel,))


def text_image(directives: str) -> DeviceImage:
    data = f".version 9.0\n.target sm_90\n.address_size 64\n.visible .entry k_0() {directives} {{ ret; }}"
    target = Target("cuda", "compute_90")
    return DeviceImage(kind="ptx", data=data.encode(), target=target, kernels=(ImageKernel("k", "k_0", ()),))


def test_launches_that_give_what_a_kernel_needs_pass() -> None:
    match_launches(launched(), compiled())
    match_launches(launched(4096, (32, 2)), compiled(4096, required_threads=(32, 2, 1)))
    match_launches(launched(4096, (N % 32 + 1,)), compiled(4096, required_threads=(32, 1, 1)))
    match_launches(launched(8192), compiled(4096))
    match_launches(launched(N * 4 + 4096), compiled(4096))
    match_launches(launched((N - 1) * 4), compiled())  # a call with fewer than 0 bytes is refused
    for kind, data in (("cubin", b""), ("ptx", b""), ("another", b"\x7fELF")):
        match_launches(launched(), replace(compiled(), kind=kind, data=data))


@pytest.mark.parametrize(
    ("smem", "block", "field", "said"),
    [
        (4095, (32,), "launches[0].dynamic_smem_bytes", "got 4095, where 'k' uses 4096 bytes; pass"),
        (N * 4, (32,), "launches[0].dynamic_smem_bytes", "got 0 in some calls, where 'k' uses 4096"),
        ((N - 1) * 4, (32,), "launches[0].dynamic_smem_bytes", "got 0 in some calls, where 'k' uses 4096"),
        (4096, (64,), "launches[0].block[0]", "got 64, where 'k' was compiled for 32 threads"),
        (4096, (32, 2), "launches[0].block[1]", "got 2, where 'k' was compiled for 1 threads"),
        (4096, (N % 16 + 1,), "launches[0].block[0]", "got 1 to 16, where 'k' was compiled for 32 threads"),
    ],
)
def test_launches_that_do_not_are_refused_by_their_place(
    smem: ExprLike, block: tuple[ExprLike, ...], field: str, said: str
) -> None:
    with pytest.raises(ProgramError, match=re.escape(said)) as caught:
        match_launches(launched(smem, block), compiled(4096, required_threads=(32, 1, 1)))
    assert caught.value.field == field


BOUNDED = (compiled(max_threads=(64, 2, 1)), text_image(".maxntid 64, 2"))


@pytest.mark.parametrize("made", BOUNDED)
def test_a_block_of_more_threads_than_the_kernel_was_compiled_for_is_refused(made: DeviceImage) -> None:
    """A driver compares the product alone (measured: an H100, driver 580)."""
    for fitting in ((128,), (1, 128), (8, 4, 4), (N,), (N % 2 + 64, 2)):
        match_launches(launched(0, fitting), made)
    for block, said in (
        ((129,), "got 129 threads"),
        ((32, 5), "got 160 threads"),
        ((N % 2 + 65, 2), "got at least 130 threads"),
        ((N - 5, 130), "got at least 130 threads"),
    ):
        with pytest.raises(ProgramError, match=f"{said}, where 'k' was compiled for at most 128; ") as caught:
            match_launches(launched(0, block), made)
        assert caught.value.field == "launches[0].block"


CLUSTERED = (
    compiled(cluster=(4, 2, 1)),
    text_image(".explicitcluster .reqnctapercluster 4, 2"),
)


@pytest.mark.parametrize("made", CLUSTERED)
def test_another_cluster_than_the_kernel_was_compiled_for_is_refused(made: DeviceImage) -> None:
    for fitting in (None, (4, 2), (N, 2), (N, N // 2, 1)):
        match_launches(launched(grid=(4, 2), cluster=fitting), made)
    for cluster, shown in (
        (1, "(1, 1, 1)"),
        ((2, 2), "(2, 2, 1)"),
        ((N, 1), f"({N.bounds}, 1, 1)"),
        ((N % 4, 2), "(0 to 3, 2, 1)"),
    ):
        said = f"got {shown}, where 'k' was compiled for clusters of (4, 2, 1); "
        with pytest.raises(ProgramError, match=re.escape(said)) as caught:
            match_launches(launched(grid=(4, 2), cluster=cluster), made)
        assert caught.value.field == "launches[0].cluster"


@pytest.mark.parametrize("made", CLUSTERED)
def test_a_grid_that_is_no_multiple_of_the_kernels_own_cluster_is_refused(made: DeviceImage) -> None:
    for fitting in ((8, 2), (0, 4, 3), (N, 2), (4, N)):
        match_launches(launched(grid=fitting), made)
    for grid, axis, said in (((6, 2), 0, "got 6 blocks"), ((N, 3), 1, "got 3 blocks")):
        with pytest.raises(ProgramError, match=f"{said}, .* expected a multiple of") as caught:
            match_launches(launched(grid=grid), made)
        assert caught.value.field == f"launches[0].grid[{axis}]"


@pytest.mark.parametrize(
    "made",
    [
        compiled(cluster=(4, 2, 1), grid_counts_clusters=True),
        text_image(".blocksareclusters .reqnctapercluster 4, 2"),
    ],
)
def test_a_grid_that_counts_clusters_may_be_any(made: DeviceImage) -> None:
    match_launches(launched(grid=(3, 3)), made)


@pytest.mark.parametrize("made", [compiled(needs_cluster=True), text_image(".explicitcluster")])
def test_a_kernel_for_clusters_of_any_size_is_refused_where_none_is_given(made: DeviceImage) -> None:
    for fitting in (1, (4, 2), (N, 1)):
        match_launches(launched(grid=(4, 2), cluster=fitting), made)
    with pytest.raises(ProgramError, match=r"got none, where 'k' .*\(.explicitcluster\)") as caught:
        match_launches(launched(grid=(4, 2)), made)
    assert caught.value.field == "launches[0].cluster"


@pytest.mark.parametrize("made", [compiled(max_cluster_blocks=4), text_image(".maxclusterrank 4")])
def test_a_larger_cluster_than_the_kernel_was_compiled_for_is_refused(made: DeviceImage) -> None:
    for fitting in (None, 4, (2, 2), (N, 4)):
        match_launches(launched(grid=(8, 8), cluster=fitting), made)
    for cluster, given in ((8, "8"), ((N, 8), "at least 8"), ((N + 5, N), "at least 5")):
        said = f"got {given} blocks, where 'k' was compiled for clusters of at most 4; "
        with pytest.raises(ProgramError, match=said) as caught:
            match_launches(launched(grid=(8, 8), cluster=cluster), made)
        assert caught.value.field == "launches[0].cluster"


@pytest.mark.parametrize(
    ("arch", "most"), [("sm_75", 64), ("sm_80", 163), ("sm_89", 99), ("sm_90a", 227), ("sm_120", 99)]
)
def test_more_shared_memory_than_the_target_gives_a_block_is_refused(arch: str, most: int) -> None:
    most <<= 10
    for smem in (most, N * 4, minimum(N, most + 1)):
        match_launches(launched(smem), compiled(0, arch))
    for smem in (most + 1, N + most + 1):
        with pytest.raises(DeviceRequirementError) as caught:
            match_launches(launched(smem), compiled(0, arch))
        assert str(caught.value) == (
            f"needs {most + 1} bytes of dynamic shared memory for kernel 'k', got {arch}, which allows a block {most} "
            "bytes, static ones included; give the launch less dynamic_smem_bytes, or compile for another architecture"
        )


@pytest.mark.parametrize("static", [4096, 200 << 10, 227 << 10])
def test_static_shared_memory_counts_where_the_image_tells_it(static: int) -> None:
    """From sm_90 on a kernel may have all of a block's as static memory (measured: an H100, driver 580)."""
    most, made = 227 << 10, compiled(static_smem_bytes=static)
    match_launches(launched(most - static), made)
    with pytest.raises(
        DeviceRequirementError, match=f"{most - static + 1} bytes .* beside {static} of static"
    ):
        match_launches(launched(most - static + 1), made)
    match_launches(launched(most), replace(made, kind="ptx", target=Target("cuda", "compute_90a")))


def test_static_shared_memory_alone_may_be_too_much() -> None:
    made, most = compiled(0, "sm_89", static_smem_bytes=(99 << 10) + 4), 99 << 10
    with pytest.raises(DeviceRequirementError) as caught:
        match_launches(launched(), made)
    assert str(caught.value) == (
        f"needs {most + 4} bytes of static shared memory for kernel 'k', got sm_89, which allows a block {most} bytes, "
        "static ones included; compile for another architecture"
    )
    match_launches(launched(when=eq(N, 1)), made)


def test_what_may_run_where_there_is_more_or_never_is_not_refused() -> None:
    for image in (compiled(0, "compute_80"), compiled(0, "sm_999"), compiled(0, "", "cpu")):
        match_launches(launched(1 << 20), image)
    for skipped in (eq(N, 1), 0):
        plan = launched(1 << 20, (32,), skipped)
        match_launches(plan, compiled())


NEEDY: tuple[tuple[dict[str, Any], str], ...] = (
    ({"cluster": (2, 2)}, "cluster=(2, 2, 1)"),
    ({"cluster": 1, "preferred_cluster": 2}, "preferred_cluster=(2, 1, 1)"),
    ({"scheduling_policy": "spread"}, "scheduling_policy='spread'"),
)


@pytest.mark.parametrize(("said", "shown"), NEEDY)
@pytest.mark.parametrize("arch", ["sm_80", "sm_89"])
def test_a_launch_attribute_that_no_device_of_the_target_holds_is_refused(
    said: dict[str, Any], shown: str, arch: str
) -> None:
    with pytest.raises(DeviceRequirementError) as caught:
        match_launches(launched(grid=(2, 2), **said), compiled(0, arch))
    assert str(caught.value) == (
        f"needs compute capability 9.0 for {shown} of a launch of kernel 'k', got the target {arch}, whose code runs "
        "on no such device; compile for sm_90 or later, or leave it out"
    )
    for made in (compiled(), compiled(0, "compute_80"), compiled(0, "", "cpu"), compiled(0, "sm_100a")):
        match_launches(launched(grid=(2, 2), **said), made)
    for skipped in ({"when": eq(N, 1)}, {"when": 0}, {"grid": (0, 2)}):
        match_launches(launched(**{"grid": (2, 2), **said, **skipped}), compiled(0, arch))


@pytest.mark.parametrize("said", [{"cluster": 1}, {"cluster": (N, 2)}, {"pdl": True}, {"cooperative": True}])
def test_one_that_every_device_holds_or_a_call_decides_is_not(said: dict[str, Any]) -> None:
    match_launches(launched(grid=(2, 2), **said), compiled(0, "sm_80"))


@pytest.mark.parametrize("packed", [False, True])
def test_a_tensor_map_is_refused_where_no_device_of_the_target_has_them(packed: bool) -> None:
    p = ProgramBuilder("p", DeviceCode("cuda", ""))
    tiled = p.input("x", "float16", (64, 64)).tiled((64, 64))
    p.launch("k", (struct(("n", N.cast("int32")), ("map", tiled)) if packed else tiled,), 1, 32)
    p.input("y", "float16", (N,))
    plan = p.build().plan()
    with pytest.raises(
        DeviceRequirementError, match=r"9\.0 for a tensor map of a launch of kernel 'k', got the target sm_80"
    ):
        match_launches(plan, compiled(0, "sm_80"))
    for made in (compiled(), compiled(0, "compute_80"), compiled(0, "", "cpu")):
        match_launches(plan, made)
    (launch,) = plan.launches
    for skipped in (Const(0), N):
        match_launches(replace(plan, launches=(replace(launch, when=skipped),)), compiled(0, "sm_80"))
