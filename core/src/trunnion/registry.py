"""Which plugins are installed, and what each of them announces.

A registry lists entry points without importing anything behind them. A plugin is imported when it is first
asked for, alone: its plugin manager holds no other one meanwhile. It may announce only what bears its own name,
and if it fails it becomes an `Unavailable` with its traceback while every other plugin goes on working.
"""

from __future__ import annotations

import functools
from contextlib import contextmanager
from dataclasses import dataclass, replace
from inspect import isroutine
from types import FunctionType, ModuleType
from typing import TYPE_CHECKING, Any, TypeVar, cast

from trunnion.arguments import expect, expect_text
from trunnion.attempts import Failure, PluginRuleError, attempt, probe
from trunnion.contract.spec import CONTRACT_VERSION, Availability, BackendSpec, CompilerSpec
from trunnion.distributions import announced, installation_hint, name_and_version, usual_distribution
from trunnion.errors import (
    ArgumentTypeError,
    BackendUnavailableError,
    DeviceRequirementError,
    DuplicatePluginError,
    LifecycleError,
    UnknownBackendError,
    shorten,
)
from trunnion.messages import describe, first_line, type_name
from trunnion.plain import ForeignError, is_a, sequence
from trunnion.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from importlib.metadata import EntryPoint

__all__ = [
    "GROUP",
    "PluginInfo",
    "Registry",
    "Unavailable",
    "default_registry",
    "usual_distribution",
]

GROUP = "trunnion"
"""The group of entry points that plugins use."""

_MOST_POINTS = 1 << 16
"""Entry points to take of what may be endless."""

_Spec = TypeVar("_Spec", BackendSpec, CompilerSpec)


@dataclass(frozen=True, slots=True)
class Unavailable:
    """A plugin that is installed and cannot be used."""

    name: str
    """The entry point's name."""

    distribution: str
    """The distribution that announces it; several joined by ``" and "`` if the name is claimed twice."""

    version: str
    """That distribution's version; empty if there is none to name."""

    reason: str
    """What is wrong, in one line."""

    traceback: str
    """Where it went wrong, if an exception says so; else empty."""

    def error(self) -> BackendUnavailableError:
        """Return the exception that says the same."""
        return BackendUnavailableError(self.name, self.distribution, self.reason, self.traceback)


@dataclass(frozen=True, slots=True, kw_only=True)
class PluginInfo:
    """One plugin, with everything that can be known without a device."""

    name: str
    """The entry point's name."""

    distribution: str
    """The distribution that announces it."""

    version: str
    """That distribution's version; empty if it is not known."""

    backend: BackendSpec | None = None
    """The backend that it announces, if any."""

    backend_availability: Availability | None = None
    """What the backend's probe says; None if there is no backend."""

    compiler: CompilerSpec | None = None
    """The device compiler that it announces, if any."""

    compiler_availability: Availability | None = None
    """What the compiler's probe says; None if there is no compiler."""

    failure: Unavailable | None = None
    """Why there is neither a backend nor a compiler; None if the plugin could be loaded."""


@dataclass(frozen=True, slots=True)
class _Plugin:
    """A plugin that was loaded."""

    name: str
    origin: EntryPoint | str
    """The entry point, or of one that this process registered who brings it."""
    backend: BackendSpec | None
    compiler: CompilerSpec | None

    def owner(self) -> tuple[str, str]:
        """Return name and version of the distribution that brings it: read when somebody wants to know."""
        return (self.origin, "") if isinstance(self.origin, str) else _owner(self.origin)

    def plus(self, spec: BackendSpec | CompilerSpec) -> _Plugin | None:
        """Return this plugin with one more spec; None if the spec's role is taken."""
        if isinstance(spec, BackendSpec):
            return replace(self, backend=spec) if self.backend is None else None
        return replace(self, compiler=spec) if self.compiler is None else None


