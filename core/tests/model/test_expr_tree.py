from __future__ import annotations

import pytest

from trunnion.errors import ExprError
from trunnion.model.expr import Const, Slot, Symbol, ceildiv, select, symbols
from trunnion.model.expr_tree import substitute, symbols_of, walk

N, M = symbols("n m")
TREE = select(N, ceildiv(M, 3).cast("int32"), N + 1)


def test_walk_gives_operands_first() -> None:
    nodes = list(walk(TREE))
    assert nodes == [N, M, Const(3), ceildiv(M, 3), ceildiv(M, 3).cast("int32"), N, Const(1), N + 1, TREE]
    assert len(nodes) == TREE.nodes


def test_symbols_of_gives_each_occurrence() -> None:
    assert list(symbols_of(TREE)) == [N, M, N]


def test_symbols_of_refuses_slots() -> None:
    with pytest.raises(ExprError, match="slot 7"):
        list(symbols_of(N + Slot(7, 0, 1)))


def test_substitute_replaces_symbols_and_nothing_else() -> None:
    slots = {N: Slot(0, 0, 5), M: Symbol("k")}
    got = substitute(TREE, slots.__getitem__)
    assert got == select(slots[N], ceildiv(slots[M], 3).cast("int32"), slots[N] + 1)
    assert substitute(got, lambda symbol: symbol) == got
