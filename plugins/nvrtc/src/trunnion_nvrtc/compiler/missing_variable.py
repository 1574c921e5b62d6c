"""What is said of a module variable that NVRTC does not find in the source."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from trunnion.errors import CompileError, shorten
from trunnion.messages import suggestion
from trunnion_nvrtc.compiler.missing_kernel import without_comments

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["MissingVariableError", "variable_names"]

_MOST_SHOWN = 12

# Bounded, as the search for kernels is: a text made for it must not take quadratic time.
_VARIABLE = re.compile(r"\b__(?:device|constant)__\b[^;{}()=\[]{0,300}?\b(\w+)\s{0,9}(?=[;=\[{])")


class MissingVariableError(CompileError, LookupError):
    """A program names a variable that NVRTC does not find in the source; nothing else is wrong with that.

    Parameters
    ----------
    refusal
        What NVRTC said, as a `trunnion.errors.CompileError`.
    missing
        Each name that is not found, with NVRTC's reason.
    """

    def __init__(self, refusal: CompileError, missing: Iterable[tuple[str, str]]) -> None:
        said = refusal
        super().__init__(said.compiler, said.log, said.source, said.options, said.arch, said.line)
        self.missing = tuple(missing)
        self.name, self.variables = self.missing[0][0], variable_names(said.source)

    def _text(self) -> str:
        lines = [
            f"variable {shorten(name)} is not to be had of the source: {why}" for name, why in self.missing
        ]
        shown = ", ".join(shorten(name) for name in self.variables[:_MOST_SHOWN])
        shown += ", ..." if len(self.variables) > _MOST_SHOWN else ""
        known = (
            f"the source's variables: {shown}"
            if shown
            else "no __device__ or __constant__ variable is seen there"
        )
        head, *others = lines
        meant = suggestion(self.name, self.variables)
        return "\n".join([head + meant, *others, known, f"{self.compiler}, for {self.arch}"])


def variable_names(source: str) -> tuple[str, ...]:
    """Return the names of the ``__device__`` and ``__constant__`` variables in a text, each once.

    For messages only: macros and namespaces are not seen.
    """
    return tuple(dict.fromkeys(_VARIABLE.findall(without_comments(source))))
