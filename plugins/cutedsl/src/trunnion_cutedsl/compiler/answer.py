"""`read_answer`: what the compiling process answers, read strictly.

The author's text ran in that process and may have spoilt anything there, the encoding of answers too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

__all__ = ["Answer", "Failure", "KernelFacts", "MalformedAnswerError", "read_answer"]

_MOST_TEXT = 1 << 16  # characters of one text of an error
_MOST_LINE = 1 << 31


class MalformedAnswerError(Exception):
    """An answer that is none; the text says where."""


@dataclass(frozen=True, slots=True)
class KernelFacts:
    """What is known of one kernel of the cubin."""

    symbol: str
    """Its exact name."""

    dynamic_smem_bytes: int
    """The dynamic shared memory that it uses, as CuTeDSL inferred."""


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception that was raised."""

    kind: str
    """Its class."""

    text: str
    """What it says."""

    lines: tuple[tuple[str, int, str], ...]
    """Where it came through, the innermost last: a file, a line counted from 1, and what stands there."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What became of a job: one of these is said."""

    unusable: str | None
    """Why CuTeDSL cannot be imported."""

    refused: str | None
    """Why the job cannot be compiled as it is put."""

    field: str
    """The part of the request that is wrong, if it is refused."""

    failed: Failure | None
    """What the text, or CuTeDSL, raised."""

    kernels: tuple[KernelFacts, ...]
    """The kernels, in the job's order."""

    log: str
    """What was printed."""


def read_answer(head: dict[str, Any]) -> Answer:
    """Return an answer whose parts are what they must be.

    Parameters
    ----------
    head
        The JSON object that came.

    Raises
    ------
    MalformedAnswerError
        If they are not.
    """
    said = {name: _text(head[name], name) if name in head else None for name in ("unusable", "refused")}
    failed = _failure(head["failed"]) if "failed" in head else None
    compiled = not any(name in head for name in ("unusable", "refused", "failed"))
    kernels = tuple(_facts(one) for one in _list(head.get("kernels"), "kernels")) if compiled else ()
    field = _text(head.get("field", "code"), "field")
    log = _printable(head.get("log", ""))
    return Answer(said["unusable"], said["refused"], field, failed, kernels, log)


def _facts(one: object) -> KernelFacts:
    fields = _object(one, "a kernel")
    return KernelFacts(
        _text(fields.get("symbol"), "symbol"), _count(fields.get("dynamic_smem_bytes"), "bytes")
    )


def _failure(value: object) -> Failure:
    fields = _object(value, "failed")
    lines = []
    for line in _list(fields.get("lines"), "lines"):
        parts = _list(line, "a line")
        if len(parts) != 3:  # noqa: PLR2004 - a file, a number, a text
            raise MalformedAnswerError(f"a line has {len(parts)} parts")
        lines.append(
            (_text(parts[0], "a file"), _count(parts[1], "a line's number"), _text(parts[2], "a line"))
        )
    return Failure(_text(fields.get("kind"), "kind"), _text(fields.get("text"), "text"), tuple(lines))


def _object(value: object, what: str) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise MalformedAnswerError(f"{what} is of type {type(value).__name__}")
    return value


def _list(value: object, what: str) -> list[Any]:
    if not isinstance(value, list):
        raise MalformedAnswerError(f"{what} is of type {type(value).__name__}")
    return value


def _count(value: object, what: str) -> int:
    if type(value) is not int or not 0 <= value < _MOST_LINE:
        raise MalformedAnswerError(f"{what} is of type {type(value).__name__}, or out of range")
    return value


def _text(value: object, what: str) -> str:
    if not isinstance(value, str):
        raise MalformedAnswerError(f"{what} is of type {type(value).__name__}")
    return _printable(
        value if len(value) <= _MOST_TEXT else f"{value[:_MOST_TEXT]}... ({len(value)} characters)"
    )


def _printable(value: object) -> str:
    """Return a text without halves of characters, which no file takes."""
    return str(value).encode("utf-8", "backslashreplace").decode()
