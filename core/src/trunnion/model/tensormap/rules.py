"""The constraints of tensor maps as two tables, and who breaks them.

A rule speaks only of values that are known: the same tables check a program when it is written, where extents may
still be symbols and no device is known, and a call, where everything is a number. All broken rules are named, not
only the first.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from trunnion.model.tensormap.fields import Im2colFields, MapFields, TiledFields
from trunnion.model.tensormap.im2col_rules import IM2COL_RULES
from trunnion.model.tensormap.rule import H200Answer, Origin, Rule
from trunnion.model.tensormap.tiled_rules import TILED_RULES

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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


_RULES: Final[Mapping[type[MapFields], tuple[Rule[Any], ...]]] = MappingProxyType(
    {TiledFields: TILED_RULES, Im2colFields: IM2COL_RULES}
)


def violations(
    fields: MapFields, compute_capability: tuple[int, int] | None = None
) -> Iterator[tuple[Rule[Any], str]]:
    """Yield each broken rule with what is wrong, as often as it is broken.

    Parameters
    ----------
    fields
        What is known of the map.
    compute_capability
        The device's major and minor version; None: only rules that hold on every device are judged.
    """
    for rule in _RULES[type(fields)]:
        if compute_capability in rule.architectures:
            for got in rule.violations(fields):
                yield rule, got


def broken_rules(fields: MapFields, compute_capability: tuple[int, int] | None = None) -> tuple[str, ...]:
    """Return one sentence for each broken rule: the constraint, and what is wrong.

    Parameters
    ----------
    fields
        What is known of the map.
    compute_capability
        The device's major and minor version; None: only rules that hold on every device are judged.
    """
    return tuple(f"{rule.text} (got: {got})" for rule, got in violations(fields, compute_capability))
