from __future__ import annotations

import pytest

from trunnion.contract.compiler import DeviceImage, ImageKernel
from trunnion.contract.spec import Target
from trunnion.errors import ProgramError


def image(*names: str) -> DeviceImage:
    kernels = tuple(ImageKernel(name, f"_Z{name}", ()) for name in names)
    toolchain = {"z": "1", "a": "2"}
    return DeviceImage(kind="cubin", data=b"", target=Target("cuda"), kernels=kernels, toolchain=toolchain)


def test_a_kernel_is_found_by_its_exact_name_alone() -> None:
    assert image("k<1>", "k").kernel("k").symbol == "_Zk"
    for wrong in ("K", "k<", "", "k "):
        with pytest.raises(ProgramError, match="it has: 'k<1>', 'k'"):
            image("k<1>", "k").kernel(wrong)
    with pytest.raises(ProgramError, match="it has: none"):
        image().kernel("k")


def test_the_toolchain_is_sorted_and_cannot_change() -> None:
    toolchain = image().toolchain
    assert list(toolchain) == ["a", "z"]
    with pytest.raises(TypeError):
        toolchain["b"] = "3"
