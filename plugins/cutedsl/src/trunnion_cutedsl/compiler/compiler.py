"""The device compiler ``cutedsl``: CuTeDSL text to a cubin, in a process of its own. It needs no device."""

from __future__ import annotations

import ast
import re
import uuid
from typing import TYPE_CHECKING

from trunnion.contract.compiler import DeviceCompiler, DeviceImage, ImageKernel
from trunnion.contract.spec import Target
from trunnion.errors import ProgramError, shorten
from trunnion.image.cubin import read_cubin
from trunnion.toolchain.device import device_arch
from trunnion_cutedsl.compiler.answer import read_answer
from trunnion_cutedsl.compiler.diagnostics import compile_error, raise_answer
from trunnion_cutedsl.compiler.request import read_request
from trunnion_cutedsl.compiler.workers import TooSlowError, WorkerDiedError, workers
from trunnion_cutedsl.release import components, require_release

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.contract.compiler import CompileRequest
    from trunnion.image.cubin import CubinInfo
    from trunnion_cutedsl.compiler.answer import KernelFacts
    from trunnion_cutedsl.compiler.request import Job
    from trunnion_cutedsl.compiler.workers import Workers

__all__ = ["CuteDslCompiler"]

_NUMBER = re.compile(r"[0-9]+")
# Modules whose functions give the same for the same arguments, always and everywhere.
_PURE = frozenset({
    "__future__", "abc", "base64", "binascii", "bisect", "cmath", "collections", "colorsys", "contextlib", "copy",
    "cutlass", "dataclasses", "decimal", "enum", "fractions", "functools", "graphlib", "hashlib", "heapq", "inspect",
    "itertools", "json", "keyword", "math", "numbers", "operator", "re", "statistics", "string", "struct", "textwrap",
    "types", "typing", "typing_extensions", "unicodedata", "warnings",
})  # fmt: skip
_DOORS = frozenset({"__builtins__", "__import__", "eval", "exec", "input", "open"})
_VERSION = 3  # of what this plugin makes of a request; it changes whenever some image does


class CuteDslCompiler(DeviceCompiler):
    """The device compiler ``cutedsl``.

    Its source is Python, which runs when it is compiled: only who trusts it compiles it.

    Parameters
    ----------
    pool
        The processes that compile; None: those of this process.
    """

    def __init__(self, pool: Workers | None = None) -> None:
        self._pool = pool

    def compile(self, request: CompileRequest) -> DeviceImage:
        """Return the image of all kernels of a program.

        Raises
        ------
        CompileError
            If the text raises, CuTeDSL refuses it, or it takes too long; with CuTeDSL's message and the lines of the
            text that it came through.
        ProgramError
            If a name, an argument, an option or the target is none that this compiler takes.
        UnsupportedFeatureError
            If there is no code, or more than one part.
        BackendUnavailableError
            If CuTeDSL is missing, or another version.
        """
        job = read_request(request)
        release = require_release()
        message = job.message()
        for kernel, one in zip(message["kernels"], job.kernels, strict=True):
            kernel["prefix"] = one.name.prefix
        try:
            head, data = (self._pool or workers()).run(job.arch, message, job.options.seconds)
            answer = read_answer(head)
        except TooSlowError as error:
            limit = f"it took longer than {job.options.seconds:g} s, and was ended; options: seconds"
            raise compile_error(limit, job) from error
        except WorkerDiedError as error:
            raise compile_error("the process that compiled ended without an answer", job) from error
        except ProgramError as error:
            raise compile_error(
                f"the process that compiled gave no answer that can be read: {error}", job
            ) from error
        raise_answer(answer, job)
        info = read_cubin(data)
        if _NUMBER.findall(info.arch) != _NUMBER.findall(job.arch):  # of a letter the file says nothing
            raise compile_error(
                f"the text left a cubin for {shorten(info.arch)}, expected one for {job.arch}", job
            )
        return DeviceImage(
            kind="cubin",
            data=data,
            target=request.target,
            kernels=_kernels(request, answer.kernels, info),
            log=answer.log,
            toolchain={"cutedsl": release, **components()},
        )

    def environment(self, request: CompileRequest) -> dict[str, str]:
        """Return a value that never comes again if the text may depend on what nobody here knows.

        CuTeDSL and those modules of Python's own library that only compute are part of `fingerprint`, and the modules
        that the code brings along are part of the program. What else a text imports, by a statement or by a function,
        may change, or look at files, the environment and the clock.
        """
        job = read_request(request)
        own = {name.partition("/")[0].removesuffix(".py") for name, _ in job.modules}
        imported, called = _reached(job)
        strange = [f"imported {name}" for name in sorted(imported - own - _PURE)]
        strange += [f"used {name}" for name in sorted(called & _DOORS)]
        return {name: uuid.uuid4().hex for name in strange}

    def fingerprint(self) -> str:
        """Return the versions of CuTeDSL's distributions, of Python, and of this module."""
        said = ", ".join(f"{name} {version}" for name, version in components().items())
        return f"{said}, request form {_VERSION}"

    def default_target(self) -> Target | None:
        """Return the target of device 0; None without a driver or a device."""
        arch = device_arch(0)
        return None if arch is None else Target("cuda", arch)


def _reached(job: Job) -> tuple[set[str], set[str]]:
    """Return the packages that the text and its modules import by a statement, and the names that they use."""
    found: set[str] = set()
    used: set[str] = set()
    for text in (job.source, *(text for _, text in job.modules)):
        try:
            tree = ast.parse(text)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            continue  # it will not compile
        for node in ast.walk(tree):
            if isinstance(node, ast.Import):
                found |= {alias.name.partition(".")[0] for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module.partition(".")[0])
            elif isinstance(node, ast.Name):
                used.add(node.id)
    return found, used


def _kernels(
    request: CompileRequest, facts: Sequence[KernelFacts], info: CubinInfo
) -> tuple[ImageKernel, ...]:
    """Return the kernels, each with what the cubin itself says of it."""
    if len(facts) != len(request.kernels):
        raise ProgramError(
            f"the text launches {len(facts)} kernels, expected {len(request.kernels)}", field="code"
        )
    kernels = []
    for signature, fact in zip(request.kernels, facts, strict=True):
        symbol = fact.symbol
        kernel = info.kernel(symbol)
        if kernel is None:
            known = ", ".join(shorten(one.name) for one in info.kernels) or "none"
            raise ProgramError(f"{shorten(symbol)} is not in the cubin, which has {known}", field="code")
        kernels.append(
            ImageKernel(
                signature.name,
                symbol,
                kernel.parameters,
                dynamic_smem_bytes=fact.dynamic_smem_bytes,
            )
        )
    return tuple(kernels)
