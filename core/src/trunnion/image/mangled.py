"""What a kernel's mangled name says of its parameters: the table of an image has their sizes alone.

Read are types of the language itself, pointers to anything that is read, and classes by their names. Of all else,
templates above all, nothing is said, nor of what comes behind it.
"""

from __future__ import annotations

import re
from itertools import zip_longest
from typing import TYPE_CHECKING, Final

from trunnion.errors import ParameterMismatchError
from trunnion.model.member_kind import ADDRESS, MemberKind, unlike
from trunnion.model.plan import (
    AddressArgument,
    ConstantArgument,
    ExprArgument,
    FloatArgument,
    MovedArgument,
    PointerArgument,
    ScalarArgument,
    VariableArgument,
)

if TYPE_CHECKING:
    from trunnion.contract.compiler import ImageKernel
    from trunnion.model.dtypes import DType
    from trunnion.model.plan import KernelSignature, LaunchPlan, PlannedArgument, PlannedLaunch

__all__ = ["match_kinds", "parameter_kinds", "parameter_table"]

# Itanium C++ ABI, 5.1.5.2, <builtin-type>; enumerations are classes here, since their names are no more than names.
_BUILTIN: Final = {
    **dict.fromkeys("casilxn", MemberKind.SIGNED),
    **dict.fromkeys("bhtjmyow", MemberKind.UNSIGNED),
    **dict.fromkeys("fd", MemberKind.FLOATING),
    "v": MemberKind.OTHER,
}
_NAME: Final = re.compile(r"([1-9][0-9]{0,3})")
_QUALIFIERS: Final = re.compile(r"r?V?K?")
_SUBSTITUTION: Final = re.compile(r"S([0-9A-Z]?)_")
_MOST: Final = 1 << 16


class _UnreadError(Exception):
    """The name goes on with what is not read here."""


def match_kinds(plan: LaunchPlan, launch: PlannedLaunch, kernel: ImageKernel) -> None:
    """Compare what a launch passes with the kinds that its kernel's mangled name tells.

    Parameters
    ----------
    plan
        The plan.
    launch
        One of its launches.
    kernel
        Its kernel in the compiled code.

    Raises
    ------
    ParameterMismatchError
        If a parameter is of another kind: a float for an integer, a number for a pointer.
    """
    signature = plan.kernels[launch.kernel]
    kinds = parameter_kinds(kernel.symbol)
    for ordinal, (argument, kind) in enumerate(zip(launch.args, kinds, strict=False)):
        if unlike(_passed(plan, argument), kind):
            said = f"{kind.text}, by its mangled name"
            declared, table = signature.parameters[ordinal].description, parameter_table(signature, kernel)
            raise ParameterMismatchError(kernel.name, ordinal, declared, said, table)


def parameter_table(kernel: KernelSignature, actual: ImageKernel) -> tuple[dict[str, int | str | None], ...]:
    """Return a kernel's parameters as an image has them, each with its kind, if it is known, and what is passed there.

    Parameters
    ----------
    kernel
        What the program passes.
    actual
        The kernel in the image; it may have fewer parameters, or more.
    """
    kinds = parameter_kinds(actual.symbol)
    rows = zip_longest(actual.parameters, kinds[: len(actual.parameters)], kernel.parameters)
    return tuple(
        {
            "ordinal": ordinal,
            "offset": real.offset if real else None,
            "size": real.size if real else None,
            "kind": kind.text if kind is not None else None,
            "passed": passed.description if passed else None,
        }
        for ordinal, (real, kind, passed) in enumerate(rows)
    )


def parameter_kinds(symbol: str) -> tuple[MemberKind, ...]:
    """Return the kinds of a kernel's first parameters, as far as its mangled name is read; none of a C name."""
    if not symbol.startswith("_Z") or len(symbol) > _MOST:
        return ()
    reader = _Reader(symbol)
    kinds: list[MemberKind] = []
    try:
        reader.function()
        while not reader.ended:
            kinds.append(reader.type())
    except _UnreadError:
        pass
    return tuple(kinds)


class _Reader:
    """Reads a mangled name from its start."""

    def __init__(self, text: str) -> None:
        self._text, self._at = text, len("_Z")
        self._seen: list[MemberKind] = []
        """What a substitution may stand for, in its order."""

    @property
    def ended(self) -> bool:
        """Whether nothing follows."""
        return self._at == len(self._text)

    def function(self) -> None:
        """Read the function's name, within its namespaces: each of these is a substitution later on."""
        if self._take("N"):
            self._name()
            while not self._take("E"):
                self._seen.append(MemberKind.OTHER)
                self._name()
        else:
            self._name()
        if self._peek() == "I":
            raise _UnreadError

    def type(self) -> MemberKind:
        """Read a type."""
        qualified = []
        while True:
            qualified.append(self._match(_QUALIFIERS)[0])
            if not self._take("P"):
                break
        kind = self._bare()
        for index, words in enumerate(reversed(qualified)):
            if index:
                kind = MemberKind.POINTER
                self._seen.append(kind)
            if words:
                self._seen.append(kind)
        return kind

    def _bare(self) -> MemberKind:
        """Read a type without qualifiers that is no pointer, or what stands for any that was there before."""
        kind = _BUILTIN.get(self._peek())
        if kind is not None:
            self._at += 1
            return kind
        if self._peek() == "S":
            return self._substituted()
        nested = self._take("N")
        if nested and self._peek() == "S":
            self._substituted()
        while True:
            self._name()
            if self._peek() == "I":
                raise _UnreadError
            self._seen.append(MemberKind.OTHER)
            if not nested or self._take("E"):
                return MemberKind.OTHER

    def _substituted(self) -> MemberKind:
        digit = self._match(_SUBSTITUTION)[1]
        index = int(digit, 36) + 1 if digit else 0
        if index >= len(self._seen):
            raise _UnreadError
        return self._seen[index]

    def _name(self) -> None:
        length = int(self._match(_NAME)[1])
        self._at += length
        if self._at > len(self._text):
            raise _UnreadError

    def _match(self, pattern: re.Pattern[str]) -> re.Match[str]:
        found = pattern.match(self._text, self._at)
        if found is None:
            raise _UnreadError
        self._at = found.end()
        return found

    def _peek(self) -> str:
        return self._text[self._at : self._at + 1]

    def _take(self, letter: str) -> bool:
        taken = self._peek() == letter
        self._at += taken
        return taken


def _passed(plan: LaunchPlan, argument: PlannedArgument) -> DType | str | None:
    """Return the type of a number, a word for an address, None for all else."""
    match argument:
        case (
            PointerArgument()
            | MovedArgument()
            | AddressArgument()
            | VariableArgument()
            | ConstantArgument(dtype=None)
        ):
            return ADDRESS
        case ScalarArgument(slot):
            return plan.scalars[slot].dtype
        case ConstantArgument() | ExprArgument() | FloatArgument():
            return argument.dtype
    return None
