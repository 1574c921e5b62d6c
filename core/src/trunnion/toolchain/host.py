"""The host C++ toolchain: a compiler, CUDA's headers, and TVM-FFI's headers and library."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.toolchain.host_compiler import HostCompiler, host_compiler
from trunnion.toolchain.host_headers import CudaHeaders, FfiFiles, cuda_headers, ffi_files

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["HostToolchain", "find_host_toolchain"]


@dataclass(frozen=True, slots=True)
class HostToolchain:
    """What a C++ launcher is built with."""

    compiler: HostCompiler
    """The compiler."""

    ffi: FfiFiles
    """TVM-FFI's headers and library."""

    cuda: CudaHeaders | None
    """CUDA's headers; None for a launcher that calls no driver."""

    @property
    def include_folders(self) -> tuple[str, ...]:
        """The folders of headers, in the order in which they are searched."""
        return (*self.ffi.folders, *((self.cuda.folder,) if self.cuda else ()))

    @property
    def versions(self) -> Mapping[str, str]:
        """Name and version of every part, for a manifest."""
        versions = {"host compiler": self.compiler.name, "tvm-ffi": ".".join(map(str, self.ffi.version))}
        if self.cuda:
            versions["cuda.h"] = ".".join(map(str, self.cuda.version))
        return versions

    def fingerprint(self) -> str:
        """Return what identifies it: equal fingerprints build equal launchers. Where it is installed does not count."""
        versions = {**self.versions, "host compiler": self.compiler.fingerprint}
        return "; ".join(f"{name}: {version}" for name, version in sorted(versions.items()))


def find_host_toolchain(plugin: str, *, cuda: bool = True) -> HostToolchain:
    """Return the toolchain of this machine. Cheap: no process is started for what this process knows already.

    Parameters
    ----------
    plugin
        Who needs it; named in the errors.
    cuda
        Whether CUDA's headers are needed.

    Raises
    ------
    BackendUnavailableError
        If a part is missing or too old; the error says what was tried, and what to install.
    """
    return HostToolchain(host_compiler(plugin), ffi_files(plugin), cuda_headers(plugin) if cuda else None)
