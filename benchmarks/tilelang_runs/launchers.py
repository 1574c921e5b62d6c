"""Who launches: each of our backends, and each of TileLang's own adapters."""

from __future__ import annotations

import functools
import importlib
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import torch

import trunnion

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from pathlib import Path

__all__ = [
    "LAUNCHERS",
    "OURS",
    "PAIRS",
    "THEIRS",
    "Launcher",
    "corpus_entry",
    "device_name",
    "large_names",
    "names",
]

_ARCH = "sm_90a"
_DECLARED = "tilelang_out_idx"


@dataclass(frozen=True)
class Launcher:
    """One column of the table: a way to compile a kernel and to launch it."""

    name: str
    """What it is called there."""

    way: str
    """The backend, or TileLang's ``execution_backend``."""

    kind: str
    """What is lowered for: ``"cuda"``, which makes CUDA C++, or ``"cutedsl"``, which makes CuTeDSL's Python."""

    ours: bool
    """Whether trunnion launches."""

    whole: bool = True
    """Whether it has to be right of every kernel: of ours, unless TileLang itself writes the text only for some."""

    def made(self, entry: Any, folder: Path) -> Callable[..., Any]:
        """Compile a kernel and return what launches it; what was compiled before is taken from a folder.

        Parameters
        ----------
        entry
            The kernel, as the corpus describes it.
        folder
            Where what is compiled is kept.
        """
        return self._trunnion(entry, folder) if self.ours else self._tilelang(entry)

    def _trunnion(self, entry: Any, folder: Path) -> Callable[..., Any]:
        kept = folder / f"{entry.name}-{self.kind}-{self.way}"
        if kept.is_dir():
            program = trunnion.load(kept)
        else:
            program = trunnion.compile(self._imported(entry), self.way, trust=True)
            program.artifact.save(kept)
        # What gets addresses gets no tensor, which would say where it lies.
        return functools.partial(program, device=0) if entry.pointers else program.entry

    def _imported(self, entry: Any) -> Any:
        importer: Any = importlib.import_module("trunnion_tilelang")
        func = entry.make()
        return importer.from_prim_func(
            func,
            {"kind": self.kind, "arch": _ARCH},
            entry.pass_configs,
            out_idx=indices_to_ask(func, entry.out_idx),
            name=f"tilelang_{entry.name}",
        )

    def _tilelang(self, entry: Any) -> Callable[..., Any]:
        """Let TileLang compile; its cache is where the environment says."""
        tilelang: Any = importlib.import_module("tilelang")
        targets: Any = importlib.import_module("tilelang.backend.target")
        func = entry.make()
        target = targets.determine_target({"kind": self.kind, "arch": _ARCH}, return_object=True)
        with target:  # its NVRTC adapter takes the architecture from here
            kernel = tilelang.compile(
                func,
                out_idx=indices_to_ask(func, entry.out_idx),
                execution_backend=self.way,
                target=target,
                pass_configs=dict(entry.pass_configs) or None,
            )
        return kernel.torch_function  # type: ignore[no-any-return] # what calling the kernel calls


def indices_to_ask(func: Any, out_idx: Sequence[int]) -> list[int] | None:
    """Return the output indices to ask for: those that a function declares are not to be said again.

    Parameters
    ----------
    func
        The PrimFunc.
    out_idx
        The corpus's.
    """
    declared = func.attrs is not None and _DECLARED in func.attrs
    return None if declared or not out_idx else list(out_idx)


OURS = (
    Launcher("trunnion nvrtc", "nvrtc", "cuda", ours=True),
    Launcher("trunnion tvm_ffi", "tvm_ffi", "cuda", ours=True),
    Launcher("trunnion cutedsl", "cutedsl", "cuda", ours=True),
    Launcher("trunnion cutedsl text", "cutedsl", "cutedsl", ours=True, whole=False),
)
THEIRS = (
    Launcher("TileLang nvrtc", "nvrtc", "cuda", ours=False),
    Launcher("TileLang tvm_ffi", "tvm_ffi", "cuda", ours=False),
    Launcher("TileLang cython", "cython", "cuda", ours=False),
    Launcher("TileLang cutedsl", "cutedsl", "cutedsl", ours=False),
)
LAUNCHERS = {launcher.name: launcher for launcher in (*OURS, *THEIRS)}

PAIRS = (
    ("trunnion nvrtc", "TileLang nvrtc"),
    ("trunnion tvm_ffi", "TileLang tvm_ffi"),
    ("trunnion tvm_ffi", "TileLang cython"),
    ("trunnion cutedsl", "TileLang cutedsl"),
    ("trunnion cutedsl text", "TileLang cutedsl"),
)
"""What is compared: Python with Python, compiled code with compiled code."""


def names() -> tuple[str, ...]:
    """Return the names of the corpus's kernels."""
    return tuple(_corpus())


def large_names() -> tuple[str, ...]:
    """Return the names of the kernels whose time on the device is measured."""
    return tuple(_large())


def corpus_entry(name: str) -> Any:
    """Return a kernel of the corpus, or one of the large ones."""
    found = {**_corpus(), **_large()}
    return found[name]


def _corpus() -> Any:
    return importlib.import_module("tilelang_corpus.corpus").CORPUS


def _large() -> Any:
    return importlib.import_module("tilelang_corpus.large").LARGE


def device_name() -> str:
    """Return the GPU's name; empty if torch can use none. It is asked in a process of its own."""
    return torch.cuda.get_device_name(0) if torch.cuda.is_available() else ""
