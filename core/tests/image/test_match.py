from __future__ import annotations

import pytest

from trunnion.contract.compiler import DeviceImage, ImageKernel
from trunnion.contract.spec import Target
from trunnion.errors import ParameterMismatchError, ProgramError
from trunnion.image.layout import pack_parameters_for
from trunnion.image.match import match_parameters
from trunnion.model.plan import KernelParameter, KernelSignature

POINTER = KernelParameter(8, 8, "a pointer to float16 (8 bytes)")
INT = KernelParameter(4, 4, "int32 (4 bytes)")
BYTE = KernelParameter(1, 1, "int8 (1 byte)")
MAP = KernelParameter(128, 64, "a tensor map (128 bytes)")


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
        image(("none", ()), ("k", parameters), arch=arch),
    )


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
        ((POINTER,), (MAP,), 0, "a pointer to float16 (8 bytes) at offset 0", "128 bytes at offset 48"),
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
