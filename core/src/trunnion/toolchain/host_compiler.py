"""The C++ compiler of this machine: which one it is, and why another one is not taken."""

from __future__ import annotations

import functools
import hashlib
import os
import platform
import re
import shlex
import shutil
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trunnion.errors import BackendUnavailableError
from trunnion.messages import shorten
from trunnion.storage.remembered import Grounds, remembered
from trunnion.storage.stamps import stamp
from trunnion.toolchain.search import earlier_on_path, path_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from trunnion.storage.remembered import Answer
    from trunnion.storage.stamps import Stamp

__all__ = [
    "INSTALL_COMPILER",
    "CompilerTrial",
    "HostCompiler",
    "compiler_environment",
    "counted_environment",
    "host_compiler",
    "is_script",
    "try_compilers",
]

INSTALL_COMPILER = (
    "install one (Debian, Ubuntu: apt-get install g++; Fedora, RHEL: dnf install gcc-c++), or name one in CXX"
)
"""What to do where there is no compiler."""

_VARIABLE = "CXX"
_NAMES = ("g++", "c++", "clang++")
_SECONDS = 10.0
_FAMILIES = {"gcc": "g++", "clang": "clang++"}
_LEAST = {
    "g++": 8,
    "clang++": 10,
}  # the first with C++17 that can map the paths of a build (-ffile-prefix-map)
_IDENTITY = re.compile(r"^.*?\b(gcc|clang) version (\d+(?:\.\d+)*).*$", re.MULTILINE)
_TARGET = re.compile(r"^Target: (\S+)$", re.MULTILINE)
_PARTS = re.compile(
    r"^(?:COLLECT_LTO_WRAPPER|InstalledDir|Configuration file|Reading specs from)[=:]? ?(/.*)$", re.MULTILINE
)
"""What lies where a compiler was installed, as it says itself."""
_COMPILERS = re.compile(r"(?:gcc|g\+\+|clang)[^/]*$")
_MACHINES = {
    "amd64": "x86_64",
    "arm64": "aarch64",
}  # two names of one machine: that of a target, that of `uname`

# What would make a compiler write files besides its output, or write something of this environment into it.
_UNWANTED = frozenset({
    "CC_LOG_DIAGNOSTICS", "CC_PRINT_HEADERS", "CC_PRINT_OPTIONS", "DEPENDENCIES_OUTPUT", "EXPERIMENTAL_SARIF_SOCKET",
    "GCC_COLORS", "LD_RUN_PATH", "SUNPRO_DEPENDENCIES",
})  # fmt: skip

# What changes which files it reads, and what it makes of them: the variables that the manuals of GCC, Clang and the
# GNU linker name, and those of programs that stand before a compiler.
_COUNTED = frozenset({
    "COMPILER_PATH", "CPATH", "CPLUS_INCLUDE_PATH", "C_INCLUDE_PATH", "GNUTARGET", "LDEMULATION", "LIBRARY_PATH",
    "SOURCE_DATE_EPOCH",
})  # fmt: skip
_COUNTED_FAMILIES = (
    "CCACHE_",
    "CCC_",
    "CLANG_",
    "COLLECT_",
    "DISTCC_",
    "GCC_",
    "ICECC_",
    "NIX_",
    "SCCACHE_",
    "SPACK_",
)


@dataclass(frozen=True, slots=True)
class HostCompiler:
    """A C++ compiler that works."""

    command: tuple[str, ...]
    """The absolute path of the executable, and the arguments that always come first."""

    family: str
    """Whose options it takes: ``"g++"`` or ``"clang++"``."""

    version: str
    """Its version: ``"12.2.0"``."""

    identity: str
    """The line in which it names itself, with all that tells its builds apart."""

    target: str
    """What it compiles for: ``"x86_64-linux-gnu"``."""

    environment: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    """The variables that change what it reads or makes (`counted_environment`)."""

    grounds: Grounds = field(default=Grounds(lasting=False), repr=False, compare=False)
    """What it is this compiler by, and no other: beside the variables ``CXX`` and ``PATH`` and those that count."""

    @property
    def programs(self) -> tuple[str, ...]:
        """By absolute path, the programs that the command's further words name: behind ``env``, say, the compiler."""
        return _programs(self.command[1:])

    @property
    def name(self) -> str:
        """What errors call it: ``"g++ 12.2.0"``."""
        return f"{self.family} {self.version}"

    @property
    def machine(self) -> str:
        """The architecture that it compiles for: ``"x86_64"``."""
        return self.target.partition("-")[0]

    @property
    def fingerprint(self) -> str:
        """What tells it apart from every other compiler; where it lies does not count.

        Of the environment it has a digest: a value may be a secret.
        """
        words = [self.identity, self.target, *map(repr, self.command[1:])]
        if self.environment:
            words.append(f"environment {hashlib.sha256(repr(self.environment).encode()).hexdigest()}")
        if any("native" in word for word in self.command[1:]):
            words.append(f"on {_processor()}")
        return "; ".join(words)


