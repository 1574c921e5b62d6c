"""Which backend and which device compiler take a program, and why the others do not."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from trunnion.arguments import expect, expect_text
from trunnion.attempts import Failure, attempt, probe
from trunnion.contract.spec import Target, called, target_words
from trunnion.errors import (
    BackendUnavailableError,
    ProgramError,
    TrunnionError,
    UnsupportedFeatureError,
)
from trunnion.messages import nearest, shorten, type_name
from trunnion.model.code import LANGUAGE_ALIASES
from trunnion.model.plan.requirements import requirements
from trunnion.model.program import KernelProgram
from trunnion.plain import is_a
from trunnion.registry import Registry, default_registry

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from trunnion.contract.spec import BackendSpec, Capability, CompilerSpec
    from trunnion.model.plan import LaunchPlan

_Part = TypeVar("_Part")

__all__ = [
    "Choice",
    "check_forms",
    "choose_backend",
    "choose_compiler",
    "expect_answer",
    "expect_program",
    "explain",
    "launch_kind",
    "load_part",
    "make_part",
    "named_target",
    "target_kinds",
]


@dataclass(frozen=True, slots=True)
class Choice:
    """What `explain` says of one backend."""

    backend: str
    """The backend's name."""

    chosen: bool
    """Whether ``backend="auto"`` takes it."""

    reason: str
    """Why it is taken, or why not."""


def explain(program: KernelProgram, *, registry: Registry | None = None) -> tuple[Choice, ...]:
    """Say of each installed backend whether ``backend="auto"`` would take it, and why not.

    Parameters
    ----------
    program
        The program; if its device code names a target, only what launches on that kind of device counts.
    registry
        The plugins to choose from; None: those that are installed.

    Raises
    ------
    ArgumentTypeError
        If it is no program.
    """
    plugins = default_registry() if registry is None else expect(registry, Registry, "registry", "a Registry")
    plan = expect_program(program).plan()
    named = named_target(program)
    kind = None if named is None else named.kind
    choices, taken = [], False
    for spec in _by_rank(plugins.backends()):
        refusal = _refusal(spec, plan, program, plugins, kind)
        chosen = refusal is None and not taken
        taken = taken or chosen
        reason = "chosen" if chosen else "usable, but of lower rank"
        choices.append(Choice(spec.name, chosen, reason if refusal is None else refusal.reason))
    choices += [Choice(one.name, chosen=False, reason=one.reason) for one in plugins.unavailable()]
    return tuple(choices)


def expect_program(given: KernelProgram) -> KernelProgram:
    """Return what a caller passes for a program, if it is one.

    Raises
    ------
    ArgumentTypeError
        If it is not: a builder, or what was compiled already, is not taken for what it holds.
    """
    words = "a KernelProgram: what ProgramBuilder.build() returns, or CompiledProgram.program"
    return expect(given, KernelProgram, "program", words)


def named_target(program: KernelProgram) -> Target | None:
    """Return the target that a program's device code names; None if it names none.

    Raises
    ------
    ProgramError
        If its parts name different ones.
    """
    named = {part.target for part in program.code if part.target}
    if len(named) > 1:
        raise ProgramError(f"the parts name different targets: {', '.join(sorted(named))}", field="code")
    return Target.parse(named.pop()) if named else None


def target_kinds(
    program: KernelProgram, backend: BackendSpec, compilers: Iterable[CompilerSpec], kind: str | None = None
) -> tuple[str, ...]:
    """Return the kinds of device on which a backend can launch a program.

    Parameters
    ----------
    program
        The program.
    backend
        The backend.
    compilers
        The device compilers that count.
    kind
        The only kind that is wanted; None: any.

    Returns
    -------
    tuple[str, ...]
        The kinds for which a device compiler makes an image that the backend loads, and for which the backend declares
        what the program needs: of those that can be told apart by that. Sorted; empty if no compiler serves it.
    """
    reached = _reached(program, backend, compilers, kind)
    if len(reached) > 1:  # planning takes time
        needs = program.plan().requires
        reached = frozenset(one for one in reached if needs <= backend.targets[one]) or reached
    return tuple(sorted(reached))


