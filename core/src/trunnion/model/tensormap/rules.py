"""The constraints of tensor maps as two tables, and who breaks them.

A rule speaks only of values that are known: the same tables check a program when it is written, where extents may
still be symbols and no device is known, and a call, where everything is a number. All broken rules are named, not
only the first.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.model.tensormap.fields import Im2colFields, TiledFields
from trunnion.model.tensormap.im2col_rules import IM2COL_RULES
from trunnion.model.tensormap.rule import H200Answer, Origin, Rule
from trunnion.model.tensormap.tiled_rules import TILED_RULES

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = [
    "IM2COL_RULES",
    "TILED_RULES",
    "H200Answer",
    "Im2colFields",
    "Origin",
    "Rule",
    "TiledFields",
    "broken_rules",
    "violations",
]


def violations(
    fields: TiledFields | Im2colFields, compute_capability: tuple[int, int] | None = None
) -> Iterator[tuple[Rule[TiledFields] | Rule[Im2colFields], str]]:
    """Yield each broken rule with what is wrong, as often as it is broken.

    Parameters
    ----------
    fields
        What is known of the map.
    compute_capability
        The device's major and minor version; None: only rules that hold on every device are judged.
    """
    if isinstance(fields, TiledFields):
        for tiled in TILED_RULES:
            if compute_capability in tiled.architectures:
                for got in tiled.violations(fields):
                    yield tiled, got
    else:
        for im2col in IM2COL_RULES:
            if compute_capability in im2col.architectures:
                for got in im2col.violations(fields):
                    yield im2col, got


def broken_rules(
    fields: TiledFields | Im2colFields, compute_capability: tuple[int, int] | None = None
) -> tuple[str, ...]:
    """Return one sentence for each broken rule: the constraint, and what is wrong.

    Parameters
    ----------
    fields
        What is known of the map.
    compute_capability
        The device's major and minor version; None: only rules that hold on every device are judged.
    """
    return tuple(f"{rule.text} (got: {got})" for rule, got in violations(fields, compute_capability))
