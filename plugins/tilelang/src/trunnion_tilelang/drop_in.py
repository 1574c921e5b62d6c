"""`jit`: stands in for ``@tilelang.jit``, with any backend behind it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trunnion.errors import ProgramError
from trunnion.messages import describe, spelled
from trunnion_tilelang.lowering import require_tilelang
from trunnion_tilelang.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

__all__ = ["jit", "refuse_launchers"]


def jit(  # noqa: PLR0913 - all that TileLang's decorator takes, and what trunnion.compile does
    func: Any = None,
    *,
    backend: str = "auto",
    out_idx: int | Sequence[int] | None = None,
    target: Any = None,
    target_host: Any = None,
    execution_backend: str | None = None,
    verbose: bool | None = None,
    pass_configs: Mapping[Any, Any] | None = None,
    debug_root_path: str | None = None,
    compile_flags: str | Sequence[str] | None = None,
    compiler: str | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    cache: Any = True,
) -> Any:
    """Decorate a function as ``@tilelang.jit`` does; trunnion compiles and launches its kernels.

    What is returned is TileLang's own object, and what its call returns is one of TileLang's kernels: both styles work
    (a function that returns a ``T.prim_func``, and one that is the kernel itself), as do ``tilelang.autotune`` over it,
    ``get_kernel_source()``, ``get_profiler()`` and ``par_compile()``. A kernel is called as TileLang's are: with its
    inputs in order, by name too; it returns the output, a list of several, or an empty list.

    Parameters
    ----------
    func
        The function; None: what is returned decorates one.
    backend, compiler, options, cache
        As for `trunnion.compile`. CuTeDSL text is trusted: it comes from the function that is decorated.
    out_idx, target, pass_configs, compile_flags, verbose, debug_root_path
        TileLang's; a target may also be an architecture, ``"sm_90a"``.
    target_host, execution_backend
        TileLang's way to choose who launches; only None and ``"auto"`` are taken, because ``backend`` says it here.

    Raises
    ------
    ProgramError
        If TileLang's launchers are chosen.
    """
    refuse_launchers(target_host=target_host, execution_backend=execution_backend)
    require_tilelang()
    from trunnion_tilelang.jit_kernel import decorate  # noqa: PLC0415 - it imports TileLang, which takes seconds

    settings = Settings.of(backend, compiler, options, cache)
    theirs = {
        "out_idx": out_idx,
        "target": target,
        "verbose": verbose,
        "pass_configs": pass_configs,
        "debug_root_path": debug_root_path,
        "compile_flags": compile_flags,
    }
    return decorate(settings, theirs) if func is None else decorate(settings, theirs)(func)


def refuse_launchers(**choices: Any) -> None:
    """Refuse what chooses among TileLang's own launchers.

    Parameters
    ----------
    **choices
        What was given for ``target_host`` and ``execution_backend``.

    Raises
    ------
    ProgramError
        If one is anything but None and ``"auto"``.
    """
    for name, value in choices.items():
        if value is not None and spelled(value) != "auto":
            raise ProgramError(
                f"got {describe(value)}, expected none: it chooses one of TileLang's own launchers; backend= "
                "chooses among trunnion's, and the target {'kind': 'cutedsl', 'arch': ...} makes CuTeDSL text",
                field=name,
            )
