"""FlashInfer's parameters, byte for byte against the struct as C lays it out, member by member."""

from __future__ import annotations

import ctypes
import math
import subprocess

from real_programs import paged_decode as SUBJECT  # noqa: N812 - what the fixtures build
from real_programs.paged_decode import DIM, GROUPS, HEADS, PAGE

U32, I32, F32, POINTER = ctypes.c_uint32, ctypes.c_int32, ctypes.c_float, ctypes.c_uint64


class Divisor(ctypes.Structure):
    _fields_ = [(name, U32) for name in "dmsa"]


class Cache(ctypes.Structure):
    _fields_ = [
        ("page_size", Divisor),
        *((n, U32) for n in ("num_heads", "head_dim", "batch_size", "stride_page", "stride_n", "stride_h")),
        *((n, POINTER) for n in ("k", "v", "indices", "indptr", "last_page_len", "rope_pos_offset")),
    ]


class Params(ctypes.Structure):
    _fields_ = [
        *(("q", POINTER), ("q_rope_offset", POINTER), ("cache", Cache)),
        *((name, POINTER) for name in ("o", "lse", "alibi_slopes")),
        *(("padded_batch_size", U32), ("num_qo_heads", U32), ("q_stride_n", I32), ("q_stride_h", I32)),
        ("window_left", I32),
        *((name, F32) for name in ("soft_cap", "sm_scale", "rope_scale", "rope_theta")),
        *((n, POINTER) for n in ("requests", "tiles", "o_indptr", "chunk", "block_valid_mask")),
        ("partition_kv", ctypes.c_bool),
    ]


def test_the_struct_arrives_as_declared(launched):
    for shape in SUBJECT.SHAPES:
        given, out, (event,) = launched(SUBJECT, shape)
        q, k, v, indices, indptr, last, requests = (one.data_ptr() for one in given)
        (data,) = event.parameters
        assert len(data) == ctypes.sizeof(Params) == 216
        found = Params.from_buffer_copy(data)
        batch = len(shape)
        cache = Cache(Divisor(*_magic(PAGE)), GROUPS, DIM, batch, PAGE * GROUPS * DIM, GROUPS * DIM, DIM)
        cache.k, cache.v, cache.indices, cache.indptr, cache.last_page_len = k, v, indices, indptr, last
        expected = Params(q, 0, cache, out.data_ptr(), 0, 0, batch, HEADS, HEADS * DIM, DIM, -1)
        expected.sm_scale, expected.rope_scale, expected.rope_theta = 1 / math.sqrt(DIM), 1.0, 1e-4
        expected.requests, expected.tiles, expected.chunk = requests, found.tiles, found.chunk
        assert found.tiles
        assert found.chunk
        assert data == bytes(expected)
        assert (event.grid, event.block) == ((batch, GROUPS, 1), SUBJECT.BLOCK)


def _magic(number):
    """Return what the divisor of a power of two above 1 is, by hand: the quotient is the high word, shifted no more."""
    power = number.bit_length() - 1
    return number, 1 << (32 - power), 0, 0


HOST = """
#include <cstdint>
#include <cstdio>
#define __host__
#define __device__
#define __forceinline__ inline
#include "fastdiv.cuh"
int main() {
  for (unsigned d = 1; d < 3000; ++d) {
    flashinfer::uint_fastdiv one(d);
    std::printf("%u %u %u %u\\n", one.d, one.m, one.s, one.a);
  }
}
"""


def test_divisors_are_those_of_the_project_compiled_for_the_host(tmp_path):
    (tmp_path / "host.cc").write_text(HOST, "utf-8")
    include = SUBJECT.COPY.folder() / "include" / "flashinfer"
    subprocess.run(["c++", "-O1", f"-I{include}", "-o", tmp_path / "host", tmp_path / "host.cc"], check=True)
    printed = subprocess.run([tmp_path / "host"], check=True, capture_output=True, text=True).stdout
    lines = [tuple(map(int, line.split())) for line in printed.splitlines()]
    assert len(lines) == 2999
    for number, *rest in lines[1:]:  # whoever divides by 1 looks at nothing else
        divisor = SUBJECT.divisor(number)
        assert tuple(int.from_bytes(one.data, "little") for _, one in divisor.fields) == (number, *rest)
    assert lines[PAGE - 1] == _magic(PAGE)
