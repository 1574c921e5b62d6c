"""Write the Python modules that packages of programs consist of: a typed function for each program."""

from __future__ import annotations

import keyword
from typing import TYPE_CHECKING, Final

from trunnion.codegen.literals import python_string
from trunnion.codegen.writer import SourceWriter
from trunnion.errors import ArgumentValueError, shorten
from trunnion.messages import visible
from trunnion.model.expr_text import format_expr
from trunnion.model.params import PointerParam, ScalarParam, TensorParam

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator, Mapping

    from trunnion.model.params import Param
    from trunnion.model.program import KernelProgram

__all__ = ["TAKEN_NAMES", "check_function_names", "emit_functions", "emit_module", "emit_opening"]

TAKEN_NAMES: Final = frozenset(
    {"Any", "Sequence", "TYPE_CHECKING", "Tensor", "annotations", "device", "out", "stream"}
)
"""What each such module has, and each function."""

_ANNOTATED: Final = frozenset({"bool", "bytes", "complex", "float", "int", "list", "object", "str", "tuple"})
"""What annotations call by a builtin's name, which a function of that name would be; a parameter may have it."""

_CALLED: Final = frozenset({"TypeError", "getattr", "isinstance", "next"})
"""What `_CHOICE` calls by a builtin's name when it chooses, which a function of that name would be."""

_OWN: Final = TAKEN_NAMES | {"bundle", "functools", "pathlib", "trunnion", "_chosen", "_on"}
_WIDTH: Final = 110

_CHOICE: Final = '''\
@functools.cache
def _on(name: str, device: Any) -> trunnion.CompiledProgram:
    return bundle().on(name, device)


def _chosen(name: str, device: Any, *tensors: Any) -> trunnion.CompiledProgram:
    """Return the variant for the device of a call: the one that is named, else that of its first tensor."""
    if device is None:
        there = (getattr(tensor, "device", None) for tensor in tensors)
        device = next((one for one in there if getattr(one, "type", None) in ("cuda", "cpu")), None)
    if not isinstance(getattr(device, "index", device), int) and getattr(device, "type", None) != "cpu":
        return bundle().on(name, device)  # which device it is depends on the thread, or the bundle says what is wrong
    try:
        return _on(name, device)
    except TypeError:  # which something that has no hash is, too: the bundle says what is wrong with it
        return bundle().on(name, device)'''
"""How a package's functions find what they launch."""


def emit_module(title: str, index: str, digest: str, programs: Mapping[str, KernelProgram]) -> str:
    """Return the text of a package's ``__init__.py`` that calls the programs of a bundle beside it.

    Parameters
    ----------
    title
        What the package is called, for its docstring.
    index
        The file name of the bundle's index, which lies in the package.
    digest
        The bundle's digest: no other one is loaded.
    programs
        The programs, by the name of each in the bundle: that of its function.

    Raises
    ------
    ArgumentValueError
        If a program's name is no name of a Python function, or is one that the module has itself.
    """
    check_function_names(programs, _OWN | _CALLED)
    out = SourceWriter()
    emit_opening(out, f"{_docline(title)}: kernels that trunnion launches, compiled ahead of time.")
    out.lines("import functools", "import pathlib", "from typing import TYPE_CHECKING, Any", "")
    out.lines("import trunnion", "", "if TYPE_CHECKING:")
    out.lines("    from collections.abc import Sequence", "", "    from torch import Tensor", "")
    out.line(f"__all__ = [{', '.join(map(python_string, sorted(('bundle', *programs))))}]")
    out.lines("", "")
    out.line("@functools.cache")
    with out.block("def bundle() -> trunnion.Bundle:"):
        out.line('"""Return the programs by name; a call takes the variant that fits its device."""')
        out.line(f"index = pathlib.Path(__file__).with_name({python_string(index)})")
        out.line(f"return trunnion.Bundle.open(index, digest={python_string(digest)})")
    out.lines("", "", *_CHOICE.splitlines())

    def call(name: str, given: list[str]) -> str:
        params = programs[name].signature.params
        tensors = [one for one, param in zip(given, params, strict=True) if isinstance(param, TensorParam)]
        chosen = f"_chosen({', '.join([python_string(name), 'device', *tensors, 'out'])})"
        return f"{chosen}({''.join(f'{one}, ' for one in given)}out=out, stream=stream, device=device)"

    emit_functions(out, programs, _OWN, call)
    return out.text()


