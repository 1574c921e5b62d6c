"""From a `CompileRequest` to a checked job: what the compiling process is told, as JSON."""

from __future__ import annotations

import re
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final

from trunnion.errors import ProgramError, UnsupportedFeatureError, shorten
from trunnion.model.expr import Const
from trunnion_cutedsl.compiler.kernel_name import KernelName, read_kernel_name
from trunnion_cutedsl.compiler.options import Options, read_options
from trunnion_cutedsl.compiler.parameters import Parameter, describe

if TYPE_CHECKING:
    from trunnion.contract.compiler import CompileRequest
    from trunnion.contract.spec import Target
    from trunnion.model.code import DeviceCode
    from trunnion.model.plan import LaunchPlan, PlannedLaunch

__all__ = ["LANGUAGE", "NAME", "Job", "KernelJob", "read_request"]

NAME: Final = "cutedsl"
"""What errors call the compiler."""

LANGUAGE: Final = "cutedsl"
"""What device code for it is written in."""

_ARCH = re.compile(r"sm_[1-9]\d{1,2}[af]?", re.ASCII)
_FILE = re.compile(r"[A-Za-z_]\w{0,99}\.py", re.ASCII)
_MODULE = re.compile(r"([A-Za-z_]\w{0,99}/){0,9}" + _FILE.pattern, re.ASCII)
_RESERVED = "trunnion"
_USUAL_FILE = "kernels.py"


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelJob:
    """One kernel: a function of the text, and how the program launches it."""

    name: KernelName
    """Which function, and its constexpr arguments."""

    parameters: tuple[Parameter, ...]
    """What it is given, in order."""

    block: tuple[int, int, int] | None
    """The threads of each block; None: a call decides them, or launches differ."""

    cluster: tuple[int, int, int] | None
    """The blocks of a cluster."""

    cooperative: bool
    """Whether its blocks wait for one another."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One compilation."""

    arch: str
    """``"sm_90a"``."""

    file_name: str
    """The plain name of the file with the text."""

    source: str
    """The text."""

    modules: tuple[tuple[str, str], ...]
    """Further modules that the text imports: file name, in folders if it is a package's, and text."""

    kernels: tuple[KernelJob, ...]
    """In the request's order."""

    options: Options
    """How it is compiled."""

    def message(self) -> dict[str, Any]:
        """Return what the compiling process is told."""
        message = asdict(self)
        message["options"] = list(self.options.words)
        return message


def read_request(request: CompileRequest) -> Job:
    """Return the job of a request.

    Raises
    ------
    ProgramError
        If a name, an option, an argument's type or the target is none that this compiler takes.
    UnsupportedFeatureError
        If there is no code, more than one part, or the backend loads no cubin.
    """
    if len(request.code) != 1:
        raise UnsupportedFeatureError(
            NAME, [f"{len(request.code)} parts of device code"], "put all CuTeDSL kernels into one DeviceCode"
        )
    if request.accepts and "cubin" not in request.accepts:
        raise UnsupportedFeatureError(NAME, list(request.accepts), "it makes cubins")
    code = request.code[0]
    if code.language != LANGUAGE or not isinstance(code.source, str):
        raise ProgramError(f"got {shorten(code.language)}, expected {LANGUAGE}", field="code.language")
    if code.defines:
        raise ProgramError(
            "got macros, which Python has not: give a kernel constants by name, such as 'gemm(tile=128)'",
            field="code.defines",
        )
    file_name = _file_name(code)
    return Job(
        arch=_arch(request.target),
        file_name=file_name,
        source=code.source,
        modules=_modules(code, file_name),
        kernels=_kernels(request),
        options=read_options(code.options, request.options),
    )


def _arch(target: Target) -> str:
    if target.kind != "cuda" or not _ARCH.fullmatch(target.arch):
        raise ProgramError(
            f"got {shorten(str(target))}, expected a CUDA architecture such as 'sm_90a'", field="target"
        )
    return target.arch


