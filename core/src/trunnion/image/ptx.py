"""What a PTX text says about its kernels: exact names, parameter tables and launch bounds.

Pure Python, with no assembler: the same questions as :mod:`trunnion.image.cubin` answers for a cubin. Only the
declarations are read ("PTX ISA", chapters "Kernel and Function Directives" and "Performance-Tuning
Directives"); whether the rest is good PTX, an assembler says.
"""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Final

from trunnion.errors import CorruptArtifactError, ProgramError, shorten
from trunnion.image.cubin import KernelInfo, VariableInfo
from trunnion.image.layout import arch_number, pack_parameters
from trunnion.image.ptx_shared import SIZES, block_bytes, declared_bytes, integer, shared_variables

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["PtxInfo", "least_cuda", "read_ptx"]

_WHAT: Final = "PTX"
_TOKEN: Final = re.compile(
    r'(?P<skip>\s+|//[^\n]*|/\*.*?(?:\*/|\Z))|(?P<string>"(?:[^"\\\n]|\\.)*")|(?P<word>\.?[\w$%]+(?:\.[\w$%]+)*)|(?P<sign>.)',
    re.DOTALL | re.ASCII,
)
_BRACE: Final = re.compile(r'[{}]|"(?:[^"\\\n]|\\.)*"|//[^\n]*|/\*.*?(?:\*/|\Z)', re.DOTALL)
_VERSION: Final = re.compile(r"\d+\.\d+")
_SINCE: Final = {
    **{f"6.{minor}": (9 + minor // 3, minor % 3) for minor in range(6)},
    **{f"7.{minor}": (11, minor) for minor in range(9)},
    **{f"8.{minor}": (12, minor + minor // 6) for minor in range(9)},  # 12.6 has 12.5's, 8.5
    **{f"9.{minor}": (13, minor) for minor in range(3)},
}
"""By version of PTX the version of CUDA that brought it ("PTX ISA", chapter "Release Notes")."""
_CLUSTER: Final = ".reqnctapercluster"
_DIMS: Final = {".maxntid": "max_threads", ".reqntid": "required_threads", _CLUSTER: "cluster"}
_VARIABLES: Final = frozenset({".global", ".const", ".shared"})
_DIM_COUNT: Final = 3
_EXTENTS: Final = re.compile(r"(?:\[ [0-9]\w* \] ?)*", re.ASCII)
_MOST_NUMBER: Final = 2**32 - 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PtxInfo:
    """What a PTX text says about itself."""

    version: str
    """The version of PTX that it is written in, for example ``"9.0"``."""

    target: str
    """The architecture that it asks for, for example ``"sm_90a"``: it runs on that and, without a letter, on all
    later ones."""

    kernels: tuple[KernelInfo, ...]
    """Every kernel, in the order of the text. `KernelInfo.registers`, `KernelInfo.local_bytes` and
    `KernelInfo.parameter_base` are None: they are the assembler's to choose."""

    definitions: tuple[str, ...] = ()
    """What the text defines and no other file of a link may define too: functions and variables."""

    variables: tuple[VariableInfo, ...] = ()
    """Every variable of the whole text in global or constant memory, in the order of the text. What the text puts there
    is not read."""

    def kernel(self, name: str) -> KernelInfo | None:
        """Return the kernel whose exact symbol name is ``name``; None if there is none."""
        return next((kernel for kernel in self.kernels if kernel.name == name), None)

    def variable(self, name: str) -> VariableInfo | None:
        """Return the variable whose exact symbol name is ``name``; None if there is none."""
        return next((variable for variable in self.variables if variable.name == name), None)


def least_cuda(version: str) -> tuple[int, int] | None:
    """Return the least version of CUDA whose driver reads a version of PTX; None where that is not known.

    Parameters
    ----------
    version
        The version that a text says, for example ``"9.0"``.
    """
    return _SINCE.get(version)


def read_ptx(source: str | bytes, arch: str | None = None) -> PtxInfo:
    """Read the kernels of a PTX text.

    Parameters
    ----------
    source
        The text; bytes are UTF-8, and NULs at their end, as compilers write them, do not count.
    arch
        The architecture that it is assembled for, on which it depends where parameters lie; None: its target.

    Returns
    -------
    PtxInfo
        Its version, target and kernels.

    Raises
    ------
    CorruptArtifactError
        If it is no PTX for 64-bit addresses, or a declaration of a kernel cannot be read.
    """
    return _Reader(_text(source), arch).module()


def _text(source: str | bytes) -> str:
    if isinstance(source, str):
        return source.rstrip("\0")
    try:
        return source.rstrip(b"\0").decode("utf-8")
    except UnicodeDecodeError as error:
        raise CorruptArtifactError(_WHAT, f"is not UTF-8: {error.reason} at {error.start}") from error


class _Reader:
    """Goes through the text once, from declaration to declaration; bodies are passed over."""

    def __init__(self, text: str, arch: str | None) -> None:
        self._rest = text
        self._arch = arch
        self._shared: dict[str, tuple[int, int]] = {}
        self._at = 0
        self._ahead: deque[str] = deque()
        self._kernels: dict[str, KernelInfo] = {}
        self._bodies: dict[str, str] = {}
        self._declared: set[str] = set()
        self._definitions: list[str] = []
        self._variables: list[VariableInfo] = []

    def module(self) -> PtxInfo:
        version, target = self._head()
        visible = weak = external = False
        while self._more():
            token = self._next()
            if token in {".visible", ".weak", ".extern", ".common"}:
                visible, weak = visible or token == ".visible", weak or token == ".weak"
                external = external or token in {".extern", ".common"}
                continue
            names: list[str] = []
            if token == ".entry":
                names = self._entry(self._arch or target)
            elif token == ".func":
                names = self._function(visible=visible)
            elif token == ".alias":
                names, visible = self._alias(), True
            elif token in _VARIABLES:
                names = self._variables_of(token, external=external)
            elif token == "{":
                self._skip_block()
            if visible and not weak and not external:
                self._definitions += names
            visible = weak = external = False
        statics = block_bytes(self._kernels, self._bodies, self._shared)
        return PtxInfo(
            version=version,
            target=target,
            kernels=tuple(
                replace(one, static_smem_bytes=statics[one.name]) for one in self._kernels.values()
            ),
            definitions=tuple(self._definitions),
            variables=tuple(self._variables),
        )

    # Parts of the text -------------------------------------------------------------------------------------------

    def _head(self) -> tuple[str, str]:
        if self._peek() != ".version":
            raise CorruptArtifactError(_WHAT, f"starts with {shorten(self._peek())}, expected .version")
        self._next()
        version = self._next()
        if not _VERSION.fullmatch(version) or self._next() != ".target":
            raise CorruptArtifactError(_WHAT, f"has no version and target at its start ({shorten(version)})")
        target = self._next()
        while self._peek() == ",":  # options such as debug
            self._next()
            self._next()
        if not _is_target(target):
            raise CorruptArtifactError(_WHAT, f"is for target {shorten(target)}, expected one such as sm_90a")
        if self._peek() == ".address_size":
            self._next()
            size = self._next()
            if size != "64":
                raise CorruptArtifactError(_WHAT, f"has {shorten(size)}-bit addresses, expected 64")
        return version, target

    def _entry(self, target: str) -> list[str]:
        name = self._next()
        layouts = tuple(self._parameters()) if self._peek() == "(" else ()
        bounds: dict[str, tuple[int, int, int]] = {}
        rank = None
        said: set[str] = set()
        while self._peek() not in {"{", ";"}:
            directive = self._directive()
            said.add(directive)
            if directive in _DIMS:
                dims = self._dims(name)
                if directive == _CLUSTER and not dims[0]:
                    continue  # the assembler passes over one that starts so (tried: CUDA 13.0)
                if 0 in dims:
                    raise CorruptArtifactError(
                        _WHAT, f"kernel {shorten(name)} has {directive} {dims}, where 1 is the least"
                    )
                bounds[_DIMS[directive]] = dims
            elif directive == ".maxclusterrank":
                rank = self._number(name) or None  # the assembler passes over 0 as well
        if self._next() == ";":
            return []  # a declaration
        if name in self._kernels:
            raise CorruptArtifactError(_WHAT, f"two kernels are called {shorten(name)}")
        self._bodies[name] = self._skip_block()
        self._kernels[name] = replace(
            _kernel(name, layouts, target, bounds, rank),
            needs_cluster=".explicitcluster" in said and "cluster" not in bounds,
            grid_counts_clusters=".blocksareclusters" in said,
        )
        return [name]

    def _directive(self) -> str:
        """Take a directive between the parameters and the body; of a pragma, which has an end of its own, all."""
        directive = self._next()
        if directive == ".pragma":
            while self._next() != ";":
                pass
        return directive

    def _parameters(self) -> Iterator[tuple[int, int]]:
        """Yield the size and the alignment of each parameter, in bytes."""
        self._next()
        if self._peek() == ")":
            self._next()
            return
        while True:
            yield self._parameter()
            sign = self._next()
            if sign == ")":
                return
            if sign != ",":
                raise CorruptArtifactError(_WHAT, f"has {shorten(sign)} in a list of parameters")

    def _parameter(self) -> tuple[int, int]:
        if self._next() != ".param":
            raise CorruptArtifactError(_WHAT, "a kernel's parameter does not start with .param")
        size, alignment, pointer = 0, 0, False
        while (word := self._next()).startswith("."):
            if word == ".align":
                number = self._number(word)
                # After .ptr it speaks of what the pointer points to.
                alignment = alignment if pointer else number
            elif word == ".ptr":
                pointer = True
            elif word[1:] in SIZES:
                size = SIZES[word[1:]]
            elif not pointer:
                raise CorruptArtifactError(_WHAT, f"has a parameter of the unknown type {shorten(word)}")
        count = 1
        if self._peek() == "[":
            self._next()
            count = self._number(word)
            if self._next() != "]":
                raise CorruptArtifactError(
                    _WHAT, f"parameter {shorten(word)} has no plain number of elements"
                )
        if not size or not count:
            raise CorruptArtifactError(_WHAT, f"parameter {shorten(word)} has no size")
        return size * count, alignment or size

    def _function(self, *, visible: bool) -> list[str]:
        if self._peek() == ".attribute":
            self._next()
            self._skip_parentheses()
        if self._peek() == "(":
            self._skip_parentheses()  # the result
        name = self._next()
        if self._peek() == "(":
            self._skip_parentheses()
        while self._peek() not in {"{", ";"}:
            self._directive()
        if self._next() == ";":
            self._declared |= {name} if visible else set()
            return []
        self._bodies[name] = self._skip_block()
        return [name]

    def _alias(self) -> list[str]:
        """Read what is another name of a function ("Linking Directives: .alias"): its declaration says who sees it."""
        name, _, aliased = self._next(), self._next(), self._next()
        self._bodies[name] = aliased  # a name that a kernel reaches reaches that function
        return [name] if name in self._declared else []

    def _variables_of(self, space: str, *, external: bool) -> list[str]:
        """Read a declaration of variables, which may be several of one type."""
        first, *others = self._members()
        kind, first = _split_type(first)
        found = [_Variable(one[0], space, kind, " ".join(one[1:])) for one in (first, *others) if one]
        for one in found if not external else ():
            if space == ".shared":
                self._shared.update(shared_variables(one.text))
            else:
                self._variables.append(one.info)
        return [one.name for one in found]

    def _members(self) -> list[list[str]]:
        """Take a list of declarations to its end; what they are initialised with is left out."""
        members: list[list[str]] = [[]]
        depth, valued = 0, False
        while (token := self._next()) != ";":
            depth += (token in {"{", "("}) - (token in {"}", ")"})
            if token == "," and not depth:
                members.append([])
                valued = False
            elif token == "=" or valued:
                valued = True
            else:
                members[-1].append(token)
        return members

    # Tokens ------------------------------------------------------------------------------------------------------

    def _more(self) -> bool:
        """Read ahead to the next token; a directive and its types (``.param.u64``) are tokens of their own."""
        while not self._ahead:
            match = _TOKEN.match(self._rest, self._at)
            if match is None:
                return False
            self._at = match.end()
            word = match[0]
            if match.lastgroup == "word" and word.startswith("."):
                self._ahead.extend(f".{part}" for part in word[1:].split("."))
            elif match.lastgroup != "skip":
                self._ahead.append(word)
        return True

    def _peek(self) -> str:
        """Return the next token without taking it; empty at the end."""
        return self._ahead[0] if self._more() else ""

    def _next(self) -> str:
        if not self._more():
            raise CorruptArtifactError(_WHAT, "ends too early")
        return self._ahead.popleft()

    def _number(self, where: str) -> int:
        text = self._next()
        number = integer(text)
        if number is None or number > _MOST_NUMBER:
            raise CorruptArtifactError(_WHAT, f"has {shorten(text)} at {shorten(where)}, expected a number")
        return number

    def _dims(self, name: str) -> tuple[int, int, int]:
        dims = [self._number(name)]
        while self._peek() == ",":
            self._next()
            dims.append(self._number(name))
        if len(dims) > _DIM_COUNT:
            raise CorruptArtifactError(_WHAT, f"kernel {shorten(name)} has a bound of {len(dims)} dimensions")
        x, y, z = (*dims, 1, 1)[:_DIM_COUNT]
        return x, y, z

    def _skip_block(self) -> str:
        """Pass over a block whose opening brace was the last token, and return what is in it."""
        depth = 1
        start = self._at
        while depth:
            match = _BRACE.search(self._rest, self._at)
            if match is None:
                raise CorruptArtifactError(_WHAT, "ends too early")
            self._at = match.end()
            depth += (match[0] == "{") - (match[0] == "}")
        return self._rest[start : self._at]

    def _skip_parentheses(self) -> None:
        depth = 1
        self._next()
        while depth:
            token = self._next()
            depth += (token == "(") - (token == ")")


@dataclass(frozen=True, slots=True)
class _Variable:
    """One variable of a declaration."""

    name: str
    space: str
    kind: list[str]
    """What stands before its name: alignment, attributes, vector, type."""
    extents: str

    @property
    def text(self) -> str:
        """What declares it alone."""
        return " ".join((self.space, *self.kind, self.name, self.extents))

    @property
    def info(self) -> VariableInfo:
        """What is known of it ("PTX ISA", "Variables")."""
        width = next((SIZES[one[1:]] for one in self.kind if one[1:] in SIZES), 0)
        lanes = next((int(one[2:]) for one in self.kind if one in {".v2", ".v4", ".v8"}), 1)
        known = width and _EXTENTS.fullmatch(self.extents)
        nbytes = declared_bytes(self.name, width * lanes, self.extents) if known else None
        constant, managed = self.space == ".const", ".managed" in self.kind
        return VariableInfo(name=self.name, nbytes=nbytes, constant=constant, managed=managed)


def _is_target(arch: str) -> bool:
    """Whether a text can be for an architecture: it names a real one, though it is assembled for later ones too."""
    try:
        arch_number(arch)
    except ProgramError:
        return False
    return arch.startswith("sm_")


def _split_type(tokens: list[str]) -> tuple[list[str], list[str]]:
    """Return what stands before the name of the first of some variables, and the rest."""
    depth = 0
    for end, token in enumerate(tokens):
        depth += (token == "(") - (token == ")")
        inside = depth or token == ")" or token.startswith(".") or tokens[max(end - 1, 0)] == ".align"
        if not inside:
            return tokens[:end], tokens[end:]
    return tokens, []


def _kernel(
    name: str,
    layouts: tuple[tuple[int, int], ...],
    target: str,
    bounds: Mapping[str, tuple[int, int, int]],
    rank: int | None,
) -> KernelInfo:
    for size, alignment in layouts:
        if alignment & (alignment - 1):
            raise CorruptArtifactError(_WHAT, f"a parameter of {size} bytes is aligned to {alignment}")
    return KernelInfo(
        name=name,
        parameters=pack_parameters(layouts, target),
        max_threads=bounds.get("max_threads"),
        required_threads=bounds.get("required_threads"),
        cluster=bounds.get("cluster"),
        max_cluster_blocks=rank,
    )
