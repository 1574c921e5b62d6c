"""Saboteurs that are narrower than those of `narrow_saboteurs`, of which another law caught some as well."""

from __future__ import annotations

import re
from typing import Any

from trunnion.errors import DeviceRequirementError, DriverError, ExprError
from trunnion.testing.refusal_saboteurs import of_row
from trunnion.testing.saboteur import Changed, Saboteur, saboteur

__all__ = ["CLOSER_SABOTEURS"]


class _NestedDivision(Changed):
    """A loaded program that does nothing where numbers alone come, and one that was computed divides by zero."""

    def call(self, args: Any, **how: Any) -> Any:
        """Launch, or not."""
        try:
            return self._true.call(args, **how)
        except ExprError as error:
            nested = str(error).count("(") > 1
            if not of_row("division")(error) or not nested or any(hasattr(one, "data_ptr") for one in args):
                raise


class _UnloadedForAnother(Changed):
    """A loaded program that does nothing where its image, which is for another device, is loaded, not launched."""

    def call(self, args: Any, **how: Any) -> Any:
        """Launch, or not."""
        try:
            return self._true.call(args, **how)
        except (DeviceRequirementError, DriverError) as error:
            both = {*re.findall(r"sm_\d+", str(error))}
            if len(both) < 2 or "cuLaunch" in str(error):  # noqa: PLR2004 - the image's, and the device's
                raise


CLOSER_SABOTEURS: tuple[Saboteur, ...] = (
    saboteur(
        "nested-division",
        "Does nothing where what was computed is divided by zero.",
        "A2",
        stage="lifecycle",
        loaded=_NestedDivision,
    ),
    saboteur(
        "unloaded-for-another",
        "Does nothing where an image is loaded for another's device.",
        "Z2",
        stage="lifecycle",
        loaded=_UnloadedForAnother,
    ),
)
"""The saboteurs."""
