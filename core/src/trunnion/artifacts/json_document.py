"""JSON documents in one spelling: manifests, indices of bundles, lock files; some sealed by their own SHA-256."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trunnion.errors import CorruptArtifactError, shorten
from trunnion.json_text import over_lines
from trunnion.messages import describe, listed, type_name

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["JsonDocument", "sealed", "spelled"]


def sealed(members: dict[str, Any]) -> bytes:
    """Return the one spelling of a document with the SHA-256 of the rest among its members."""
    rest = spelled(members)
    seal = f'\n "sha256": "{hashlib.sha256(rest).hexdigest()}"'.encode()
    behind = min((name for name in members if name > "sha256"), default="")
    # Only members of the document itself begin a line with one blank, and no text in it has a line of its own.
    before, line, after = rest.rpartition(f"\n {over_lines(behind)}: ".encode() if behind else b"\n}")
    return before + (seal + b"," if behind else b"," + seal) + line + after


def spelled(members: dict[str, Any]) -> bytes:
    """Return the one spelling of a document: keys sorted, ASCII."""
    return (over_lines(members, sort_keys=True) + "\n").encode("ascii")


@dataclass(frozen=True, slots=True)
class JsonDocument:
    """A document that is read, and of which nothing is believed."""

    name: str
    """What errors call the document: its file."""

    most_bytes: int
    """No document is longer."""

    def members(self, data: bytes) -> Any:
        """Return the value that a document spells.

        Raises
        ------
        CorruptArtifactError
            If the bytes are too many, no JSON in ASCII, or name a member twice.
        """
        if len(data) > self.most_bytes:
            raise self.corrupt(f"has {len(data)} bytes, expected at most {self.most_bytes}")
        try:
            return json.loads(data.decode("ascii"), object_pairs_hook=self._once)
        except CorruptArtifactError:  # which is a ValueError, too
            raise
        except json.JSONDecodeError as error:
            said = f"{error.msg}: byte {error.pos} of {len(data)}"  # the bytes are ASCII
            raise self.corrupt(f"is not JSON, it was edited or truncated: {said}") from error
        except (ValueError, RecursionError) as error:
            raise self.corrupt(f"is not JSON: {type_name(error)}") from error

    def versioned(self, data: bytes, schema: object) -> dict[str, Any]:
        """Return the members of a document that says that it is of a schema, and of which version.

        Raises
        ------
        CorruptArtifactError
            If the bytes are too many, no JSON in ASCII, or of another schema.
        """
        members = self.members(data)
        found = members.get("schema") if isinstance(members, dict) else members
        if not isinstance(members, dict) or found != schema:
            raise self.corrupt(f"got schema {describe(found)}, this trunnion reads {schema}")
        return members

    def _once(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        """Return an object's members: of two of one name, whoever reads the text may believe the other one."""
        found = dict(pairs)
        if len(found) != len(pairs):
            twice = next(name for name, many in Counter(name for name, _ in pairs).items() if many > 1)
            raise self.corrupt(f"names {shorten(twice)} twice")
        return found

    def record(self, members: object, fields: Mapping[str, type], what: str) -> dict[str, Any]:
        """Return an object's members if they are exactly some fields, each of its type.

        Raises
        ------
        CorruptArtifactError
            If they are not.
        """
        checked: dict[str, Any] = self.typed(members, dict, what)
        odd = sorted(checked.keys() ^ fields.keys())
        if odd:
            raise self.corrupt(f"{what} has unknown or missing fields: {listed(odd)}")
        for name, kind in fields.items():
            self.typed(checked[name], kind, f"{what}, field {name}")
        return checked

    def typed(self, value: Any, kind: type, what: str) -> Any:
        """Return a value if it is of a type; true is no number here.

        Raises
        ------
        CorruptArtifactError
            If it is not.
        """
        if type(value) is not kind:
            raise self.corrupt(f"{what} is of type {type_name(value)}, expected {kind.__name__}")
        return value

    def check_spelling(self, data: bytes, spelled: bytes) -> None:
        """Refuse bytes that are not what was read from them, spelled again.

        Raises
        ------
        CorruptArtifactError
            If they differ.
        """
        if spelled != data:
            raise self.corrupt("is not spelled as it was written; it was edited or truncated")

    def corrupt(self, problem: str) -> CorruptArtifactError:
        """Return the error of such a document."""
        return CorruptArtifactError(self.name, problem)
