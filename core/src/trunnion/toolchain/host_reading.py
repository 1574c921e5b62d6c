"""What a compilation of C++ reads on this machine, as digests: part of the key of what is compiled.

The compiler's own preprocessor says it: what is left of a text once all is included, embedded and asked for is the
same exactly if every header, every search path, every variable and every answer to ``__has_include`` that counts is. It
is asked once, and again when a file that it read changes, or when a name could appear where it looks: each name under
which it found a header, in each folder that it says it searches.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shlex
import subprocess
import tempfile
import uuid
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trunnion.errors import BackendUnavailableError, CompileError
from trunnion.storage.refusals import refusals
from trunnion.storage.remembered import Answer, Grounds, remembered
from trunnion.storage.scratch import scratch_folder
from trunnion.storage.stamps import Stamp, stamp, witness
from trunnion.toolchain.assembly import may_read_files
from trunnion.toolchain.directives import may_paste, mentions
from trunnion.toolchain.host_compilation import run_host
from trunnion.toolchain.host_compiler import compiler_environment, is_script

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from trunnion.toolchain.host_compilation import HostCompilation, HostOutput
    from trunnion.toolchain.host_compiler import HostCompiler

__all__ = ["HostReading", "files_read", "read_host", "witness_reading"]

_FORM = "5"  # of what is asked and remembered; it changes whenever a digest does
_TEXT, _LIST = "trunnion_reading.ii", "trunnion_reading.d"
_ASKING, _VERBOSE = ("-E", "-dD", "-P", "-MD", "-MF", _LIST), "-v"
_SECONDS = 10.0
_ESCAPED = re.compile(r"\\([ #\\])|\$(\$)")
_FRONT_ENDS = ("cc1plus", "cc1")
_SEARCHED = re.compile(r"^#include [<\"].*?^End of search list\.$", re.MULTILINE | re.DOTALL)
# One that is left out because it is another one today may be its own tomorrow: a link.
_LEFT_OUT = re.compile(r'^ignoring (?:nonexistent|duplicate) directory "(.*)"$', re.MULTILINE)
_SETTINGS = re.compile(r"^(?:Reading specs from|Configuration file:) (/.*)$", re.MULTILINE)
_PROGRAMS = re.compile(r"^programs: =?(.*)$", re.MULTILINE)
_ASKED_FOR, _TOOLS = ("as", "ld"), ("as", "ld", "collect2", "collect-ld", "real-ld")
_PRECOMPILED = (".gch", ".pch")
_MOST_DIGESTS = 4096
_MOST_WORDS = 1 << 16  # of a file that may be one of options; an object is larger, and defines nothing
_JOINS = re.compile("[,=:;]")


@dataclass(frozen=True, slots=True)
class HostReading:
    """What a compilation reads beside what it is given.

    Where nobody can tell, both digests are such as never come again: where the assembler may be told to read a file,
    or a precompiled header lies where one is searched, which the compiler may take in its place.
    """

    text: str
    """The SHA-256 of what the preprocessor leaves, macros included, of the options that the compiler adds by itself,
    of its program, of its parts, and of the files that the words of ``CXX`` name. Where anything is installed does not
    count."""

    headers: str
    """The SHA-256 of the names and contents of all headers of this machine: comments and lines, too, which count for
    messages and for debugging."""

    grounds: Grounds = field(default=Grounds(lasting=False), repr=False, compare=False)
    """What both depend on, beside the question, where it was asked now; else not told."""


def read_host(
    compiler: HostCompiler, wanted: HostCompilation, plugin: str, *, kept: bool = True
) -> HostReading:
    """Return what a compilation reads. The compiler is run, some 50 ms, only if that is not known.

    Parameters
    ----------
    compiler
        The compiler.
    wanted
        What it is asked for; `HostCompilation.output` does not count. No option names a folder that is not there
        any more the next time.
    plugin
        Who asks; named in errors.
    kept
        Whether the answer is remembered. Else it is asked for now, and comes with its `HostReading.grounds`: whoever
        asks makes an answer of it that is.

    Raises
    ------
    CompileError, BackendUnavailableError, DeviceRequirementError
        As `run_host` does.
    """
    if not kept:
        answer = _ask(compiler, wanted, plugin)
        whole = answer.said["whole"] == "yes"  # else it is another one the next time
        grounds = Grounds(answer.files, answer.folders, answer.lasting and whole)
        return replace(_reading(answer.said), grounds=grounds)
    question = repr((
        *(_FORM, compiler.fingerprint, compiler.command, compiler.environment, os.environ.get("PATH", "")),
        *(wanted.source, wanted.text, wanted.options, sorted(wanted.inputs.items())),
    ))  # fmt: skip
    return _reading(remembered(question, lambda: _ask(compiler, wanted, plugin)))


def _reading(said: Mapping[str, str]) -> HostReading:
    if said["whole"] != "yes":
        return HostReading(uuid.uuid4().hex, uuid.uuid4().hex)
    return HostReading(said["text"], said["headers"])


def witness_reading(
    compiler: HostCompiler, wanted: HostCompilation, root: Path, lists: Sequence[str]
) -> list[str]:
    """Return the files of this machine that a run read, and note them as they are now (`witness`).

    Parameters
    ----------
    compiler, wanted
        What ran, and what it was asked for; named in the error.
    root
        As `files_read` takes it.
    lists
        The lists, by their paths from there.

    Raises
    ------
    CompileError
        If it made no such list.
    """
    found: dict[str, None] = {}
    for listed in lists:
        folder, _, name = listed.rpartition("/")
        try:
            found |= dict.fromkeys(files_read(root, folder, name))
        except FileNotFoundError as error:
            log = f"it reported success, and made no list of what it read ({name})"
            raise CompileError(compiler.name, log, wanted.text, wanted.options, compiler.machine) from error
    witness(found)
    return list(found)


def files_read(root: Path, folder: str, listed: str) -> list[str]:
    """Return the files of this machine that a run read, by absolute path, as its list of dependencies says.

    Names below the root are those of the program's own files and of temporary ones. Relative ones may lead out of it:
    the compiler looks beside whoever includes first.

    Parameters
    ----------
    root
        The folder that belongs to the compilation.
    folder
        The name of the folder in it that the compiler ran in.
    listed
        The name of the list (``-MF``, or ``--MD`` of the assembler).

    Raises
    ------
    FileNotFoundError
        If there is no such list.
    """
    place = root / folder
    text = os.fsdecode(Path(place, listed).read_bytes()).replace("\\\n", " ")
    _, _, names = text.partition(": ")
    words = [_ESCAPED.sub(r"\1\2", word) for word in re.findall(r"(?:\\.|\S)+", names)]
    own, found = root.resolve(), []
    for word in words:
        absolute = Path(word).is_absolute()
        if absolute and not word.startswith((f"{root}/", f"{own}/")):
            found.append(word)
        elif not (path := (place / word).resolve()).is_relative_to(own):
            found.append(str(path))
    return found


def _ask(compiler: HostCompiler, wanted: HostCompilation, plugin: str) -> Answer:
    """Run the preprocessor, and return what it said and all that this depends on."""
    with scratch_folder() as root:
        folder = root / "0"
        folder.mkdir()
        output = _preprocessed(compiler, wanted, folder, plugin)
        try:
            files = files_read(root, "0", _LIST)
        except FileNotFoundError as error:
            log = f"{output.log}\nit reported success, and made no list of the headers that it read"
            options = (*wanted.options, *_ASKING)
            raise CompileError(compiler.name, log, wanted.text, options, compiler.machine) from error
    front_end = _front_end(output.log)
    others, candidates = _other_tools(compiler)
    tools = [*front_end[:1], *others, *_named_files(front_end[1:])]
    programs = (compiler.command[0], *compiler.programs)
    named = _files_of_words(compiler.command[1:])
    counted = [word for word in front_end[1:] if "/" not in word]  # where headers and folders lie does not
    search = _Search.of(files, _given(compiler, wanted, named), output.log)
    beside = search.beside(files)
    unknown = search.precompiled() or any(map(stamp, beside)) or may_read_files(output.data)
    digests = (_digest(path).encode() for path in (*programs, *named, *tools))
    said = {
        "text": _joined([output.data, repr(counted).encode(), *digests]),
        "headers": _joined(part for name in files for part in (os.fsencode(name), _digest(name).encode())),
        "whole": "no" if unknown else "yes",
    }
    settings = [
        *programs,
        *named,
        *(found for found in _SETTINGS.findall(output.log) if Path(found).is_file()),
    ]
    above = {str(Path(path).parent) for path in (*front_end[:1], *programs)}
    return Answer(
        said,
        files=frozenset((*files, *tools, *settings)),
        folders=search.watched | above | candidates | _earlier(compiler.programs) | beside | {__file__},
        lasting=search.known and bool(front_end) and not any(map(is_script, programs)),
    )


def _given(compiler: HostCompiler, wanted: HostCompilation, named: Iterable[str]) -> list[bytes]:
    """Return the texts that the compiler is given, macros of options and of files that these name among them."""
    defined = "\n".join(f"define {word}" for word in (*wanted.options, *compiler.command[1:]))
    texts = (wanted.text.encode("utf-8", "surrogatepass"), *wanted.inputs.values())
    return [
        *texts,
        defined.encode("utf-8", "surrogateescape"),
        *(b"define " + _bytes(name, _MOST_WORDS) for name in named),
    ]


def _preprocessed(compiler: HostCompiler, wanted: HostCompilation, folder: Path, plugin: str) -> HostOutput:
    """Return what the preprocessor makes of a text, with all that the compiler says of itself, if it says that."""
    asked = replace(wanted, output=_TEXT, options=(*wanted.options, *_ASKING))
    try:
        verbose = replace(asked, options=(*asked.options, _VERBOSE))
        return run_host(compiler, verbose, folder, plugin)
    except (
        CompileError,
        BackendUnavailableError,
    ):  # an error is raised without the words that nobody else asked for
        return run_host(compiler, asked, folder, plugin)


@dataclass(frozen=True, slots=True)
class _Search:
    """Where the compiler looks for headers, and by which names."""

    folders: frozenset[str]
    """Each folder in which a name is looked for that any text mentions, or under which a header was found."""

    names: frozenset[str]
    """These names, without their folders."""

    known: bool
    """Whether these are all."""

    @classmethod
    def of(cls, files: Sequence[str], given: Iterable[bytes], log: str) -> _Search:
        """Return what the headers that were read, their texts, and the compiler's own words say."""
        searched = [line.strip() for block in _SEARCHED.findall(log) for line in block.splitlines()[1:-1]]
        said = [*(line for line in searched if not line.startswith("#")), *_LEFT_OUT.findall(log)]
        places = {place for place in said if place.startswith("/")}
        known = bool(searched) and all(place in places or place == "." for place in said)
        pairs = {(place, name) for name in _found_names(files, places) for place in places}
        texts = [("", text) for text in given]
        texts += [(os.path.dirname(name), _bytes(name)) for name in files]  # noqa: PTH120 - a Path for each takes too long
        for folder, text in texts:
            for mention in mentions(text):
                # It could be any name, or lie beside a temporary folder.
                known = known and bool(mention.name) and bool(folder or ".." not in mention.name.split("/"))
                around = {folder} if mention.quoted and folder else set()
                pairs.update((place, mention.name) for place in places | around)
            known = known and not may_paste(text)
        above = {(place, name.rpartition("/")[0]) for place, name in pairs}
        folders = {path for place, below in above for path in _on_the_way(place, below)}
        return cls(frozenset(folders), frozenset(name.rpartition("/")[2] for _, name in pairs), known)

    @property
    def watched(self) -> frozenset[str]:
        """The folders, and the links in them to nothing, or to a folder: elsewhere a file may come to be there."""
        return self.folders | {one.path for one in self._entries() if one.is_symlink() and not one.is_file()}

    def beside(self, files: Iterable[str]) -> set[str]:
        """Return where a precompiled header would lie of a file that lies in none of the folders."""
        elsewhere = [name for name in files if name.rpartition("/")[0] not in self.folders]
        return {f"{name}{end}" for name in elsewhere for end in _PRECOMPILED}

    def precompiled(self) -> bool:
        """Whether a precompiled header lies where one of the names is looked for."""
        wanted = {f"{name}{end}" for name in self.names for end in _PRECOMPILED}
        return any(one.name in wanted for one in self._entries())

    def _entries(self) -> Iterator[os.DirEntry[str]]:
        for folder in self.folders:
            with suppress(OSError), os.scandir(folder) as entries:
                yield from entries


