"""`OperatorSchema`: how torch's dispatcher spells a program's signature. Pure; imports no torch."""

from __future__ import annotations

import keyword
import math
import re
import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from trunnion.arguments import expect_text
from trunnion.errors import ArgumentError, ArgumentTypeError, ArgumentValueError, shorten
from trunnion.launcher.scalars import number
from trunnion.messages import describe, suggestion, type_name
from trunnion.model.dtypes import Kind
from trunnion.model.interval import INT64_MAX
from trunnion.model.params import PointerParam, ScalarParam, StructParam, TensorParam
from trunnion.plain import is_exactly, pairs

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from trunnion.model.params import Param, Signature

__all__ = ["OperatorName", "OperatorSchema"]

_WORD: Final = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_TORCHS_OWN: Final = frozenset({"aten", "prim", "prims", "quantized", "_c10d_functional", "_"})
_TAKEN: Final = frozenset(
    {"keyset", "mode", "self"}
)  # which functions of torch's on the way take for their own
_NO_NAMES: Final = frozenset({*keyword.kwlist, "NoneType"})  # words of TorchScript's, which parses schemas


@dataclass(frozen=True, slots=True)
class OperatorName:
    """What an operator is called: ``namespace::name``."""

    namespace: str
    """The name before the colons."""

    name: str
    """The name behind them."""

    @classmethod
    def of(cls, text: str) -> OperatorName:
        """Return the name that a text is.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If it is none, or its namespace is torch's own.
        """
        plain = expect_text(text, "name", "an operator's name, such as 'mine::scale'")
        namespace, colons, name = plain.partition("::")
        if not colons or not all(_WORD.fullmatch(one) for one in (namespace, name)):
            expected = "a namespace and a name, each a word of letters, digits and '_', such as 'mine::scale'"
            raise ArgumentValueError("name", shorten(plain), expected)
        if not _NO_NAMES.isdisjoint((namespace, name)):
            raise ArgumentValueError("name", shorten(plain), "words that Python does not keep for itself")
        if namespace in _TORCHS_OWN:
            raise ArgumentValueError("name", shorten(plain), "a namespace of your own: that one is torch's")
        return cls(namespace, name)

    def __str__(self) -> str:
        return f"{self.namespace}::{self.name}"

    def beside(self, suffix: str) -> OperatorName:
        """Return the name of an operator that belongs to this one."""
        return OperatorName(self.namespace, f"{self.name}_{suffix}")


