"""Values as documents: what ``--json`` prints, and what the tables for people are made from."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import math
import re
from collections.abc import Mapping, Sequence
from collections.abc import Set as AbstractSet
from enum import Enum
from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from trunnion.contract.spec import Target
from trunnion.messages import describe
from trunnion.model.dtypes import DType
from trunnion.model.expr import Expr
from trunnion.model.expr_text import format_expr
from trunnion.model.float_expr import FloatExpr
from trunnion.model.float_text import format_float

if TYPE_CHECKING:
    from trunnion.model.plan import LaunchPlan

__all__ = ["bytes_told", "plain", "plan_document", "told", "told_apart"]

_MOST_SHOWN = 100
_SHOWN_DIGITS = 12
_MOST_PIECES = 8
_BETWEEN_PHRASES = re.compile("[;,] ")


def plan_document(plan: LaunchPlan) -> dict[str, Any]:
    """Return everything that a plan says, with its hash; slots in expressions bear the names of their symbols."""
    shown = [
        field for field in dataclasses.fields(plan) if field.name != "signature"
    ]  # the program's, said there
    document = {field.name: plain(getattr(plan, field.name), plan.symbols) for field in shown}
    for row in document["variables"]:
        row["init"] = bytes_told(plan.variables[row["index"]].init)
    return {"hash": plan.hash, **document, "encodes": [_encode(row) for row in document["encodes"]]}


def _encode(row: dict[str, Any]) -> dict[str, Any]:
    """Return a map's row with what its encoding is told beside what the plan computes of that."""
    told_always = {name: one for name, one in row.pop("fields").items() if name != "address"}
    return told_always | row | {"type": told_always["type"]}


def bytes_told(data: bytes | None) -> str | None:
    """Return bytes as hexadecimal digits if they are few, else their number and digest."""
    if data is None or 2 * len(data) <= _MOST_SHOWN:
        return None if data is None else data.hex()
    return f"{len(data)} bytes, SHA-256 {hashlib.sha256(data).hexdigest()[:_SHOWN_DIGITS]}"


def told(value: str) -> str:
    """Return an input of an artifact's key as it is if it is one short line, else its length and digest."""
    if len(value) <= _MOST_SHOWN and "\n" not in value:
        return value
    digest = hashlib.sha256(value.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{len(value)} characters, SHA-256 {digest[:_SHOWN_DIGITS]}"


def told_apart(here: str | None, kept: str | None) -> tuple[str | None, str | None]:
    """Return what two inputs of keys are: whole where both are short, else what one has and the other has not.

    Parameters
    ----------
    here, kept
        Two inputs of one name that differ; None where there is none.
    """
    whole = (None if here is None else told(here), None if kept is None else told(kept))
    if here is None or kept is None or whole == (here, kept):
        return whole
    mine, theirs = _pieces(here), _pieces(kept)
    if mine is None or theirs is None:
        return whole
    more = [[one for one in some if one not in others] for some, others in ((mine, theirs), (theirs, mine))]
    return (_listed(more[0]), _listed(more[1])) if any(more) else whole


def _pieces(value: str) -> list[tuple[str, str]] | None:
    """Return what a text consists of, each piece after what names it: members or phrases; None if nobody knows."""
    try:
        members = json.loads(value)
    except (ValueError, RecursionError):
        members = None
    if isinstance(members, dict):
        return [(f"{name}: ", json.dumps(one)) for name, one in members.items()]
    if "\n" in value:  # a source: its words say nothing by themselves
        return None
    phrases = _BETWEEN_PHRASES.split(value)
    return [("", piece) for one in phrases for piece in ([one] if told(one) == one else one.split(" "))]


def _listed(pieces: Sequence[tuple[str, str]]) -> str:
    shown = [f"{name}{told(one)}" for name, one in pieces[:_MOST_PIECES]]
    more = [f"and {len(pieces) - _MOST_PIECES} more"] if len(pieces) > _MOST_PIECES else []
    return "; ".join([*shown, *more]) or "nothing more"


def plain(value: Any, names: Sequence[str] = ()) -> Any:
    """Return a value as numbers, texts, lists and mappings.

    Parameters
    ----------
    value
        Any value; a dataclass becomes a mapping with its class's name under ``"type"``, bytes their hexadecimal
        digits, an expression its text, and what is unknown here its type's name.
    names
        What the slots of expressions are called.
    """
    if isinstance(value, Enum):
        return plain(value.value, names)
    if dataclasses.is_dataclass(value) and not isinstance(value, (type, Expr, FloatExpr, DType)):
        said = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
        return {"type": type(value).__name__, **{name: plain(one, names) for name, one in said.items()}}
    if isinstance(value, Mapping):
        return {str(name): plain(one, names) for name, one in value.items()}
    if isinstance(value, AbstractSet):
        return sorted((plain(one, names) for one in value), key=str)
    if isinstance(value, Sequence) and not isinstance(value, (str, bytes, bytearray, memoryview)):
        return [plain(one, names) for one in value]
    return _leaf(value, names)


def _leaf(  # noqa: PLR0911 - one for each kind of value
    value: Any, names: Sequence[str]
) -> bool | int | float | str | None:
    if value is None or isinstance(value, (bool, int, str)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)  # JSON has neither infinity nor NaN
    if isinstance(value, (bytes, bytearray, memoryview)):
        return bytes(value).hex()
    if isinstance(value, Expr):
        return format_expr(value, names)
    if isinstance(value, FloatExpr):
        return format_float(value, names)
    if isinstance(value, DType):
        return value.name
    return str(value) if isinstance(value, (complex, PurePath, Target)) else describe(value)
