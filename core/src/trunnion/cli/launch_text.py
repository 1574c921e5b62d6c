"""Launches for people: what each was, and what its kernel was given, by name."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from trunnion.cli.presentation import print_line, print_mapping, print_table
from trunnion.cli.words import word

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

__all__ = ["print_launches"]

_COLUMNS: Final = ("argument", "kind", "type", "value")
_STREAMS: Final = {0: "0, the default one", 1: "1, the legacy default one", 2: "2, the thread's default one"}
_MODEL_NAMES: Final = {"programmatic_stream_serialization": "pdl"}
_SHOWN_APART: Final = frozenset(
    {"type", "cluster", "window", "priority"}
)  # with what the kernel or stream adds
_MAP_WORDS: Final = ("interleave", "swizzle", "l2_promotion", "oob_fill")
_CORNERS: Final = {"lower": "lower corner", "upper": "upper corner"}
_COUNTS: Final = {"channels": "channels", "pixels": "pixels"}


def print_launches(launches: Sequence[Mapping[str, Any]]) -> None:
    """Print launches, one below the other.

    Parameters
    ----------
    launches
        Of the simulated driver, as documents (`trunnion.cli.traced.launches_in`).
    """
    for index, launch in enumerate(launches):
        print_mapping(f"launch {index}: {launch['name'] or launch['kernel']}", dict(_facts(launch)))
        if launch["arguments"] is None:
            sizes = ", ".join(str(len(data) // 2) for data in launch["parameters"])
            print_line(f"  which launch of the program this is cannot be told; parameters of {sizes} bytes")
        elif launch["arguments"]:
            rows = [[one["name"], one["kind"], one["type"], _value(one)] for one in launch["arguments"]]
            print_table(f"launch {index}: arguments", _COLUMNS, rows)


def _facts(launch: Mapping[str, Any]) -> Iterator[tuple[str, str | None]]:
    """Return what a launch was, without what it does not have."""
    yield "symbol", launch["kernel"] if launch["name"] not in (None, launch["kernel"]) else None
    for axes in ("grid", "block", "cluster"):
        yield axes, None if launch[axes] is None else _tuple(launch[axes])
    yield "dynamic shared memory", f"{launch['dynamic_smem_bytes']} bytes"
    for name, value in launch["attributes"].items():
        if value is not None and name not in _SHOWN_APART:
            yield _MODEL_NAMES.get(name, name), _attribute(name, value)
    said = launch["priority"] or launch["attributes"]["priority"] is not None
    yield "priority", str(launch["priority"]) if said else None
    yield "window", _window(launch["window"])
    yield "device", str(launch["device"])
    yield "stream", _STREAMS.get(launch["stream"]) or f"{launch['stream']:#x}"


def _attribute(name: str, value: bool | int | list[int]) -> str:
    if isinstance(value, list):
        return _tuple(value)
    return ("yes" if value else "no") if isinstance(value, bool) else word(name, value)


def _window(window: Mapping[str, Any] | None) -> str | None:
    if window is None:
        return None
    hits, misses = (word(name, window[name]) for name in ("hit_property", "miss_property"))
    ratio = f"{window['hit_ratio']:g}"
    return f"{window['nbytes']} bytes at {window['address']:#x}, {hits} for {ratio} of them, else {misses}"


def _value(argument: Mapping[str, Any]) -> str:
    value = argument["value"]
    if argument["kind"] in {"tensor", "workspace", "pointer", "variable"}:
        return f"{value:#x}"
    if argument["kind"] == "view":
        return f"{value['address']:#x}, shape {_tuple(value['shape'])}, strides {_tuple(value['strides'])}"
    if argument["kind"] == "tensor map":
        return "-" if value is None else ", ".join(_map(value))
    if argument["kind"] == "built struct":
        return ", ".join(f"{one['path']} = {_value(one)}" for one in value) or "nothing"
    return str(value)


def _map(request: Mapping[str, Any]) -> Iterator[str]:
    """Return what a map says, in the driver's order: innermost first."""
    yield f"{request['address']:#x}"
    yield f"{word('data_type', request['data_type'])} {_tuple(request['dims'])}"
    if "box" in request:
        yield f"box {_tuple(request['box'])}"
    for name, said in _CORNERS.items():
        if name in request:
            yield f"{said} {_tuple(request[name])}"
    for name, said in _COUNTS.items():
        if name in request:
            yield f"{request[name]} {said}"
    if set(request["element_strides"]) != {1}:
        yield f"element strides {_tuple(request['element_strides'])}"
    for name in _MAP_WORDS:
        if request[name]:
            yield f"{name} {word(name, request[name])}"


def _tuple(numbers: Sequence[int]) -> str:
    return f"({', '.join(map(str, numbers))})"
