"""Which kernel of an image made elsewhere is meant: asked when a program is written, never when it launches."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trunnion.errors import ProgramError, shorten
from trunnion.messages import quoted, type_name
from trunnion.plain import text

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["KernelLookupError", "find_kernel"]

_VARIANT = re.compile(r"_[0-9]+(?![A-Za-z0-9])")
_COUNTED_VARIANT = re.compile(r"_[0-9]+")  # the letters of its parameters follow at once
_DIGITS = re.compile(r"[0-9]+")
_LENGTH = re.compile(r"[1-9][0-9]{0,8}(?![0-9])")


class KernelLookupError(ProgramError, LookupError):
    """An image has no kernel that is meant, or several that could be.

    Parameters
    ----------
    pattern
        What was looked for.
    matches
        The exact names of the kernels that match equally well; none if no kernel does.
    kernels
        The exact names of all kernels of the image.
    """

    def __init__(self, pattern: str, matches: Iterable[str], kernels: Iterable[str]) -> None:
        self.pattern, self.matches, self.kernels = pattern, tuple(matches), tuple(kernels)
        if self.matches:
            listed = "\n".join(f"  {quoted(name)}" for name in self.matches)
            super().__init__(
                f"{shorten(pattern)} could be {len(self.matches)} kernels; give more of the name of one:\n{listed}"
            )
            return
        listed = "\n".join(f"  {quoted(name)}" for name in self.kernels) or "  none at all"
        super().__init__(f"{shorten(pattern)} matches no kernel of the image, which has:\n{listed}")


def find_kernel(pattern: str, kernels: Iterable[str]) -> str:
    """Return the exact name of the one kernel that is meant.

    A compiler hides a kernel's own name among others: CuTeDSL's ``gemm`` becomes something like
    ``kernel_cutlass_gemm_TensorMap_..._0``, and a second one of that name ``kernel_cutlass_gemm_1_TensorMap_..._0``;
    that of C++ becomes ``_Z4gemmPf``.

    The exact name comes before everything. Otherwise a kernel matches where the pattern is a whole word of its name:
    words are separated by ``_`` and whatever else is no letter or digit, and a mangled name of C++ counts its words'
    letters. Kernels whose word is followed by ``_`` and a number are variants; they count only if nothing else matches.

    Parameters
    ----------
    pattern
        The kernel's own name, or any part of its exact name that ends where words end.
    kernels
        The exact names of all kernels of the image.

    Raises
    ------
    KernelLookupError
        If no kernel matches, or several do that are equally near; all of them are named.
    ProgramError
        If the pattern is no text.
    """
    known = tuple(kernels)
    wanted = text(pattern)
    if wanted is None:
        raise ProgramError(f"got {type_name(pattern)}, expected a part of a kernel's name", field="pattern")
    pattern = wanted
    if pattern in known:
        return pattern
    nearest: dict[bool, list[str]] = {False: [], True: []}
    for name in known:
        variants = {_is_variant(name, end) for end in _ends(pattern, name)}
        if variants:
            nearest[variants == {True}].append(name)
    matches = nearest[False] or nearest[True]
    if len(matches) == 1:
        return matches[0]
    raise KernelLookupError(pattern, matches, known)


def _ends(pattern: str, name: str) -> Iterable[int]:
    """Yield where the pattern ends as a whole word of a name."""
    start = name.find(pattern) if pattern else -1
    words = _counted_words(name) if start >= 0 else {}
    while start >= 0:
        end = start + len(pattern)
        if any(_is_word(name, end, last) for last in words.get(start, ())) or (
            not name[start - 1 : start].isalnum() and not name[end : end + 1].isalnum()
        ):
            yield end
        start = name.find(pattern, start + 1)


def _counted_words(name: str) -> dict[int, set[int]]:
    """Return where words end by where they start, as a mangled name says just before each how many letters it has.

    A length starts where digits do, or inside of them where a word that ends in digits ends: ``_ZN4sm904gemmEPf``.
    """
    words: dict[int, set[int]] = {}
    lengths = [run.start() for run in _DIGITS.finditer(name)] if name.startswith("_Z") else []
    known = set(lengths)
    for at in lengths:
        length = _LENGTH.match(name, at)
        if length is None:
            continue
        start, end = length.end(), length.end() + int(length[0])
        words.setdefault(start, set()).add(end)
        if end not in known and name[end - 1 : end].isdigit():
            known.add(end)
            lengths.append(end)
    return words


def _is_word(name: str, end: int, last: int) -> bool:
    """Whether what ends somewhere is the whole of a word that ends at ``last``, or all but the number of a variant."""
    return last == end or _VARIANT.fullmatch(name, end, last) is not None


def _is_variant(name: str, end: int) -> bool:
    return (_COUNTED_VARIANT if name.startswith("_Z") else _VARIANT).match(name, end) is not None
