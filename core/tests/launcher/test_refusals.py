"""Every refusal that launchers share: an error of ours, which says what it got and what is allowed."""

from __future__ import annotations

from trunnion.errors import TrunnionError
from trunnion.launcher import refusals


class Odd:
    dtype, shape, device = "torch.int8", (2, 3), "cpu"

    def dim(self) -> int:
        return 2

    def stride(self) -> tuple[int, ...]:
        return (1, 2)

    def is_contiguous(self) -> bool:
        raise RuntimeError


CALLS = {
    "count_error": (((1, 2), ("a",)), "got 2 arguments, expected 1 ('a')"),
    "out_count_error": (((1, 2), ("a",)), "got 2 tensors, expected 1 ('a')"),
    "dtype_error": (("a", Odd(), "int16"), "got a tensor of torch.int8, expected one of int16"),
    "no_tensor_error": (
        ("a", None),
        "got NoneType, expected a tensor; a parameter that is declared nullable=True",
    ),
    "place_error": (
        ("a", Odd(), "cuda"),
        "got a tensor on cpu, expected a tensor on a CUDA device; call .to('cuda')",
    ),
    "rank_error": (("a", Odd(), 3), "got 2 dimensions, shape (2, 3), expected 3 dimensions"),
    "extent_error": (("a", 1, 5, 6, "n"), "got extent 5 along dimension 1, expected 6 (n)"),
    "storage_error": (
        ("a", 4, 96),
        "got a storage with room for 4 bytes, expected room for the 96 bytes that its elements span",
    ),
    "stride_error": (("a", 1, 5, 6, "6"), "got stride 5 along dimension 1, expected 6"),
    "value_error": (("a", 5, 6, "n"), "got 5, expected 6 (n)"),
    "layout_error": (
        ("a", Odd()),
        "got strides (1, 2) for shape (2, 3), expected a contiguous row-major",
    ),
    "destination_error": (
        ("a", Odd()),
        "got strides (1, 2) for shape (2, 3), expected a contiguous row-major tensor to write into",
    ),
    "alignment_error": (("a", 24, 16), "got address 0x18, expected a multiple of 16 bytes"),
    "symbol_error": (("a", "the value", 5, "0 to 3"), "got 5 for the value, expected 0 to 3"),
    "condition_error": (("n is small",), "expected n is small"),
    "grid_error": (
        ("k", 1, 70000, 65535),
        "a grid of 70000 blocks along y for kernel 'k', expected 0 to 65535",
    ),
    "block_error": (("k", 0, 0, 1024), "got 0 threads along x for kernel 'k', expected 1 to 1024"),
    "wide_block_error": (("k", 2048), "a block of 2048 threads for kernel 'k', expected at most 1024"),
    "cluster_error": (
        ("k", 1, 5, 2),
        "a grid of 5 blocks along y for kernel 'k', expected a multiple of the cluster's 2",
    ),
    "cluster_extent_error": (
        ("k", 2, 0, 16),
        "a cluster of 0 blocks along z for kernel 'k', expected 1 to 16",
    ),
    "wide_cluster_error": (("k", 32, 16), "a cluster of 32 blocks for kernel 'k', expected at most 16"),
    "negative_error": (("a", 1, -5), "got extent -5 along dimension 1, expected at least 0"),
    "view_error": (
        ("a", 1, 2**31),
        "got extent 2147483648 along dimension 1, expected -2147483648 to 2147483647: a view passes it as int32",
    ),
    "offset_error": (
        ("a", 9, 8),
        "got an address moved by 9 elements, expected 0 to the 8 elements that it spans",
    ),
    "absent_error": (("a", "a window"), "got None, expected a tensor: a window reads it"),
    "unreadable_error": (
        (("a",), (Odd(),), RuntimeError("no shape\nat all")),
        "got Odd that refuses: no shape, expected a dense tensor in memory",
    ),
    "size_error": (
        ("w",),
        "argument 'w': got arguments that ask for 2**63 bytes of it or more, expected fewer",
    ),
    "smem_error": (("k", -1, 9), "got -1 bytes of shared memory for kernel 'k', expected 0 to 9"),
}


def test_every_error_is_one_of_ours_and_says_what_is_allowed() -> None:
    assert set(CALLS) == {name for name in refusals.__all__ if name.endswith("_error")}
    for name, (args, text) in CALLS.items():
        error = getattr(refusals, name)(*args)
        assert isinstance(error, TrunnionError)
        assert text in str(error)
