"""One run of the C++ compiler: what it is given, how long it may take, and what becomes of its failures."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import tempfile
import time
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from trunnion.errors import BackendUnavailableError, CompileError, DeviceRequirementError
from trunnion.messages import signal_name
from trunnion.storage.interrupts import Uninterrupted
from trunnion.storage.refusals import advice, of_a_folder, said, said_by
from trunnion.toolchain.host_compiler import INSTALL_COMPILER, compiler_environment

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from trunnion.toolchain.host_compiler import HostCompiler

__all__ = ["HostCompilation", "HostOutput", "compile_host", "run_host"]

_SECONDS = 300.0
_LOOK = 0.5
"""How often it is looked whether a process has ended that has not closed its output, in seconds."""

_PROBE_BYTES = 1 << 16
_NO_FRONT_END = re.compile(
    r"^[^\s|]+: (?:fatal error: cannot execute|error trying to exec) .cc1plus", re.MULTILINE
)


@dataclass(frozen=True, slots=True, kw_only=True)
class HostCompilation:
    """What a compiler is asked for."""

    source: str
    """The plain name of the file that is compiled. Its errors are counted in lines of `text`."""

    text: str
    """What is in it."""

    output: str
    """The plain name of the file that is made."""

    options: tuple[str, ...]
    """The arguments, among them the names of `source` and of other inputs; ``-o`` is added."""

    inputs: Mapping[str, bytes] = field(default_factory=dict)
    """Other files, by plain name, or by a path below the folder."""

    seconds: float = _SECONDS
    """How long it may take."""


@dataclass(frozen=True, slots=True)
class HostOutput:
    """What came of a run that succeeded."""

    data: bytes
    """The file that was made."""

    log: str
    """What the compiler printed all the same: warnings."""


def compile_host(compiler: HostCompiler, wanted: HostCompilation, folder: Path, plugin: str) -> bytes:
    """Return only the bytes of what `run_host` makes, which says what is taken and what is raised."""
    return run_host(compiler, wanted, folder, plugin).data


def run_host(compiler: HostCompiler, wanted: HostCompilation, folder: Path, plugin: str) -> HostOutput:
    """Run the compiler once and return what it made.

    It runs in ``folder`` and is told plain names, so that nothing that it writes depends on where that is. There is no
    shell: names with spaces and other odd characters are passed as they are.

    Parameters
    ----------
    compiler
        The compiler.
    wanted
        What to compile.
    folder
        An existing folder that belongs to this build alone.
    plugin
        Who asks; named in the error if the compiler cannot be run.

    Raises
    ------
    CompileError
        If the compiler refuses the source, is killed, does not end in time, or makes nothing.
    BackendUnavailableError
        If the compiler cannot be run, or has no part for C++.
    DeviceRequirementError
        If the folder cannot be written to, or its disk is full, or this process has run out of descriptors, say.
    """
    made = folder / wanted.output
    if not folder.is_dir():
        raise _no_folder(folder, NotADirectoryError(f"{folder} is no folder"))
    try:
        folder.stat()  # it belongs to the caller, who made it: only what lies below it is made here
        made.unlink(missing_ok=True)
        for name, data in {
            wanted.source: wanted.text.encode("utf-8", "surrogatepass"),
            **wanted.inputs,
        }.items():
            place = folder / name
            place.parent.mkdir(parents=True, exist_ok=True)
            place.write_bytes(data)
    except OSError as error:
        raise _no_folder(folder, error) from error
    options = (*wanted.options, "-o", wanted.output)
    status, log = _run(compiler, options, folder, wanted.seconds, plugin)
    if status == 0 and made.is_file():
        try:
            return HostOutput(made.read_bytes(), log)
        except OSError as error:
            raise _no_folder(folder, error) from error
    _check_folder(folder)
    refused = said_by(log)
    if refused is not None:
        raise _out_of(refused) from refused
    if _NO_FRONT_END.search(log):
        reason = (
            f"{compiler.command[0]} compiles C, and cannot compile C++ ({log.strip()}); {INSTALL_COMPILER}"
        )
        raise BackendUnavailableError(plugin, "its toolchain", reason)
    log += _ending(status)
    line = _first_complaint(log, wanted.source)
    raise CompileError(compiler.name, log, wanted.text, options, compiler.machine, line)


def _run(
    compiler: HostCompiler, options: tuple[str, ...], folder: Path, seconds: float, plugin: str
) -> tuple[int | None, str]:
    """Return the status, None if it took too long, and all that was printed."""
    owner = os.getpid()
    with Uninterrupted() as held:
        process = _started(compiler, options, folder, plugin)
        try:
            with held.interruptible():
                printed = _printed(process, seconds)
            status: int | None = process.returncode
        except subprocess.TimeoutExpired as error:
            printed, status = error.stdout or b"", None
            printed += f"\nit did not end within {seconds:g} s, and was ended".encode()
        finally:
            _end(process, owner)
    return status, printed.decode("utf-8", "backslashreplace")


def _printed(process: subprocess.Popen[bytes], seconds: float) -> bytes:
    """Return all that a process prints before it ends: what it has started may outlive it, and keep its output open.

    Raises
    ------
    subprocess.TimeoutExpired
        If it takes too long.
    """
    last = time.monotonic() + seconds
    while True:
        ended = process.poll() is not None
        left = last - time.monotonic()
        try:
            return process.communicate(timeout=min(_LOOK, left))[0]
        except subprocess.TimeoutExpired as error:
            if ended:  # and what it had printed by then was read
                return error.stdout or b""
            if left <= _LOOK:
                raise


def _started(
    compiler: HostCompiler, options: tuple[str, ...], folder: Path, plugin: str
) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(
            [*compiler.command, *options],
            cwd=folder,
            env=compiler_environment(folder),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            process_group=0,  # its parts are processes of their own, and end with it
        )
    except OSError as error:
        if not of_a_folder(error):
            raise _out_of(error) from error
        reason = f"{compiler.command[0]} cannot be run ({error}); {INSTALL_COMPILER}"
        raise BackendUnavailableError(plugin, "its toolchain", reason) from error


def _end(process: subprocess.Popen[bytes], owner: int) -> None:
    """End a process with all its parts, if it has not ended, and take it up: a forked child's parent does so."""
    if process.returncode is None and os.getpid() == owner:
        # None of them where it was taken up already, and an interrupt came before its status was noted.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        # Not process.wait(): an interrupt inside of it may have left its lock behind, which it would wait for.
        with suppress(ChildProcessError):
            os.waitpid(process.pid, 0)
        process.returncode = -signal.SIGKILL
    if process.stdout is not None:
        process.stdout.close()


