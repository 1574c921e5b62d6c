"""Programs for the CPU, where kernels truly run, as operators that go with their test."""

from __future__ import annotations

import functools
import itertools

import pytest
import torch

import trunnion
from trunnion import DeviceCode, ProgramBuilder, ceildiv, minimum, select, symbols

CODE = """
#include <trunnion/block.h>

template <typename T>
void scaled(const T* x, T* y, int64_t n, T k, const trunnion_block_t* block) {
  const int64_t width = block->block[0], first = block->index[0] * width;
  for (int64_t i = first; i < first + width && i < n; ++i) y[i] = k * x[i];
}
void scale(const double* x, double* y, int64_t n, double k, const trunnion_block_t* b) { scaled(x, y, n, k, b); }

// The gradient of y = x * x: 2 x times that of y.
void twice(const double* x, const double* g, double* d, int64_t n, const trunnion_block_t*) {
  for (int64_t i = 0; i < n; ++i) d[i] = 2 * x[i] * g[i];
}
void square(const double* x, double* y, int64_t n, const trunnion_block_t*) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] * x[i];
}

// Of a matrix with any strides: the first columns, and the sum of each row.
void rows(const float* x, const float* bias, float* y, double* sums, int64_t m, int64_t n, int64_t s, int64_t t,
          int64_t kept, bool negate, const trunnion_block_t*) {
  for (int64_t i = 0; i < m; ++i) {
    sums[i] = 0;
    for (int64_t j = 0; j < n; ++j) {
      const float value = (negate ? -1 : 1) * x[i * s + j * t] + (bias != nullptr ? bias[j] : 0);
      sums[i] += value;
      if (j < kept) y[i * kept + j] = value;
    }
  }
}

// It writes where no tensor says so, and counts its calls.
void poke(const float* x, float* there, int64_t n, const trunnion_block_t*) {
  for (int64_t i = 0; i < n; ++i) there[i] = 10 * there[i] + x[i];
}

// The same, and there is a result, which need not be read.
void poke_and_give(const float* x, float* there, float* y, int64_t n, const trunnion_block_t*) {
  for (int64_t i = 0; i < n; ++i) y[i] = there[i] = 10 * there[i] + x[i];
}

void add_and_give(const float* x, float* total, float* y, float* z, int64_t n, const trunnion_block_t*) {
  for (int64_t i = 0; i < n; ++i) z[i] = 2 * (y[i] = total[i] += x[i]);
}

void add_into(const float* x, float* total, int64_t n, const trunnion_block_t*) {
  for (int64_t i = 0; i < n; ++i) total[i] += x[i];
}

struct Range { float low, high; };
void clamp(const float* x, const int32_t* weights, float* y, int64_t n, Range range, const trunnion_block_t*) {
  for (int64_t i = 0; i < n; ++i) {
    const float value = x[i] < range.low ? range.low : x[i] > range.high ? range.high : x[i];
    y[i] = value * (weights == nullptr ? 1 : weights[i]);
  }
}
"""
_NAMES = itertools.count()


def _scaling(x="x", y="y"):
    (n,) = symbols("n")
    p = ProgramBuilder("scale", DeviceCode("c++", CODE))
    given, k = p.input(x, "float64", (n,)), p.scalar("k", "float64")
    made = p.output(y, "float64", (n,))
    p.launch("scale", args=(given, made, n, k), grid=ceildiv(n, 1024), block=1024)
    return p.build()


def _square():
    (n,) = symbols("n")
    p = ProgramBuilder("square", DeviceCode("c++", CODE))
    x, y = p.input("x", "float64", (n,)), p.output("y", "float64", (n,))
    p.launch("square", args=(x, y, n), grid=1, block=1)
    return p.build()


def _twice(x="x"):
    (n,) = symbols("n")
    p = ProgramBuilder("twice", DeviceCode("c++", CODE))
    x, g = p.input(x, "float64", (n,)), p.input("grad_y", "float64", (n,))
    d = p.output("grad_x", "float64", (n,))
    p.launch("twice", args=(x, g, d, n), grid=1, block=1)
    return p.build()


