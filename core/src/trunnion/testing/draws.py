"""What is drawn: a matter of the seed alone."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Any
from unittest.mock import patch

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["drawn_by_seed_alone"]

_READ, _NONE, _CHOSEN = "_get_local_constants", "Constants", "CONSTANTS_CACHE"


@contextlib.contextmanager
def drawn_by_seed_alone() -> Iterator[None]:
    """Let Hypothesis draw, in the block, the same examples for the same seed in every process.

    Of its own it now and then draws a constant that it read in the text of a module that is imported, so what it draws
    depends on which modules that are, and on when it first looked; on whatever ran before, that is. Its own list of
    troublesome constants stays. Versions that read no modules are left as they are.
    """
    from hypothesis.internal.conjecture import providers  # noqa: PLC0415 - only a run of the suite needs it

    if not all(hasattr(providers, name) for name in (_READ, _NONE, _CHOSEN)):
        yield
        return
    changes: dict[str, Any] = {_READ: getattr(providers, _NONE), _CHOSEN: {}}
    with patch.multiple(providers, **changes):
        yield