def _found_names(files: Iterable[str], places: Iterable[str]) -> set[str]:
    """Return the names under which headers were found: what of each path follows a folder that is searched."""
    roots = {f"{way.rstrip('/')}/" for place in places for way in (place, os.path.realpath(place))}
    names: set[str] = set()
    for file in files:
        ends = [at + 1 for at, sign in enumerate(file) if sign == "/"]
        names.update(file[end:] for end in ends if file[:end] in roots)
    return names


def _on_the_way(place: str, below: str) -> Iterator[str]:
    """Yield each folder on the way to one: the last that is there changes when the next one appears."""
    yield place
    for folder in filter(None, below.split("/")):
        place = os.path.join(place, folder)  # noqa: PTH118 - a Path for each of thousands takes too long
        if not os.path.lexists(place):
            return
        yield place


def _front_end(log: str) -> list[str]:
    """Return the command by which the compiler starts its part for C++, as it prints it; empty if it prints none."""
    for line in log.splitlines():
        if not line.startswith(" "):
            continue
        try:
            words = shlex.split(line)
        except ValueError:
            continue
        if len(words) > 1 and (Path(words[0]).name in _FRONT_ENDS or words[1] == "-cc1"):
            return words
    return []


def _other_tools(compiler: HostCompiler) -> tuple[list[str], set[str]]:
    """Return the assembler, the linker and what starts it, by path; and each path at which another would come first."""
    listed = _PROGRAMS.search(_answer(compiler, "-print-search-dirs"))
    places = listed[1].split(os.pathsep) if listed else []
    path = os.environ.get("PATH", os.defpath).split(os.pathsep)
    found, candidates = [], set()
    for tool in _TOOLS:
        said = _answer(compiler, f"-print-prog-name={tool}").strip() if tool in _ASKED_FOR else ""
        folders = (*places, *path) if tool in _ASKED_FOR else places
        looked_at = [os.path.join(place, tool) for place in folders if place.startswith("/")]  # noqa: PTH118 - as above
        taken = (
            said if said.startswith("/") else next((one for one in looked_at if os.access(one, os.X_OK)), "")
        )
        found += [taken] if taken else []
        candidates.update(looked_at[: looked_at.index(taken)] if taken in looked_at else looked_at)
    return found, candidates