@dataclass(frozen=True, slots=True)
class CompilerTrial:
    """What became of one name under which a compiler was looked for."""

    origin: str
    """Who names it: ``"CXX"``, or ``"PATH"``."""

    named: str
    """The name, or for ``CXX`` the whole value; empty if that is not set."""

    path: str
    """The executable; empty if there is none."""

    compiler: HostCompiler | None
    """The compiler; None if it cannot be used."""

    problem: str = ""
    """Why it cannot be used; empty if it can."""

    @property
    def text(self) -> str:
        """The trial in one phrase, for an error message."""
        named = (
            f"{self.origin}={shorten(self.named)}" if self.origin == _VARIABLE and self.named else self.named
        )
        return f"{named or self.origin}: {self.problem or 'it can be used'}"


def host_compiler(plugin: str) -> HostCompiler:
    """Return the compiler that ``CXX`` names, else the first of g++, c++ and clang++ on ``PATH`` that works.

    Where ``CXX`` is set, that one is used or none: whoever names a compiler wants no other. What a compiler says of
    itself is asked for once, in about 3 ms, as long as its files do not change; what stands before one is asked in each
    process.

    Parameters
    ----------
    plugin
        Who needs it; named in the error.

    Raises
    ------
    BackendUnavailableError
        If there is none. It says what was tried, why that cannot be used, and what to install.
    """
    failed: list[CompilerTrial] = []
    for trial in try_compilers():
        if trial.compiler is not None:
            found = trial.compiler
            return replace(found, grounds=found.grounds | _passed_over([*failed, trial]))
        failed.append(trial)
        if trial.origin == _VARIABLE and trial.named:
            break
    named = failed[0].named
    advice = f"mend CXX, or unset it; or {INSTALL_COMPILER}" if named else INSTALL_COMPILER
    tried = "; ".join(trial.text for trial in failed)
    raise BackendUnavailableError(plugin, "its toolchain", f"no C++ compiler can be used ({tried}); {advice}")


def _passed_over(trials: Iterable[CompilerTrial]) -> Grounds:
    """Return what the last of some trials came to be made by, and where the earlier ones found nothing."""
    found = Grounds(folders=frozenset({__file__}))
    *earlier, last = (trial for trial in trials if trial.named)
    for trial in earlier:
        # Why a program that is there cannot be used, nobody knows that asks no more.
        found |= Grounds(lasting=False) if trial.path else earlier_on_path(trial.named)
    word = shlex.split(last.named)[0]
    return found | (earlier_on_path(word) if os.sep not in word else Grounds(lasting=word.startswith(os.sep)))


def try_compilers() -> Iterator[CompilerTrial]:
    """Yield what becomes of each name, in the order of the search; each is tried when it is its turn."""
    named = os.environ.get(_VARIABLE, "").strip()
    if named:
        try:
            words = shlex.split(named)
        except ValueError as error:
            problem = f"it cannot be split into words ({str(error).lower()})"
            yield CompilerTrial(_VARIABLE, named, "", None, problem)
        else:
            yield _try(_VARIABLE, named, words)
    else:
        yield CompilerTrial(_VARIABLE, "", "", None, "it is not set")
    for name in _NAMES:
        yield _try("PATH", name, [name])


def compiler_environment(folder: Path) -> Mapping[str, str]:
    """Return the environment that a compiler runs in: messages in English, and temporary files in ``folder``.

    Where there is no ``PATH``, it is the system's, on which the compiler was found: its linker is looked for there.
    """
    kept = {name: value for name, value in os.environ.items() if name not in _UNWANTED}
    return {"PATH": os.defpath, **kept, "LC_ALL": "C", "TMPDIR": os.fspath(folder)}


def counted_environment() -> tuple[tuple[str, str], ...]:
    """Return the variables of this process that change what a compiler reads or makes, by name."""
    return tuple(
        (name, os.environ[name])  # of few: each value is decoded anew
        for name in sorted(os.environ)
        if name not in _UNWANTED and (name in _COUNTED or name.startswith(_COUNTED_FAMILIES))
    )


