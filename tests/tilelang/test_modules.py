"""TVM-FFI modules that TileLang builds run through `trunnion_tvm_ffi.from_module`: here one for the CPU, for real."""

from __future__ import annotations

import pytest
import tilelang.language as T
import torch
from tilelang import tvm
from tilelang.backend.module import create_backend_context
from tilelang.engine.lower import host_codegen, lower_to_host_device_ir

from trunnion.errors import ArgumentTypeError, ArgumentValueError
from trunnion_tilelang import from_prim_func
from trunnion_tvm_ffi import from_module


def scaled_sum():
    n = T.dynamic("n")

    @T.prim_func
    def scaled(
        A: T.Tensor((n,), T.float32),
        C: T.Tensor((n,), T.float32),
        B: T.Tensor((n,), T.float32),
        factor: T.float32,
    ):
        with T.Kernel(T.ceildiv(n, 128)) as block:
            for i in T.serial(128):
                if block * 128 + i < n:
                    C[block * 128 + i] = A[block * 128 + i] * factor + B[block * 128 + i]

    return scaled


@pytest.fixture(scope="module")
def library(tmp_path_factory):
    """A shared library of TileLang's: host function and kernel in C, compiled with gcc."""
    target = tvm.target.Target("c")
    context = create_backend_context(target, None, "auto")
    with target:
        host, device, *_ = lower_to_host_device_ir(scaled_sum(), context)
        # TileLang 0.1.15 leaves out the kernel of a CPU target: its host function calls what is not there.
        whole = tvm.IRModule({**dict(host.functions.items()), **dict(device.functions.items())})
        built = host_codegen(whole, context)
    path = tmp_path_factory.mktemp("module") / "scaled.so"
    built.export_library(str(path), cc="gcc")
    return path


@pytest.fixture(scope="module")
def signature():
    """The signature that the importer reads from the host function: it is the same for every target."""
    return from_prim_func(scaled_sum(), "sm_90a", out_idx=1).signature


def test_it_is_called_as_a_program_of_ours(library, signature):
    scaled = from_module(library, "scaled", signature, result_idx=1)
    a, b = torch.arange(300.0), torch.ones(300)
    assert torch.equal(scaled(a, b, 2.0), a * 2 + b)
    out = torch.zeros(300)
    assert scaled(a, b, 3.0, out=out) is out
    assert torch.equal(out, a * 3 + b)


def test_it_is_checked_as_a_program_of_ours(library, signature):
    scaled = from_module(library, "scaled", signature, result_idx=1)
    with pytest.raises(
        ArgumentValueError, match="argument 'B': got extent 4 along dimension 0, expected 300"
    ):
        scaled(torch.ones(300), torch.ones(4), 2.0)
    with pytest.raises(ArgumentTypeError, match=r"argument .A.: got a tensor of torch\.float64"):
        scaled(torch.ones(300).double(), torch.ones(300), 2.0)


def test_without_a_signature_its_own_checks_speak(library):
    scaled = from_module(library, "scaled")
    a, b, c = torch.arange(300.0), torch.ones(300), torch.zeros(300)
    scaled(a, c, b, 2.0)
    assert torch.equal(c, a * 2 + b)
    with pytest.raises(RuntimeError, match=r"input B shape\[0\] violates packed ABI constraint"):
        scaled(a, c, b[:4], 2.0)
