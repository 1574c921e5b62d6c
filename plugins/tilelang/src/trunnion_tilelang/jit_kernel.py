"""TileLang's JIT objects with trunnion behind them: subclasses of its own, so that all that it builds on them works."""

from __future__ import annotations

import inspect
import logging
import os
import tempfile
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from tilelang.jit import JITImpl
from tilelang.jit.adapter import BaseKernelAdapter
from tilelang.jit.kernel import JITKernel
from tilelang.language.eager import prim_func

from trunnion.compilation import compile as compile_program
from trunnion.errors import ArgumentTypeError, shorten
from trunnion.model.params import TensorParam
from trunnion_tilelang.lowering import TUNED_FOR, lower, tilelang_target

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

    from trunnion.compiled import CompiledProgram
    from trunnion_tilelang.lowering import Lowered
    from trunnion_tilelang.settings import Settings

__all__ = ["Kernel", "KernelAdapter", "KernelMaker", "compile_kernel", "compile_kernels", "decorate"]

_LOG = logging.getLogger(__name__)

_OF_KERNELS = ("out_idx", "target", "verbose", "pass_configs", "compile_flags")
"""Those of TileLang's arguments that say something about a kernel."""


def decorate(settings: Settings, theirs: Mapping[str, Any]) -> Callable[[Any], KernelMaker]:
    """Return a decorator.

    Parameters
    ----------
    settings
        How programs are compiled.
    theirs
        The keyword arguments of ``tilelang.jit``.
    """

    def decorator(func: Any) -> KernelMaker:
        # Not by TileLang's decorator: this may be what stands in its place.
        function = prim_func(func, eager_jit=True)
        maker = KernelMaker(
            **{**theirs, **_kept(settings, theirs)},
            execution_backend=None,
            target_host=None,
            func=function,
            func_source=inspect.getsource(function.orig_func),
            signature=inspect.signature(function.orig_func),
            mode="auto",
        )
        maker.settings = settings
        return maker

    return decorator


def _kept(settings: Settings, theirs: Mapping[str, Any]) -> dict[str, Any]:
    """Return those of TileLang's arguments that its object keeps in another form than they are given."""
    # TileLang's autotuner takes up what was tuned before, under a key that has these: not what others tuned.
    configs = {**(theirs["pass_configs"] or {}), TUNED_FOR: settings.backend}
    return {"pass_configs": configs, "target": _known_to_tilelang(theirs["target"])}


def _known_to_tilelang(target: Any) -> Any:
    """Return a target that TileLang reads too; None stays so, because what it means may differ from call to call."""
    return None if target is None else tilelang_target(target)


class KernelMaker(JITImpl):  # type: ignore[misc] # TileLang is not there when types are checked
    """What `trunnion_tilelang.jit` returns: TileLang's object, whose kernels are compiled by trunnion.

    TileLang's class finds out how it was called, keeps one kernel for each set of compile-time arguments, and launches
    at once where the function is the kernel.
    """

    settings: Settings
    """How programs are compiled."""

    def compile(self, *args: Any, **kwargs: Any) -> Kernel:
        """Return the kernel for these compile-time arguments; TileLang's class keeps it.

        Raises
        ------
        TrunnionError
            As `trunnion_tilelang.from_prim_func` and `trunnion.compile` do.
        """
        kernel = self._kernel(self.get_tir(*args, **kwargs))
        if self.debug_root_path:
            self._write_sources(kernel)
        return kernel

    def par_compile(
        self,
        configs: Iterable[Mapping[str, Any] | tuple[Any, ...]],
        num_workers: int | None = None,
        ignore_error: bool = False,
    ) -> list[Kernel | None]:
        """Return the kernels for several sets of compile-time arguments, compiled at once.

        Parameters
        ----------
        configs
            For each kernel its arguments, by position or by name.
        num_workers
            The most threads.
        ignore_error
            Whether a kernel that cannot be made is None, and logged.

        Raises
        ------
        TrunnionError
            As `compile` does, unless errors are ignored.
        """
        funcs = [
            self.get_tir(*config) if isinstance(config, tuple) else self.get_tir(**config)
            for config in configs
        ]
        return compile_kernels(funcs, self.settings, self._theirs(), num_workers, ignore_error=ignore_error)

    def _kernel(self, func: Any) -> Kernel:
        return compile_kernel(func, self.settings, self._theirs())

    def _theirs(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in _OF_KERNELS}

    def _write_sources(self, kernel: Kernel) -> None:
        folder = Path(self.debug_root_path)
        folder.mkdir(parents=True, exist_ok=True)
        name = getattr(self.func, "__name__", "jit_kernel")
        suffix = "py" if kernel.compiled.program.code[0].language == "cutedsl" else "c"
        (folder / f"tilelang_jit_kernel_{name}.{suffix}").write_text(kernel.get_kernel_source())
        (folder / f"tilelang_jit_program_{name}.py").write_text(kernel.prim_func.script())


