"""`warn`: a warning names the line of whoever called trunnion, however deep within it the reason was found."""

from __future__ import annotations

import sys
import warnings
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import FrameType

__all__ = ["warn"]

_BETWEEN = frozenset({"contextlib", "functools", "torch"})
"""What calls trunnion for whoever called that: a property that is kept does, and torch for an operator."""


def warn(text: str, category: type[Warning]) -> None:
    """Warn at the innermost line that is not trunnion's, nor a plugin's of it.

    Parameters
    ----------
    text
        What to say.
    category
        The class of the warning.
    """
    level, frame = 1, sys._getframe()  # noqa: SLF001 - the documented way to one's callers
    while frame.f_back is not None and _is_ours(frame):
        level, frame = level + 1, frame.f_back
    warnings.warn(text, category, stacklevel=level)


def _is_ours(frame: FrameType) -> bool:
    package = str(frame.f_globals.get("__name__")).partition(".")[0]
    return package == "trunnion" or package.startswith("trunnion_") or package in _BETWEEN
