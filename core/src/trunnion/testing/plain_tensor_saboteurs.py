"""Saboteurs of the fast checks of plain tensors: a launcher in Python has them in its text, and asks no further."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trunnion.testing.saboteur import Changed, Saboteur, saboteur

if TYPE_CHECKING:
    from trunnion.contract.source import GeneratedSource
    from trunnion.model.plan import LaunchPlan

__all__ = ["PLAIN_TENSOR_SABOTEURS"]


class _Rewrites(Changed):
    """A wrapper whose launchers ask something else than they should."""

    def __init__(self, true: Any, asked: str, instead: str) -> None:
        super().__init__(true)
        self._asked, self._instead = re.compile(asked), instead

    def wrap(self, plan: LaunchPlan, *target: str) -> GeneratedSource:
        """Return a source."""
        source: GeneratedSource = self._true.wrap(plan, *target)
        return replace(source, text=self._asked.sub(self._instead, source.text))


def _saboteur(name: str, what: str, laws: str, asked: str, instead: str) -> Saboteur:
    return saboteur(
        name, what, *laws.split(), stage="emitter", wrapper=lambda true: _Rewrites(true, asked, instead)
    )


PLAIN_TENSOR_SABOTEURS: tuple[Saboteur, ...] = (
    _saboteur(
        "any-dtype",
        "Takes element types of one size for each other.",
        "A1",
        r"(t\d+\.dtype) is not (dtype_\w+):",
        r"\1.itemsize != \2.itemsize:",
    ),
    _saboteur(
        "first-tensor",
        "Asks the first tensor alone where it lies.",
        "A1 Y1",
        r" or t\d+\.get_device\(\) != device",
        "",
    ),
    _saboteur(
        "host-memory", "Does not ask whether a tensor lies on a GPU.", "A1", r"not t\d+\.is_cuda", "False"
    ),
    _saboteur(
        "any-layout",
        "Does not ask how a tensor lies in memory.",
        "A1 L3",
        r"not t\d+\.is_contiguous\(\)",
        "False",
    ),
    _saboteur(
        "any-address",
        "Does not ask how an address is aligned.",
        "A1",
        r"(check_pointer\(.*), \d+\)",
        r"\1, 1)",
    ),
    _saboteur("lazily", "Takes lazy tensors for those in memory.", "A1", r"t\d+\.is_neg\(\)", "False"),
    _saboteur(
        "any-storage",
        "Does not ask how long a storage is.",
        "A1",
        r"check_(storage|pointer)\(.*\)\n",
        "pass\n",
    ),
    _saboteur(
        "storage-by-address",
        "Asks how long a storage is where an address is new, and nowhere else.",
        "Y1",
        r"check_storage\(.*\)\n",
        "pass\n",
    ),
    _saboteur(
        "strides-of-nothing",
        "Checks strides of tensors without elements.",
        "L3",
        r"(if r\d+_\d+ != want and d\d+_\d+ > 1)( and d\d+_\d+)+:",
        r"\1:",
    ),
)
"""The saboteurs."""
