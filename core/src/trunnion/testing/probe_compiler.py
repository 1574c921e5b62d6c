"""The installed device compilers, for kernels that tell what they receive."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from trunnion.attempts import probe
from trunnion.contract.compiler import CompileRequest
from trunnion.contract.spec import called
from trunnion.errors import DeviceRequirementError
from trunnion.model.plan import KernelParameter, KernelSignature, VariableSlot
from trunnion.registry import default_registry
from trunnion.testing.reference import parameter_layouts
from trunnion.testing.reference_variables import variable_bytes
from trunnion.testing.symbols import kernel_symbol, variable_symbol

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from trunnion.contract.compiler import DeviceImage
    from trunnion.contract.spec import CompilerSpec, Target
    from trunnion.model.code import DeviceCode
    from trunnion.model.program import KernelProgram

__all__ = ["Layout", "ProbeImages", "compile_probes"]

Layout = tuple[tuple[int, int], ...]
"""Of a kernel, its parameters' sizes and alignments in bytes."""


class ProbeImages:
    """Images whose kernels tell what they receive: programs whose kernels take alike share one.

    Parameters
    ----------
    make
        Compiles ``kernel_symbol(0)`` and so on, of what each takes, and ``variable_symbol(0)`` and so on, of the bytes
        of each.
    """

    def __init__(self, make: Callable[[tuple[Layout, ...], tuple[int, ...]], DeviceImage]) -> None:
        self._make = make
        self._made: dict[tuple[tuple[Layout, ...], tuple[int, ...]], DeviceImage] = {}

    def of(self, program: KernelProgram) -> DeviceImage:
        """Return an image whose kernels take what the oracle says that the program passes.

        Raises
        ------
        DeviceRequirementError
            If there is no compiler for them.
        """
        named = parameter_layouts(program)
        layouts = tuple(tuple(layout) for layout in named.values())
        sizes = tuple(map(variable_bytes, program.variables))
        made = self._made.get((layouts, sizes))
        if made is None:
            made = self._made[layouts, sizes] = self._make(layouts, sizes)
        kernels = (replace(kernel, name=name) for kernel, (name, _) in zip(made.kernels, named, strict=True))
        variables = (
            replace(found, name=one.name)
            for found, one in zip(made.variables, program.variables, strict=True)
        )
        return replace(made, kernels=tuple(kernels), variables=tuple(variables))


def compile_probes(
    source: DeviceCode,
    layouts: Sequence[Layout],
    target: Target,
    *,
    kind: str = "",
    options: Mapping[str, Any] | None = None,
    variables: Sequence[int] = (),
) -> DeviceImage:
    """Return the image of kernels, ``kernel_symbol(0)`` and so on, as an installed device compiler makes it.

    Parameters
    ----------
    source
        Their text.
    layouts
        What each takes.
    target
        What it is for.
    kind
        The kind of image; empty: any.
    options
        More options of the compiler.
    variables
        The bytes of ``variable_0``, ``variable_1`` and so on, which the text has too.

    Raises
    ------
    DeviceRequirementError
        If no compiler of that language can be used here.
    CompileError
        If the compiler refuses the source.
    """
    language = source.language
    usable = [spec for spec in default_registry().compilers() if _compiles(spec, language, target, kind)]
    if not usable:
        raise DeviceRequirementError(
            f"a device compiler of {language} for {target.kind}, for probe kernels",
            "none",
            "trunnion doctor says what is missing",
        )
    spec = min(usable, key=lambda one: (-one.auto_rank, one.name))
    request = CompileRequest(
        code=(source,),
        kernels=tuple(
            KernelSignature(kernel_symbol(index), tuple(KernelParameter(*one, "bytes") for one in layout))
            for index, layout in enumerate(layouts)
        ),
        target=target,
        variables=tuple(
            VariableSlot(index=index, name=variable_symbol(index), part=0, nbytes=nbytes, init=None)
            for index, nbytes in enumerate(variables)
        ),
        options=options or {},
        accepts=(kind,) if kind else (),
    )
    return called(spec.load_compiler)()().compile(request)


def _compiles(spec: CompilerSpec, language: str, target: Target, kind: str) -> bool:
    made = language in spec.languages and target.kind in spec.targets and (not kind or kind in spec.produces)
    return made and not probe(spec).problem((target.kind,))