def launch_kind(
    program: KernelProgram,
    backend: BackendSpec,
    target: Target | None,
    compilers: Callable[[], Iterable[CompilerSpec]],
) -> str:
    """Return the kind of device for which a backend's launcher of a program is written.

    Parameters
    ----------
    program
        The program.
    backend
        The backend.
    target
        What the caller names; None: what the device code names, else a kind that its compilers make code for.
    compilers
        Returns the device compilers that count; called if nobody names a target.
    """
    named = target or named_target(program)
    if named is not None:
        return named.kind
    # Without a compiler for the program there is still text to be read.
    return next(iter(target_kinds(program, backend, compilers())), min(backend.targets))


def _reached(
    program: KernelProgram, backend: BackendSpec, compilers: Iterable[CompilerSpec], kind: str | None
) -> frozenset[str]:
    """Return the kinds of device for which some compiler makes an image of a program that a backend loads."""
    return frozenset(one for compiler in compilers for one in _fits(compiler, backend, program, kind))


def _by_rank(specs: tuple[BackendSpec, ...]) -> list[BackendSpec]:
    return sorted(specs, key=lambda spec: (-spec.auto_rank, spec.name))


@dataclass(frozen=True, slots=True)
class _Refusal:
    """Why a backend cannot take a program."""

    backend: str
    reason: str
    missing: frozenset[Capability] = frozenset()
    unusable: bool = False
    out_of_reach: bool = False
    """Whether it launches no such program at all, whatever it can do otherwise."""


def _missing(spec: BackendSpec, plan: LaunchPlan, kinds: Iterable[str]) -> frozenset[Capability]:
    """Return what a program needs and a backend does not declare, for the kind of target that comes nearest."""
    lacking = [plan.requires - spec.targets[kind] for kind in kinds]
    return min(lacking, key=lambda lack: (len(lack), sorted(lack)), default=plan.requires)


def _refusal(
    spec: BackendSpec, plan: LaunchPlan, program: KernelProgram, registry: Registry, kind: str | None
) -> _Refusal | None:
    """Why a backend cannot take a program; None if it can.

    What it can do counts for those kinds of device only for which a compiler makes an image of this program: what it
    declares for CUDA is of no use to a program in C++.
    """
    if kind is not None and kind not in spec.targets:
        reason = f"does not launch on {shorten(kind)}, only on {', '.join(sorted(spec.targets))}"
        return _Refusal(spec.name, reason, out_of_reach=True)
    reached = _reached(program, spec, registry.compilers(), kind)
    kinds = reached or ({kind} if kind is not None else spec.targets)
    missing = _missing(spec, plan, kinds)
    if missing:
        reason = f"does not support {', '.join(sorted(missing))}"
        return _Refusal(spec.name, reason, missing, out_of_reach=not reached)
    problem = probe(spec).problem(kinds)
    if problem:
        return _Refusal(spec.name, problem, unusable=True)
    if not reached:
        languages = ", ".join(sorted({part.language for part in program.code}))
        known = sorted({language for compiler in registry.compilers() for language in compiler.languages})
        return _Refusal(
            spec.name,
            f"no installed device compiler makes of {languages} what it launches ({', '.join(spec.accepts)}); "
            f"they read {', '.join(known) or 'nothing'}",
            out_of_reach=True,
        )
    return None


def _fits(
    compiler: CompilerSpec, backend: BackendSpec, program: KernelProgram, kind: str | None = None
) -> frozenset[str]:
    """Return the kinds of device for which a compiler makes an image of a program that a backend loads."""
    speaks = all(part.language in compiler.languages for part in program.code)
    if not speaks or not set(compiler.produces) & set(backend.accepts):
        return frozenset()
    shared = frozenset(compiler.targets) & frozenset(backend.targets)
    return shared if kind is None else shared & {kind}