def _rows():
    """Nullable tensor, strides of any kind, a bool, several outputs, expressions in their extents."""
    m, n, s, t, most = symbols("m n s t most")
    p = ProgramBuilder("rows", DeviceCode("c++", CODE))
    x = p.input("x", "float32", (m, n), strides=(s, t))
    bias = p.input("bias", "float32", (n,), nullable=True)
    p.scalar("most", "int32", most)
    negate = p.scalar("negate", "bool")
    kept = minimum(n, select(most, most, n))
    y, sums = p.output("y", "float32", (m, kept)), p.output("sums", "float64", (m,))
    p.launch("rows", args=(x, bias, y, sums, m, n, s, t, kept, negate), grid=1, block=1)
    return p.build()


def _add_into():
    (n,) = symbols("n")
    p = ProgramBuilder("add_into", DeviceCode("c++", CODE))
    x, total = p.input("x", "float32", (n,)), p.input("total", "float32", (n,), access="read_write")
    p.launch("add_into", args=(x, total, n), grid=1, block=1)
    return p.build()


def _poke():
    (n,) = symbols("n")
    p = ProgramBuilder("poke", DeviceCode("c++", CODE))
    x, there = p.input("x", "float32", (n,)), p.pointer("there")
    p.launch("poke", args=(x, there, n), grid=1, block=1)
    return p.build()


def _poke_and_give():
    (n,) = symbols("n")
    p = ProgramBuilder("poke_and_give", DeviceCode("c++", CODE))
    x, there, y = p.input("x", "float32", (n,)), p.pointer("there"), p.output("y", "float32", (n,))
    p.launch("poke_and_give", args=(x, there, y, n), grid=1, block=1)
    return p.build()


def _add_and_give(x="x", total="total", y="y"):
    (n,) = symbols("n")
    p = ProgramBuilder("add_and_give", DeviceCode("c++", CODE))
    x, total = p.input(x, "float32", (n,)), p.input(total, "float32", (n,), access="read_write")
    y, z = (p.output(name, "float32", (n,)) for name in (y, "z"))
    p.launch("add_and_give", args=(x, total, y, z, n), grid=1, block=1)
    return p.build()


def _clamp():
    (n,) = symbols("n")
    p = ProgramBuilder("clamp", DeviceCode("c++", CODE))
    x, limits = p.input("x", "float32", (n,)), p.struct("range", 8, alignment=4)
    weights = p.pointer("weights", nullable=True, alignment=4)
    y = p.output("y", "float32", (n,))
    p.launch("clamp", args=(x, weights, y, n, limits), grid=1, block=1)
    return p.build()


PROGRAMS = {
    "add_and_give": _add_and_give,
    "add_and_give_keyset": lambda: _add_and_give(y="keyset"),
    "add_and_give_library": lambda: _add_and_give(y="_library"),
    "add_and_give_of_mode": lambda: _add_and_give(x="mode"),
    "add_and_give_of_view": lambda: _add_and_give(x="_total_size"),
    "add_into": _add_into,
    "clamp": _clamp,
    "gradient_of_scale": lambda: _scaling("grad_y", "grad_x"),
    "poke": _poke,
    "poke_and_give": _poke_and_give,
    "rows": _rows,
    "scale": _scaling,
    "square": _square,
    "twice": _twice,
    "twice_of_result": lambda: _twice("y"),
}


@functools.cache
def _compiled(name):
    return trunnion.compile(PROGRAMS[name]())


@pytest.fixture
def compiled():
    """Return a function that gives one of the programs above, compiled once."""
    return _compiled


@pytest.fixture
def lib():
    """Return a library of torch's, with which operators of a test go."""
    library = torch.library.Library("trunnion_tests", "FRAGMENT")
    yield library
    library._destroy()
    torch._dynamo.reset()


@pytest.fixture
def name():
    """Return a name that torch has no operator of."""
    return f"trunnion_tests::op{next(_NAMES)}"
