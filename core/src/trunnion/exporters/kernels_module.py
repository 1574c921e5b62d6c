"""Write the module of a build variant: a typed function for each program, which needs TVM-FFI and no trunnion."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trunnion.codegen.literals import python_string
from trunnion.codegen.writer import SourceWriter
from trunnion.exporters.python_module import (
    TAKEN_NAMES,
    check_function_names,
    emit_functions,
    emit_opening,
)

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from trunnion.exporters.launchers import Launcher
    from trunnion.model.program import KernelProgram

__all__ = ["emit_kernels_module"]

_OWN: Final = TAKEN_NAMES | {
    "pathlib",
    "Launcher",
    "LauncherFunction",
    "check_machine",
    "_FOLDER",
    "_FUNCTIONS",
}


def emit_kernels_module(
    title: str,
    programs: Mapping[str, KernelProgram],
    choices: Mapping[str, Sequence[Launcher]],
    needs: tuple[str, str, str],
) -> str:
    """Return the text of ``__init__.py``.

    Parameters
    ----------
    title
        What the kernel is called, for its docstring.
    programs
        The programs, by the name of each in the bundle: that of its function.
    choices
        The launchers of each, whose files lie beside the module.
    needs
        What `trunnion.exporters.launchers.check_machine` is to be asked.

    Raises
    ------
    ArgumentValueError
        If a program's name is no name of a Python function, or is one that the module has itself.
    """
    check_function_names(programs, _OWN)
    out = SourceWriter()
    emit_opening(out, f"{title}: kernels that were compiled ahead of time by trunnion, which is not needed.")
    out.lines("import pathlib", "from typing import TYPE_CHECKING, Any", "")
    out.lines("from ._launchers import Launcher, LauncherFunction, check_machine", "")
    out.lines(
        "if TYPE_CHECKING:",
        "    from collections.abc import Sequence",
        "",
        "    from torch import Tensor",
        "",
    )
    out.line(f"__all__ = [{', '.join(map(python_string, sorted(programs)))}]")
    out.lines("", f"check_machine({', '.join(map(python_string, needs))})", "")
    out.line("_FOLDER = pathlib.Path(__file__).parent")
    with out.block("_FUNCTIONS = {", "}"):
        for name, program in programs.items():
            with out.block(f"{python_string(name)}: LauncherFunction(", "),"):
                out.lines("_FOLDER,", f"{python_string(name)},")
                with out.block("[", "],"):
                    out.lines(*(f"{_constructed(one)}," for one in choices[name]))
                out.line(f"{len(program.signature.outputs)},")
    emit_functions(
        out,
        programs,
        _OWN,
        lambda name, given: (
            f"_FUNCTIONS[{python_string(name)}](({''.join(f'{one}, ' for one in given)}), out, stream, device)"
        ),
    )
    return out.text()


def _constructed(launcher: Launcher) -> str:
    words = [python_string(launcher.file)]
    if launcher.most != (0, 0):
        words += [str(launcher.least), str(launcher.most)]
    if launcher.image:
        symbols = "".join(f"{python_string(one)}, " for one in launcher.symbols)
        words += [python_string(launcher.image), f"({symbols})"]
    return f"Launcher({', '.join(words)})"
