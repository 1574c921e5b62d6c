"""What is said of a kernel that NVRTC does not find in the source, instead of the lines that it prints for each."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trunnion.errors import CompileError, shorten
from trunnion.messages import suggestion

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

__all__ = ["MissingKernelError", "kernel_names", "missing_kernels", "without_comments"]

_MOST_SHOWN = 12

# NVRTC looks a name up by a line of source of its own, in a file of this name; the second error of each says no more.
_REFUSED = re.compile(r"^__nv_name_map\(\d+\): error: (.*)\n +#pragma nv_mangled_name (.*)$", re.MULTILINE)
_UNDEFINED = re.compile(r'identifier ".*" is undefined')
_WARNING = re.compile(r"\): (?:warning|remark)")
_ERROR = re.compile(r"^(.*)\(\d+\): (?:catastrophic )?error", re.MULTILINE)

_COMMENT = re.compile(r"//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)  # one that does not end is looked through once
_ATTRIBUTE = r"(?:__\w{1,40}__|alignas)\s{0,9}\((?:[^()]|\([^()]{0,99}\)){0,99}\)"
# Bounded, because every word could begin a match: an unbounded one takes quadratic time on a text made for it.
_KERNEL = re.compile(
    rf"(\btemplate\b[^;{{}}]{{0,500}})?\b__global__\b(?:{_ATTRIBUTE}|[^();{{}}]){{0,500}}?\b(?!{_ATTRIBUTE})(\w+)\s*\("
)


class MissingKernelError(CompileError):
    """A program launches a kernel that NVRTC does not find in the source; nothing else is wrong with that.

    Parameters
    ----------
    refusal
        What NVRTC said, as a `trunnion.errors.CompileError`.
    missing
        Each name that is not found, with NVRTC's reason.
    known
        The names of the kernels in the source, as far as they can be seen there.
    """

    def __init__(
        self, refusal: CompileError, missing: Iterable[tuple[str, str]], known: Iterable[str]
    ) -> None:
        said = refusal
        super().__init__(said.compiler, said.log, said.source, said.options, said.arch, said.line)
        self.missing, self.known = tuple(missing), tuple(known)

    def _text(self) -> str:
        lines = [self._line(name, why) for name, why in self.missing]
        meant = suggestion(self.missing[0][0], self.known)
        shown = ", ".join(shorten(name) for name in self.known[:_MOST_SHOWN])
        shown += ", ..." if len(self.known) > _MOST_SHOWN else ""
        bare = ", without their namespaces" if "namespace" in self.source else ""
        known = f"the source's kernels{bare}: {shown}" if shown else "no __global__ is seen there"
        more = "; it said more: .log" if _WARNING.search(self.log) else ""
        head, *others = lines
        return "\n".join([head + meant, *others, known, f"{self.compiler}, for {self.arch}{more}"])

    def _line(self, name: str, why: str) -> str:
        """Return what is wrong with a name: one of a template, or of a namespace's, may be there under another.

        That it is not there is no news, so NVRTC's words for that are left out.
        """
        bare = name.partition("<")[0].rpartition("::")[2].strip()
        there = bare in {one.partition("<")[0] for one in self.known}
        head = f"kernel {shorten(name)} {'cannot be had by that name' if there else 'is not in the source'}"
        return head if not there and _UNDEFINED.fullmatch(why) else f"{head}: {why}"


def missing_kernels(log: str, names: Sequence[str]) -> list[tuple[str, str]]:
    """Return each name that NVRTC refused, with its reason; none if it refused anything else too.

    Parameters
    ----------
    log
        What NVRTC printed.
    names
        The names that it was asked for.
    """
    if set(_ERROR.findall(log)) != {"__nv_name_map"}:
        return []
    reasons: dict[str, str] = {}
    for why, name in _REFUSED.findall(log):
        reasons.setdefault(name, why.partition(" Input name expression was:")[0].rstrip("."))
    return [(name, reasons[name]) for name in names if name in reasons]


def without_comments(source: str) -> str:
    """Return a text with a blank in the place of each comment."""
    return _COMMENT.sub(" ", source)


def kernel_names(source: str) -> tuple[str, ...]:
    """Return the names of the ``__global__`` functions in a text, each once; of a template with ``<...>`` behind.

    For messages only: macros and namespaces are not seen.
    """
    found = _KERNEL.finditer(without_comments(source))
    return tuple(dict.fromkeys(f"{one[2]}<...>" if one[1] else one[2] for one in found))
