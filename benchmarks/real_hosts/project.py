"""`Project`: a project whose own host code is timed, and the ways to call it."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import torch

__all__ = ["HERE", "Project", "Way"]

HERE = Path(__file__).parent
"""The folder of our own files that include the projects'."""


@dataclass(frozen=True, slots=True)
class Way:
    """A way to call a project's host code."""

    function: str
    """What our file exports it as."""

    does: str
    """What each call does: the words behind the project's name in the table."""

    defines: tuple[str, ...] = ()
    """Macros with which our file is compiled for it: ways of the same macros share a library."""


@dataclass(frozen=True, eq=False)
class Project:
    """A program of `real_programs`, and the host code of the project whose kernel it is."""

    subject: Any
    """The module that describes the program: its copy, shapes, tolerance and reference."""

    shape: Any
    """One of its shapes: a short kernel, so that the host is not made to wait for the device."""

    folders: tuple[str, ...]
    """Where headers are looked for, from the copy's root."""

    ways: tuple[Way, ...]
    """How it is called. The first makes the device do what the program does: differences are taken to it."""

    tensors: Callable[[tuple[Any, ...], torch.Tensor], tuple[torch.Tensor, ...]]
    """Returns what our file calls tensors, of the program's arguments and its output."""

    numbers: Callable[[tuple[Any, ...]], tuple[int, ...]]
    """Returns what our file calls numbers, of the program's arguments."""

    options: tuple[str, ...] = ("-std=c++17",)
    """The options of nvcc that the project needs."""

    texts: Mapping[str, str] = field(default_factory=dict)
    """Headers that are written for it, by name."""

    @property
    def name(self) -> str:
        """What the program is called, and our file."""
        return str(self.subject.__name__).rpartition(".")[2]

    @property
    def copied(self) -> str:
        """The project and its version."""
        return str(self.subject.COPY.name)

    @property
    def source(self) -> Path:
        """Our file, which includes the project's."""
        return HERE / f"{self.name}.cu"
