"""Build, cache and load the C shim that takes ``libcuda.so.1``'s place in this process."""

from __future__ import annotations

import ctypes
import functools
import hashlib
import os
import shlex
import shutil
import subprocess
import sys
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import TYPE_CHECKING, Final

from trunnion.errors import BackendUnavailableError, CompileError, DeviceRequirementError, LifecycleError
from trunnion.storage.refusals import refuse_noexec, warn_not_kept
from trunnion.storage.scratch import scratch_folder
from trunnion.storage.turns import DeadlockError
from trunnion.storage.user_caches import user_caches
from trunnion.toolchain.build_cache import kept_file
from trunnion.toolchain.host_compilation import HostCompilation
from trunnion.toolchain.host_compiler import HostCompiler, compiler_environment, counted_environment
from trunnion.toolchain.host_reading import read_host

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

__all__ = ["Entry", "Shim", "cache_folder", "compiler_command", "compiler_problem", "load_shim"]

_SONAME: Final = "libcuda.so.1"
_SOURCE: Final = "shim.c"
_FLAGS: Final = (
    "-std=c11",
    "-O2",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    f"-Wl,-soname,{_SONAME}",
    "-Wl,-Bsymbolic",  # the entry points are those of this file, whatever else has functions of these names
)
_TRIAL: Final = (
    b"#include <stddef.h>\n#include <stdint.h>\n"
    b'__attribute__((visibility("default"))) uint64_t trunnion_sim_thread(void) { return 0; }\n'
)
_TRIAL_SECONDS: Final = 30.0
_NO_LIBRARY: Final = "it reported success and built no library that can be loaded"
_TRY: Final = "import ctypes, sys; ctypes.CDLL(sys.argv[1]).trunnion_sim_thread"