def _earlier(programs: Iterable[str]) -> set[str]:
    """Return each path at which another program would be found on PATH before one of these."""
    path = [place for place in os.environ.get("PATH", os.defpath).split(os.pathsep) if place.startswith("/")]
    found: set[str] = set()
    for program in programs:
        place, _, name = program.rpartition("/")
        before = path[: path.index(place)] if place in path else []
        found.update(f"{one}/{name}" for one in before)
    return found


def _answer(compiler: HostCompiler, question: str) -> str:
    """Return what the compiler prints; empty if it takes too long.

    Raises
    ------
    DeviceRequirementError
        If it cannot be started.
    """
    with refusals("a compiler that can be started"), suppress(subprocess.TimeoutExpired):
        done = subprocess.run(
            [*compiler.command, question],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            env=compiler_environment(Path(tempfile.gettempdir())),
            timeout=_SECONDS,
            check=False,
        )
        return os.fsdecode(done.stdout)
    return ""


def _named_files(words: Iterable[str]) -> list[str]:
    """Return the files that options name: a plugin, a profile, a script of the linker, an object, a file of options."""
    ends = (part[part.index("/") :] for word in words for part in (word, *_JOINS.split(word)) if "/" in part)
    return [end for end in dict.fromkeys(ends) if Path(end).is_file()]