def _processor() -> str:
    """Return what ``-march=native`` stands for here, as a digest; machines may share a cache."""
    try:
        text = Path("/proc/cpuinfo").read_text("utf-8", "replace")
    except OSError:
        text = ""
    told = sorted(
        {line for line in text.splitlines() if line.startswith(("model", "flags", "Features", "CPU "))}
    )
    return hashlib.sha256("\n".join(told).encode()).hexdigest()


def _try(origin: str, named: str, words: list[str]) -> CompilerTrial:
    found = shutil.which(words[0])
    if found is None:
        return CompilerTrial(origin, named, "", None, _absence(words[0]))
    # Not resolved: some compilers are links to one program that looks at the name by which it is called.
    path = os.path.abspath(found)  # noqa: PTH100 - Path.absolute() keeps "..", which is harmless, and "." too
    try:
        command = (path, *words[1:])
        stamps = tuple(stamp(program) for program in (path, *_programs(words[1:])))
        compiler = _identify(command, stamps, os.environ.get("PATH", ""), counted_environment())
    except (OSError, ValueError, subprocess.TimeoutExpired) as error:
        problem = f"it did not answer within {_SECONDS:g} s"
        if not isinstance(error, subprocess.TimeoutExpired):
            problem = str(error)
        return CompilerTrial(origin, named, path_text(path), None, problem)
    return CompilerTrial(origin, named, path_text(path), compiler)


def _absence(word: str) -> str:
    if os.sep not in word:
        return "it is not on PATH"
    path = Path(word)
    if path.is_dir():
        return "it is a folder"
    return "it is not executable" if path.exists() else "it does not exist"


def _programs(words: Iterable[str]) -> tuple[str, ...]:
    named = (word for word in words if not word.startswith("-"))
    return tuple(os.path.abspath(found) for word in named if (found := shutil.which(word)))  # noqa: PTH100 - as above


@functools.cache
def _identify(
    command: tuple[str, ...],
    _stamps: tuple[Stamp | None, ...],
    _search_path: str,
    environment: tuple[tuple[str, str], ...],
) -> HostCompiler:
    """Return what an executable says that it is. Failures are not remembered: they may pass.

    Parameters
    ----------
    command
        The executable, and its arguments.
    _stamps
        What changes if other programs are installed under the names of the command.
    _search_path
        The value of ``PATH``: a wrapper finds the compiler behind it there.
    environment
        Other variables that count.
    """
    said = _said_of_itself(command, _search_path, environment)
    identity, target = _IDENTITY.search(said), _TARGET.search(said)
    if identity is None or target is None:
        raise ValueError("it does not say that it is GCC or Clang")
    family, line = _FAMILIES[identity[1]], identity[0].strip()
    grounds = _grounds(command, said)
    compiler = HostCompiler(command, family, identity[2], line, target[1], environment, grounds)
    least = _LEAST[compiler.family]
    if int(compiler.version.partition(".")[0]) < least:
        raise ValueError(f"it is {compiler.name}; {least} or newer is needed")
    machine = _MACHINES.get(compiler.machine, compiler.machine)
    if machine != platform.machine() or "linux" not in compiler.target:
        raise ValueError(
            f"it compiles for {compiler.target}, this machine is {platform.machine()} with Linux"
        )
    return compiler


def _said_of_itself(
    command: tuple[str, ...], search_path: str, environment: tuple[tuple[str, str], ...]
) -> str:
    """Return what a compiler prints of itself; empty if it fails. The process is started only if that is not known."""

    def ask() -> Answer:
        done = subprocess.run(
            [*command, "-v"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**os.environ, "LC_ALL": "C"},
            timeout=_SECONDS,
            check=False,
        )
        said = done.stdout.decode("utf-8", "replace") if done.returncode == 0 else ""
        return _grounds(command, said).answer({"said": said})

    question = repr(("who is it", command, search_path, environment))
    return remembered(question, ask, noted=False)["said"]


def _grounds(command: tuple[str, ...], said: str) -> Grounds:
    """Return what a compiler says of itself depends on, by that what it said."""
    parts = _PARTS.findall(said)
    # What stands before a compiler, a script or a program of another name, may look for it anywhere.
    itself = len(command) == 1 and bool(_COMPILERS.search(os.path.realpath(command[0])))
    lasting = itself and bool(parts) and not is_script(command[0])
    return Grounds(frozenset((command[0], *parts)) if lasting else frozenset(), lasting=lasting)


def is_script(path: str) -> bool:
    """Whether a program is a text, which may look at anything before it starts a compiler."""
    try:
        with Path(path).open("rb") as file:
            return file.read(2) == b"#!"
    except OSError:
        return False