def _file_name(code: DeviceCode) -> str:
    """Return the plain name under which the text's lines are named: its own, if it is one of a Python file."""
    name = code.name.rpartition("/")[2]
    fits = _FILE.fullmatch(name) and not name.startswith(_RESERVED)
    return name if fits else _USUAL_FILE


def _modules(code: DeviceCode, own: str) -> tuple[tuple[str, str], ...]:
    found: dict[str, str] = {}
    for index, (name, text) in enumerate(code.includes):
        field = f"code.includes[{index}]"
        if not _MODULE.fullmatch(name) or name.startswith(_RESERVED):
            raise ProgramError(
                f"got {shorten(name)}, expected the file name of a module, such as 'tiles.py' or 'tiles/sizes.py'",
                field=field,
            )
        if name == own or found.setdefault(name, text) != text:
            raise ProgramError(f"got {shorten(name)} twice", field=field)
    return tuple(found.items())


# Kernels ----------------------------------------------------------------------------------------------------------


def _kernels(request: CompileRequest) -> tuple[KernelJob, ...]:
    plan = request.plan
    if plan is None:
        raise ProgramError("got no plan, expected the one that launches these kernels", field="plan")
    if request.variables:
        raise ProgramError("got some, expected none: CuTeDSL has no module variables", field="variables")
    if tuple(request.kernels) != plan.kernels:
        raise ProgramError("got other kernels than the plan has", field="kernels")
    jobs = []
    for index, kernel in enumerate(plan.kernels):
        name = read_kernel_name(kernel.name, f"kernels[{index}].name")
        launches = [launch for launch in plan.launches if launch.kernel == index]
        jobs.append(_kernel(plan, name, launches))
    return tuple(jobs)


def _kernel(plan: LaunchPlan, name: KernelName, launches: list[PlannedLaunch]) -> KernelJob:
    """Return the one description under which all launches of a kernel agree."""
    described = [_parameters(plan, launch) for launch in launches]
    for launch, parameters in zip(launches[1:], described[1:], strict=True):
        for ordinal, (first, other) in enumerate(zip(described[0], parameters, strict=True)):
            if first != other:
                raise ProgramError(
                    f"got {other}, where launch {launches[0].index} gives {shorten(name.function)} {first}: a kernel "
                    "of CuTeDSL is compiled for one; give the other a name of its own, or a constant of its own",
                    field=f"launches[{launch.index}].args[{ordinal}]",
                )
    for launch in launches:
        if launch.computed_cluster:
            raise ProgramError(
                f"got a cluster that each call decides for {shorten(name.function)}: a kernel of CuTeDSL is "
                "compiled for one; write constants",
                field=f"launches[{launch.index}].cluster",
            )
    clusters = {launch.attribute("cluster") or None for launch in launches}
    if len(clusters) > 1:
        raise ProgramError(
            f"got several clusters for {shorten(name.function)}: a kernel of CuTeDSL is compiled for one",
            field=f"launches[{launches[-1].index}].cluster",
        )
    blocks = {_block(launch) for launch in launches}
    return KernelJob(
        name=name,
        parameters=described[0],
        block=blocks.pop() if len(blocks) == 1 else None,
        cluster=clusters.pop(),  # type: ignore[arg-type]  # a cluster has three extents
        cooperative=any(launch.attribute("cooperative") for launch in launches),
    )


def _parameters(plan: LaunchPlan, launch: PlannedLaunch) -> tuple[Parameter, ...]:
    return tuple(
        describe(plan, argument, f"launches[{launch.index}].args[{ordinal}]")
        for ordinal, argument in enumerate(launch.args)
    )


def _block(launch: PlannedLaunch) -> tuple[int, int, int] | None:
    x, y, z = (extent.value if isinstance(extent, Const) else 0 for extent in launch.block)
    return (x, y, z) if x and y and z else None
