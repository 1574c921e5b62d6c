"""Write ``include/trunnion/refusals.hpp`` and ``.cc`` from the table of refusals: a function for each row.

    python -m trunnion.codegen.cpp.refusals

writes both files; a test compares them with what this returns.
"""

from __future__ import annotations

import re
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trunnion.codegen.literals import cpp_string
from trunnion.codegen.writer import SourceWriter
from trunnion.errors import ArgumentError, DeviceRequirementError, TensorMapError
from trunnion.model.plan.refusals import REFUSALS, FieldKind

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from trunnion.model.plan.refusals import RefusalRow

__all__ = ["refusals_header", "refusals_source"]

_HEAD: Final = (
    "// Written by trunnion.codegen.cpp.refusals from the table of refusals: change the table, not this."
)
_PARAMETERS: Final[Mapping[FieldKind, str]] = {
    FieldKind.ARGUMENT: "const Name& {0}",
    FieldKind.NAME: "const Name& {0}",
    FieldKind.TEXT: "const Words& {0}",
    FieldKind.INT: "int64_t {0}",
    FieldKind.NUMBER: "const Number& {0}",
    FieldKind.ADDRESS: "uint64_t {0}",
    FieldKind.AXIS: "int64_t {0}",
    FieldKind.VERSION: "int64_t {0}",
    FieldKind.DIMS: "const int64_t* {0}, int32_t {0}_count",
    FieldKind.AUTHOR: "const Name& {0}",
    FieldKind.NAMES: "const Name* {0}, int32_t {0}_count",
    FieldKind.PLACES: "const Name* {0}, int32_t {0}_count",
}
_FIELDS: Final[Mapping[FieldKind, str]] = {
    FieldKind.ARGUMENT: "Field::raw({0})",
    FieldKind.NAME: "Field::name({0})",
    FieldKind.TEXT: "Field::raw({0})",
    FieldKind.INT: "Field::number({0})",
    FieldKind.NUMBER: "Field::number({0})",
    FieldKind.ADDRESS: "Field::address({0})",
    FieldKind.AXIS: "Field::axis({0})",
    FieldKind.VERSION: "Field::version({0})",
    FieldKind.DIMS: "Field::dims({0}, {0}_count)",
    FieldKind.AUTHOR: "Field::author({0})",
    FieldKind.NAMES: "Field::names({0}, {0}_count)",
    FieldKind.PLACES: "Field::places({0}, {0}_count)",
}


def refusals_header() -> str:
    """Return the header: a function for each row that launchers in C++ say."""
    out = SourceWriter()
    out.lines(_HEAD, "#pragma once", "", "#include <trunnion/errors.hpp>", "", "// clang-format off", "")
    out.lines("namespace trunnion {", "")
    out.lines(*(f"{_signature(row)};" for row in _rows()))
    out.lines("", "}  // namespace trunnion")
    return out.text()


def refusals_source() -> str:
    """Return the functions, each with the text of its row."""
    out = SourceWriter(indent="  ")
    out.lines(
        _HEAD, "#include <trunnion/refusals.hpp>", "", "// clang-format off", "", "namespace trunnion {", ""
    )
    for row in _rows():
        with out.block(f"{_signature(row)} {{", "}"):
            texts = ", ".join(cpp_string(_numbered(row, text)) for text in row.texts)
            fields = ", ".join(_FIELDS[kind].format(name) for name, kind in row.fields)
            given = [f"{{{fields}}}" if fields else "", "argument.place" if _is_placed(row) else ""]
            said = f"{{{cpp_string(row.id)}, {_form(row)}, {{{texts}}}}}"
            out.line(f"return refuse({', '.join([said, *filter(None, given)])});")
    out.lines("", "}  // namespace trunnion")
    return out.text()


def _rows() -> list[RefusalRow[Any]]:
    return [row for row in REFUSALS.values() if row.only != "python"]


def _signature(row: RefusalRow[Any]) -> str:
    parameters = ", ".join(_PARAMETERS[kind].format(name) for name, kind in row.fields)
    return f"bool raise_{row.id.replace('-', '_')}({parameters})"


def _is_placed(row: RefusalRow[Any]) -> bool:
    return row.fields[:1] == (("argument", FieldKind.ARGUMENT),)


def _numbered(row: RefusalRow[Any], text: str) -> str:
    """Return a template with its fields by position."""
    places = {name: f"{{{index}}}" for index, (name, _) in enumerate(row.fields)}
    return re.sub(r"\{(\w+)\}", lambda found: places[found[1]], text)


def _form(row: RefusalRow[Any]) -> str:
    """Return the kind of error that those who know nothing of trunnion see, and how it puts its texts together."""
    kinds = (TypeError, ValueError, MemoryError)
    kind = next((kind for kind in kinds if issubclass(row.error, kind)), RuntimeError)
    forms = {ArgumentError: "kArgument", DeviceRequirementError: "kRequirement", TensorMapError: "kPlaced"}
    form = next((form for error, form in forms.items() if issubclass(row.error, error)), "kMessage")
    return f'"{kind.__name__}", Form::{form}'


def _write() -> None:
    folder = Path(str(resources.files("trunnion.codegen.cpp").joinpath("include", "trunnion")))
    (folder / "refusals.hpp").write_text(refusals_header(), "utf-8")
    (folder / "refusals.cc").write_text(refusals_source(), "utf-8")


if __name__ == "__main__":
    _write()
