"""Device source: what a device compiler needs beside the text that TileLang writes."""

from __future__ import annotations

import importlib.resources
import importlib.util
import os
from pathlib import Path
from typing import TYPE_CHECKING

from trunnion.errors import ProgramError
from trunnion.model.code import DeviceCode
from trunnion_tilelang.compiler_flags import CompilerFlags
from trunnion_tilelang.cutedsl_source import cutedsl_code

if TYPE_CHECKING:
    from trunnion_tilelang.nodes import Module

__all__ = ["cuda_code", "device_code", "header_folders"]

_PRELUDE = "trunnion_tilelang.h"
_TEMPLATES = "tl_templates"
_CUDA_OPTIONS = (
    # TileLang compiles with C++20, and its headers leave it to the compiler where a function runs.
    "--std=c++20",
    "--device-as-default-execution-space",
    f"--pre-include={_PRELUDE}",
    # Thousands of lines of headers, the same for most kernels: the second one of a process is compiled without them.
    "--pch",
    # The text is generated, and so nobody can act on what a compiler advises.
    "--disable-warnings",
)


def device_code(module: Module, flags: CompilerFlags, name: str) -> DeviceCode:
    """Return the device code of an artifact, as a device compiler takes it.

    Parameters
    ----------
    module
        The artifact.
    flags
        What the author asks of the compiler.
    name
        What the program is called: the file name that messages show, without its suffix.

    Raises
    ------
    ProgramError
        If what the text needs from TileLang's package is not there, or a flag means nothing to the compiler.
    """
    if module.language == "cuda":
        return cuda_code(module.source, module.target, flags, name)
    return cutedsl_code(module, flags, name)


def cuda_code(
    source: str, target: str, flags: CompilerFlags | None = None, name: str = "tilelang"
) -> DeviceCode:
    """Return TileLang's CUDA C++ with what NVRTC needs to compile it, on a machine without a CUDA toolkit too.

    Parameters
    ----------
    source
        The text, as TileLang writes it: it is not changed.
    target
        The architecture, for example ``"sm_90a"``; empty: the caller's.
    flags
        What the author asks of the compiler.
    name
        The file name that messages show, without its suffix.

    Raises
    ------
    ProgramError
        If TileLang's headers are not there.
    """
    given = flags or CompilerFlags()
    fast = ["--use_fast_math"] if given.fast_math and "--use_fast_math" not in given.options else []
    said = {option.partition("=")[0] for option in given.options}
    own = [
        option
        for option in _CUDA_OPTIONS
        if option.startswith("--pre-include") or option.partition("=")[0] not in said
    ]
    folders = [f"--include-path={folder}" for folder in header_folders()]
    prelude = importlib.resources.files("trunnion_tilelang").joinpath("include", _PRELUDE)
    return DeviceCode(
        "cuda",
        source,
        name=f"{name}.cu",
        includes=((_PRELUDE, prelude.read_text("utf-8")),),
        options=(*own, *folders, *given.options, *fast),
        defines=given.defines,
        target=target,
    )


def header_folders() -> tuple[Path, Path]:
    """Return where TileLang's own headers are, and CUTLASS's that it brings, without importing it.

    They are beside TileLang's package or, where that is a checkout of its repository, one folder up; TileLang's
    variables ``TL_TEMPLATE_PATH`` and ``TL_CUTLASS_PATH`` name others.

    Raises
    ------
    ProgramError
        If TileLang is not installed, or they are not there.
    """
    spec = importlib.util.find_spec("tilelang")
    if spec is None or not spec.submodule_search_locations:
        raise ProgramError(
            "TileLang is not installed, and its kernels include its headers; install trunnion-tilelang[tilelang]",
            field="code",
        )
    package = Path(spec.submodule_search_locations[0]).absolute()
    root = package if (package / "3rdparty").is_dir() else package.parent
    templates = Path(os.environ.get("TL_TEMPLATE_PATH") or root / "src").absolute()
    cutlass = Path(os.environ.get("TL_CUTLASS_PATH") or root / "3rdparty" / "cutlass" / "include").absolute()
    for folder, inside in ((templates, _TEMPLATES), (cutlass, "cute")):
        if not (folder / inside).is_dir():
            raise ProgramError(
                f"got no folder {inside} in {folder}, expected the headers that TileLang's kernels include; "
                "install TileLang again, or name them by TL_TEMPLATE_PATH and TL_CUTLASS_PATH",
                field="code",
            )
    return templates, cutlass
