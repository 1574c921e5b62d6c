"""A program of TileLang's: a matrix product with a software pipeline, and bias and activation of another module."""

import tilelang
import tilelang.language as T
import torch
from activations import relu
from tilelang import jit


@jit(out_idx=[-1], pass_configs={tilelang.PassConfigKey.TL_ENABLE_FAST_MATH: True})
def matmul(M, N, K, block_M=128, block_N=128, block_K=64):
    @T.prim_func
    def gemm(
        A: T.Tensor((M, K), "float16"),
        B: T.Tensor((K, N), "float16"),
        C: T.Tensor((M, N), "float16"),
    ):
        with T.Kernel(T.ceildiv(N, block_N), T.ceildiv(M, block_M), threads=128) as (bx, by):
            A_shared = T.alloc_shared((block_M, block_K), "float16")
            B_shared = T.alloc_shared((block_K, block_N), "float16")
            C_local = T.alloc_fragment((block_M, block_N), "float32")
            T.clear(C_local)
            for k in T.Pipelined(T.ceildiv(K, block_K), num_stages=3):
                T.copy(A[by * block_M, k * block_K], A_shared)
                T.copy(B[k * block_K, bx * block_N], B_shared)
                T.gemm(A_shared, B_shared, C_local)
            T.copy(C_local, C[by * block_M, bx * block_N])

    return gemm


a, b = torch.randn(256, 128, device="cuda").half(), torch.randn(128, 256, device="cuda").half()
product = matmul(256, 256, 128)(a, b)
torch.testing.assert_close(product.float(), a.float() @ b.float(), rtol=1e-2, atol=1e-2)
torch.testing.assert_close(relu(product), product.clamp(min=0))
print("the product is right")  # noqa: T201 - a program says it
