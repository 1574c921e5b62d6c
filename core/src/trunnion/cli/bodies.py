"""``--bodies``: Python functions that stand for kernels, from a module that is imported for them."""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Mapping
from importlib.machinery import SourceFileLoader
from pathlib import Path
from typing import TYPE_CHECKING

from trunnion.errors import ProgramError, shorten
from trunnion.messages import type_name

if TYPE_CHECKING:
    from types import ModuleType

    from trunnion.sim import KernelBody

__all__ = ["load_bodies"]

_FIELD = "--bodies"


def load_bodies(name: str) -> Mapping[str, KernelBody]:
    """Return the ``BODIES`` of a module or of a file, which runs for that.

    Parameters
    ----------
    name
        A dotted name, or a path that ends in ``.py``; empty: there are none.

    Raises
    ------
    ProgramError
        If there is no such module, it cannot be imported, it has no mapping of that name, or the mapping is not from
        names to functions.
    """
    if not name:
        return {}
    if "\0" in name:
        raise ProgramError(f"got {shorten(name)}, expected a dotted name or a .py file", field=_FIELD)
    try:
        module = _from_file(Path(name)) if name.endswith(".py") else _from_name(name)
    except SyntaxError as error:
        raise ProgramError(f"{shorten(name)} is not Python: {error}", field=_FIELD) from error
    bodies = getattr(module, "BODIES", None)
    if not isinstance(bodies, Mapping):
        raise ProgramError(f"{shorten(name)} has no mapping BODIES from kernels to functions", field=_FIELD)
    for kernel, body in bodies.items():
        if not isinstance(kernel, str) or not callable(body):
            got = f"{type_name(body)} for {shorten(str(kernel))}"
            raise ProgramError(f"BODIES has {got}, expected a function for a name", field=_FIELD)
    return bodies


def _from_name(name: str) -> ModuleType:
    if not all(word.isidentifier() for word in name.split(".")):
        raise ProgramError(f"got {shorten(name)}, expected a dotted name or a .py file", field=_FIELD)
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise ProgramError(f"no module {shorten(error.name or name)}", field=_FIELD) from error
    except ImportError as error:
        raise ProgramError(f"{shorten(name)} cannot be imported: {error}", field=_FIELD) from error


def _from_file(path: Path) -> ModuleType:
    loader = SourceFileLoader(path.stem, str(path))
    spec = importlib.util.spec_from_loader(path.stem, loader)
    if spec is None:
        raise ProgramError(f"cannot read {shorten(str(path))}", field=_FIELD)
    module = importlib.util.module_from_spec(spec)
    try:
        try:
            loader.get_code(path.stem)
        except ValueError as error:  # of a null byte; from Python 3.11.4 on it is a SyntaxError
            raise SyntaxError(str(error)) from error
        loader.exec_module(module)
    except OSError as error:
        raise ProgramError(f"cannot read {shorten(str(path))}: {error.strerror}", field=_FIELD) from error
    except ImportError as error:
        raise ProgramError(f"{shorten(str(path))} cannot be imported: {error}", field=_FIELD) from error
    return module