class Kernel(JITKernel):  # type: ignore[misc] # as above
    """One of TileLang's kernels, which trunnion has compiled and launches.

    Parameters
    ----------
    lowered
        The function, lowered.
    outputs
        The positions of its outputs among its parameters.
    compiled
        Its program, compiled.
    verbose
        Whether TileLang's tools say what they do.
    """

    def __init__(
        self, lowered: Lowered, outputs: Sequence[int], compiled: CompiledProgram, verbose: bool
    ) -> None:
        # TileLang's own constructor would compile.
        self.compiled = compiled
        self.prim_func, self.artifact = lowered.func, lowered.artifact
        self.target, self.target_host = lowered.artifact.target, lowered.artifact.target_host
        self.pass_configs, self.compile_flags = dict(lowered.pass_configs), list(lowered.compile_flags)
        self.verbose = verbose
        self.execution_backend = "trunnion"
        signature = compiled.program.signature
        self._names = tuple(param.name for param in signature.params)
        self._outputs = len(signature.outputs)
        self._has_tensors = any(isinstance(param, TensorParam) for param in signature.params)
        self._entry: Callable[..., Any] | None = None
        self.adapter = KernelAdapter(self, list(outputs))
        self.torch_function = self.__call__

    def __call__(self, /, *args: Any, **named: Any) -> Any:
        """Launch the kernel.

        Parameters
        ----------
        *args, **named
            The inputs, in order or by name; besides ``stream`` and ``device``, as a `CompiledProgram`'s call takes
            them, unless an input has that name.

        Returns
        -------
        Any
            The output; a list if there are several; an empty list if there is none.

        Raises
        ------
        TrunnionError
            As a `CompiledProgram`'s call does.
        """
        entry = self._entry
        if entry is None or named:
            return self._returned(self._comfortable(args, named))
        return entry(*args)

    def _returned(self, result: Any) -> Any:
        """Return what a program returns as TileLang does."""
        return result if self._outputs == 1 else list(result or ())

    def _comfortable(self, args: Sequence[Any], named: Mapping[str, Any]) -> Any:
        """Call the program for the first time, with arguments that are named, or on the current device."""
        if self._has_tensors and not named:  # the first call: those after it go the short way
            entry = self.compiled.entry
            self._entry = entry if self._outputs == 1 else lambda *inputs: self._returned(entry(*inputs))
            return entry(*args)
        given = dict(zip(self._names, args, strict=False))
        how: dict[str, Any] = {}
        for name, value in named.items():
            if name in self._names and name not in given:
                given[name] = value
            elif name in ("stream", "device") and name not in self._names:
                how[name] = value
            else:
                twice = "it by position and by name" if name in given else "it by name"
                raise ArgumentTypeError(name, twice, f"each of {', '.join(self._names) or 'no inputs'} once")
        if not self._has_tensors:
            how.setdefault("device", torch.cuda.current_device() if torch.cuda.is_available() else 0)
        if len(args) > len(self._names) or len(given) < len(self._names):
            lacking = ", ".join(shorten(name) for name in self._names if name not in given)
            got = f"{len(args) + len(named) - len(how)} arguments{f' without {lacking}' if lacking else ''}"
            raise ArgumentTypeError("", got, str(len(self._names)))
        return self.compiled(*(given[name] for name in self._names), **how)

    def get_kernel_source(self, kernel_only: bool = True) -> str:
        """Return the device code's text.

        Parameters
        ----------
        kernel_only
            Whether to leave out the launcher's, which comes after it.
        """
        device = self.compiled.device_source
        return device if kernel_only else f"{device}\n\n{self.get_host_source()}"

    def get_host_source(self) -> str:
        """Return the launcher's text."""
        return self.compiled.host_source

    def export_library(self, kernel_file: str) -> None:
        """Save what was built, as a folder that `trunnion.load` takes, on a machine without TileLang too.

        Parameters
        ----------
        kernel_file
            The folder.
        """
        self.compiled.artifact.save(kernel_file)


