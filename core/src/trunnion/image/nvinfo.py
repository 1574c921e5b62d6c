"""The attribute records of a cubin's ``.nv.info`` sections.

NVIDIA publishes no description of them. The layouts here were read from what ptxas of CUDA 12.8 and 13.0
writes for kernels whose parameters are known, on sm_70 to sm_120; the agreement test of the NVRTC plugin
repeats that.

A record starts with a byte for its form and a byte for its meaning. The forms 1 to 3 hold their value, of 0
to 2 bytes, in the next two bytes; form 4 holds a payload size there, and the payload follows.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum
from typing import TYPE_CHECKING, Final

from trunnion.contract.compiler import ImageParameter
from trunnion.errors import CorruptArtifactError, shorten

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = [
    "NARROW_SIZE_LIMIT",
    "WIDE_THRESHOLD",
    "Attribute",
    "Key",
    "decode_dims",
    "decode_parameter",
    "decode_word",
    "encode_attributes",
    "encode_dims",
    "encode_parameter",
    "read_attributes",
]

WIDE_THRESHOLD: Final = 0x1100
"""Bytes of parameters, laid out from zero, up to which ptxas writes narrow records (tried: 4352 is narrow, 4353
is wide)."""

NARROW_SIZE_LIMIT: Final = 0x3FFF
"""The largest parameter, in bytes, whose size fits a narrow record's 14 bits."""

_HEADER: Final = struct.Struct("<BBH")
_NARROW: Final = struct.Struct("<IHHI")
_WIDE: Final = struct.Struct("<IHHHH")
_DIMS: Final = struct.Struct("<III")
_WORD: Final = struct.Struct("<I")
_NARROW_SIZE_SHIFT: Final = 18
_NARROW_BANK: Final = 0x1F000  # "no constant bank": what ptxas writes for every parameter of a kernel
_PAYLOAD_FORM: Final = 4


class Key(IntEnum):
    """What a record means: the keys that this package reads or writes."""

    MAX_THREADS = 0x05
    """Payload: the largest block, three counts of threads, from ``__launch_bounds__``."""

    PARAM_CBANK = 0x0A
    """Payload: symbol (4 bytes), where the parameters start in constant bank 0 (2), how many bytes (2)."""

    REQNTID = 0x10
    """Payload: the only block allowed, three counts of threads, from ``__block_size__`` or ``.reqntid``."""

    MIN_STACK_SIZE = 0x12
    """Payload, in the file-wide section: symbol index (4 bytes), bytes of stack of one thread (4), with what the
    functions take that it calls: ptxas's "cumulative stack size". What a recursive function takes does not count."""

    KPARAM_INFO = 0x17
    """Payload: index (4 bytes), ordinal (2), offset (2), flags (4) whose bits 18 to 31 are the size."""

    CBANK_PARAM_SIZE = 0x19
    """Value: the end of the last parameter, in bytes."""

    REGCOUNT = 0x2F
    """Payload, in the file-wide section: symbol index (4 bytes), registers of one thread (4)."""

    CTA_PER_CLUSTER = 0x3D
    """Payload: the only cluster allowed, three counts of blocks, from ``__cluster_dims__``."""

    EXPLICIT_CLUSTER = 0x3E
    """Neither value nor payload: a launch has a cluster, its own or the kernel's, from ``.explicitcluster``."""

    MAX_CLUSTER_RANK = 0x3F
    """Payload: the most blocks that a cluster may have (4 bytes), from ``__launch_bounds__``."""

    KPARAM_INFO_WIDE = 0x45
    """Payload: index (4 bytes), ordinal (2), offset (2), size (2), flags (2)."""

    GRID_OF_CLUSTERS = 0x5B
    """Neither value nor payload: the grid counts clusters, from the second part of ``__block_size__``."""


@dataclass(frozen=True, slots=True)
class Attribute:
    """One record."""

    form: int
    """1 to 3: the value is in ``value``; 4: the value is in ``payload``."""

    key: int
    """What it means: a :class:`Key`, or one that is not read here."""

    value: int
    """The value of forms 1 to 3; 0 in form 4."""

    payload: bytes
    """The value of form 4; empty in the others."""