def _ending(status: int | None) -> str:
    """Return what the log does not say of how the compiler ended."""
    if status is None:
        return ""
    if status == 0:
        return "\nit reported success, and made nothing"
    if status > 0:
        return ""
    return f"\nit was ended by {signal_name(-status)}; if that was SIGKILL, memory may have run out"


def _first_complaint(log: str, source: str) -> int:
    """Return the first line of the source that an error, or the way to an error in a header, names; 0 if none does."""
    name = rf"(?:\./)?{re.escape(source)}"  # clang writes the folder in which it found what is included
    for pattern in (
        rf"^{name}:(\d+):(?:\d+:)? (?:fatal )?error\b",
        rf"\bfrom {name}:(\d+)",
        rf"^{name}:(\d+):",
    ):
        found = re.search(pattern, log, re.MULTILINE)
        if found:
            return int(found[1])
    return 0


def _check_folder(folder: Path) -> None:
    """Find out whether the folder is what is wrong: a compiler tells a full disk in words of its own."""
    try:
        with tempfile.TemporaryFile(dir=folder) as probe:
            probe.write(bytes(_PROBE_BYTES))
            probe.flush()
            os.fsync(probe.fileno())
    except OSError as error:
        raise _no_folder(folder, error) from error


def _no_folder(folder: Path, error: OSError) -> DeviceRequirementError:
    if not of_a_folder(error):
        return _out_of(error)
    return DeviceRequirementError(
        "a folder that C++ can be compiled in",
        str(error),
        f"make room in {folder}, or set TMPDIR to a folder of yours",
    )


def _out_of(error: OSError) -> DeviceRequirementError:
    return DeviceRequirementError("a process that C++ can be compiled in", said(error), advice(error))
