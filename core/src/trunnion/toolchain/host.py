"""The host C++ toolchain: a compiler, CUDA's headers, and TVM-FFI's headers and library."""

from __future__ import annotations

import os
import platform
from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.distributions import metadata_folder
from trunnion.storage.remembered import Grounds
from trunnion.toolchain.host_compiler import HostCompiler, counted_environment, host_compiler
from trunnion.toolchain.host_headers import (
    FFI_DISTRIBUTION,
    CudaHeaders,
    FfiFiles,
    cuda_headers,
    cuda_variables,
    ffi_files,
)
from trunnion.toolchain.search import site_folders

if TYPE_CHECKING:
    from collections.abc import Mapping

__all__ = ["HostToolchain", "find_host_toolchain", "toolchain_question"]


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

    @property
    def grounds(self) -> Grounds:
        """What it is this toolchain by, and no other: beside what `toolchain_question` returns."""
        found = self.compiler.grounds | self.ffi.grounds | Grounds(folders=frozenset({__file__}))
        return found if self.cuda is None else found | self.cuda.grounds

    def fingerprint(self) -> str:
        """Return what identifies it: equal fingerprints build equal launchers. Where it is installed does not count."""
        versions = {**self.versions, "host compiler": self.compiler.fingerprint}
        return "; ".join(f"{name}: {version}" for name, version in sorted(versions.items()))


def toolchain_question() -> tuple[object, ...]:
    """Return what it depends on which toolchain this machine has, beside the `HostToolchain.grounds` of that one."""
    search = (os.environ.get("CXX"), os.environ.get("PATH"), counted_environment(), *cuda_variables())
    return (*search, site_folders(), metadata_folder(FFI_DISTRIBUTION), platform.machine())


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
