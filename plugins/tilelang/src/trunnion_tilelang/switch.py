"""`install`: switches a whole program that was written for TileLang, which need not be changed.

TileLang's modules keep what they hold. While a switch is on, looking up ``jit``, ``compile`` or ``par_compile`` in them
finds ours, as an attribute and by ``from tilelang import jit``; TileLang's own code looks nothing up that way but where
it means the public function. So what was decorated before stays TileLang's, and afterwards all is as it was.
"""

from __future__ import annotations

import sys
from functools import wraps
from inspect import signature
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from trunnion.turns import Turns
from trunnion_tilelang import drop_in
from trunnion_tilelang.drop_in import refuse_launchers
from trunnion_tilelang.lowering import require_tilelang
from trunnion_tilelang.settings import Settings

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from inspect import Signature
    from types import ModuleType, TracebackType

__all__ = ["Installation", "install"]

_DEFINING = "tilelang.jit"
_MODULES = ("tilelang", _DEFINING)
"""Those that have the names; the second is hidden behind the first's function of the same name."""


def install(
    backend: str = "auto",
    *,
    compiler: str | None = None,
    options: Mapping[str, Mapping[str, Any]] | None = None,
    cache: Any = True,
) -> Installation:
    """Have trunnion compile and launch all that this process gives to TileLang from now on.

    ``tilelang.jit``, ``tilelang.compile`` and ``tilelang.par_compile`` are trunnion's, for every thread, however they
    are imported afterwards. What was imported or decorated before stays TileLang's, and what is imported or decorated
    while it is on stays trunnion's.

    Parameters
    ----------
    backend, compiler, options, cache
        As for `trunnion.compile`, which refuses them when the first kernel is compiled.

    Returns
    -------
    Installation
        A context manager, whose end, or whose ``uninstall()``, gives TileLang its own back.

    Raises
    ------
    LifecycleError
        If a signal's handler or a finalizer asks for it in the middle of another switch of this thread.
    BackendUnavailableError
        If TileLang is not installed.
    """
    require_tilelang()
    made = Installation(Settings.of(backend, compiler, options, cache))
    _SWITCH.turn_on(made)
    return made


class Installation:
    """A switch that is on, until it is uninstalled; of several, the one that was installed last counts.

    Parameters
    ----------
    settings
        How programs are compiled.
    """

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        """How programs are compiled."""
        self.functions: Mapping[str, Callable[..., Any]] = MappingProxyType(_functions(settings))
        """What stands in for TileLang's functions, by name."""

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.uninstall()

    def uninstall(self) -> None:
        """Give TileLang back what it had, unless another switch is still on; again, it does nothing."""
        _SWITCH.turn_off(self)


def _functions(settings: Settings) -> dict[str, Callable[..., Any]]:
    """Return what stands in for TileLang's functions.

    Each has the other's name, text and signature: what is found by name finds it, a pickle too.
    """
    theirs = vars(sys.modules["tilelang.jit"])
    one, many = signature(theirs["compile"]), signature(theirs["par_compile"])

    @wraps(theirs["jit"])
    def jit(func: Any = None, **said: Any) -> Any:
        how = {name: getattr(settings, name) for name in ("backend", "compiler", "options", "cache")}
        return drop_in.jit(func, **said, **how)

    @wraps(theirs["compile"])
    def compile(*args: Any, **named: Any) -> Any:  # noqa: A001 - TileLang's name for it
        from trunnion_tilelang.jit_kernel import compile_kernel  # noqa: PLC0415 - it imports TileLang

        said = _given(one, args, named)
        return compile_kernel(said.pop("func"), settings, _of_kernels(**said))

    @wraps(theirs["par_compile"])
    def par_compile(*args: Any, **named: Any) -> Any:
        from trunnion_tilelang.jit_kernel import compile_kernels  # noqa: PLC0415 - as above

        said = _given(many, args, named)
        funcs, workers, ignored = (said.pop(name) for name in ("funcs", "num_workers", "ignore_error"))
        return compile_kernels(funcs, settings, _of_kernels(**said), workers, ignore_error=ignored)

    return {"jit": jit, "compile": compile, "par_compile": par_compile}


def _given(form: Signature, args: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    bound = form.bind(*args, **named)
    bound.apply_defaults()
    return dict(bound.arguments)


def _of_kernels(*, target_host: Any, execution_backend: Any, **said: Any) -> dict[str, Any]:
    """Return what says something about a kernel; TileLang's launchers are refused."""
    refuse_launchers(target_host=target_host, execution_backend=execution_backend)
    return said


class _Switch:
    """Which installations are on, and TileLang's modules, which say so."""

    def __init__(self) -> None:
        self._turns = Turns("TileLang is being switched")
        self._on: tuple[Installation, ...] = ()
        # The modules themselves: by name another one may be found when they are given back their own.
        self._kinds: dict[ModuleType, type[ModuleType]] = {}
        # All that stood in for TileLang's functions since none was on.
        self._made: list[Callable[..., Any]] = []

    def turn_on(self, made: Installation) -> None:
        """Let an installation be the one that counts."""
        with self._turns.turn():
            self._on = (*self._on, made)
            self._made += made.functions.values()
            if not self._kinds:
                self._kinds = {module: type(module) for module in map(sys.modules.__getitem__, _MODULES)}
                for module, kind in self._kinds.items():
                    module.__class__ = self._switched(kind, tuple(made.functions))

    def turn_off(self, made: Installation) -> None:
        """Let the one before it count; after the last, TileLang's modules are what they were."""
        with self._turns.turn():
            self._on = tuple(one for one in self._on if one is not made)
            if not self._on:
                self._take_back()
                for module, kind in self._kinds.items():
                    module.__class__ = kind
                self._kinds, self._made = {}, []

    def _take_back(self) -> None:
        """Give modules that hold ours what TileLang's defines: one that is loaded again imports what it finds there."""
        known = {
            module.__name__: vars(module) for module in self._kinds
        }  # none, if all was given back before
        theirs = known.get(_DEFINING, {})
        for held in known.values():
            for name, value in [*held.items()]:
                if any(value is one for one in self._made):
                    held[name] = theirs[value.__name__]

    def _switched(self, kind: type[ModuleType], names: tuple[str, ...]) -> type[ModuleType]:
        """Return a module's class with these names, which come before what the module holds."""
        return type(
            kind.__name__, (kind,), {name: property(self._finder(name), _refuse(name)) for name in names}
        )

    def _finder(self, name: str) -> Callable[[ModuleType], Any]:
        def found(module: ModuleType) -> Any:
            on = self._on  # another thread may turn the last one off just now
            return on[-1].functions[name] if on else vars(module)[name]

        return found


def _refuse(name: str) -> Callable[[ModuleType, Any], None]:
    def assigned(_module: ModuleType, _value: Any) -> None:
        raise AttributeError(
            f"tilelang's {name} is trunnion's while a switch is on; assign it before install(), or after uninstall()"
        )

    return assigned


_SWITCH = _Switch()
