"""What this package refuses."""

from __future__ import annotations

from trunnion.errors import ProgramError, shorten

__all__ = ["Refusal", "UnsupportedStatementError"]


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