def check_function_names(names: Iterable[str], taken: Collection[str]) -> None:
    """Refuse programs that no function can be called like.

    Parameters
    ----------
    names
        The programs' names.
    taken
        The names that the module has itself.

    Raises
    ------
    ArgumentValueError
        If a program's name is no name of a Python function, or is taken.
    """
    refused = {*taken, *_ANNOTATED}
    for name in names:
        plain = (
            name.isascii() and name.isidentifier() and not keyword.iskeyword(name)
        )  # Python folds other letters
        if not plain or name.startswith("_") or name in refused:
            raise ArgumentValueError(
                "programs",
                shorten(name),
                f"names of Python functions, other than {', '.join(sorted(refused))}",
            )


def emit_opening(out: SourceWriter, docstring: str) -> None:
    """Write how a module begins.

    Parameters
    ----------
    out
        Where to.
    docstring
        What it says of itself: one line, which nothing ends early.
    """
    out.line(f'"""{_docline(docstring)}"""')
    out.lines("", "from __future__ import annotations", "")


def emit_functions(
    out: SourceWriter,
    programs: Mapping[str, KernelProgram],
    taken: Collection[str],
    call: Callable[[str, list[str]], str],
) -> None:
    """Write a typed function for each program, which takes its parameters by position.

    Parameters
    ----------
    out
        Where to.
    programs
        The programs, by the names of their functions, which `check_function_names` lets pass.
    taken
        The names that the module has itself, and that no parameter may hide.
    call
        Returns the expression that a function returns: of its name, and of the names of its parameters.
    """
    for name, program in programs.items():
        out.lines("", "")
        _emit_function(out, name, program, taken, call)


def _emit_function(
    out: SourceWriter,
    name: str,
    program: KernelProgram,
    taken: Collection[str],
    call: Callable[[str, list[str]], str],
) -> None:
    signature = program.signature
    names = _parameter_names(signature.params, taken)
    typed = [f"{one}: {_type(param)}" for one, param in zip(names, signature.params, strict=True)]
    outputs = len(signature.outputs)
    result = ("None", "Tensor")[outputs] if outputs <= 1 else f"tuple[{', '.join(['Tensor'] * outputs)}]"
    given = {0: "None", 1: "Tensor | Sequence[Tensor] | None"}.get(outputs, "Sequence[Tensor] | None")
    out.line(f"def {name}(")
    for one in typed:
        out.line(f"    {one},")
    if typed:
        out.line("    /,")
    out.line(f"    *, out: {given} = None, stream: Any = None, device: Any = None,")
    with out.block(f") -> {result}:"):
        out.line(f'"""Launch {_docline(program.name)}.')
        out.lines("", *(line[:_WIDTH] for line in _described(program, names)), '"""')
        out.line(f"return {call(name, names)}")


def _parameter_names(params: tuple[Param, ...], taken: Collection[str]) -> list[str]:
    """Return a name for each parameter: its own where it can be one; they are given by position."""
    own = [param.name for param in params]
    good = all(
        one.isidentifier() and not keyword.iskeyword(one) and one.isascii() and not one.startswith("__")
        for one in own
    )
    return own if good and not {*taken} & {*own} else [f"arg{place}" for place in range(len(own))]


def _type(param: Param) -> str:
    if isinstance(param, ScalarParam):
        kind = param.dtype.name
        known = {"bool": "bool"} | ({kind: "int"} if param.dtype.is_integer else {})
        return known.get(kind, "complex" if "complex" in kind else "float")
    name = {TensorParam: "Tensor", PointerParam: "int"}.get(type(param), "bytes")
    return f"{name} | None" if getattr(param, "nullable", False) else name


def _described(program: KernelProgram, names: list[str]) -> Iterator[str]:
    signature = program.signature
    for name, param in zip(names, signature.params, strict=True):
        yield f"{name}: {_of(param)}"
    for output in signature.outputs:
        yield f"returns {_docline(output.name)}: {_of(output)}"


def _of(param: Param) -> str:
    if isinstance(param, TensorParam):
        shape = ", ".join(_docline(format_expr(extent)) for extent in param.shape)
        return f"{param.dtype} of shape ({shape})"
    if isinstance(param, ScalarParam):
        return str(param.dtype)
    return "an address" if isinstance(param, PointerParam) else f"{param.nbytes} bytes"


def _docline(text: str) -> str:
    """Return a text for a line of a docstring: nothing in it ends the docstring or begins an escape."""
    return visible(text).replace("\\", "/").replace('"', "'")