def _files_of_words(words: Iterable[str]) -> list[str]:
    """Return the files that options name, and those that files of options name in turn."""
    found: dict[str, None] = {}
    todo = [*words]
    while todo:
        word = todo.pop()
        new = [name for name in _named_files([word]) if name not in found]
        found |= dict.fromkeys(new)
        if any(f"@{name}" in word for name in new):
            todo += os.fsdecode(b" ".join(_bytes(name, _MOST_WORDS) for name in new)).split()
    return list(found)


def _joined(parts: Iterable[bytes]) -> str:
    digest = hashlib.sha256()
    for part in parts:
        digest.update(len(part).to_bytes(8, "little") + part)
    return digest.hexdigest()


def _digest(path: str) -> str:
    """Return the SHA-256 of a file; of one that is large and does not change, once in a process."""
    return _known_digest(path, stamp(path))


@functools.lru_cache(_MOST_DIGESTS)
def _known_digest(path: str, _stamp: Stamp | None) -> str:
    return hashlib.sha256(_bytes(path)).hexdigest()


def _bytes(path: str, most: int = -1) -> bytes:
    try:
        with open(path, "rb") as file:  # noqa: PTH123 - as above
            return file.read(most)
    except OSError:  # it is gone since, and then this is never remembered
        return b""
