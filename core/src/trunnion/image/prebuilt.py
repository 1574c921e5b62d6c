"""`PrebuiltImage`: a cubin made elsewhere, and what is known of its kernels."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, fields, is_dataclass, replace
from hashlib import sha256
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from trunnion.arguments import file_path
from trunnion.contract.compiler import DeviceCompiler, DeviceImage, ImageKernel
from trunnion.errors import CorruptArtifactError, ProgramError, shorten
from trunnion.image.cubin import CubinInfo, KernelInfo, read_cubin
from trunnion.image.lookup import find_kernel
from trunnion.image.target import runs_for
from trunnion.image.variables import image_variables
from trunnion.messages import type_name
from trunnion.model.code import DeviceCode
from trunnion.model.dtypes import DType
from trunnion.model.facts import Occupancy
from trunnion.model.fields import instance, text
from trunnion.model.module_variable import ModuleVariable
from trunnion.plain import ForeignError, pairs

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike

    from trunnion.contract.compiler import CompileRequest
    from trunnion.contract.spec import Target
    from trunnion.model.program import KernelProgram

__all__ = ["METADATA_SUFFIX", "PrebuiltCompiler", "PrebuiltImage"]

METADATA_SUFFIX: Final = ".json"
"""Behind the whole file name of an image: the file that describes it."""


@dataclass(frozen=True, slots=True)
class PrebuiltImage:
    """A cubin that another tool made, with names for its kernels.

    Raises
    ------
    CorruptArtifactError
        If the bytes are no cubin, or one that must be linked first.
    KernelLookupError
        If a pattern finds no kernel, or several.
    """

    data: bytes
    """The cubin."""

    names: Mapping[str, str] = field(default_factory=dict)
    """What programs call its kernels: given with the pattern that finds each (`find_kernel`), kept with what was found,
    the exact name."""

    file: str = "image.cubin"
    """The file name that messages show."""

    info: CubinInfo = field(init=False, repr=False)
    """What the cubin says of itself."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "data", bytes.__bytes__(instance(self.data, bytes, "data")))
        object.__setattr__(self, "file", text(self.file, "file"))
        names = {text(name, "names"): text(one, "names", least=0) for name, one in _mapping(self.names)}
        info = read_cubin(self.data)
        if info.relocatable:
            raise CorruptArtifactError(shorten(self.file), "must be linked before it can be loaded")
        known = [kernel.name for kernel in info.kernels]
        object.__setattr__(self, "info", info)
        found = {name: find_kernel(pattern, known) for name, pattern in names.items()}
        object.__setattr__(self, "names", MappingProxyType(dict(sorted(found.items()))))

    def __hash__(self) -> int:
        return hash((self.data, tuple(self.names.items()), self.file))

    def __reduce__(self) -> tuple[Callable[..., PrebuiltImage], tuple[object, ...]]:
        return PrebuiltImage, (self.data, dict(self.names), self.file)

    @classmethod
    def from_file(
        cls, path: str | PathLike[str], *, kernels: Mapping[str, str] | None = None
    ) -> PrebuiltImage:
        """Read a cubin, and the file of the same name with ``.json`` behind it if there is one.

        That file is an object: ``{"schema": 1, "sha256": "...", "kernels": {"gemm": "main_kernel"}}``. ``sha256`` is
        that of the cubin, in hex, and may be left out; ``kernels`` has the patterns of names.

        Parameters
        ----------
        path
            The cubin.
        kernels
            Patterns of names, in place of those of the file.

        Raises
        ------
        ProgramError
            If the cubin cannot be read.
        CorruptArtifactError
            If it is no cubin that can be loaded, or the other file does not describe it.
        KernelLookupError
            If a pattern finds no kernel, or several.
        """
        file = Path(file_path(path))
        try:
            data = file.read_bytes()
        except OSError as error:
            raise ProgramError(
                f"cannot read {shorten(str(file))}: {error.strerror}", field="image"
            ) from error
        beside = file.with_name(file.name + METADATA_SUFFIX)
        described = _read_names(beside, data) if beside.exists() else {}
        return cls(data, described if kernels is None else kernels, file.name)

    @property
    def code(self) -> DeviceCode:
        """The image as the device code of a program, for the architecture that it was made for."""
        return DeviceCode("cubin", self.data, name=self.file, target=self.info.arch)

    def kernel(self, name: str) -> KernelInfo:
        """Return what the image says of a kernel.

        Parameters
        ----------
        name
            One of `names`, an exact name, or a pattern.

        Raises
        ------
        KernelLookupError
            If no kernel is meant, or several could be.
        """
        known = {kernel.name: kernel for kernel in self.info.kernels}
        wanted = text(name, "name", least=0)
        return known[self.names.get(wanted) or find_kernel(wanted, known)]

    def serve(self, program: KernelProgram) -> KernelProgram:
        """Return a program that launches this image's kernels, by their exact names, in place of its own code.

        Parameters
        ----------
        program
            The program, whose launches name kernels as `kernel` takes them.

        Raises
        ------
        KernelLookupError
            If one of them is not there, or could be several.
        """
        exact = {launch.kernel: self.kernel(launch.kernel).name for launch in program.launches}
        own = {one: replace(one, code=None) for one in program.variables}  # by their exact names
        launches = tuple(
            replace(_served(launch, exact, own), kernel=exact[launch.kernel], code=None)
            for launch in program.launches
        )
        copies = tuple(replace(copy, variable=own[copy.variable]) for copy in program.copies)
        return replace(
            program,
            signature=_served(program.signature, exact, own),
            code=(self.code,),
            launches=launches,
            variables=tuple(own.values()),
            copies=copies,
        )


