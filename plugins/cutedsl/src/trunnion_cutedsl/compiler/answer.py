"""`read_answer`: what the compiling process answers, read strictly.

The author's text ran in that process and may have spoilt anything there, the encoding of answers too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from trunnion.model.fields import integer
from trunnion.model.record import Record

__all__ = ["Answer", "Failure", "KernelFacts", "read_answer"]

_MOST_TEXT = 1 << 16  # characters of one text of an error
_MOST = (1 << 31) - 1


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
    ProgramError
        If they are not; the text says where.
    """
    record = Record(head, "answer")
    compiled = not any(map(record.has, ("unusable", "refused", "failed")))
    said = {name: _text(record, name) if record.has(name) else None for name in ("unusable", "refused")}
    failed = _failure(record.record("failed")) if record.has("failed") else None
    kernels = tuple(map(_facts, record.records("kernels"))) if compiled else ()
    field = _text(record, "field") if record.has("field") else "code"
    log = _printable(head.get("log", ""))
    return Answer(said["unusable"], said["refused"], field, failed, kernels, log)


def _facts(kernel: Record) -> KernelFacts:
    return KernelFacts(_text(kernel, "symbol"), _count(kernel, "dynamic_smem_bytes"))


def _failure(failed: Record) -> Failure:
    lines = ((_text(one, "file"), _count(one, "line"), _text(one, "text")) for one in failed.records("lines"))
    return Failure(_text(failed, "kind"), _text(failed, "text"), tuple(lines))


def _count(record: Record, name: str) -> int:
    return integer(record.integer(name), f"{record.path}.{name}", 0, _MOST)


def _text(record: Record, name: str) -> str:
    value = record.text(name)
    return _printable(
        value if len(value) <= _MOST_TEXT else f"{value[:_MOST_TEXT]}... ({len(value)} characters)"
    )


def _printable(value: object) -> str:
    """Return a text without halves of characters, which no file takes."""
    return str(value).encode("utf-8", "backslashreplace").decode()
