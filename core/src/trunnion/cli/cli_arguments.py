"""What somebody names on the command line: arguments of a program, and options of plugins."""

from __future__ import annotations

import cmath
import json
import re
from typing import TYPE_CHECKING, Any

from trunnion.cli.arrays import read_array, read_arrays
from trunnion.errors import ArgumentValueError, shorten
from trunnion.model.dtypes import Kind
from trunnion.model.expr import Symbol
from trunnion.model.params import PointerParam, ScalarParam, StructParam, TensorParam

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from trunnion.model.params import Param, Signature

__all__ = ["given_arguments", "given_options", "given_sizes"]

_ABSENT = "none"
_INTEGER = re.compile(r"[+-]?(?:[0-9]{1,40}|0[xX][0-9a-fA-F]{1,32})", re.ASCII)
_HEX = "hex:"
_OPTION = re.compile(r"([^.=]+)\.([^=]+)=(.*)", re.DOTALL)


def given_arguments(texts: Iterable[str], archive: str, signature: Signature) -> dict[str, Any]:
    """Return what is given for each parameter, by its name.

    Parameters
    ----------
    texts
        ``name=value``: for a tensor the path of a ``.npy`` file, for a scalar a number, for a pointer an address,
        for a struct ``hex:`` and its bytes; ``none`` for whatever may be left out.
    archive
        A ``.npz`` file with arrays by the parameters' names; empty: none.
    signature
        The program's signature.

    Raises
    ------
    ArgumentValueError
        If a name is unknown, given twice, or a value is none that its parameter can have.
    ProgramError
        If a file cannot be read.
    """
    params = {param.name: param for param in signature.params}
    given: dict[str, Any] = {}
    for name, array in (read_arrays(archive) if archive else {}).items():
        param = _known(params, name, "--inputs")
        if not isinstance(param, TensorParam | ScalarParam):
            raise ArgumentValueError("--inputs", shorten(name), "a tensor or a scalar")
        given[name] = array if isinstance(param, TensorParam) else _item(param, array)
    for text in texts:
        name, equals, value = _split(text, params)
        if not equals:
            raise ArgumentValueError("--arg", shorten(text), "a parameter and its value, such as alpha=1.5")
        if name in given:
            raise ArgumentValueError("--arg", f"{shorten(name)} twice", "one value for each parameter")
        given[name] = _value(_known(params, name, "--arg"), value)
    return given


def given_sizes(signature: Signature, given: Mapping[str, Any]) -> dict[str, int]:
    """Return the values of symbols that given arguments bind, by the symbols' names; the first one counts.

    As in a call, shapes come before strides and strides before scalars, and a stride that reaches nothing, of an
    extent of 1 or an empty array, counts only where nothing else does. A value that its symbol cannot have is left
    out: the call itself refuses it, and says why.

    Parameters
    ----------
    signature
        The program's signature.
    given
        What `given_arguments` returned.
    """
    sizes: dict[str, int] = {}
    for symbol, value in _bound(signature, given):
        if symbol.min <= value <= symbol.max and value % symbol.multiple_of == 0:
            sizes.setdefault(symbol.name, value)
    return sizes


def _bound(signature: Signature, given: Mapping[str, Any]) -> Iterator[tuple[Symbol, int]]:
    arrays = [
        (tensor, given[tensor.name])
        for tensor in signature.tensors
        if given.get(tensor.name) is not None and given[tensor.name].ndim == tensor.rank
    ]
    for tensor, array in arrays:
        for extent, size in zip(tensor.shape, array.shape, strict=True):
            if isinstance(extent, Symbol):
                yield extent, int(size)
    strides = [place for tensor, array in arrays for place in _strides(tensor, array)]
    yield from ((symbol, stride) for symbol, stride, live in strides if live)
    for scalar in signature.scalars:
        value = given.get(scalar.name)
        if scalar.symbol is not None and isinstance(value, int):
            yield scalar.symbol, int(value)
    yield from ((symbol, stride) for symbol, stride, live in strides if not live)