def _imported(name: str, entry_point: EntryPoint) -> _Plugin | Unavailable:
    """Return what became of a plugin that was imported."""
    found = attempt(lambda: _announced(entry_point))
    if isinstance(found, Failure):
        return Unavailable(name, *_owner(entry_point), found.reason, found.traceback)
    return _Plugin(name, entry_point, *found)


def _owner(entry_point: EntryPoint) -> tuple[str, str]:
    """Return name and version of the distribution behind an entry point."""
    dist = entry_point.dist
    if dist is None:
        return "unknown", ""
    with _reading():  # which a name and a version are, each time
        name, version = name_and_version(dist)
    return name or "unknown", version


def _owner_of(found: _Plugin | Unavailable) -> tuple[str, str]:
    """Return name and version of the distribution that brings what became of a plugin."""
    return found.owner() if isinstance(found, _Plugin) else (found.distribution, found.version)


@contextmanager
def _reading() -> Iterator[None]:
    """Turn what the system refuses while metadata are read into a typed error."""
    try:
        yield
    except OSError as error:
        advice = "close files, or raise the limit on open ones (ulimit -n), or look after the installation"
        raise DeviceRequirementError(
            "the metadata of what is installed", first_line(error), advice
        ) from error


def _given_points(given: Iterable[EntryPoint]) -> tuple[EntryPoint, ...]:
    """Return the entry points that a caller passes.

    Raises
    ------
    ArgumentTypeError
        If they are none.
    """
    from importlib.metadata import EntryPoint  # noqa: PLC0415 - takes longer to import than all of trunnion

    expected = f"at most {_MOST_POINTS} importlib.metadata.EntryPoint, or None"
    try:
        points = sequence(given, _MOST_POINTS + 1)
    except ForeignError as error:
        raise ArgumentTypeError("entry_points", type_name(given), expected) from error.__cause__
    if points is None or len(points) > _MOST_POINTS:
        raise ArgumentTypeError("entry_points", type_name(given), expected)
    known = tuple(point for point in points if is_a(point, EntryPoint))
    if len(known) != len(points):
        stranger = next(point for point in points if not is_a(point, EntryPoint))
        raise ArgumentTypeError("entry_points", type_name(stranger), expected)
    return known


def _collect(name: str, results: Iterable[object], kind: type[_Spec]) -> _Spec | None:
    """Return the one spec that a hook's implementations announced, or None.

    Raises
    ------
    PluginRuleError
        If one is of the wrong type, bears another name, speaks another contract, or is not alone.
    """
    found: _Spec | None = None
    for result in results:
        if not hasattr(result, "__iter__"):
            raise PluginRuleError(
                f"a hook returned {type_name(result)}, expected an iterable of {kind.__name__}"
            )
        for spec in result:
            if not isinstance(spec, kind):
                raise PluginRuleError(f"a hook announced {type_name(spec)}, expected {kind.__name__}")
            if spec.name != name:
                raise PluginRuleError(
                    f"it announces {shorten(spec.name)}, a plugin may only announce the name of its entry "
                    f"point, {shorten(name)}"
                )
            _check_contract(spec.contract_version)
            if found is not None:
                raise PluginRuleError(f"it announces more than one {kind.__name__}, expected one at most")
            found = spec
    return found


def _check_contract(version: int) -> None:
    if version != CONTRACT_VERSION:
        raise PluginRuleError(
            f"it was written for contract version {describe(version)}, this trunnion speaks {CONTRACT_VERSION}; "
            "install versions of both that match"
        )


class _Functions:
    """What a module has that may be hooks: to look at all that is in one takes pluggy longer than all else."""

    def __init__(self, module: ModuleType) -> None:
        found = vars(module).items()
        vars(self).update({n: one for n, one in found if not n.startswith("__") and _may_be_marked(one)})

    def __dir__(self) -> Iterable[str]:
        return [*vars(self)]


