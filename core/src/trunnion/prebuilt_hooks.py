"""What core itself announces: that a cubin made elsewhere needs no compiler. Found by entry point, as any plugin."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.contract.spec import CompilerSpec
from trunnion.hookspecs import hookimpl

if TYPE_CHECKING:
    from trunnion.contract.compiler import DeviceCompiler

__all__ = ["trunnion_register_compilers"]


def _compiler() -> type[DeviceCompiler]:
    from trunnion.image.prebuilt import PrebuiltCompiler  # noqa: PLC0415 - imported when a program is compiled

    return PrebuiltCompiler


@hookimpl
def trunnion_register_compilers() -> list[CompilerSpec]:
    """Announce the device compiler ``prebuilt``: one finished cubin, as it is."""
    return [
        CompilerSpec(
            name="prebuilt",
            contract_version=3,
            languages=("cubin",),
            binary_languages=("cubin",),
            targets=("cuda",),
            produces=("cubin",),
            load_compiler=_compiler,
            auto_rank=-1,
            summary="takes one finished cubin as it is; needs nothing",
        )
    ]
