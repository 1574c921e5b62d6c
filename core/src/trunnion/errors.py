"""Every exception that trunnion raises.

One tree, so that ``except TrunnionError`` catches all of it; each leaf also inherits the built-in class that a caller
would expect. The facts are attributes; the text, in lower case, says what was got, what is allowed, what to do.
"""

from __future__ import annotations

import copyreg
from typing import TYPE_CHECKING, ClassVar

from trunnion.messages import describe, listed, numbered, shorten, spelled, suggestion, visible

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

__all__ = [
    "ArgumentError", "ArgumentTypeError", "ArgumentValueError", "ArtifactError", "BackendUnavailableError",
    "CaptureError", "CompileError", "CorruptArtifactError", "DeviceRequirementError", "DriverError",
    "DuplicatePluginError", "ExprError", "KernelBodyError", "LifecycleError", "ParameterMismatchError",
    "ProgramError", "RegistryError", "TensorMapError", "TrunnionError", "UnboundSymbolError", "UnknownBackendError",
    "UnknownKernelError", "UnknownProgramError", "UnknownVariableError", "UnsupportedFeatureError",
    "UntrustedArtifactError", "VariableMismatchError", "shorten",
]  # fmt: skip

_MOST_PLACES, _EXCERPT_RADIUS = 12, 3


class TrunnionError(Exception):
    """The root of every error that trunnion raises on purpose. It pickles, and shows nothing that does not print."""

    _text = Exception.__str__  # what it says, of its facts

    refusal: str = ""
    """The row of `trunnion.model.plan.refusals` that refused a call; empty: none did."""

    def __str__(self) -> str:
        return visible(self._text(), lines=True)

    def add_note(self, note: str) -> None:
        """Add a note, which a traceback shows below the error."""
        super().add_note(visible(note, lines=True))

    def __reduce__(self) -> tuple[Callable[..., object], tuple[object, ...], dict[str, object]]:
        return copyreg.__newobj__, (type(self), *self.args), dict(self.__dict__)  # type: ignore[attr-defined]  # for pickle


