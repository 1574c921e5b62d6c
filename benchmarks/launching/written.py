"""Python that a launcher of others wants to find in a file: written, and imported."""

from __future__ import annotations

import importlib.util
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from types import ModuleType

__all__ = ["import_text"]


def import_text(name: str, text: str) -> ModuleType:
    """Write a module to a new temporary folder, and import it from there.

    Parameters
    ----------
    name
        The module's name.
    text
        Its source.

    Raises
    ------
    ImportError
        If it cannot be imported.
    """
    path = Path(tempfile.mkdtemp(prefix="trunnion-benchmark-")) / f"{name}.py"
    path.write_text(text, "utf-8")
    found = importlib.util.spec_from_file_location(name, path)
    if found is None or found.loader is None:
        raise ImportError(f"{path} cannot be imported")
    module = importlib.util.module_from_spec(found)
    found.loader.exec_module(module)
    return module
