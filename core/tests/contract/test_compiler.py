from __future__ import annotations

from dataclasses import replace

import pytest

from trunnion.contract.compiler import DeviceImage, ImageKernel
from trunnion.contract.spec import Target
from trunnion.errors import ArgumentTypeError, ProgramError


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


@pytest.mark.parametrize("toolchain", [None, "acme 1", [("acme", "1")], {"acme": "1", 2: "3"}])
def test_a_toolchain_that_is_none_is_refused(toolchain: object) -> None:
    """A plugin's author reads it, who is told of it where the image is made."""
    with pytest.raises(
        ArgumentTypeError, match=r"argument 'toolchain': got .*, expected a mapping of text to text"
    ):
        replace(image(), toolchain=toolchain)