def _served(value: Any, exact: Mapping[str, str], own: Mapping[ModuleVariable, ModuleVariable]) -> Any:
    """Return a part of a program with the image's kernels in its occupancies, and the image's variables."""
    if isinstance(value, tuple):
        return tuple(_served(member, exact, own) for member in value)
    if isinstance(value, ModuleVariable):
        return own[value]
    if isinstance(value, Occupancy):
        return replace(value, kernel=exact[value.kernel])
    if not is_dataclass(value) or isinstance(value, (DType, DeviceCode)):
        return value
    held = {part.name: getattr(value, part.name) for part in fields(value) if part.init}
    found = {name: _served(one, exact, own) for name, one in held.items()}
    changed = {name: one for name, one in found.items() if one != held[name]}
    return replace(value, **changed) if changed else value  # type: ignore[type-var]  # a value, and no class


class PrebuiltCompiler(DeviceCompiler):
    """The device compiler of what is compiled already: one cubin, whose kernels go by their exact names."""

    def compile(self, request: CompileRequest) -> DeviceImage:
        """Return the cubin as the image that it is.

        Raises
        ------
        ProgramError
            If it does not run on the target, has no kernel of a name, or is not alone; or if there are options.
        CorruptArtifactError
            If it is no cubin, or one that must be linked first.
        """
        image = _only_image(request)
        arch = image.info.arch
        if not runs_for(arch, request.target.arch):
            raise ProgramError(
                f"got a cubin for {shorten(arch)}, which does not run on {shorten(str(request.target))}",
                field="code",
            )
        return DeviceImage(
            kind="cubin",
            data=image.data,
            target=request.target,
            kernels=tuple(
                _exact_kernel(image.info, wanted.name, index) for index, wanted in enumerate(request.kernels)
            ),
            variables=image_variables(image.info, ((one.name, one.name) for one in request.variables)),
            toolchain={"image": f"made elsewhere, SHA-256 {sha256(image.data).hexdigest()}"},
        )

    def fingerprint(self) -> str:
        """Return the version of what is read; no tool is involved."""
        return "1"

    def default_target(self) -> Target | None:
        """Return None: a cubin knows what it is for, and `PrebuiltImage.code` says it."""
        return None


def _only_image(request: CompileRequest) -> PrebuiltImage:
    if request.options:
        raise ProgramError(f"got {', '.join(map(shorten, request.options))}, expected none", field="options")
    if len(request.code) != 1:
        raise ProgramError(
            f"got {len(request.code)} parts, expected one cubin; a compiler that links takes several",
            field="code",
        )
    (code,) = request.code
    for name in ("includes", "options", "defines"):
        if getattr(code, name):
            raise ProgramError("got some, expected none for a finished cubin", field=f"code[0].{name}")
    return PrebuiltImage(bytes(code.source), {}, code.name)  # type: ignore[arg-type]  # a cubin is bytes, says DeviceCode


def _exact_kernel(info: CubinInfo, name: str, index: int) -> ImageKernel:
    found = info.kernel(name)
    if found is None:
        known = ", ".join(shorten(kernel.name) for kernel in info.kernels) or "none"
        raise ProgramError(
            f"got {shorten(name)}, expected the exact name of a kernel in this cubin ({known}); "
            "PrebuiltImage finds one by a part of it",
            field=f"kernels[{index}].name",
        )
    return ImageKernel(name, found.name, found.parameters)


def _read_names(path: Path, data: bytes) -> dict[str, str]:
    """Return the patterns that a metadata file gives names to.

    Raises
    ------
    CorruptArtifactError
        If it is no such file, or describes another image.
    """
    what = shorten(path.name)
    try:
        read: Any = json.loads(path.read_bytes(), object_pairs_hook=_once)
    except (OSError, ValueError, RecursionError) as error:
        raise CorruptArtifactError(what, f"is not JSON: {type_name(error)}") from error
    fields = read if isinstance(read, dict) else {}
    unknown = sorted(fields.keys() - {"schema", "sha256", "kernels"})
    if type(fields.get("schema")) is not int or fields["schema"] != 1 or unknown:
        raise CorruptArtifactError(
            what, f"has to be an object of schema 1 with 'sha256' and 'kernels'{_listed(unknown)}"
        )
    digest = sha256(data).hexdigest()
    said = fields.get("sha256", digest)
    if not isinstance(said, str):
        raise CorruptArtifactError(what, "'sha256' has to be text, the SHA-256 of the image in hex")
    if said.lower() != digest:  # some tools write hex in capitals
        raise CorruptArtifactError(what, f"describes another image; the SHA-256 of this one is {digest}")
    kernels = fields.get("kernels", {})
    if not isinstance(kernels, dict) or not all(isinstance(one, str) for one in kernels.values()):
        raise CorruptArtifactError(what, "'kernels' has to map names to patterns, both text")
    return kernels


def _mapping(names: object) -> list[tuple[Any, Any]]:
    try:
        found = pairs(names)
    except ForeignError:
        found = None
    if found is None:
        raise ProgramError(f"got {type_name(names)}, expected a mapping of names to patterns", field="names")
    return found


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Return an object of JSON, in which no key stands twice."""
    if len(dict(pairs)) != len(pairs):
        raise ValueError("a key stands twice")
    return dict(pairs)


def _listed(unknown: list[str]) -> str:
    return f", not {', '.join(map(shorten, unknown))}" if unknown else ""