def compile_kernel(func: Any, settings: Settings, theirs: Mapping[str, Any]) -> Kernel:
    """Return the kernel of a function, as ``tilelang.compile`` does.

    Parameters
    ----------
    func
        What ``@T.prim_func`` returns.
    settings
        How programs are compiled.
    theirs
        The keyword arguments of ``tilelang.compile``.

    Raises
    ------
    TrunnionError
        As `trunnion_tilelang.from_prim_func` and `trunnion.compile` do.
    """
    lowered = lower(func, theirs["target"], theirs["pass_configs"], theirs["compile_flags"])
    compiled = compile_program(
        lowered.program(theirs["out_idx"]),
        settings.backend,
        compiler=settings.compiler,
        options=settings.options,
        cache=settings.cache,
        trust=True,  # the text comes from a function of this process
    )
    return Kernel(lowered, lowered.outputs(theirs["out_idx"]), compiled, bool(theirs["verbose"]))


def compile_kernels(
    funcs: Iterable[Any],
    settings: Settings,
    theirs: Mapping[str, Any],
    num_workers: int | None,
    *,
    ignore_error: bool,
) -> list[Kernel | None]:
    """Return the kernels of several functions, compiled at once, as ``tilelang.par_compile`` does.

    Parameters
    ----------
    funcs
        What ``@T.prim_func`` returns.
    settings, theirs
        As for `compile_kernel`.
    num_workers
        The most threads.
    ignore_error
        Whether a kernel that cannot be made is None, and logged.

    Raises
    ------
    TrunnionError
        As `compile_kernel` does, unless errors are ignored.
    """

    def made(func: Any) -> Kernel | None:
        try:
            return compile_kernel(func, settings, theirs)
        except Exception:  # whatever keeps one from being made: that is what ignore_error is about
            if not ignore_error:
                raise
            _LOG.warning("a configuration was left out", exc_info=True)
            return None

    with ThreadPoolExecutor(num_workers) as pool:
        return list(pool.map(made, funcs))


class KernelAdapter(BaseKernelAdapter):  # type: ignore[misc] # as above
    """What TileLang's profiler and autotuner ask a kernel for.

    Parameters
    ----------
    kernel
        The kernel.
    result_idx
        The positions of its outputs among the function's parameters.
    """

    def __init__(self, kernel: Kernel, result_idx: list[int]) -> None:
        self._kernel = kernel
        self._file = ""
        super().__init__(kernel.artifact.device_mod, kernel.artifact.params, result_idx)

    def _convert_torch_func(self) -> Callable[..., Any]:
        return self._kernel

    def get_kernel_source(self, kernel_only: bool = True) -> str:
        """Return the device code's text; see `Kernel.get_kernel_source`."""
        return self._kernel.get_kernel_source(kernel_only)

    def get_host_source(self) -> str:
        """Return the launcher's text."""
        return self._kernel.get_host_source()

    @property
    def libpath(self) -> str:
        """A file with the program as JSON, for as long as this object lives: what the autotuner keeps of a kernel."""
        if not self._file:
            handle, self._file = tempfile.mkstemp(suffix=".json")
            weakref.finalize(self, Path(self._file).unlink, missing_ok=True)
            with os.fdopen(handle, "w", encoding="utf-8") as file:
                file.write(self._kernel.compiled.program.to_json())
        return self._file
