"""What the matrix product imports: a kernel of a length that only a call gives, compiled without a decorator."""

import tilelang.language as T
import torch
from tilelang.jit import compile as compile_kernel

length = T.dynamic("length")


@T.prim_func
def positive(X: T.Tensor((length,), "float16"), Y: T.Tensor((length,), "float16")):
    with T.Kernel(T.ceildiv(length, 128), threads=128) as bx:
        for i in T.Parallel(128):
            Y[bx * 128 + i] = T.max(X[bx * 128 + i], T.float16(0))


kernel = compile_kernel(positive)


def relu(x):
    y = torch.empty_like(x)
    kernel(x.reshape(-1), y.reshape(-1))
    return y
