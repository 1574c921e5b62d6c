"""Condition, grid, cluster, block and shared memory of a launch, as far as a call decides them, in a host language.

One printer for all languages, as of expressions: a language is a table. The variables are ``c0`` for the condition,
``g0_x`` for the grid, ``q0_x`` for the cluster, ``b0_x`` for the block, ``b0_smem`` for the shared memory and
``q0_pdl`` for whether the launch may start early.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.model.expr import Const
from trunnion.model.launch_attributes import MAX_CLUSTER_BLOCKS
from trunnion.model.launch_limits import MAX_BLOCK, MAX_GRID, MAX_SMEM, MAX_THREADS

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from contextlib import AbstractContextManager

    from trunnion.model.expr import Expr
    from trunnion.model.plan import PlannedLaunch

__all__ = ["GeometryLanguage", "GeometryPrinter"]

_AXES = "xyz"


@dataclass(frozen=True, slots=True, kw_only=True)
class GeometryLanguage:
    """How one host language spells the checks."""

    always: str
    """The condition that always holds."""

    holds: str
    """A format of a variable: it is not 0."""

    outside: str
    """A format of ``{name}``, ``{low}`` and ``{high}``: it is beyond them."""

    indivisible: str
    """A format of ``{number}`` and ``{by}``: the one is no multiple of the other."""

    refusals: Mapping[str, str]
    """A format of ``{kernel}``, ``{axis}``, ``{got}`` and ``{limit}`` for each error."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GeometryPrinter:
    """Writes the lines of one launch."""

    language: GeometryLanguage
    """The table of the host language."""

    launch: PlannedLaunch
    """The launch."""

    kernel: str
    """What errors are given for the kernel's name."""

    condition: str
    """The condition under which the launch happens, once its grid is computed."""

    store: Callable[[str, Expr], object]
    """Writes the lines that give a variable the value of an expression."""

    switch: Callable[[str, Expr], object]
    """The same of a value that is a switch, whatever the number that says it."""

    refuse: Callable[[str, str], object]
    """Writes the lines that raise an error under a condition."""

    when: Callable[[str], AbstractContextManager[None]]
    """Writes a body under a condition."""

    end: Callable[[], object] | None = None
    """Writes what follows of a launch that happens; None: nothing does."""

    def emit(self) -> None:
        """Write the lines; of a launch whose condition does not hold nothing else is computed."""
        launch, condition = self.launch, self.language.always
        if launch.when == Const(0):
            return
        if launch.conditional and launch.when is not None:
            self.store(f"c{launch.index}", launch.when)
            condition = self.language.holds.format(f"c{launch.index}")
        if launch.computed or _varying(*launch.grid, *launch.block, launch.dynamic_smem_bytes):
            with self.when(condition):
                self._emit_shape()

    def _emit_shape(self) -> None:
        launch = self.launch
        grid = []
        for axis, extent in enumerate(launch.grid):
            grid.append(self._extent("g", axis, extent, "grid", (0, MAX_GRID[axis])))
            if launch.clusters[axis] > 1 and _varying(extent):
                self._refuse_indivisible(axis, grid[axis], launch.clusters[axis])
        if self.end or launch.computed or _varying(*launch.block, launch.dynamic_smem_bytes):
            with self.when(self.condition):
                self._emit_cluster(grid)
                self._emit_sizes()
                for condition in launch.computed_pdl:
                    self.switch(f"q{launch.index}_pdl", condition)
                if self.end:
                    self.end()

    def _emit_cluster(self, grid: list[str]) -> None:
        """Write the lines that compute a cluster, of which the grid is a multiple."""
        index, cluster, limits = self.launch.index, self.launch.computed_cluster, (1, MAX_CLUSTER_BLOCKS)
        names = [
            self._number(f"q{index}_{_AXES[axis]}", extent, "cluster_extent", limits, axis)
            for axis, extent in enumerate(cluster)
        ]
        if math.prod(extent.bounds.high for extent in cluster) > MAX_CLUSTER_BLOCKS:
            self._refuse_product(names, MAX_CLUSTER_BLOCKS, "wide_cluster")
        for axis, name in enumerate(names):
            self._refuse_indivisible(axis, grid[axis], name)

    def _emit_sizes(self) -> None:
        launch = self.launch
        texts = [
            self._extent("b", axis, extent, "block", (1, MAX_BLOCK[axis]))
            for axis, extent in enumerate(launch.block)
        ]
        if _varying(*launch.block):
            self._refuse_product(texts, MAX_THREADS, "wide_block")
        if _varying(launch.dynamic_smem_bytes):
            self._number(f"b{launch.index}_smem", launch.dynamic_smem_bytes, "smem", (0, MAX_SMEM))

    def _extent(self, letter: str, axis: int, extent: Expr, refusal: str, limits: tuple[int, int]) -> str:
        """Return the text of an extent; of one that is no constant, write the lines that compute and check it."""
        if isinstance(extent, Const):
            return str(extent.value)
        return self._number(f"{letter}{self.launch.index}_{_AXES[axis]}", extent, refusal, limits, axis)

    def _number(
        self, name: str, expr: Expr, refusal: str, limits: tuple[int, int], axis: int | None = None
    ) -> str:
        """Write the lines that compute a number and check it, and return its variable."""
        low, high = limits
        self.store(name, expr)
        if expr.bounds.low < low or high < expr.bounds.high:
            wrong = self.language.outside.format(name=name, low=low, high=high)
            self.refuse(wrong, self._error(refusal, name, high, axis))
        return name

    def _refuse_product(self, factors: list[str], limit: int, refusal: str) -> None:
        product = " * ".join(factors)
        self.refuse(f"{product} > {limit}", self._error(refusal, product, limit))

    def _refuse_indivisible(self, axis: int, number: str, by: int | str) -> None:
        wrong = self.language.indivisible.format(number=number, by=by)
        self.refuse(wrong, self._error("cluster", number, by, axis))

    def _error(self, refusal: str, got: str, limit: int | str, axis: int | None = None) -> str:
        return self.language.refusals[refusal].format(kernel=self.kernel, axis=axis, got=got, limit=limit)


def _varying(*exprs: Expr) -> bool:
    """Whether a call decides any of them."""
    return any(not isinstance(expr, Const) for expr in exprs)
