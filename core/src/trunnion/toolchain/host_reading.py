"""What a compilation of C++ reads on this machine, as digests: part of the key of what is compiled.

The compiler's own preprocessor says it: what is left of a text once all is included, embedded and asked for is the
same exactly if every header, every search path, every variable and every answer to ``__has_include`` that counts is. It
is asked once, and again when a file that it read changes, or when a name could appear where it looks.
"""

from __future__ import annotations

import functools
import hashlib
import os
import re
import shlex
import shutil
import subprocess
import tempfile
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from trunnion.errors import BackendUnavailableError, CompileError
from trunnion.storage.scratch import scratch_folder
from trunnion.toolchain.directives import mentions
from trunnion.toolchain.host_compilation import run_host
from trunnion.toolchain.host_compiler import compiler_environment
from trunnion.toolchain.remembered import Answer, Stamp, remembered, stamp

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trunnion.toolchain.host_compilation import HostCompilation, HostOutput
    from trunnion.toolchain.host_compiler import HostCompiler

__all__ = ["HostReading", "files_read", "read_host"]

_FORM = "2"  # of what is asked and remembered; it changes whenever a digest does
_TEXT, _LIST = "trunnion_reading.ii", "trunnion_reading.d"
_ASKING, _VERBOSE = ("-E", "-dD", "-P", "-MD", "-MF", _LIST), "-v"
_SECONDS = 10.0
_ESCAPED = re.compile(r"\\([ #\\])|\$(\$)")
_FRONT_ENDS = ("cc1plus", "cc1")
_SEARCHED = re.compile(r"^#include [<\"].*?^End of search list\.$", re.MULTILINE | re.DOTALL)
_NOT_THERE = re.compile(r'^ignoring nonexistent directory "(.*)"$', re.MULTILINE)
_SETTINGS = re.compile(r"^(?:Reading specs from|Configuration file:) (/.*)$", re.MULTILINE)
_TOOLS = ("as", "ld")
_ASSEMBLER_READS = re.compile(rb"\.\s*(?:incbin|include)\b")
_PRECOMPILED = (".gch", ".pch")
_MOST_DIGESTS = 4096


@dataclass(frozen=True, slots=True)
class HostReading:
    """What a compilation reads beside what it is given."""

    text: str
    """The SHA-256 of what the preprocessor leaves, macros included, of the options that the compiler adds by itself,
    and of its parts. Where anything is installed does not count."""

    headers: str
    """The SHA-256 of the names and contents of all headers of this machine: comments and lines, too, which count for
    messages and for debugging."""

    whole: bool
    """Whether that is all. It is not where the assembler is told to read a file, or where a precompiled header lies
    beside one, which the compiler may take in its place."""