def choose_backend(
    program: KernelProgram, name: str, plan: LaunchPlan, registry: Registry, kind: str | None = None
) -> BackendSpec:
    """Return the backend of that name; under ``"auto"`` the usable one of the highest rank that can take the program.

    Parameters
    ----------
    program
        The program.
    name
        The backend's name, or ``"auto"``.
    plan
        The program's plan.
    registry
        The plugins.
    kind
        The kind of device that is wanted, as a `Target` names it; None: any for which there is a compiler.

    Raises
    ------
    UnknownBackendError, BackendUnavailableError
        If the named backend is not installed or cannot be loaded.
    UnsupportedFeatureError
        If under ``"auto"`` no backend can take the program; the reasons are given.
    """
    name = expect_text(name, "backend", "a backend's name, or 'auto'")
    if name != "auto":
        return registry.backend(name)
    refusals = []
    for spec in _by_rank(registry.backends()):
        refusal = _refusal(spec, plan, program, registry, kind)
        if refusal is None:
            return spec
        refusals.append(refusal)
    if not refusals:
        return registry.backend(name)  # says that none is installed
    first, *others = refusals
    if not others and first.unusable:
        owner = next(plugin.distribution for plugin in registry.plugins() if plugin.name == first.backend)
        raise BackendUnavailableError(first.backend, owner, first.reason)
    reasons = [f"{refusal.backend}: {refusal.reason}" for refusal in refusals]
    concerned = [refusal for refusal in refusals if not refusal.out_of_reach]
    nowhere = frozenset.intersection(*(refusal.missing for refusal in concerned or refusals))
    spoken = ", ".join(sorted({part.language for part in program.code}))
    features: list[str] = [*sorted(nowhere)] or ["this program" if kind is None else f"{spoken} on {kind}"]
    hint: list[str] = []
    if not concerned and kind is not None and not any(kind in spec.targets for spec in registry.backends()):
        features, hint = [f"target {shorten(kind)}"], _spelling(kind)
    elif not concerned:
        hint = _way_out(program, None, registry, kind)
    uses = requirements(
        plan.signature, plan.workspaces, plan.launches, plan.encodes, plan.facts, plan.variables
    )
    reasons[:0] = [f"{capability}: {uses[capability]}" for capability in sorted(nowhere)]
    raise UnsupportedFeatureError("no installed backend", features, "; ".join(hint), reasons)


def _spelling(kind: str) -> list[str]:
    """Return how a target is written, if the caller's may be mistyped."""
    known = kind in ("cuda", "cpu")
    return [] if known else [f"expected {target_words(kind)}"]


def _way_out(
    program: KernelProgram, backend: BackendSpec | None, registry: Registry, kind: str | None
) -> list[str]:
    """Return what the device compilers for a program's languages make of it, and what the caller can change."""
    languages = {part.language for part in program.code}
    serving = [spec for spec in registry.compilers() if languages <= set(spec.languages)]
    said = [
        f"{spec.name} compiles it for {', '.join(spec.targets)}, to {', '.join(spec.produces)}"
        for spec in serving
    ]
    if kind is not None and serving and not any(kind in spec.targets for spec in serving):
        said.insert(0, _other_language(languages, kind, registry))
    every = registry.backends()
    if backend is not None and _reached(program, backend, registry.compilers(), None):
        change = "leave out the target, or name one of that kind"
    elif others := [spec.name for spec in every if _reached(program, spec, registry.compilers(), kind)]:
        change = f"choose another backend: {', '.join(others)}"
    elif others := [spec.name for spec in every if _reached(program, spec, registry.compilers(), None)]:
        change = f"leave out the target, or name one of that kind, for backend {' or '.join(others)}"
    else:
        known = {language for spec in registry.compilers() for language in spec.languages}
        near = [nearest(one, sorted(known), LANGUAGE_ALIASES) for one in sorted(languages - known)]
        install = "install a device compiler for it; see: trunnion backends"
        change = f"did you mean the language {', '.join(filter(None, near))}?" if any(near) else install
    return [*said, change]


def _other_language(languages: Iterable[str], kind: str, registry: Registry) -> str:
    """Return what is wrong where the code is in a language that nobody compiles for the target."""
    fitting = sorted({one for spec in registry.compilers() if kind in spec.targets for one in spec.languages})
    read = (
        f"for which code is in {' or '.join(fitting)}"
        if fitting
        else "which no installed device compiler has"
    )
    return f"the device code is in {', '.join(sorted(languages))}, and the target is {kind}, {read}"