class _EntryStruct(ctypes.Structure):
    _fields_ = (
        ("symbol", ctypes.c_char_p),
        ("base", ctypes.c_char_p),
        ("signature", ctypes.c_char_p),
        ("address", ctypes.c_void_p),
        ("handler", ctypes.c_void_p),
        ("since", ctypes.c_uint32),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One entry point of the shim."""

    symbol: str
    """The exported name, for example ``"cuLaunchKernel_ptsz"``."""

    base: str
    """The name under which ``cuGetProcAddress`` finds it, for example ``"cuLaunchKernel"``."""

    since: int
    """The least CUDA version of this ABI: 1000 x major + 10 x minor."""

    signature: str
    """One letter for each parameter, as ``shim.c`` defines them."""

    address: int
    """The address of the function."""

    slot: int
    """The address of the variable that holds the registered handler."""

    @property
    def per_thread(self) -> bool:
        """Whether the null stream means the per-thread default stream here."""
        return self.symbol.endswith(("_ptsz", "_ptds"))

    @property
    def handler(self) -> str:
        """The symbol without the suffix of its per-thread twin: the name of what handles it."""
        return self.symbol.removesuffix("_ptsz").removesuffix("_ptds")


class Shim:
    """The loaded shim.

    Parameters
    ----------
    path
        The shared library, as `load_shim` built it. It stays mapped until the process ends.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        library = ctypes.CDLL(os.fspath(path), mode=ctypes.RTLD_GLOBAL)
        self._thread = library.trunnion_sim_thread
        self._thread.restype = ctypes.c_uint64
        self._thread.argtypes = ()
        self._holds_lock = library.trunnion_sim_holds_lock
        self.entries = _read_entries(library, "trunnion_sim_entries")
        self.exchange = _read_entries(library, "trunnion_sim_exchange")
        self.allocator = ctypes.cast(library.trunnion_sim_allocate, ctypes.c_void_p).value
        """The address of the exchange API's ``allocate`` itself, which tells its caller that the handler failed."""
        self.pending: list[tuple[int, BaseException]] = []
        """What handlers raised, each with the number of its thread; the native side appends to it."""
        ctypes.c_void_p.in_dll(library, "trunnion_sim_pending").value = id(self.pending)
        self._handlers: list[Callable[..., int]] = []

    def thread(self) -> int:
        """Return a number that names the calling thread and that no other thread of the process has or had."""
        return int(self._thread())

    def holds_lock(self) -> bool:
        """Whether the calling thread held Python's lock when it last called the driver."""
        return bool(self._holds_lock())

    def register(self, entry: Entry, handler: Callable[..., int]) -> None:
        """Forward an entry point to ``handler``, which gets plain integers (None for a null pointer).

        Parameters
        ----------
        entry
            The entry point, or one of the exchange API's functions.
        handler
            Returns the call's status. Where it raises, wherever a signal's exception may arise, the call returns an
            error, and the exception is `pending`.
        """
        self._handlers.append(handler)  # for as long as the process runs: native code knows its address
        ctypes.c_void_p.from_address(entry.slot).value = id(handler)

    def unregister(self) -> None:
        """Let every entry point answer ``CUDA_ERROR_DEINITIALIZED``: native code may call after Python's end."""
        for entry in (*self.entries, *self.exchange):
            ctypes.c_void_p.from_address(entry.slot).value = None


def _read_entries(library: ctypes.CDLL, table: str) -> tuple[Entry, ...]:
    first = ctypes.addressof(_EntryStruct.in_dll(library, table))
    entries: list[Entry] = []
    while (row := _EntryStruct.from_address(first + len(entries) * ctypes.sizeof(_EntryStruct))).symbol:
        entry = Entry(
            symbol=row.symbol.decode(),
            base=row.base.decode(),
            since=row.since,
            signature=row.signature.decode(),
            address=row.address,
            slot=row.handler,
        )
        entries.append(entry)
    return tuple(entries)


def load_shim() -> Shim:
    """Build the shim if the cache lacks it, and load it for the whole process.

    Returns
    -------
    Shim
        The loaded library, with nothing registered.

    Raises
    ------
    LifecycleError
        If this is not Linux, or another ``libcuda`` is mapped already: a process has one.
    DeviceRequirementError
        If there is no C compiler, or no folder that the shim can be built in and loaded from.
    CompileError
        If the compiler fails, or builds nothing that can be loaded.
    UntrustedArtifactError
        If others could have written the cached library.
    """
    _check_process()
    try:
        path = build_shim(cache_folder())
    except (DeviceRequirementError, OSError) as error:
        refused = error if isinstance(error, OSError) else error.__cause__
        if not isinstance(refused, OSError):
            raise
        with scratch_folder() as folder:
            _build(compiler_command(), _source(), folder)
            _check_process()
            shim = Shim(folder / _SONAME)
        if not isinstance(refused, DeadlockError):  # whoever builds it further up in this thread keeps it
            warn_not_kept(
                "the simulated driver is compiled anew each time, because it cannot be kept", refused
            )
        return shim
    _check_process()  # again: a signal's handler may have started one meanwhile
    return Shim(path)


def _check_process() -> None:
    if not sys.platform.startswith("linux"):
        raise LifecycleError(f"the simulated driver runs on Linux only, got {sys.platform}")
    with Path("/proc/self/maps").open(encoding="utf-8", errors="surrogateescape") as maps:
        paths = {line.split(maxsplit=5)[5].strip() for line in maps if line.count(" ") and "/" in line}
    loaded = sorted(path for path in paths if Path(path).name.startswith("libcuda.so"))
    if loaded:
        raise LifecycleError(
            f"another CUDA driver library is loaded in this process ({', '.join(loaded)}); "
            "start the simulator before anything that uses CUDA, or in a process of its own"
        )


def cache_folder() -> Path:
    """Return where compiled shims are kept; errors are those of `user_caches`."""
    return user_caches() / "sim"


def build_shim(cache: Path) -> Path:
    """Return the path of the compiled shim, compiling it if ``cache`` lacks it.

    Parameters
    ----------
    cache
        The folder that holds one folder for each (source, compiler).

    Returns
    -------
    pathlib.Path
        The shared library.

    Raises
    ------
    DeviceRequirementError
        If there is no C compiler, or the folder cannot be used.
    CompileError
        If the compiler fails, or builds nothing that can be loaded.
    UntrustedArtifactError
        If others could have written the cached library.
    """
    source = _source()
    command = compiler_command()
    try:
        return kept_file(cache, _key(source, command), _SONAME, functools.partial(_build, command, source))
    except OSError as error:
        raise DeviceRequirementError(
            "a folder that the simulated driver can be built in",
            f"{error}",
            f"mend or remove {cache}, or set XDG_CACHE_HOME to a folder of yours",
        ) from error


def _source() -> bytes:
    return resources.files("trunnion.sim").joinpath("shim.c").read_bytes()


def _build(command: tuple[str, ...], source: bytes, folder: Path, seconds: float | None = None) -> None:
    _compile(command, source, folder, seconds)
    _check_library(command, source, folder / _SONAME)


def compiler_command() -> tuple[str, ...]:
    """Return the C compiler that builds the simulated driver: the words of ``CC``, else ``cc``.

    Raises
    ------
    DeviceRequirementError
        If there is none, or ``CC`` cannot be read.
    """
    named = os.environ.get("CC", "")
    try:
        words = tuple(shlex.split(named)) or ("cc",)
    except ValueError as error:
        raise DeviceRequirementError(
            "a C compiler to build the simulated driver", f"CC={named!a} ({error})", "mend CC, or unset it"
        ) from error
    found = shutil.which(words[0])
    if found is None:
        raise DeviceRequirementError(
            "a C compiler to build the simulated driver",
            f"no {words[0]!r} on PATH",
            "install gcc or clang (Debian, Ubuntu: apt-get install gcc), or name one in CC",
        )
    return (found, *words[1:])


def compiler_problem(command: tuple[str, ...]) -> str:
    """Return why a compiler cannot build the simulated driver, in one line; empty if it can.

    It builds a small library as the simulated driver is built: what is no compiler says a version all the same.

    Parameters
    ----------
    command
        What `compiler_command` returned.
    """
    try:
        with scratch_folder() as folder:
            _build(command, _TRIAL, folder, _TRIAL_SECONDS)
    except CompileError as error:
        if error.log.startswith(_NO_LIBRARY):
            return _NO_LIBRARY  # the rest speaks of a folder that is gone
        lines = error.log.strip().splitlines() or ["it fails and prints nothing"]
        return next((line for line in lines if "error" in line), lines[-1])
    except subprocess.TimeoutExpired:
        return f"it did not answer within {_TRIAL_SECONDS:g} s"
    except (DeviceRequirementError, OSError) as error:
        return str(error)
    return ""


def _key(source: bytes, command: tuple[str, ...]) -> str:
    executable = Path(command[0]).resolve()
    details = executable.stat()
    identity = (
        str(executable),
        details.st_size,
        details.st_mtime_ns,
        command[1:],
        _FLAGS,
        os.uname().machine,
        _read(source, command),
    )
    return hashlib.sha256(source + repr(identity).encode()).hexdigest()[:32]


def _read(source: bytes, command: tuple[str, ...]) -> tuple[str, str]:
    """Return what identifies the headers of this machine that the source reads, and the environment that counts."""
    machine, environment = os.uname().machine, counted_environment()
    compiler = HostCompiler(command, "cc", "", "", machine, environment)
    options = (*_FLAGS, _SOURCE)
    wanted = HostCompilation(source=_SOURCE, text=source.decode(), output="", options=options)
    try:
        return read_host(compiler, wanted, "sim").text, compiler.fingerprint
    except (CompileError, BackendUnavailableError):  # it cannot compile either, and then that is said
        return "", compiler.fingerprint


def _compile(command: tuple[str, ...], source: bytes, folder: Path, seconds: float | None) -> None:
    text = folder / _SOURCE
    text.write_bytes(source)
    options = (*_FLAGS, str(text), "-o", str(folder / _SONAME))
    done = _run((*command, *options), seconds, compiler_environment(folder))
    if done.returncode != 0:
        raise _refused(command, source, done.stdout + done.stderr, options)


def _check_library(command: tuple[str, ...], source: bytes, library: Path) -> None:
    """Refuse what a process cannot load: it is tried in one of its own, because nothing unloads a driver."""
    if not sys.executable:
        raise DeviceRequirementError(
            "a Python interpreter that tries the simulated driver",
            "a sys.executable that names none",
            "set it to the path of one",
        )
    done = _run((sys.executable, "-I", "-c", _TRY, str(library)))
    if done.returncode != 0:
        refuse_noexec(library.parent, "set XDG_CACHE_HOME to a folder of yours from which code can be loaded")
        said = f"{_NO_LIBRARY}: {done.stderr.strip()}"
        raise _refused(command, source, said, _FLAGS)


def _run(
    words: tuple[str, ...], seconds: float | None = None, environment: Mapping[str, str] | None = None
) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            words,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
            timeout=seconds,
            env=environment,
        )
    except OSError as error:
        raise DeviceRequirementError(
            "a C compiler to build the simulated driver", f"{error}", "name one in CC that can be run"
        ) from error


def _refused(command: tuple[str, ...], source: bytes, log: str, options: tuple[str, ...]) -> CompileError:
    return CompileError(" ".join(command), log, source.decode(), options, os.uname().machine)
