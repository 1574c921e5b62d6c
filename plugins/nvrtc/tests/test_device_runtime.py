"""Kernels that launch kernels: linked with CUDA's device runtime, and with nothing of it where none does."""

from __future__ import annotations

import pytest

from trunnion.contract.compiler import CompileRequest, DeviceImage
from trunnion.contract.spec import Target
from trunnion.errors import CompileError
from trunnion.model.code import DeviceCode
from trunnion.model.plan import KernelSignature
from trunnion_nvrtc.compiler import device_runtime
from trunnion_nvrtc.compiler.compiler import NvrtcCompiler

CHILD = "__global__ void child(float* x) { x[0] = 1; }\n"
LAUNCHES = CHILD + 'extern "C" __global__ void k(float* x) { child<<<1, 1>>>(x); }'
LAUNCHES_NONE = CHILD + 'extern "C" __global__ void k(float* x) { x[1] = 2; }'


def request(source: str, *options: str) -> CompileRequest:
    return CompileRequest(
        code=(DeviceCode("cuda", source, options=options),),
        kernels=(KernelSignature("k", ()),),
        target=Target.parse("sm_90a"),
        options={},
        accepts=("cubin",),
    )


def compiled(source: str, *options: str) -> DeviceImage:
    return NvrtcCompiler().compile(request(source, *options))


@pytest.mark.parametrize("option", ["--relocatable-device-code=true", "--device-c", "--dlink-time-opt"])
def test_a_kernel_may_launch_another_one(option: str) -> None:
    image = compiled(LAUNCHES, option)
    assert [kernel.symbol for kernel in image.kernels] == ["k"]
    assert b"__cuda_syscall_cnpv2LaunchDeviceV2" in image.data, "what the driver has of it"
    assert b"cnpv2" not in compiled(LAUNCHES_NONE, option).data


def test_code_that_is_not_linked_launches_nothing_and_says_how() -> None:
    with pytest.raises(CompileError) as caught:
        compiled(LAUNCHES)
    assert caught.value.__notes__ == [
        "hint: a kernel launches another one only in code that is linked, with --relocatable-device-code=true"
    ]


def test_where_there_is_no_runtime_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(device_runtime, "_path", lambda: "")
    with pytest.raises(CompileError, match="__cudaCDP2") as caught:
        compiled(LAUNCHES, "-rdc=true")
    assert caught.value.__notes__ == [f"hint: {device_runtime.DEVICE_RUNTIME_HINT}"]
    assert compiled(LAUNCHES_NONE, "-rdc=true").data


def test_its_content_counts_where_code_is_linked(monkeypatch: pytest.MonkeyPatch) -> None:
    def seen(*options: str) -> str | None:
        return NvrtcCompiler().environment(request(LAUNCHES, *options)).get("libcudadevrt.a")

    assert len(seen("-rdc=true") or "") == 64
    assert seen() is None
    monkeypatch.setattr(device_runtime, "_path", lambda: "")
    assert seen("-rdc=true") == ""
