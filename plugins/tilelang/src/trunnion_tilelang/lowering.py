"""`from_prim_func` and `from_jit`: TileLang's functions as programs, lowered here, with no GPU."""

from __future__ import annotations

import re
from collections.abc import Iterable
from importlib import import_module
from typing import TYPE_CHECKING, Any

from trunnion.contract.spec import Target
from trunnion.errors import BackendUnavailableError, ProgramError
from trunnion.messages import describe, first_line, type_name
from trunnion_tilelang.artifact import positions, program_of
from trunnion_tilelang.compiler_flags import compiler_flags
from trunnion_tilelang.device_source import device_code
from trunnion_tilelang.tir import artifact_module

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trunnion.model.program import KernelProgram

__all__ = [
    "TUNED_FOR",
    "Lowered",
    "from_jit",
    "from_prim_func",
    "lower",
    "require_tilelang",
    "tilelang_target",
]

_OURS = re.compile(r"(?:cuda:)?(sm_[0-9]{2,3}[af]?)")  # how trunnion writes a CUDA device

TUNED_FOR = "trunnion.backend"
"""A setting of ours among TileLang's; it says for which backend something is tuned, and nothing about lowering."""


def from_prim_func(
    func: Any,
    target: Any = None,
    pass_configs: Mapping[Any, Any] | None = None,
    *,
    out_idx: int | Sequence[int] | None = None,
    name: str | None = None,
    compile_flags: str | Iterable[str] | None = None,
) -> KernelProgram:
    """Lower a function of TileLang's, and return its program.

    Parameters
    ----------
    func
        What ``@T.prim_func`` returns.
    target
        What to lower for: a target as trunnion writes it (``"sm_90a"``, ``"cuda:sm_90a"``), one of TileLang's, or a
        dict such as ``{"kind": "cuda", "arch": "sm_90a"}`` or ``{"kind": "cutedsl", "arch": "sm_90a"}``; None: the
        target whose context this is, else TileLang's default, for which it asks the GPU.
    pass_configs
        TileLang's; they come before those that the function itself brings.
    out_idx
        The positions of the parameters that are outputs; None: those that the function itself says.
    name
        What people call the program; None: the function's name.
    compile_flags
        Flags for the device compiler, as they are written for nvcc.

    Raises
    ------
    BackendUnavailableError
        If TileLang is not installed.
    UnsupportedStatementError
        If the host function does what a program cannot say; the statement is named.
    ProgramError
        If it is no function of TileLang's, or TileLang knows no such target, or there is no GPU to ask.
    """
    return lower(func, target, pass_configs, compile_flags).program(out_idx, name)


def from_jit(jit_object: Any, *args: Any, **named: Any) -> KernelProgram:
    """Lower what ``@tilelang.jit`` has made, with its settings, and return its program.

    Parameters
    ----------
    jit_object
        What the decorator returns.
    *args, **named
        What a call of it takes.

    Raises
    ------
    UnsupportedStatementError
        If the host function does what a program cannot say; the statement is named.
    ProgramError
        If it is no such object, or as for `from_prim_func`.
    """
    if not hasattr(jit_object, "get_tir"):
        raise ProgramError(
            f"got {type_name(jit_object)}, expected what @tilelang.jit returns", field="jit_object"
        )
    lowered = lower(
        jit_object.get_tir(*args, **named),
        jit_object.target,
        jit_object.pass_configs,
        jit_object.compile_flags,
    )
    return lowered.program(jit_object.out_idx)


class Lowered:
    """A function of TileLang's, lowered.

    Parameters
    ----------
    func
        The function, as its author wrote it.
    artifact
        What ``tilelang.lower`` made of it.
    pass_configs, compile_flags
        Its own settings, and over them the caller's.
    """

    def __init__(
        self, func: Any, artifact: Any, pass_configs: Mapping[str, Any], compile_flags: Sequence[str]
    ) -> None:
        self.func, self.artifact = func, artifact
        self.pass_configs, self.compile_flags = pass_configs, compile_flags

    def program(self, out_idx: int | Sequence[int] | None, name: str | None = None) -> KernelProgram:
        """Return its program.

        Raises
        ------
        UnsupportedStatementError
            If the host function does what a program cannot say.
        ProgramError
            If the outputs are said twice, or one is no output that can be.
        """
        module = artifact_module(self.artifact)
        called = name or module.host.name
        code = device_code(module, compiler_flags(self.pass_configs, self.compile_flags), called)
        return program_of(module, code, out_idx=self.outputs(out_idx), name=called)

    def outputs(self, out_idx: int | Sequence[int] | None) -> tuple[int, ...]:
        """Return the positions of the parameters that are outputs, as they are given, negative ones too.

        Parameters
        ----------
        out_idx
            What the caller says; None: what the function itself does.

        Raises
        ------
        ProgramError
            If both say it, or the caller gives no integers.
        """
        own = _attributes(self.func).get("tilelang_out_idx")
        if own is not None and out_idx is not None:
            raise ProgramError(
                "got one, and the function returns tensors of its own; leave it out", field="out_idx"
            )
        if own is not None:
            return tuple(int(index) for index in own)
        return () if out_idx is None else positions(out_idx)