class ProgramError(TrunnionError, ValueError):
    """A program's description is wrong, and can be known to be wrong before anything is compiled.

    Parameters
    ----------
    message
        What was got and what is allowed.
    field
        The path of the field that is wrong, for example ``"launches[1].grid[0]"``; empty if there is none.
    """

    def __init__(self, message: str, *, field: str = "") -> None:
        super().__init__(message)
        self.message, self.field = message, field

    def _text(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message

    def within(self, prefix: str) -> ProgramError:
        """Return this error with ``prefix`` put in front of its field path."""
        joiner = "" if not self.field or self.field.startswith("[") else "."
        self.field = f"{prefix}{joiner}{self.field}" if self.field else prefix
        return self


class TensorMapError(ProgramError):
    """A tensor map breaks rules of ``cuTensorMapEncodeTiled`` or ``cuTensorMapEncodeIm2col``.

    Parameters
    ----------
    broken
        One sentence for each broken rule; all of them, not only the first.
    field
        The map's place in the program or in the call.
    """

    def __init__(self, broken: Iterable[str], *, field: str = "") -> None:
        self.broken = tuple(broken)
        super().__init__("; ".join(self.broken), field=field)


class ExprError(ProgramError):
    """An expression is malformed, or has no value: overflow, division by zero, a shift too far, a cast out of range."""


class UnboundSymbolError(ProgramError):
    """No argument of the call gives a symbol its value.

    Parameters
    ----------
    symbol
        The symbol's name.
    candidates
        Every place where it stands in vain, for example ``"dimension 0 of 'a' is (n + 1)"``.
    """

    template: ClassVar[str] = (
        "symbol {symbol} has no value: no input has it as a bare dimension, stride or scalar "
        "(it stands here: {places}); add a parameter that does"
    )
    """The text."""

    def __init__(self, symbol: str, candidates: Iterable[str] = ()) -> None:
        self.symbol, self.candidates = symbol, tuple(candidates)
        super().__init__(self.template.format(symbol=shorten(symbol), places=self.listed(self.candidates)))

    @staticmethod
    def listed(places: tuple[str, ...]) -> str:
        """Return places for the text: of very many the first ones."""
        hidden = len(places) - _MOST_PLACES
        where = ", ".join(places[:_MOST_PLACES]) or "nowhere in the signature"
        return f"{where} and {hidden} more" if hidden > 0 else where


class ArgumentError(TrunnionError):
    """An argument of a call does not fit the program's signature.

    Parameters
    ----------
    argument
        The parameter's name; empty if the call as a whole is wrong.
    got, expected
        What was passed, and what is allowed.
    place
        Where the caller gave it, if the name does not say that: ``"out[0]"``.
    """

    def __init__(self, argument: str, got: str, expected: str, place: str = "") -> None:
        super().__init__(argument, got, expected)
        self.argument, self.got, self.expected, self.place = argument, got, expected, place

    def _text(self) -> str:
        named = f"{shorten(self.argument)} ({self.place})" if self.place else shorten(self.argument)
        return f"{f'argument {named}: ' if self.argument else ''}got {self.got}, expected {self.expected}"


class ArgumentTypeError(ArgumentError, TypeError):
    """An argument, or the number of arguments, is of the wrong type."""


class ArgumentValueError(ArgumentError, ValueError):
    """An argument has the right type and a value, shape, stride or device that is not allowed."""


class UnknownKernelError(ArgumentValueError, KeyError):
    """A program has no kernel of a name; a `KeyError` too, as of any mapping.

    Parameters
    ----------
    name
        What was asked for.
    kernels
        The names that there are.
    """

    def __init__(self, name: str, kernels: Iterable[str]) -> None:
        self.name, self.kernels = name, tuple(kernels)
        known = listed(self.kernels) or "none"
        expected = f"a kernel of the program ({known}){suggestion(name, self.kernels)}"
        super().__init__("kernel", shorten(name), expected)


class UnknownProgramError(ArgumentValueError, KeyError):
    """A bundle has no program of a name; a `KeyError` too, as of any mapping.

    Parameters
    ----------
    name
        What was asked for.
    programs
        The names that there are.
    """

    def __init__(self, name: str, programs: Iterable[str]) -> None:
        wanted = spelled(name)  # anything at all may be asked for
        self.name, self.programs = describe(name) if wanted is None else wanted, tuple(programs)
        known = listed(self.programs) or "none"
        expected = f"a program of the bundle ({known}){suggestion(self.name, self.programs)}"
        super().__init__("program", shorten(name), expected)


class RegistryError(TrunnionError):
    """A plugin could not be found, loaded or registered."""


class UnknownBackendError(RegistryError, LookupError):
    """No installed distribution announces the plugin that was asked for.

    Parameters
    ----------
    name, available
        What was asked for, and the names that are installed.
    role
        ``"backend"`` or ``"device compiler"``.
    hint
        What to install.
    """

    def __init__(
        self, name: str, available: Iterable[str] = (), role: str = "backend", hint: str = ""
    ) -> None:
        self.name, self.available, self.role, self.hint = name, tuple(available), role, hint
        super().__init__(name, self.available, role, hint)

    def _text(self) -> str:
        meant = suggestion(self.name, self.available)
        known = f"installed: {', '.join(self.available)}" if self.available else "none is installed"
        hint = f"; {self.hint}" if self.hint else ""
        return f"unknown {self.role} {shorten(self.name)}{meant or ';'} {known}{hint}"


class DuplicatePluginError(RegistryError):
    """Two distributions claim the same plugin name; neither is used.

    Parameters
    ----------
    name
        The name that is claimed twice.
    distributions
        The distributions that claim it; uninstall all but one.
    """

    def __init__(self, name: str, distributions: Iterable[str]) -> None:
        self.name, self.distributions = name, tuple(distributions)
        super().__init__(name, self.distributions)

    def _text(self) -> str:
        return f"plugin {shorten(self.name)} is announced by {' and '.join(self.distributions)}; uninstall all but one"


class BackendUnavailableError(RegistryError):
    """A plugin is installed but cannot be used here, or a library is not there at all.

    Parameters
    ----------
    name
        The plugin's name, or the library's.
    distribution
        The distribution that announces the plugin; empty if that is not known, or it is no plugin.
    reason
        What is wrong, and what to install or do.
    details
        The traceback of the failed import, if that is what is wrong.
    """

    def __init__(self, name: str, distribution: str, reason: str, details: str = "") -> None:
        super().__init__(name, distribution, reason, details)
        self.name, self.distribution, self.reason, self.details = name, distribution, reason, details

    def _text(self) -> str:
        owned = (
            f"plugin {shorten(self.name)} ({self.distribution})" if self.distribution else shorten(self.name)
        )
        return f"{owned} is unavailable: {self.reason}"


class UnsupportedFeatureError(TrunnionError, NotImplementedError):
    """A correct program needs what the chosen plugin does not declare.

    Parameters
    ----------
    plugin, features, hint
        What refuses, or ``"no installed backend"``; the names of the missing features; what would help.
    reasons
        Where a feature is used, or why a plugin does not have it: a line each.
    """

    def __init__(
        self, plugin: str, features: Iterable[str], hint: str = "", reasons: Iterable[str] = ()
    ) -> None:
        self.plugin, self.features, self.hint, self.reasons = plugin, tuple(features), hint, tuple(reasons)
        super().__init__(plugin, self.features, hint, self.reasons)

    def _text(self) -> str:
        verb = " supports " if self.plugin.startswith("no ") else " does not support "
        head = self.plugin + verb + ", ".join(self.features) + (f"; {self.hint}" if self.hint else "")
        return "\n  ".join([head, *self.reasons])


class DeviceRequirementError(TrunnionError):
    """A device or driver is too small, too old or absent for what a program needs.

    Parameters
    ----------
    requirement, got
        What is needed, and what is there.
    hint
        What to do.
    """

    def __init__(self, requirement: str, got: str, hint: str = "") -> None:
        super().__init__(requirement, got, hint)
        self.requirement, self.got, self.hint = requirement, got, hint

    def _text(self) -> str:
        return f"needs {self.requirement}, got {self.got}{f'; {self.hint}' if self.hint else ''}"


class CompileError(TrunnionError):
    """A compiler refused the source.

    Parameters
    ----------
    compiler
        The compiler's name and version, for example ``"NVRTC 13.0"``.
    log
        Everything that the compiler printed.
    source
        The text that was compiled, whole.
    options
        The options, in the order in which the compiler got them.
    arch
        The architecture that was compiled for, for example ``"sm_90a"``.
    line
        The first line that the log complains about, counted from 1; 0 if it names none.
    """

    def __init__(
        self,
        compiler: str,
        log: str,
        source: str = "",
        options: Iterable[str] = (),
        arch: str = "",
        line: int = 0,
    ) -> None:
        self.compiler, self.log, self.source = compiler, log, source
        self.options, self.arch, self.line = tuple(options), arch, line
        super().__init__(compiler, log, source, self.options, arch, line)

    def numbered_source(self, radius: int | None = None) -> str:
        """Return the source with lines numbered from 1, the offending one marked with ``>``.

        Parameters
        ----------
        radius
            How many lines to show on each side of `line`; None for all of the source.
        """
        return numbered(self.source, self.line, radius)

    def _text(self) -> str:
        title = f"{self.compiler} refused the source for {self.arch or 'the target'}"
        excerpt = [self.numbered_source(_EXCERPT_RADIUS)] if self.source else []
        log = self.log.strip() or "(the compiler printed nothing)"
        return "\n".join([title, f"options: {' '.join(self.options) or '(none)'}", *excerpt, log])


class ParameterMismatchError(TrunnionError, ValueError):
    """What a launch passes is not what the compiled kernel takes.

    Parameters
    ----------
    kernel
        The kernel's name, as the program spells it.
    ordinal
        The parameter's position, counted from 0; -1 if the number of parameters differs.
    declared, actual
        What the program passes, and what the image's parameter table says.
    table
        All of the kernel's parameters as the image has them, each with what the program passes there.
    """

    def __init__(
        self,
        kernel: str,
        ordinal: int,
        declared: str,
        actual: str,
        table: tuple[dict[str, int | str | None], ...] = (),
    ) -> None:
        super().__init__(kernel, ordinal, declared, actual, table)
        self.kernel, self.ordinal, self.declared, self.actual = kernel, ordinal, declared, actual
        self.table = table

    def _text(self) -> str:
        what = "its parameters" if self.ordinal < 0 else f"parameter {self.ordinal}"
        head = f"kernel {shorten(self.kernel)}, {what}: the program passes {self.declared}"
        advice = (
            "correct the launch's args (an expression is int64 unless cast, a number too: "
            "const(8, 'int32')) or the declaration"
        )
        return f"{head}, the compiled kernel takes {self.actual}; {advice}"


class VariableMismatchError(TrunnionError, ValueError):
    """A module variable of the compiled code is not what the program says of it.

    Parameters
    ----------
    variable
        The variable's name, as the program spells it.
    declared, actual
        What the program says, and what the image, or the driver, says.
    """

    def __init__(self, variable: str, declared: str, actual: str) -> None:
        super().__init__(variable, declared, actual)
        self.variable, self.declared, self.actual = variable, declared, actual

    def _text(self) -> str:
        head = f"variable {shorten(self.variable)}: the program says {self.declared}"
        return f"{head}, the compiled code has {self.actual}; correct its dtype and shape, or the declaration"


class UnknownVariableError(TrunnionError, LookupError):
    """The compiled code has no variable that a program names.

    Parameters
    ----------
    name
        The name, as the program spells it.
    variables
        The exact names of those that there are.
    """

    def __init__(self, name: str, variables: Iterable[str]) -> None:
        self.name, self.variables = name, tuple(variables)
        known = listed(self.variables) or "none"
        meant = suggestion(name, self.variables)
        super().__init__(
            f"the compiled code has no variable {shorten(name)} (it has: {known}){meant}; one that no kernel uses may "
            "be dropped where it is linked"
        )


class KernelBodyError(TrunnionError, ValueError):
    """A simulated launch is asked, as by a body, for a parameter that its kernel does not have in that form.

    Parameters
    ----------
    kernel, ordinal
        The kernel's symbol, and the position that was asked for.
    asked, actual
        What it was asked for as, and what there is instead.
    """

    def __init__(self, kernel: str, ordinal: int, asked: str, actual: str) -> None:
        super().__init__(f"kernel {shorten(kernel)} was asked for parameter {ordinal} as {asked}; {actual}")
        self.kernel, self.ordinal, self.asked, self.actual = kernel, ordinal, asked, actual


class DriverError(TrunnionError, RuntimeError):
    """A call of the CUDA driver, or of another native library, failed.

    Parameters
    ----------
    call
        The function's name, for example ``"cuLaunchKernelEx"``.
    code, code_name
        The status that it returned, and its name, for example ``"CUDA_ERROR_INVALID_VALUE"``.
    explanation
        What the status means, and what to do about it.
    """

    def __init__(self, call: str, code: int, code_name: str, explanation: str = "") -> None:
        super().__init__(call, code, code_name, explanation)
        self.call, self.code, self.code_name, self.explanation = call, code, code_name, explanation

    def _text(self) -> str:
        said = f"{self.call} failed with {self.code_name} ({self.code})"
        return f"{said}: {self.explanation}" if self.explanation else said


class CaptureError(TrunnionError, RuntimeError):
    """An operation that a stream capture forbids was asked for while a stream was being captured."""


class LifecycleError(TrunnionError, RuntimeError):
    """An object is used after it was closed, in a forked child, or twice where once is allowed."""


class ArtifactError(TrunnionError):
    """A stored artifact cannot be used."""


class CorruptArtifactError(ArtifactError, ValueError):
    """Bytes are not what they should be: truncated, changed, or of another format.

    Parameters
    ----------
    what
        The file, image or field that is wrong.
    problem
        What is wrong with it.
    """

    def __init__(self, what: str, problem: str) -> None:
        super().__init__(what, problem)
        self.what, self.problem = what, problem

    def _text(self) -> str:
        return f"{self.what}: {self.problem}"


class UntrustedArtifactError(ArtifactError):
    """An artifact or a source would run code here and is not on the list of what is trusted, or others can write it."""
