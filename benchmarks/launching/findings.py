"""What every benchmark does with its findings: the options of its command, the report, the exit status."""

from __future__ import annotations

import argparse
import json
from dataclasses import asdict
from typing import TYPE_CHECKING, Any, Protocol

from launching.options import new_file

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from dataclasses import Field
    from pathlib import Path
    from typing import ClassVar

__all__ = ["Finding", "conclude", "options_of", "write"]


class Finding(Protocol):
    """A dataclass: what was measured of one subject."""

    __dataclass_fields__: ClassVar[dict[str, Field[Any]]]

    @property
    def ok(self) -> bool:
        """Whether the budget is kept."""


def options_of(description: str | None) -> argparse.ArgumentParser:
    """Return a parser of options that shows a benchmark's docstring as it is, with the one option that all have."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--json", type=new_file, help="write the report to this file")
    return parser


def write(path: Path | None, facts: Mapping[str, Any]) -> None:
    """Write a report for programs, if a file is named."""
    if path is not None:
        path.write_text(json.dumps(facts, indent=2) + "\n", "utf-8")


def conclude(
    path: Path | None, facts: Mapping[str, Any], found: Sequence[Finding], name: str = "rows"
) -> int:
    """Write a report for programs, if a file is named, and return the exit status: 1 if a budget is not kept.

    Parameters
    ----------
    path
        The file, or None.
    facts
        What was measured, and how.
    found
        The findings; in the report each also says whether it is ok.
    name
        What they are called there.
    """
    write(path, {**facts, name: [asdict(one) | {"ok": one.ok} for one in found]})
    return 0 if all(one.ok for one in found) else 1