def lower(
    func: Any,
    target: Any = None,
    pass_configs: Mapping[Any, Any] | None = None,
    compile_flags: str | Iterable[str] | None = None,
) -> Lowered:
    """Lower a function of TileLang's.

    Parameters
    ----------
    func, target, pass_configs, compile_flags
        As for `from_prim_func`.

    Raises
    ------
    ProgramError
        As `from_prim_func` does. What TileLang itself refuses, it raises as it is.
    """
    require_tilelang()
    import tilelang  # noqa: PLC0415 - it takes seconds, and loads TVM
    from tilelang import tvm  # noqa: PLC0415 - as above
    from tilelang.transform.pass_config import normalize_pass_configs  # noqa: PLC0415 - as above

    if not isinstance(func, tvm.tirx.PrimFunc):
        raise ProgramError(f"got {type_name(func)}, expected what @T.prim_func returns", field="func")
    if not isinstance(compile_flags, (str, Iterable, type(None))):
        raise ProgramError(f"got {describe(compile_flags)}, expected texts", field="compile_flags")
    attributes = _attributes(func)
    own = attributes.get("tilelang_pass_configs")
    configs = normalize_pass_configs({**(dict(own) if own is not None else {}), **(pass_configs or {})})
    configs.pop(TUNED_FOR, None)
    chosen = tilelang_target(target)
    with tvm.transform.PassContext(opt_level=3, config=configs), chosen:
        artifact = tilelang.lower(func, target=chosen)
    flags = [compile_flags] if isinstance(compile_flags, str) else list(compile_flags or ())
    return Lowered(func, artifact, configs, [*map(str, attributes.get("tilelang_compile_flags", ())), *flags])


def require_tilelang() -> None:
    """Import TileLang, which takes seconds, and loads TVM.

    Raises
    ------
    BackendUnavailableError
        If it is not installed.
    """
    try:
        import_module("tilelang")
    except ModuleNotFoundError as error:
        if error.name != "tilelang":  # something that it needs itself
            raise
        advice = "it is not installed; pip install 'trunnion-tilelang[tilelang]'"
        raise BackendUnavailableError("tilelang", "", advice) from error


def tilelang_target(target: Any) -> Any:
    """Return a target as TVM's object.

    Parameters
    ----------
    target
        As for `from_prim_func`.

    Raises
    ------
    ProgramError
        If TileLang knows no such target, or there is no GPU to ask.
    """
    from tilelang import tvm  # noqa: PLC0415 - it takes seconds
    from tilelang.backend.target import determine_target  # noqa: PLC0415 - as above
    from tilelang.env import env  # noqa: PLC0415 - as above

    given = env.get_default_target() if target is None else target
    if isinstance(given, Target):
        given = str(given)
    ours = _OURS.fullmatch(given) if isinstance(given, str) else None
    if ours is not None:
        given = {"kind": "cuda", "arch": ours[1]}
    if target is not None and _lacks_architecture(given):
        raise ProgramError(
            f"got {describe(target)}, which names no architecture, and there is no GPU to take one from; "
            "name it: 'sm_90a', or {'kind': 'cuda', 'arch': 'sm_90a'}",
            field="target",
        )
    try:
        found = determine_target(given, return_object=True)
    except (AssertionError, AttributeError, RuntimeError, TypeError, ValueError) as error:
        asked = (
            "a GPU, which TileLang asks for its architecture"
            if target is None
            else "a target that TileLang knows"
        )
        raise ProgramError(
            f"got {describe(target)}, expected {asked}, such as 'sm_90a' or {{'kind': 'cuda', 'arch': 'sm_90a'}}: "
            f"{first_line(error)}",
            field="target",
        ) from error
    made = found if isinstance(found, tvm.target.Target) else tvm.target.Target(found)
    if str(made.kind.name) != "cuda":
        raise ProgramError(
            f"got {describe(target)}, expected a CUDA device, such as 'sm_90a' or "
            "{'kind': 'cutedsl', 'arch': 'sm_90a'}",
            field="target",
        )
    return made


def _lacks_architecture(given: Any) -> bool:
    """Whether TileLang would guess an architecture: it takes sm_50 where nothing names one."""
    from torch import cuda  # noqa: PLC0415 - only a target without an architecture needs it

    texts = {"cuda", "cutedsl"}
    kind = given.get("kind") if isinstance(given, dict) else given
    named = isinstance(given, dict) and "arch" in given
    return isinstance(kind, str) and kind in texts and not named and not cuda.is_available()


def _attributes(func: Any) -> Mapping[str, Any]:
    return dict(func.attrs.items()) if func.attrs is not None else {}