def _may_be_marked(value: object) -> bool:
    """Whether what a module holds could be a hook: `hookimpl` marks a function by an attribute."""
    if type(value) is FunctionType:
        return bool(vars(value))
    return not isinstance(value, (str, type)) and isroutine(value)  # that it is none takes isroutine longest


def _manager() -> Any:
    """Return what finds a plugin's hooks, and calls them: it holds one plugin at a time."""
    import pluggy  # noqa: PLC0415 - listing the plugins must not pay for it

    from trunnion import hookspecs  # noqa: PLC0415 - as above

    made = pluggy.PluginManager(hookspecs.PROJECT)
    made.add_hookspecs(cast("Any", _Functions(hookspecs)))  # which pluggy takes, though it names it not
    return made


@functools.cache
def _idle_managers() -> list[Any]:
    """Return the managers that hold no plugin: to make one, and declare the hooks to it, takes as long as to use it."""
    return []


def _announced(entry_point: EntryPoint) -> tuple[BackendSpec | None, CompilerSpec | None]:
    """Import one plugin and call its hooks. Raises whatever the plugin raises."""
    if entry_point.pattern.match(entry_point.value) is None:
        raise PluginRuleError(
            f"its entry point has the value {shorten(entry_point.value)}, expected 'module' or 'module:object'; "
            "install it anew, or mend its entry_points.txt"
        )
    loaded, idle = entry_point.load(), _idle_managers()
    plugin = _Functions(loaded) if isinstance(loaded, ModuleType) else loaded
    manager = idle.pop() if idle else _manager()  # nobody else's as long as the plugin is in it
    manager.register(plugin, name=entry_point.name)
    manager.check_pending()
    backend = _collect(entry_point.name, manager.hook.trunnion_register_backends(), BackendSpec)
    compiler = _collect(entry_point.name, manager.hook.trunnion_register_compilers(), CompilerSpec)
    if backend is None and compiler is None:
        raise PluginRuleError(
            f"{entry_point.value} announces neither a backend nor a device compiler; "
            "mark its hooks with trunnion.hookspecs.hookimpl"
        )
    if isinstance(plugin, _Functions):  # to compare another object, as pluggy does here, is code of its own
        manager.unregister(name=entry_point.name)
        idle.append(manager)  # of a plugin that failed it may hold anything, and goes
    return backend, compiler


