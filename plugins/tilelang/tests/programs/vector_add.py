"""A program of TileLang's: a factory of kernels, one for each length, that returns its output."""

import argparse

import tilelang
import tilelang.language as T
import torch


@tilelang.jit(out_idx=[-1])
def vector_add(length, block, dtype="float32"):
    @T.prim_func
    def add(
        A: T.Tensor((length,), dtype),
        B: T.Tensor((length,), dtype),
        C: T.Tensor((length,), dtype),
    ):
        with T.Kernel(T.ceildiv(length, block), threads=128) as bx:
            for i in T.Parallel(block):
                C[bx * block + i] = A[bx * block + i] + B[bx * block + i]

    return add


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--length", type=int, default=512)
    length = parser.parse_args().length
    a, b = torch.randn(length, device="cuda"), torch.randn(length, device="cuda")
    kernel = vector_add(length, 128)
    torch.testing.assert_close(kernel(a, b), a + b)
    print(f"{length} sums are right")  # noqa: T201 - a program says it


if __name__ == "__main__":
    main()