def read_host(compiler: HostCompiler, wanted: HostCompilation, plugin: str) -> HostReading:
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

    Raises
    ------
    CompileError, BackendUnavailableError, DeviceRequirementError
        As `run_host` does.
    """
    question = repr((
        *(_FORM, compiler.fingerprint, compiler.command, compiler.environment, os.environ.get("PATH", "")),
        *(wanted.source, wanted.text, wanted.options, sorted(wanted.inputs.items())),
    ))  # fmt: skip
    said = remembered(question, lambda: _ask(compiler, wanted, plugin))
    return HostReading(said["text"], said["headers"], said["whole"] == "yes")


def files_read(root: Path, folder: str, listed: str) -> list[str]:
    """Return the headers of this machine that a run read, by absolute path, as its list of dependencies says.

    Relative names are those of the program's own files, below the root, or lead out of it: the compiler looks beside
    whoever includes first.

    Parameters
    ----------
    root
        The folder that belongs to the compilation.
    folder
        The name of the folder in it that the compiler ran in.
    listed
        The name of the list (``-MF``).
    """
    place = root / folder
    text = os.fsdecode(Path(place, listed).read_bytes()).replace("\\\n", " ")
    _, _, names = text.partition(": ")
    words = [_ESCAPED.sub(r"\1\2", word) for word in re.findall(r"(?:\\.|\S)+", names)]
    own, found = root.resolve(), []
    for word in words:
        path = Path(word) if Path(word).is_absolute() else (place / word).resolve()
        if Path(word).is_absolute() or not path.is_relative_to(own):
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
    tools = [*front_end[:1], *_other_tools(compiler), *_named_files(front_end[1:])]
    counted = [word for word in front_end[1:] if "/" not in word]  # where headers and folders lie does not
    given = [wanted.text.encode("utf-8", "surrogatepass"), *wanted.inputs.values()]
    folders = _folders(files, given, output.log)
    said = {
        "text": _joined([output.data, repr(counted).encode(), *(_digest(tool).encode() for tool in tools)]),
        "headers": _joined(part for name in files for part in (os.fsencode(name), _digest(name).encode())),
        "whole": "no" if _ASSEMBLER_READS.search(output.data) or _precompiled(files) else "yes",
    }
    settings = [
        compiler.command[0],
        *_named_files(word.removeprefix("@") for word in compiler.command[1:]),
        *(found for found in _SETTINGS.findall(output.log) if Path(found).is_file()),
    ]
    above = {str(Path(path).parent) for path in (*front_end[:1], compiler.command[0])}
    return Answer(
        said,
        files=frozenset((*files, *tools, *settings)),
        folders=frozenset(folders or ()) | above,
        lasting=folders is not None and bool(front_end) and not _is_script(compiler.command[0]),
    )


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


def _folders(files: Iterable[str], given: Iterable[bytes], log: str) -> set[str] | None:
    """Return the folders in which a name is looked for that any text mentions; None if nobody knows."""
    searched = [line.strip() for block in _SEARCHED.findall(log) for line in block.splitlines()[1:-1]]
    places = [place for place in (*searched, *_NOT_THERE.findall(log)) if place.startswith("/")]
    pairs: set[tuple[str, str]] = set()
    if not searched:
        return None
    texts = [("", text) for text in given]
    texts += [(os.path.dirname(name), _bytes(name)) for name in files]  # noqa: PTH120 - as below
    for beside, text in texts:
        for mention in mentions(text):
            strange = not mention.name or (not beside and ".." in mention.name.split("/"))
            if strange:  # it could be any name, or lie beside a temporary folder
                return None
            beside_too = (beside,) if mention.quoted and beside else ()
            pairs.update((place, mention.name) for place in (*places, *beside_too))
    return {path for place, name in pairs for path in _on_the_way(place, name)}


def _on_the_way(place: str, name: str) -> Iterator[str]:
    """Yield each folder on the way to a name: the last one that is there changes when the name appears."""
    *folders, last = name.split("/")
    yield place
    for folder in folders:
        place = os.path.join(place, folder)  # noqa: PTH118 - a Path for each of thousands takes too long
        if not os.path.lexists(place):
            return
        yield place
    place = os.path.join(place, last)  # noqa: PTH118 - as above
    if os.path.islink(place) and not os.path.exists(place):  # noqa: PTH110, PTH114 - as above
        yield place  # a link to nothing: what it leads to appears elsewhere


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


def _other_tools(compiler: HostCompiler) -> Iterator[str]:
    """Yield the path of the assembler and of the linker that the compiler uses."""
    for tool in _TOOLS:
        try:
            done = subprocess.run(
                [*compiler.command, f"-print-prog-name={tool}"],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=compiler_environment(Path(tempfile.gettempdir())),
                timeout=_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            continue
        found = shutil.which(os.fsdecode(done.stdout.strip()) or tool)
        if found is not None:
            yield found


def _precompiled(files: Iterable[str]) -> bool:
    return any(stamp(f"{name}{end}") is not None for name in files for end in _PRECOMPILED)


def _named_files(words: Iterable[str]) -> list[str]:
    """Return the files that options name: a plugin, a profile, a specs file, a file of options."""
    ends = (word[word.index("/") :] for word in words if "/" in word)
    return [end for end in ends if Path(end).is_file()]


def _is_script(path: str) -> bool:
    """Whether a program is a text, which may look at anything before it starts a compiler."""
    return _bytes(path, 2) == b"#!"


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