def _strides(tensor: TensorParam, array: Any) -> Iterator[tuple[Symbol, int, bool]]:
    """Yield each symbol among a tensor's strides, the array's stride in elements, and whether it reaches anything."""
    for axis, stride in enumerate(tensor.strides or ()):
        if isinstance(stride, Symbol) and array.itemsize:
            live = array.size > 0 and array.shape[axis] > 1
            yield stride, int(array.strides[axis]) // array.itemsize, live


def _split(text: str, params: Mapping[str, Param]) -> tuple[str, str, str]:
    """Split at the first equals sign, or after the longest parameter's name: names may hold one themselves."""
    own = [name for name in params if text.startswith(f"{name}=")]
    if own:
        name = max(own, key=len)
        return name, "=", text[len(name) + 1 :]
    return text.partition("=")


def given_options(texts: Iterable[str]) -> dict[str, dict[str, Any]]:
    """Return plugins' options, as `trunnion.compile` takes them.

    Parameters
    ----------
    texts
        ``plugin.option=value``: the value as JSON, ``true``, ``32`` or ``["A=1"]``; anything else is a text.

    Raises
    ------
    ArgumentValueError
        If it has another form, or an option is given twice.
    """
    given: dict[str, dict[str, Any]] = {}
    for text in texts:
        found = _OPTION.fullmatch(text)
        if found is None:
            expected = "PLUGIN.OPTION=VALUE, the value as JSON or a text"
            raise ArgumentValueError("--option", shorten(text), expected)
        plugin, name, value = found.groups()
        own = given.setdefault(plugin, {})
        if name in own:
            raise ArgumentValueError(
                "--option", f"{shorten(f'{plugin}.{name}')} twice", "one value for each option"
            )
        own[name] = _option_value(value)
    return given


def _option_value(text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text


def _known(params: Mapping[str, Param], name: str, option: str) -> Param:
    if name not in params:
        known = ", ".join(shorten(each) for each in params) or "no parameter at all"
        raise ArgumentValueError(option, shorten(name), known)
    return params[name]


def _value(param: Param, text: str) -> Any:
    if isinstance(param, TensorParam | PointerParam) and param.nullable and text == _ABSENT:
        return None
    match param:
        case TensorParam():
            if text == _ABSENT:
                raise ArgumentValueError(param.name, "none", "a .npy file: the tensor is not nullable")
            return read_array(text)
        case PointerParam():
            value: Any = _integer(text)
            expected = "an address such as 0x7f0000000000"
        case StructParam():
            value = _bytes(text)
            expected = f"hex: and {param.nbytes} bytes as hexadecimal digits"
        case _:
            value = _number(param, text)
            expected = f"a number of type {param.dtype}"
    if value is None:
        raise ArgumentValueError(param.name, shorten(text), expected)
    return value


def _bytes(text: str) -> bytes | None:
    try:
        return bytes.fromhex(text.removeprefix(_HEX)) if text.startswith(_HEX) else None
    except ValueError:
        return None


def _number(param: ScalarParam, text: str) -> bool | int | float | complex | None:
    kind = param.dtype.kind
    if kind is Kind.BOOL:
        return {"true": True, "false": False, "1": True, "0": False}.get(text.lower())
    try:
        if kind in (Kind.FLOAT, Kind.COMPLEX):
            return _finite(float(text) if kind is Kind.FLOAT else complex(text), text)
    except ValueError:
        return None
    return _integer(text)


def _finite(value: complex, text: str) -> float | complex | None:
    """Return the number; None if it is infinite and its text does not say so: it was too large to be held."""
    return None if cmath.isinf(value) and "inf" not in text.lower() else value


def _integer(text: str) -> int | None:
    if not _INTEGER.fullmatch(text):
        return None
    return int(text, 16 if "x" in text.lower() else 10)


def _item(param: ScalarParam, array: Any) -> Any:
    if array.size != 1:
        raise ArgumentValueError(param.name, f"an array of shape {array.shape}", "one number")
    return array.reshape(()).item()
