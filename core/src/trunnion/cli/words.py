"""The driver's numbers in the model's words, for people; documents keep the numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trunnion.model.dtypes import DTYPES
from trunnion.model.launch_attributes import LAUNCH_ATTRIBUTES
from trunnion.model.scalars import scalar_value
from trunnion.model.tensormap import Interleave, L2Promotion, OobFill, Swizzle, TensorMapDataType
from trunnion.model.window import AccessProperty

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from trunnion.model.enums import DriverEnum

__all__ = ["data_type_word", "plan_in_words", "program_in_words", "word"]

_SETS: Final[Mapping[str, type[DriverEnum]]] = {
    "interleave": Interleave,
    "swizzle": Swizzle,
    "l2_promotion": L2Promotion,
    "oob_fill": OobFill,
    "hit_property": AccessProperty,
    "miss_property": AccessProperty,
    **{row.field: row.words for row in LAUNCH_ATTRIBUTES if row.words is not None},
}
"""Which words the numbers under a name stand for: of maps, windows and launch attributes."""


def word(name: str, code: int) -> str:
    """Return the model's word for a number of the driver's; a number that has none as it is.

    Parameters
    ----------
    name
        The field that holds it.
    code
        The number.
    """
    if name == "data_type":
        return data_type_word(code)
    return next((one.word for one in _SETS.get(name, ()) if one.code == code), str(code))


def data_type_word(code: int) -> str:
    """Return the name of a ``CUtensorMapDataType``; of several element types that are read alike, the unsigned one."""
    for one in TensorMapDataType:
        if one.code == code:
            return one.word
    names = [row.name for row in DTYPES.values() if row.tma_code == code]
    return next((name for name in names if name.startswith("uint")), names[0] if names else str(code))


def program_in_words(program: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a program with the names of what its launches refer to, in place of positions.

    Parameters
    ----------
    program
        What `trunnion.cli.inspection.program_document` made.
    """
    tables = (("param", "params"), ("output", "outputs"), ("workspace", "workspaces"), ("code", "code"))
    names = {word: [row["name"] for row in program[table]] for word, table in tables}
    names["variable"] = [row["name"] for row in program.get("variables", ())]
    launches = [_field("launch", launch, names) for launch in program["launches"]]
    others = {
        table: [_field(table, row, names) for row in program[table]]
        for table in ("variables", "copies")
        if table in program
    }
    return {**program, "launches": launches, **others}


def plan_in_words(plan: Mapping[str, Any]) -> dict[str, Any]:
    """Return the document of a plan with words for the driver's numbers, and names for slots.

    Parameters
    ----------
    plan
        What `trunnion.cli.document.plan_document` made.
    """
    tables = ("tensors", "workspaces", "scalars", "pointers", "structs", "kernels", "variables")
    names = {table[:-1]: [row["name"] for row in plan[table]] for table in tables}
    names["encode"] = [f"map {row['index']}, of {_said(row['memory'], names)}" for row in plan["encodes"]]
    names["readers"] = [f"launch {row['index']}" for row in plan["launches"]]
    shown = {name: _said(value, names) for name, value in plan.items()}
    return shown | {"results": [names["tensor"][slot] for slot in plan["results"]]}


def _said(value: Any, names: Mapping[str, Sequence[str]]) -> Any:  # noqa: PLR0911 - one for each kind of value
    if isinstance(value, list):
        return [_said(one, names) for one in value]
    if not isinstance(value, dict):
        return value
    match value.get("type"):
        case "MemoryRef":
            return f"{value['kind']} {names[value['kind']][value['slot']]}"
        case "Source":
            table = "scalar" if value["kind"] == "scalar" else "tensor"
            return value | {"slot": names[table][value["slot"]]}
        case "PlannedAttribute":
            return value | {"values": [word(value["field"], number) for number in value["values"]]}
        case "ConstantArgument":
            kind, data = value["dtype"], bytes.fromhex(value["data"])
            return value | {"data": "null" if kind is None else str(scalar_value(data, DTYPES[kind]))}
    return {name: _field(name, one, names) for name, one in value.items()}


def _field(name: str, value: Any, names: Mapping[str, Sequence[str]]) -> Any:
    if name == "readers":
        return [names[name][launch] for launch in value]
    if name == "const":
        return "null" if value["value"] is None else f"{value['value']}, {value['dtype']}"
    if name == "float":
        return f"{value['expr']}, {value['dtype']}"
    if name == "struct" and type(value) is dict:
        return [*_struct_fields("", {"struct": value}, names)]
    if type(value) is not int:
        return _said(value, names)
    return names[name][value] if name in names else word(name, value)


def _struct_fields(
    path: str, value: Mapping[str, Any], names: Mapping[str, Sequence[str]]
) -> Iterator[dict[str, Any]]:
    """Return what a program puts into a struct, that of structs and arrays in it too: the plan says where it lies."""
    if "struct" in value:
        within = [(f"{path}.{one['name']}", one["value"]) for one in value["struct"]["fields"]]
    elif "array" in value:
        within = [(f"{path}[{place}]", one) for place, one in enumerate(value["array"])]
    else:
        yield {"path": path, "value": _said(value, names)}
        return
    for inner, one in within:
        yield from _struct_fields(inner, one, names)