def read_attributes(contents: memoryview, section: str) -> tuple[Attribute, ...]:
    """Split the contents of the section called ``section`` into records, in the file's order.

    Raises
    ------
    CorruptArtifactError
        If a record has an unknown form, or does not end inside the section.
    """
    what = f"cubin section {shorten(section)}"
    attributes = []
    at = 0
    while at < len(contents):
        if len(contents) - at < _HEADER.size:
            raise CorruptArtifactError(what, f"{len(contents) - at} bytes at {at} are no record")
        form, key, value = _HEADER.unpack_from(contents, at)
        if not 1 <= form <= _PAYLOAD_FORM:
            raise CorruptArtifactError(
                what, f"the record at {at} has form {form}, where 1 to {_PAYLOAD_FORM} are known"
            )
        at += _HEADER.size
        size = value if form == _PAYLOAD_FORM else 0
        if size > len(contents) - at:
            raise CorruptArtifactError(
                what, f"record {key:#04x} needs {size} bytes at {at}, of {len(contents)}"
            )
        payload = bytes(contents[at : at + size])
        attributes.append(Attribute(form, key, 0 if form == _PAYLOAD_FORM else value, payload))
        at += size
    return tuple(attributes)


def encode_attributes(attributes: Iterable[Attribute]) -> bytes:
    """Return the contents of a section that holds ``attributes``: the inverse of :func:`read_attributes`."""
    return b"".join(
        _HEADER.pack(attribute.form, attribute.key, len(attribute.payload) or attribute.value)
        + attribute.payload
        for attribute in attributes
    )


def decode_parameter(attribute: Attribute, section: str) -> ImageParameter:
    """Return what a narrow or a wide parameter record says.

    Raises
    ------
    CorruptArtifactError
        If the payload has another size than such a record's.
    """
    payload = _checked_payload(attribute, _NARROW.size, section)
    if attribute.key == Key.KPARAM_INFO_WIDE:
        _, ordinal, offset, size, _ = _WIDE.unpack(payload)
    else:
        _, ordinal, offset, flags = _NARROW.unpack(payload)
        size = flags >> _NARROW_SIZE_SHIFT
    return ImageParameter(ordinal, offset, size)


def encode_parameter(parameter: ImageParameter, *, wide: bool) -> Attribute:
    """Return the record of one parameter: the inverse of :func:`decode_parameter`."""
    ordinal, offset, size = parameter.ordinal, parameter.offset, parameter.size
    if wide:
        return Attribute(_PAYLOAD_FORM, Key.KPARAM_INFO_WIDE, 0, _WIDE.pack(0, ordinal, offset, size, 0))
    flags = size << _NARROW_SIZE_SHIFT | _NARROW_BANK
    return Attribute(_PAYLOAD_FORM, Key.KPARAM_INFO, 0, _NARROW.pack(0, ordinal, offset, flags))


def decode_dims(attribute: Attribute, section: str) -> tuple[int, int, int]:
    """Return the three counts (x, y, z) of a record that holds them.

    Raises
    ------
    CorruptArtifactError
        If the payload is not three counts, or a count is zero.
    """
    x, y, z = _DIMS.unpack(_checked_payload(attribute, _DIMS.size, section))
    if 0 in {x, y, z}:
        raise CorruptArtifactError(
            f"cubin section {shorten(section)}",
            f"record {attribute.key:#04x} counts ({x}, {y}, {z}), where 1 is the least",
        )
    return x, y, z


def encode_dims(key: Key, dims: tuple[int, int, int]) -> Attribute:
    """Return a record of three counts: the inverse of :func:`decode_dims`."""
    return Attribute(_PAYLOAD_FORM, key, 0, _DIMS.pack(*dims))


def decode_word(attribute: Attribute, section: str) -> int:
    """Return the one 4-byte value of a record.

    Raises
    ------
    CorruptArtifactError
        If the payload has another size.
    """
    (value,) = _WORD.unpack(_checked_payload(attribute, _WORD.size, section))
    return int(value)


def _checked_payload(attribute: Attribute, size: int, section: str) -> bytes:
    if attribute.form != _PAYLOAD_FORM or len(attribute.payload) != size:
        raise CorruptArtifactError(
            f"cubin section {shorten(section)}",
            f"record {attribute.key:#04x} has form {attribute.form} and {len(attribute.payload)} bytes, "
            f"where form {_PAYLOAD_FORM} and {size} bytes are allowed",
        )
    return attribute.payload
