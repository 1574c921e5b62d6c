r"""What a launcher raised, as the typed error that it means: the other half of ``trunnion/errors.hpp``.

TVM-FFI carries a kind, a message and a backtrace across its C ABI. The backtrace holds ``trunnion/1`` and netstrings
("<bytes>:<text>,"): the id of a row of the table of refusals, the place of the argument and the row's fields; or the
name of a class, and the fields of the error. In all of it each backslash is doubled, and a lone surrogate, which UTF-8
does not have, is written as ``\udc80``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trunnion import errors
from trunnion.launcher.driver_status import RefusedLaunch, about, status_error
from trunnion.model.dtypes import dtype as dtype_of
from trunnion.model.plan.refusals import REFUSALS

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from trunnion.contract.runtime import Runtime
    from trunnion.launcher.maps import MapSpec

__all__ = ["fields_of", "typed_error", "unallocated"]

_MARK = b"trunnion/1 "
_ESCAPE = re.compile(r"\\(?:\\|u([0-9a-f]{4}))")


def fields_of(error: BaseException) -> tuple[str, ...]:
    """Return the fields that a launcher sent along, the row or the class first; none if no launcher raised."""
    backtrace = getattr(getattr(error, "__tvm_ffi_error__", None), "backtrace", "")
    if not backtrace.startswith(_MARK.decode()):
        return ()
    rest = _ESCAPE.sub(_unescaped, backtrace).encode("utf-8", "surrogatepass")
    rest, fields = rest[len(_MARK) :], []
    while rest:
        length, colon, rest = rest.partition(b":")
        size = int(length) if colon and length.isdigit() else -1
        if size < 0 or rest[size : size + 1] != b",":
            return ()
        fields.append(rest[:size].decode("utf-8", "surrogatepass"))
        rest = rest[size + 1 :]
    return tuple(fields)


def _unescaped(found: re.Match[str]) -> str:
    return chr(int(found[1], 16)) if found[1] else "\\"


def _driver_error(fields: tuple[str, ...], maps: Sequence[MapSpec]) -> errors.TrunnionError:
    call, code, name, explanation, stream, kernel, attributes, priorities, subject, encoded, shape = fields
    launch = _launch(kernel, attributes, shape, priorities) if kernel else None
    error = status_error(call, int(code), (name, explanation), int(stream) if stream else None, launch)
    if isinstance(error, errors.DriverError):
        error = about(error, subject)
    if encoded:
        (index, address, innermost), dims, strides = map(_integers, encoded.split(","))
        error.add_note(maps[index].note(maps[index].fields.at(address, dims, strides, innermost)))
    return error


def _integers(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split()))


def _launch(kernel: str, attributes: str, shape: str, priorities: str) -> RefusedLaunch:
    """Return a launch whose attributes are spelled as one word each, ``id:number,number``."""
    rows = []
    for word in attributes.split():
        number, _, values = word.partition(":")
        rows.append((int(number), tuple(map(int, values.split(","))) if values else ()))
    known = _integers(priorities)
    return RefusedLaunch(kernel, tuple(rows), _integers(shape), (known[0], known[1]) if known else None)


def typed_error(fields: tuple[str, ...], maps: Sequence[MapSpec] = ()) -> BaseException | None:
    """Return the error that the fields describe; None for a row or a class that this version does not know.

    Parameters
    ----------
    fields
        What `fields_of` returned.
    maps
        What is known of the program's tensor maps: a launcher says which map was refused, with its numbers.
    """
    row = REFUSALS.get(fields[0]) if fields else None
    if row is not None:
        refused: BaseException = row.read(fields[1], fields[2:])
        return refused
    reader = _READERS.get(fields[0]) if fields else None
    return None if reader is None else reader(fields[1:], maps)


def unallocated(fields: tuple[str, ...], runtime: Runtime) -> BaseException | None:
    """Return what a tensor library raises for memory that its allocator refused; None if the fields say another error.

    All that crosses the C ABI is that it did. So it is asked again, where it can say why.

    Parameters
    ----------
    fields
        What `fields_of` returned.
    runtime
        The tensor library.
    """
    if not fields or fields[0] != "AllocationError":
        return None
    said, dtype, device, shape = fields[1:]
    ordinal, extents = int(device), tuple(map(int, shape.split()))
    try:
        runtime.allocate(extents, runtime.dtype(dtype_of(dtype)), ordinal, runtime.current_stream(ordinal))
    except (errors.TrunnionError, RuntimeError) as error:
        return error
    return runtime.memory_error(said)


def _map_error(fields: tuple[str, ...], maps: Sequence[MapSpec]) -> BaseException:
    problem, index, *numbers = fields
    spec = maps[int(index)]
    if problem == "outside":
        start, end, limit = numbers
        return errors.TensorMapError(
            (f"the map lies within its memory (got: bytes {start} to {end} of {limit})",), field=spec.place
        )
    address, dims, strides, innermost, capability = map(_integers, numbers)
    known = spec.fields.at(address[0], dims, strides, innermost[0])
    major, minor = capability
    return spec.refusal(known, (major, minor)) or errors.TensorMapError((problem,), field=spec.place)


_READERS: dict[str, Callable[[tuple[str, ...], Sequence[MapSpec]], BaseException]] = {
    "TensorMapError": _map_error,
    "DriverError": _driver_error,
    "VariableMismatchError": lambda fields, _maps: errors.VariableMismatchError(*fields),
}
"""By class; what is known of the program's tensor maps is given to each."""