def choose_compiler(
    program: KernelProgram,
    name: str | None,
    backend: BackendSpec,
    registry: Registry,
    kind: str | None = None,
) -> CompilerSpec:
    """Return the device compiler of that name; without one, the usable one of the highest rank that fits.

    Parameters
    ----------
    program
        The program.
    name
        The compiler's name; None: any.
    backend
        The backend that launches what it makes.
    registry
        The plugins.
    kind
        The kind of device that is wanted, as a `Target` names it; None: one on which the backend can do what the
        program needs, if there is a choice.

    Raises
    ------
    UnknownBackendError, BackendUnavailableError
        If the named compiler is not installed or cannot be loaded.
    UnsupportedFeatureError
        If no compiler makes what the backend launches of the program's languages.
    """
    if kind is not None and kind not in backend.targets:
        hint = "; ".join([f"it launches on: {', '.join(sorted(backend.targets))}", *_spelling(kind)])
        raise UnsupportedFeatureError(backend.name, [f"target {shorten(kind)}"], hint)
    wanted = "" if kind is None else f" on {kind}"
    languages = sorted({part.language for part in program.code})
    if name is not None:
        spec = registry.compiler(name)
        if not _fits(spec, backend, program, kind):
            hint = f"it compiles {', '.join(spec.languages)} to {', '.join(spec.produces)}"
            raise UnsupportedFeatureError(
                spec.name, [f"{', '.join(languages)} for {backend.name}{wanted}"], hint
            )
        return spec
    compilers = registry.compilers()
    kinds = frozenset(target_kinds(program, backend, compilers, kind))
    fitting = [spec for spec in compilers if _fits(spec, backend, program, kind) & kinds]
    if not fitting:
        kinds_known, images = ", ".join(sorted(backend.targets)), ", ".join(backend.accepts)
        loads = f"{backend.name} launches on {kinds_known} and loads {images}"
        hint = "; ".join([loads, *_way_out(program, backend, registry, kind)])
        features = [f"{language}{wanted}" for language in languages]
        raise UnsupportedFeatureError("no installed device compiler", features, hint)
    if len(fitting) == 1:  # whatever it says of itself
        return fitting[0]
    usable = [spec for spec in fitting if not probe(spec).problem(kinds)]
    return min(usable or fitting, key=lambda spec: (-spec.auto_rank, spec.name))


def check_forms(program: KernelProgram, compiler: CompilerSpec) -> None:
    """Refuse code that is text in a language that its compiler reads as bytes, or the other way round.

    Raises
    ------
    ProgramError
        If some is.
    """
    for index, part in enumerate(program.code):
        binary = compiler.is_binary(part.language)
        if isinstance(part.source, bytes) is not binary:
            raise ProgramError(
                f"got {type_name(part.source)} in {part.language}, which {compiler.name} reads as "
                f"{'bytes' if binary else 'text'}",
                field=f"code[{index}].source",
            )


def load_part(spec: BackendSpec | CompilerSpec, loader: Callable[[], type[_Part]] | str) -> type[_Part]:
    """Return the class behind one of a spec's loaders.

    Parameters
    ----------
    spec
        Whose it is.
    loader
        ``spec.load_wrapper``, ``spec.load_adapter`` or ``spec.load_compiler``.

    Raises
    ------
    BackendUnavailableError
        If the loader raises, or returns no class; with the traceback.
    """
    found = attempt(called(loader))
    if isinstance(found, Failure):
        raise BackendUnavailableError(spec.name, "", found.reason, found.traceback)
    if not isinstance(found, type):
        raise BackendUnavailableError(spec.name, "", f"a loader returned {type_name(found)}, not a class")
    return found


def make_part(
    spec: BackendSpec | CompilerSpec,
    loader: Callable[[], type[_Part]] | str,
    kind: type[Any],
    *given: object,
) -> _Part:
    """Return what the class behind one of a spec's loaders makes.

    Parameters
    ----------
    spec
        Whose it is.
    loader
        As `load_part` takes it.
    kind
        The contract's class, of which that is a subclass.
    *given
        What it is made of.

    Raises
    ------
    BackendUnavailableError
        As `load_part` does; or the class is no such subclass, is abstract, or raises anything when it is used.
    TrunnionError, OSError
        What it raises of these is its own.
    """
    part = load_part(spec, loader)
    if kind not in part.__mro__:
        reason = f"a loader returned {part.__name__}, expected a subclass of {kind.__name__}; update or uninstall it"
        raise BackendUnavailableError(spec.name, "", reason)
    made = attempt(lambda: part(*given), TrunnionError, OSError)
    if isinstance(made, Failure):
        raise BackendUnavailableError(spec.name, "", f"{part.__name__}: {made.reason}", made.traceback)
    return made


def expect_answer(spec: BackendSpec, method: str, given: _Part, kind: type[Any]) -> _Part:
    """Return what a method of a backend's part returned, if it is what the contract says: annotations prove nothing.

    Parameters
    ----------
    spec
        Whose it is.
    method
        The method's name.
    given
        What it returned.
    kind
        The contract's class for it.

    Raises
    ------
    BackendUnavailableError
        If it is of another class.
    """
    if not is_a(given, kind):
        reason = (
            f"its {method}() returned {type_name(given)}, expected {kind.__name__}; update or uninstall it"
        )
        raise BackendUnavailableError(spec.name, "", reason)
    return given
