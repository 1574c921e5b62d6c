"""Every option that a program may give the host's compiler, and what to do in the place of others."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["OPTIONS", "REFUSED", "Option", "RefusedOption"]


@dataclass(frozen=True, slots=True)
class Option:
    """One option of g++ and clang++ that may be given."""

    name: str
    """How it starts, without the dash."""

    value: str = ""
    """What a value must look like, as a regular expression; empty: the option takes none."""

    joined: bool = False
    """Whether the value follows at once, as in ``-O3``, and not behind ``=``."""

    repeatable: bool = False
    """Whether every value counts, in order; else there is one."""

    def spelled(self, value: str) -> str:
        """Return the option as one word."""
        return f"-{self.name}{'=' if self.value and not self.joined else ''}{value}"


@dataclass(frozen=True, slots=True)
class RefusedOption:
    """An option that people will try, and that may not be given."""

    pattern: str
    """How it is written, without the dash, as a regular expression."""

    instead: str
    """What to do instead, or why it would be of no use."""


OPTIONS = (
    # Language
    Option("std", r"(?:c|gnu)\+\+(?:17|20|2[0-9a-z])"),
    Option("fexceptions"),
    Option("frtti"),
    Option("fwrapv"),
    Option("fno-strict-aliasing"),
    # Code
    Option("O", "[0-3sg]|fast", joined=True),
    Option("mtune", "[a-z0-9][a-z0-9.-]*"),
    Option("mprefer-vector-width", "none|128|256|512"),
    Option("ffast-math"),
    Option("fno-math-errno"),
    Option("fno-trapping-math"),
    Option("fno-signed-zeros"),
    Option("ffinite-math-only"),
    Option("fassociative-math"),
    Option("freciprocal-math"),
    Option("frounding-math"),
    Option("ffp-contract", "off|on|fast"),
    Option("funroll-loops"),
    Option("ftree-vectorize"),
    Option("fno-tree-vectorize"),
    Option("fno-inline"),
    Option("fopenmp-simd"),
    Option("fstack-protector-strong"),
    Option("g"),
    # Preprocessor
    Option("I", "(?s:/.*)", joined=True, repeatable=True),
    # Messages
    Option("W", r"[a-z][a-z0-9+-]*(?:=[a-z0-9]+)?", joined=True, repeatable=True),
    Option("pedantic"),
    Option("w"),
)
"""Every option that may be given."""

REFUSED = (
    RefusedOption("m.*", "name the architecture as the target, such as 'cpu:x86-64-v3'"),
    RefusedOption("[DU].*", "use DeviceCode.defines"),
    RefusedOption("I.*", "name a folder by its absolute path, or give headers in DeviceCode.includes"),
    RefusedOption("(?:include|isystem|iquote|idirafter|imacros).*", "use DeviceCode.includes, or -I"),
    RefusedOption(
        "(?:[lL].*|Wl,.*|Xlinker|shared.*|static.*)", "a kernel is linked with no library but C++'s own"
    ),
    RefusedOption("(?:W[ap],.*|X.*|f?plugin.*|B.*|wrapper|specs.*)", "it would change the compiler itself"),
    RefusedOption(
        "(?:fopenmp(?:=.*)?|pthread|ftree-parallelize-loops.*)",
        "blocks run on the threads of the option 'threads'",
    ),
    RefusedOption(
        "(?:fsanitize.*|pg|p|fprofile.*|-?coverage)", "it needs a library of its own in the process"
    ),
    RefusedOption("flto.*", "kernels are compiled to machine code, and several parts are linked as they are"),
    RefusedOption(
        "(?:f(?:no-)?pic|f(?:no-)?PIC|fvisibility.*)", "kernels are compiled as a launcher needs them"
    ),
    RefusedOption("(?:c|S|E|o.*|x.*|M.*)", "the compiler makes one object, and names it by itself"),
)
"""What is left out on purpose: what a field of the program says already, what needs a library beside the launcher, what
reads or writes other files."""
