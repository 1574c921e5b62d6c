"""`load_compiler`: a plugin's device compiler, with a look at what it returns: annotations prove nothing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from trunnion.contract.compiler import DeviceCompiler, DeviceImage, ImageKernel, ImageParameter, ImageVariable
from trunnion.contract.spec import Target
from trunnion.errors import BackendUnavailableError
from trunnion.messages import describe, shorten, type_name
from trunnion.plain import ForeignError, is_a, pairs, text
from trunnion.selection import make_part

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.contract.compiler import CompileRequest
    from trunnion.contract.spec import CompilerSpec

__all__ = ["load_compiler"]

_FIELDS: Final[Mapping[type, Mapping[str, tuple[type, ...]]]] = {
    DeviceImage: {"kind": (str,), "data": (bytes,), "target": (Target,), "log": (str,)},
    ImageKernel: {"name": (str,), "symbol": (str,), "dynamic_smem_bytes": (int,)},
    ImageVariable: {"name": (str,), "symbol": (str,), "nbytes": (int, type(None))},
    ImageParameter: {"ordinal": (int,), "offset": (int,), "size": (int,)},
}
"""What an image and its tables hold, with the classes of a value."""

_SEQUENCES: Final[Mapping[type, Mapping[str, type]]] = {
    DeviceImage: {"kernels": ImageKernel, "variables": ImageVariable, "headers_read": str},
    ImageKernel: {"parameters": ImageParameter},
}
"""The sequences in them, with the class of each member."""

_WORDS: Final[Mapping[type, str]] = {
    DeviceImage: "an image",
    ImageKernel: "a kernel",
    ImageVariable: "a variable",
    ImageParameter: "a parameter",
}


def load_compiler(spec: CompilerSpec) -> DeviceCompiler:
    """Return the device compiler of a spec. What it returns against the contract is a `BackendUnavailableError`.

    Parameters
    ----------
    spec
        Whose it is.

    Raises
    ------
    BackendUnavailableError
        If it cannot be loaded or made; see `make_part`.
    """
    return _Checked(spec, make_part(spec, spec.load_compiler, DeviceCompiler))


class _Checked(DeviceCompiler):
    """A plugin's compiler, whose every answer is what the contract says.

    Parameters
    ----------
    spec
        What the plugin says of itself.
    compiler
        What it loads.
    """

    def __init__(self, spec: CompilerSpec, compiler: DeviceCompiler) -> None:
        self._spec, self._compiler = spec, compiler

    def compile(self, request: CompileRequest) -> DeviceImage:
        """Return the image; one for another target than was asked for, or that nobody loads, is refused."""
        image: object = self._compiler.compile(request)
        if not is_a(image, DeviceImage):
            raise self._broken("compile", describe(image), "a DeviceImage")
        self._check_fields(image, DeviceImage)
        self._texts("compile", image.toolchain, "an image whose toolchain is ")
        if image.target != request.target:
            found, asked = (shorten(str(one)) for one in (image.target, request.target))
            raise self._broken("compile", f"an image for {found}", f"one for {asked}")
        kinds = [one for one in self._spec.produces if not request.accepts or one in request.accepts]
        if image.kind not in kinds:
            expected = " or ".join(map(shorten, kinds))
            raise self._broken("compile", f"an image of kind {shorten(image.kind)}", expected)
        return image

    def environment(self, request: CompileRequest) -> Mapping[str, str]:
        """Return what the image depends on beside, as Python's own text."""
        return self._texts("environment", self._compiler.environment(request))

    def fingerprint(self) -> str:
        """Return what identifies the toolchain."""
        return self._text("fingerprint", self._compiler.fingerprint())

    def default_target(self) -> Target | None:
        """Return the target of this machine's first device; None if there is none."""
        found: object = self._compiler.default_target()
        if found is None or is_a(found, Target):
            return found
        raise self._broken("default_target", describe(found), "a Target, or None")

    def _check_fields(self, given: object, kind: type) -> None:
        """Check an image, or what its tables say of a kernel, a parameter or a variable."""
        words = _WORDS[kind]
        for name, kinds in _FIELDS[kind].items():
            value = getattr(given, name)
            if not is_a(value, kinds):
                expected = " or ".join("None" if one is type(None) else one.__name__ for one in kinds)
                raise self._broken("compile", f"{words} whose {name} is {describe(value)}", expected)
        for name, member in _SEQUENCES.get(kind, {}).items():
            value = getattr(given, name)
            members = [*value] if is_a(value, (tuple, list)) else None
            if members is None or not all(is_a(one, member) for one in members):
                got = describe(value) if members is None else f"{type_name(value)} of others"
                raise self._broken(
                    "compile", f"{words} whose {name} is {got}", f"a tuple of {member.__name__}"
                )
            for one in members if member in _FIELDS else ():
                self._check_fields(one, member)

    def _text(self, method: str, given: object) -> str:
        found = text(given)
        if found is None:
            raise self._broken(method, describe(given), "text")
        return found

    def _texts(self, method: str, given: object, what: str = "") -> dict[str, str]:
        """Return a mapping of text to text as Python's own."""
        try:
            found = pairs(given)
        except ForeignError:
            found = None
        plain = [(text(name), text(value)) for name, value in found or ()]
        known = {name: value for name, value in plain if name is not None and value is not None}
        if found is None or len(known) != len(found):
            got = describe(given) if found is None else f"{type_name(given)} with what is no text"
            raise self._broken(method, f"{what}{got}", "a mapping of text to text")
        return known

    def _broken(self, method: str, got: str, expected: str) -> BackendUnavailableError:
        reason = (
            f"its {method}() returned {got}, expected {expected}; update it, or name another with compiler="
        )
        return BackendUnavailableError(self._spec.name, "", reason)
