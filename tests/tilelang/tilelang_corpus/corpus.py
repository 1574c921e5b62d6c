"""Kernels written by us in TileLang's language, small, each there for a feature: what the importer is tried with.

The tests of this folder, those on a GPU and the benchmarks take the same kernels from here. To import it, TileLang has
to be importable, and the folder ``tests/tilelang`` on ``sys.path``: pytest puts it there (``pythonpath`` in
``pyproject.toml``), a script outside of it does so itself. `trunnion_tilelang` is not needed, and no GPU::

    from tilelang_corpus.corpus import CORPUS

    entry = CORPUS["gemm_rows"]
    artifact = entry.lower()                  # what tilelang.lower returns; entry.make() is the PrimFunc
    given = entry.arguments(seed, "cuda")     # drawn: sizes differ from seed to seed
    expected = entry.reference(*given)        # before the call, since some write to their arguments
    returned = kernel(*entry.passed(given))   # outputs are entry.out_idx
    entry.results(given, returned)            # to be compared with what was expected, within entry.tolerance

An entry with a text in ``refused`` is one that the importer has to refuse; the text says why.

TileLang 0.1.15 itself does not lower these, so that they are not here:

- a scalar parameter of bfloat16, float8 or float4: ``Check failed: (dtype.is_float()) is false``;
- a buffer whose extent is a scalar parameter of the same PrimFunc: ``name 'n' is not defined``, since annotations are
  evaluated before there are parameters (`pointers` has such a buffer, made in the body);
- uint4: ``module 'tilelang.language' has no attribute 'uint4'``.

Names that CUDA C++ gives a meaning (``int``, ``new``, ``threadIdx``) are lowered into source that no compiler takes:
``test_names.py`` has them.
"""

from types import MappingProxyType

from tilelang_corpus import elementwise, hosts, launches, matmul, networks, outputs, packed, scalars, shapes
from tilelang_corpus.entry import TARGET

__all__ = ["CORPUS", "TARGET"]

_MODULES = (elementwise, scalars, shapes, matmul, launches, hosts, outputs, networks, packed)

CORPUS = MappingProxyType({entry.name: entry for module in _MODULES for entry in module.ENTRIES})
"""Every entry, by name."""
