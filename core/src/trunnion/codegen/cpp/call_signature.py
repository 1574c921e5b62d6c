"""`CallSignature`: what the Python side of a loaded launcher must know of its calls, kept beside it as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from trunnion.codegen.cpp.windows import persisting_bounds
from trunnion.contract.convention import Convention
from trunnion.errors import CorruptArtifactError, ProgramError, shorten
from trunnion.launcher.maps import MapSpec
from trunnion.launcher.tables import map_spec
from trunnion.model.dtypes import dtype
from trunnion.model.fields import integer, place
from trunnion.model.interval import INT64_MAX
from trunnion.model.params import PointerParam, ScalarParam, StructParam, TensorParam
from trunnion.model.record import Record
from trunnion.model.tensormap.fields import Im2colFields, TiledFields

if TYPE_CHECKING:
    from typing import Any

    from trunnion.model.plan import LaunchPlan

__all__ = ["SIGNATURE_FILE", "CallSignature", "ParamSignature"]

SIGNATURE_FILE = "call.json"
"""The file of an artifact that holds them."""

_TYPED = ("tensor", "scalar")
_MAP_NUMBERS = ("element_bits", "data_type", "interleave", "swizzle", "l2_promotion", "oob_fill")
_OF_A_CALL = ("address", "dims", "strides", "innermost_stride")
_KINDS = {TensorParam: "tensor", ScalarParam: "scalar", PointerParam: "pointer", StructParam: "struct"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamSignature:
    """One argument of a call, or one output."""

    kind: str
    """``"tensor"``, ``"scalar"``, ``"pointer"`` or ``"struct"``."""

    name: str
    """The parameter's name."""

    dtype: str = ""
    """The name of the element type, or of the number's."""

    nullable: bool = False
    """Whether None may be passed."""

    alignment: int = 1
    """Of an address, in bytes."""

    nbytes: int = 0
    """Of a struct."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CallSignature:
    """Everything that is known of the calls of one program."""

    params: tuple[ParamSignature, ...]
    """In the order in which they are passed."""

    outputs: tuple[ParamSignature, ...]
    """In order."""

    workspaces: int
    """How many."""

    maps: tuple[MapSpec, ...]
    """What each tensor map is made from, but for what a call decides."""

    windowed: bool = False
    """Whether some launch has an access-policy window."""

    persisting: tuple[tuple[int, int], ...] = ()
    """The least and the greatest bytes of each window of a launch whose hits persist."""

    @classmethod
    def of(cls, plan: LaunchPlan) -> CallSignature:
        """Return the facts of a plan."""
        return cls(
            params=tuple(_param(param) for param in plan.signature.params),
            outputs=tuple(
                ParamSignature(kind="tensor", name=one.name, dtype=one.dtype.name, alignment=one.alignment)
                for one in plan.outputs
            ),
            workspaces=len(plan.workspaces),
            maps=tuple(map_spec(plan, encode) for encode in plan.encodes),
            windowed=plan.has_windows,
            persisting=persisting_bounds(plan),
        )

    def convention(self, kind: str = "cuda") -> Convention:
        """Return how people write a call, on a kind of device."""
        return Convention([param.name for param in self.params], len(self.outputs), kind)

    def to_json(self) -> str:
        """Return the facts as text, always the same for the same facts."""
        document = asdict(self) | {"maps": list(map(_written_map, self.maps))}
        return json.dumps(document, sort_keys=True, separators=(",", ":")) + "\n"

    @classmethod
    def from_json(cls, text: bytes) -> CallSignature:
        """Return what `to_json` wrote.

        Raises
        ------
        CorruptArtifactError
            If it is something else.
        """
        try:
            facts = _read(Record(json.loads(text), "call"))
        except (ValueError, RecursionError) as error:  # a ProgramError is a ValueError
            raise CorruptArtifactError(SIGNATURE_FILE, f"does not describe a call: {error}") from error
        if facts.to_json().encode() != text:
            raise CorruptArtifactError(SIGNATURE_FILE, "is not spelled as it was written")
        return facts


def _param(param: Any) -> ParamSignature:
    kind = _KINDS[type(param)]
    return ParamSignature(
        kind=kind,
        name=param.name,
        dtype=param.dtype.name if kind in _TYPED else "",
        nullable=getattr(param, "nullable", False),
        alignment=param.alignment if kind == "pointer" else 1,
        nbytes=param.nbytes if kind == "struct" else 0,
    )


# Reading: a ProgramError says which field is none ---------------------------------------------------------------------


def _read(record: Record) -> CallSignature:
    facts = CallSignature(
        params=tuple(map(_read_param, record.records("params"))),
        outputs=tuple(map(_read_param, record.records("outputs"))),
        workspaces=_count(record, "workspaces"),
        maps=tuple(map(_read_map, record.records("maps"))),
        windowed=record.boolean("windowed"),
        persisting=record.integer_pairs("persisting"),
    )
    record.done()
    for pair in facts.persisting:
        if list(pair) != sorted(pair) or min(pair) < 0:
            raise ProgramError("expected the least and the greatest bytes", field=f"{record.path}.persisting")
    return facts


def _read_param(record: Record) -> ParamSignature:
    facts = ParamSignature(
        kind=record.text("kind"),
        name=record.text("name"),
        dtype=record.text("dtype"),
        nullable=record.boolean("nullable"),
        alignment=_count(record, "alignment", least=1),
        nbytes=_count(record, "nbytes"),
    )
    record.done()
    if facts.kind not in _KINDS.values():
        raise ProgramError(f"got {shorten(facts.kind)}", field=f"{record.path}.kind")
    if facts.kind in _TYPED:
        with place(record.path):
            dtype(facts.dtype)
    return facts


def _written_map(spec: MapSpec) -> dict[str, Any]:
    known = asdict(spec.fields)
    return {"name": spec.name} | {name: value for name, value in known.items() if name not in _OF_A_CALL}


def _read_map(record: Record) -> MapSpec:
    fields: TiledFields | Im2colFields
    steps, name = record.integers("element_strides"), record.text("name")
    common: Any = {"element_strides": steps, **dict.fromkeys(_OF_A_CALL)}
    common |= {number: record.integer(number) for number in _MAP_NUMBERS}
    if record.has("box"):
        fields = TiledFields(box=record.integers("box"), **common)
    else:
        fields = Im2colFields(
            lower=record.integers("lower"),
            upper=record.integers("upper"),
            channels_per_pixel=record.integer("channels_per_pixel"),
            pixels_per_column=record.integer("pixels_per_column"),
            **common,
        )
    record.done()
    return MapSpec(name, fields.constant)


def _count(record: Record, name: str, least: int = 0) -> int:
    return integer(record.integer(name), f"{record.path}.{name}", least, INT64_MAX)