class Registry:
    """The plugins that are installed.

    Safe to use from several threads, and from signals' handlers and finalizers: each plugin is loaded once, by whoever
    asks first, and while it is, it is unavailable to whom that thread waits for.

    Parameters
    ----------
    entry_points
        What to choose from; None: the installed entry points of group ``"trunnion"``, listed at first use.

    Raises
    ------
    ArgumentTypeError
        If they are no entry points.
    DeviceRequirementError
        By each method that needs to know what is installed, if this machine does not let it be read.
    """

    def __init__(self, entry_points: Iterable[EntryPoint] | None = None) -> None:
        self._given = None if entry_points is None else _given_points(entry_points)
        self._listed: dict[str, tuple[EntryPoint, ...]] | None = None
        self._loaded: dict[str, _Plugin | Unavailable] = {}
        self._loading: dict[str, Turns] = {}
        self._registering = Turns("a plugin is being registered")

    def names(self) -> tuple[str, ...]:
        """Return the name of every plugin that is installed now, sorted, without loading any."""
        self._read_anew()
        return self._names()

    def _names(self) -> tuple[str, ...]:
        return tuple(sorted({*self._entries(), *list(self._loaded)}))

    def backend(self, name: str) -> BackendSpec:
        """Return the backend called ``name``.

        Raises
        ------
        UnknownBackendError
            If nothing of that name is installed, or it brings no backend.
        BackendUnavailableError
            If its plugin could not be loaded.
        DuplicatePluginError
            If two distributions claim the name.
        ArgumentTypeError
            If the name is no text.
        """
        name = expect_text(name, "name", "the name of a backend")
        spec = self._plugin(name, "backend").backend
        if spec is None:
            raise self._unknown(name, "backend")
        return spec

    def compiler(self, name: str) -> CompilerSpec:
        """Return the device compiler called ``name``.

        Raises
        ------
        UnknownBackendError
            If nothing of that name is installed, or it brings no device compiler.
        BackendUnavailableError
            If its plugin could not be loaded.
        DuplicatePluginError
            If two distributions claim the name.
        ArgumentTypeError
            If the name is no text.
        """
        name = expect_text(name, "name", "the name of a device compiler")
        spec = self._plugin(name, "device compiler").compiler
        if spec is None:
            raise self._unknown(name, "device compiler")
        return spec

    def backends(self) -> tuple[BackendSpec, ...]:
        """Load every plugin; return the backends of those that could be loaded, by name."""
        return tuple(p.backend for p in self._all() if isinstance(p, _Plugin) and p.backend is not None)

    def compilers(self) -> tuple[CompilerSpec, ...]:
        """Load every plugin; return the device compilers of those that could be loaded, by name."""
        return tuple(p.compiler for p in self._all() if isinstance(p, _Plugin) and p.compiler is not None)

    def unavailable(self) -> tuple[Unavailable, ...]:
        """Load every plugin; return those that could not be loaded, by name."""
        return tuple(p for p in self._all() if isinstance(p, Unavailable))

    def owner(self, name: str) -> tuple[str, str]:
        """Return name and version of the distribution that brings a plugin, without loading it; both may be unknown.

        Parameters
        ----------
        name
            One of `names`.

        Raises
        ------
        ArgumentTypeError
            If it is no text.
        """
        name = expect_text(name, "name", "a plugin's name")
        points = self._entries().get(name)
        if points:
            owners = [_owner(point) for point in points]
            return " and ".join(owner for owner, _ in owners), owners[0][1] if len(owners) == 1 else ""
        known = self._loaded.get(name)
        return ("unknown", "") if known is None else _owner_of(known)

    def plugin(self, name: str) -> PluginInfo:
        """Load and probe one plugin; return what was found.

        Parameters
        ----------
        name
            One of `names`.

        Raises
        ------
        UnknownBackendError
            If there is no such plugin.
        ArgumentTypeError
            If the name is no text.
        """
        known, name = self.names(), expect_text(name, "name", "a plugin's name")
        if name not in known:
            raise UnknownBackendError(name, known, "plugin", "")
        return self._describe(self._load(name))

    def plugins(self) -> tuple[PluginInfo, ...]:
        """Load and probe every plugin that is installed now; return what was found, by name."""
        self._read_anew()
        return tuple(self._describe(plugin) for plugin in self._all())

    def register(self, spec: BackendSpec | CompilerSpec, distribution: str = "this process") -> None:
        """Add a backend or a device compiler of this process, which no entry point announces.

        Parameters
        ----------
        spec
            What to add. A backend and a compiler of one name and one distribution make one plugin.
        distribution
            Who brings it, for error messages.

        Raises
        ------
        BackendUnavailableError
            If it was written for another contract version.
        DuplicatePluginError
            If the name is taken.
        ArgumentTypeError
            If it is no spec, or the distribution no text.
        """
        expect(spec, (BackendSpec, CompilerSpec), "spec", "a BackendSpec or a CompilerSpec")
        distribution = expect_text(distribution, "distribution", "who brings it, as text")
        checked = attempt(lambda: _check_contract(spec.contract_version))
        if isinstance(checked, Failure):
            raise BackendUnavailableError(spec.name, distribution, checked.reason)
        with self._registering.turn():
            announced = self._entries().get(spec.name, ())
            if announced:
                owners = [_owner(point)[0] for point in announced]
                raise DuplicatePluginError(spec.name, [*owners, distribution])
            old = self._loaded.get(spec.name, _Plugin(spec.name, distribution, None, None))
            grown = old.plus(spec) if isinstance(old, _Plugin) and old.origin == distribution else None
            if grown is None:
                raise DuplicatePluginError(spec.name, [_owner_of(old)[0], distribution])
            self._loaded[spec.name] = grown

    def _entries(self) -> dict[str, tuple[EntryPoint, ...]]:
        if self._listed is None:
            self._listed = self._read(anew=False)
        return self._listed

    def _read_anew(self) -> None:
        """Read what is installed, and not what a process remembers of it."""
        self._listed = self._read(anew=True)

    def _read(self, *, anew: bool) -> dict[str, tuple[EntryPoint, ...]]:
        points = self._given
        if points is None:
            with _reading():
                points = announced(GROUP, anew=anew)
        listed: dict[str, tuple[EntryPoint, ...]] = {}
        for point in points:
            listed[point.name] = (*listed.get(point.name, ()), point)
        return listed

    def _plugin(self, name: str, role: str) -> _Plugin:
        if name not in self._entries() and name not in self._loaded:
            self._read_anew()
        points = self._entries().get(name, ())
        if len(points) > 1:
            raise DuplicatePluginError(name, [_owner(point)[0] for point in points])
        if not points and name not in self._loaded:
            raise self._unknown(name, role)
        plugin = self._load(name)
        if isinstance(plugin, Unavailable):
            raise plugin.error()
        return plugin

    def _unknown(self, name: str, role: str) -> UnknownBackendError:
        """Return the error that lists what plays the role; what could not be loaded may."""
        playing = [
            plugin.name
            for plugin in self._all()
            if isinstance(plugin, Unavailable)
            or (plugin.backend if role == "backend" else plugin.compiler) is not None
        ]
        with _reading():
            hint = installation_hint(name, role, playing)
        return UnknownBackendError(name, playing, role, hint)

    def _all(self) -> tuple[_Plugin | Unavailable, ...]:
        return tuple(self._load(name) for name in self._names())

    def _load(self, name: str) -> _Plugin | Unavailable:
        """Return a plugin's state, loading it if nobody has."""
        known = self._loaded.get(name)
        if known is not None:
            return known
        points = self._entries().get(name, ())
        if not points:
            return Unavailable(name, "unknown", "", "it was uninstalled a moment ago", "")
        if len(points) > 1:
            error = DuplicatePluginError(name, [_owner(point)[0] for point in points])
            failure = Unavailable(name, " and ".join(error.distributions), "", str(error), "")
            return self._loaded.setdefault(name, failure)
        loading = self._loading.setdefault(name, Turns(f"plugin {shorten(name)} is being imported"))
        try:
            with loading.turn():
                if name not in self._loaded:
                    self._loaded[name] = _imported(name, points[0])
                return self._loaded[name]
        except LifecycleError as error:  # of the turn: what an import raises is its plugin's failure
            reason = "it was asked for while being imported" if loading.is_mine() else str(error)
            # Not stored: the import decides what becomes of the plugin.
            return Unavailable(name, *_owner(points[0]), reason, "")

    @staticmethod
    def _describe(found: _Plugin | Unavailable) -> PluginInfo:
        distribution, version = _owner_of(found)
        if isinstance(found, Unavailable):
            return PluginInfo(name=found.name, distribution=distribution, version=version, failure=found)
        return PluginInfo(
            name=found.name,
            distribution=distribution,
            version=version,
            backend=found.backend,
            backend_availability=None if found.backend is None else probe(found.backend),
            compiler=found.compiler,
            compiler_availability=None if found.compiler is None else probe(found.compiler),
        )


@functools.cache
def default_registry() -> Registry:
    """Return the registry of this environment's entry points: always the same object."""
    return Registry()


default_registry()  # made here, while the import's lock is held: two threads that ask at once get the same
