"""`CallFacts`: what the Python side of a loaded launcher must know of its calls, kept beside it as JSON."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from trunnion.codegen.cpp.direct import direct_kinds
from trunnion.codegen.cpp.windows import persisting_bounds
from trunnion.codegen.python.maps import Im2colSpec, MapSpec, TiledSpec
from trunnion.errors import CorruptArtifactError
from trunnion.model.params import PointerParam, ScalarParam, StructParam, TensorParam
from trunnion.model.plan import MemoryKind, TiledMode

if TYPE_CHECKING:
    from typing import Any

    from trunnion.model.plan import Encode, LaunchPlan

__all__ = ["FACTS_FILE", "CallFacts", "ParamFacts"]

FACTS_FILE = "call.json"
"""The file of an artifact that holds them."""

_KINDS = {TensorParam: "tensor", ScalarParam: "scalar", PointerParam: "pointer", StructParam: "struct"}


@dataclass(frozen=True, slots=True, kw_only=True)
class ParamFacts:
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
class CallFacts:
    """Everything that is known of the calls of one program."""

    params: tuple[ParamFacts, ...]
    """In the order in which they are passed."""

    outputs: tuple[ParamFacts, ...]
    """In order."""

    workspaces: int
    """How many."""

    direct: bool
    """Whether the launcher has an entry that CPython calls directly."""

    maps: tuple[MapSpec, ...]
    """What each tensor map is made from, but for what a call decides."""

    windowed: bool = False
    """Whether some launch has an access-policy window."""

    persisting: tuple[tuple[int, int], ...] = ()
    """The least and the greatest bytes of each window of a launch whose hits persist."""

    @classmethod
    def of(cls, plan: LaunchPlan) -> CallFacts:
        """Return the facts of a plan."""
        outputs = [tensor for tensor in plan.tensors if tensor.output]
        return cls(
            params=tuple(_param(param) for param in plan.signature.params),
            outputs=tuple(
                ParamFacts(kind="tensor", name=one.name, dtype=one.dtype.name, alignment=one.alignment)
                for one in outputs
            ),
            workspaces=len(plan.workspaces),
            direct=bool(direct_kinds(plan)),
            maps=tuple(_map(plan, encode) for encode in plan.encodes),
            windowed=any(launch.window is not None for launch in plan.launches),
            persisting=persisting_bounds(plan),
        )

    def to_json(self) -> str:
        """Return the facts as text, always the same for the same facts."""
        return json.dumps(asdict(self), sort_keys=True, separators=(",", ":")) + "\n"

    @classmethod
    def from_json(cls, text: bytes) -> CallFacts:
        """Return what `to_json` wrote.

        Raises
        ------
        CorruptArtifactError
            If it is something else.
        """
        try:
            read = json.loads(text)
            return cls(
                params=tuple(ParamFacts(**one) for one in read["params"]),
                outputs=tuple(ParamFacts(**one) for one in read["outputs"]),
                workspaces=int(read["workspaces"]),
                direct=bool(read["direct"]),
                maps=tuple(_read_map(one) for one in read["maps"]),
                windowed=bool(read["windowed"]),
                persisting=tuple((int(least), int(greatest)) for least, greatest in read["persisting"]),
            )
        except (ValueError, KeyError, TypeError) as error:
            raise CorruptArtifactError(FACTS_FILE, f"does not describe a call: {error}") from error


def _param(param: Any) -> ParamFacts:
    kind = _KINDS[type(param)]
    return ParamFacts(
        kind=kind,
        name=param.name,
        dtype=param.dtype.name if kind in ("tensor", "scalar") else "",
        nullable=getattr(param, "nullable", False),
        alignment=param.alignment if kind == "pointer" else 1,
        nbytes=param.nbytes if kind == "struct" else 0,
    )


def _map(plan: LaunchPlan, encode: Encode) -> MapSpec:
    mode, memory = encode.mode, encode.memory
    slots: Any = plan.tensors if memory.kind is MemoryKind.TENSOR else plan.workspaces
    spec: TiledSpec | Im2colSpec
    if isinstance(mode, TiledMode):
        spec = TiledSpec(mode.box)
    else:
        spec = Im2colSpec(mode.lower, mode.upper, mode.channels_per_pixel, mode.pixels_per_column)
    return MapSpec(
        mode=spec,
        element_bits=encode.element_bits,
        dtype_code=encode.data_type,
        element_strides=encode.element_strides,
        interleave=encode.interleave,
        swizzle=encode.swizzle,
        l2_promotion=encode.l2_promotion,
        oob_fill=encode.oob_fill,
        name=slots[memory.slot].name,
    )


def _read_map(read: dict[str, Any]) -> MapSpec:
    mode: dict[str, Any] = {
        key: tuple(value) if isinstance(value, list) else value for key, value in read["mode"].items()
    }
    spec = TiledSpec(**mode) if "box" in mode else Im2colSpec(**mode)
    return MapSpec(**{**read, "mode": spec, "element_strides": tuple(read["element_strides"])})