@dataclass(frozen=True, slots=True)
class OperatorSchema:
    """How torch's dispatcher spells a signature."""

    signature: Signature
    """The program's."""

    defaults: Mapping[str, Any]
    """What an argument is that a call leaves out, by the parameter's name."""

    @classmethod
    def of(cls, signature: Signature, defaults: Any) -> OperatorSchema:
        """Return the schema of a signature and what a caller gives for defaults.

        Raises
        ------
        ArgumentTypeError, ArgumentValueError
            If that is no mapping of the last parameters' names to values of theirs.
        """
        given = [] if defaults is None else pairs(defaults)
        words = "a mapping from parameters' names to values, or None"
        if given is None:
            raise ArgumentTypeError("defaults", type_name(defaults), words)
        return cls(signature, {expect_text(name, "defaults", words): value for name, value in given})

    def __post_init__(self) -> None:
        known = {param.name: param for param in self.signature.params}
        for name, value in self.defaults.items():
            if name not in known:
                expected = f"names of parameters{suggestion(name, known)}"
                raise ArgumentValueError("defaults", shorten(name), expected)
            _spelled_default(known[name], value)
        given = [param.name for param in self.signature.params if param.name in self.defaults]
        last = [param.name for param in self.signature.params][len(known) - len(given) :]
        if given != last:
            got = f"one of {shorten(given[0])} and none of a parameter behind it"
            raise ArgumentValueError("defaults", got, "defaults of the last parameters")

    @property
    def names(self) -> tuple[str, ...]:
        """The arguments' names: the parameters' own if each of them can be one, else ``arg0``, ``arg1``, …."""
        own = tuple(param.name for param in self.signature.params)
        good = all(map(_is_word, own)) and "out" not in own
        return own if good else tuple(f"arg{place}" for place in range(len(own)))

    @property
    def out_names(self) -> tuple[str, ...]:
        """The names under which the overload ``out`` is given what to write into."""
        own = tuple(output.name for output in self.signature.outputs)
        if len(own) == 1:
            return ("out",)
        free = all(map(_is_word, own)) and not set(self.names) & set(own) and "out" not in own
        word = "out"
        while not free:
            own = tuple(f"{word}{place}" for place in range(len(own)))
            free, word = not set(self.names) & set(own), f"{word}_"
        return own

    @property
    def mutated(self) -> tuple[TensorParam, ...]:
        """The inputs that the program writes into."""
        return tuple(one for one in self.signature.tensors if one.access != "read")

    def functional(self) -> str:
        """Return the arguments and the returns of the overload that allocates what the program gives back."""
        returns = ", ".join(["Tensor"] * len(self.signature.outputs))
        many = len(self.signature.outputs) != 1
        return f"({', '.join(self._arguments())}) -> {f'({returns})' if many else returns}"

    def out(self) -> str:
        """Return the arguments of the overload ``out``, which returns nothing: so torch can make it functional."""
        first = len(self.mutated)
        given = [f"Tensor({_alias(first + place)}!) {name}" for place, name in enumerate(self.out_names)]
        return f"({', '.join([*self._arguments(), '*', *given])}) -> ()"

    def argument_types(self) -> tuple[str, ...]:
        """Return the type of each argument, as torch spells it."""
        aliases = {param.name: _alias(place) for place, param in enumerate(self.mutated)}
        return tuple(_type(param, aliases.get(param.name, "")) for param in self.signature.params)

    def completed(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Return a call's arguments with the defaults, which torch leaves out, of those at its end."""
        left_out = self.signature.params[len(args) :]
        return (*args, *(self.defaults[param.name] for param in left_out)) if left_out else args

    def _arguments(self) -> Iterator[str]:
        for param, name, kind in zip(self.signature.params, self.names, self.argument_types(), strict=True):
            given = param.name in self.defaults
            default = f"={_spelled_default(param, self.defaults[param.name])}" if given else ""
            yield f"{kind} {name}{default}"


def _type(param: Param, alias: str) -> str:
    """Return an argument's type.

    An address travels as an integer, and bytes as a list of them: neither is anything that torch could look at.
    """
    match param:
        case TensorParam():
            written = f"Tensor({alias}!)" if alias else "Tensor"
            return f"{written}?" if param.nullable else written
        case ScalarParam():
            return _NUMBERS[param.dtype.kind]
        case PointerParam():
            return "int?" if param.nullable else "int"
        case StructParam():
            return "int[]"  # not of a fixed length: torch would take one number for all of them


_NUMBERS: Final = {
    Kind.BOOL: "bool",
    Kind.INT: "SymInt",
    Kind.UINT: "SymInt",
    Kind.FLOAT: "float",
    Kind.COMPLEX: "complex",
}


def _alias(place: int) -> str:
    """Return the name of an alias set: a, b, …, z, a26, …."""
    letters = "abcdefghijklmnopqrstuvwxyz"
    return letters[place] if place < len(letters) else f"a{place}"


def _is_word(name: str) -> bool:
    # What begins so torch adds to the arguments of what writes, when it compiles that: _all_bases, _<name>_base_index.
    free = name not in _NO_NAMES and name not in _TAKEN and not name.startswith("_")
    return bool(_WORD.fullmatch(name)) and free


def _spelled_default(param: Param, value: Any) -> str:
    """Return a default as a schema has it.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If the parameter cannot have it.
    """
    optional = getattr(param, "nullable", False)
    if value is None and optional:
        return "None"
    if isinstance(param, ScalarParam):
        allowed = _DEFAULTS[param.dtype.kind]
        if is_exactly(value, *allowed) and (type(value) is int or math.isfinite(value)):
            _expect_spellable(param, value)
            return str(value)
        words = (
            " or ".join(one.__name__ for one in allowed) or "no default: torch has none for complex numbers"
        )
    else:
        words = "None" if optional else "no default: a tensor, an address or bytes has none"
    raise ArgumentTypeError("defaults", f"{describe(value)} for {shorten(param.name)}", words)


def _expect_spellable(param: ScalarParam, value: float) -> None:
    """Accept a default that the parameter can have, and torch's parser of schemas can read."""
    expected = ""
    try:
        number(param.name, value, param.dtype)
    except ArgumentError as error:
        expected = error.expected
    if not expected and param.dtype.kind in (Kind.INT, Kind.UINT) and value > INT64_MAX:
        expected = f"{INT64_MAX} at the most: an integer of torch's has 64 bits, one of them for its sign"
    if not expected and 0 < abs(value) < sys.float_info.min:
        expected = f"0, or at least {sys.float_info.min}: torch reads no smaller number"
    if expected:
        raise ArgumentValueError("defaults", f"{describe(value)} for {shorten(param.name)}", expected)


_DEFAULTS: Final[Mapping[Kind, tuple[type, ...]]] = {
    Kind.BOOL: (bool,),
    Kind.INT: (int,),
    Kind.UINT: (int,),
    Kind.FLOAT: (float, int),
    Kind.COMPLEX: (),
}
