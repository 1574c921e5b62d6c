"""What this package refuses."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

from trunnion.errors import ProgramError, shorten

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["Refusal", "UnsupportedStatementError", "not_too_deep"]


class UnsupportedStatementError(ProgramError):
    """A statement of a host function means something that a program cannot say.

    Parameters
    ----------
    reason
        What is not understood, and what to do.
    statement
        The statement's text, as TVM prints it.
    function
        The host function's name.
    """

    def __init__(self, reason: str, statement: str, function: str) -> None:
        super().__init__(f"function {shorten(function)}: {reason}, in the statement: {statement}")
        self.reason, self.statement, self.function = reason, statement, function


class Refusal(Exception):  # noqa: N818 - it never leaves the package: the walk adds the statement, and raises the error
    """What a part of the importer does not understand, before it is known in which statement."""


@contextmanager
def not_too_deep() -> Iterator[None]:
    """Refuse an expression that Python has no stack for, around what reads a host function."""
    try:
        yield
    except RecursionError as error:
        raise ProgramError(
            "got a host function with an expression that is nested too deep; pass what it computes as a number",
            field="artifact.host_mod",
        ) from error
