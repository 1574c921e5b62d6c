"""The device side of the contract: source language to device image."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from trunnion.errors import ArgumentTypeError, ProgramError, shorten
from trunnion.messages import type_name
from trunnion.model.image_table import ImageKernel, ImageParameter, ImageVariable
from trunnion.plain import ForeignError, asked

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.contract.spec import Target
    from trunnion.model.code import DeviceCode
    from trunnion.model.plan import KernelSignature, LaunchPlan, VariableSlot

__all__ = [
    "CompileRequest",
    "DeviceCompiler",
    "DeviceImage",
    "ImageKernel",
    "ImageParameter",
    "ImageVariable",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class DeviceImage:
    """Compiled device code.

    Raises
    ------
    ArgumentTypeError
        If the toolchain is no mapping of text.
    """

    kind: str
    """``"cubin"``, ``"ptx"``, ``"host-object"``, …"""

    data: bytes
    """The image itself."""

    target: Target
    """What it was compiled for."""

    kernels: tuple[ImageKernel, ...]
    """Every kernel that the request named, in the request's order."""

    variables: tuple[ImageVariable, ...] = ()
    """Every variable that the request named, in the request's order."""

    headers_read: tuple[str, ...] = ()
    """Headers that could be reached from the source: a conservative superset of those that were read."""

    log: str = ""
    """What the compiler printed, on success too."""

    toolchain: Mapping[str, str] = field(default_factory=dict)
    """Name and version of everything that made the image."""

    def __post_init__(self) -> None:
        try:
            known = asked(lambda: dict(sorted(self.toolchain.items())))
        except ForeignError as error:
            got = type_name(self.toolchain)
            raise ArgumentTypeError("toolchain", got, "a mapping of text to text") from error.__cause__
        object.__setattr__(self, "toolchain", MappingProxyType(known))

    @property
    def symbols(self) -> tuple[str, ...]:
        """The exact names in the image that a launcher asks for: of the kernels, then of the variables, in order."""
        return *(one.symbol for one in self.kernels), *(one.symbol for one in self.variables)

    def kernel(self, name: str) -> ImageKernel:
        """Return the kernel that the program calls ``name``.

        Raises
        ------
        ProgramError
            If the image has no such kernel.
        """
        for kernel in self.kernels:
            if kernel.name == name:
                return kernel
        known = ", ".join(shorten(kernel.name) for kernel in self.kernels) or "none"
        raise ProgramError(f"the image has no kernel {shorten(name)} (it has: {known})")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileRequest:
    """What a device compiler is asked for."""

    code: tuple[DeviceCode, ...]
    """The source, in one part or several that are linked; parts may be in different languages."""

    kernels: tuple[KernelSignature, ...]
    """The kernels that the program launches, with what it passes to each."""

    target: Target
    """What to compile for."""

    plan: LaunchPlan | None = None
    """The launches of these kernels, for a compiler that needs more than sizes: types, layouts, tensor maps, blocks."""

    options: Mapping[str, Any] = field(default_factory=dict)
    """The caller's options for this compiler, by name; an unknown one is refused."""

    variables: tuple[VariableSlot, ...] = ()
    """The variables of the device code that the program names, with the part and the bytes of each."""

    accepts: tuple[str, ...] = ()
    """The kinds of image that the backend loads (`BackendSpec.accepts`): the compiler makes one of these, or says
    why it cannot. Empty: any kind will do."""


class DeviceCompiler(ABC):
    """Compile device code to an image.

    A compiler is pure but for the files that its source includes: the same request, toolchain and headers give the
    same bytes. It needs no device.
    """

    @abstractmethod
    def compile(self, request: CompileRequest) -> DeviceImage:
        """Return the image of ``request``.

        Raises
        ------
        CompileError
            If the compiler refuses the source; with its log, the numbered source, options and architecture.
        ProgramError
            If an option is unknown or the target is not one that an image can be made for.
        BackendUnavailableError
            If the toolchain is missing; the message says what to install.
        """

    def environment(self, request: CompileRequest) -> Mapping[str, str]:
        """Return what the image depends on beside the request and the toolchain, such as headers on this machine.

        Every pair becomes part of an artifact's key. It is asked for again once the image is compiled, and what was
        built is kept only if it is the same; a value that never comes again says that nobody knows. Compilers that read
        nothing else need not override this.

        Parameters
        ----------
        request
            What would be compiled.
        """
        del request
        return {}

    @abstractmethod
    def fingerprint(self) -> str:
        """Return what identifies the toolchain: equal fingerprints make equal images of equal requests."""

    @abstractmethod
    def default_target(self) -> Target | None:
        """Return the target of this machine's first device; None if there is no device."""
