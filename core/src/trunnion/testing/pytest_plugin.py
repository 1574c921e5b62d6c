"""The pytest plugin: options, and one test item for each law of the suite and each backend.

Installed with the library, so it imports nothing heavy: the suite's own modules are imported only where
``trunnion.testing.suite`` is collected.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.contract.spec import BackendSpec
    from trunnion.testing.laws import Law
    from trunnion.testing.runner import Options

__all__ = ["LawItem", "pytest_addoption", "pytest_configure", "pytest_pycollect_makeitem"]


_OPTIONS: Mapping[str, Mapping[str, Any]] = {
    "backend": {
        "action": "append",
        "default": [],
        "metavar": "NAME",
        "help": "check this backend; may be given again (default: every backend that can be used here)",
    },
    "tier": {
        "choices": ("sim", "gpu", "cpu"),
        "default": "sim",
        "help": "where the laws are checked: on the simulated driver, on a GPU, or on the CPU (default: sim)",
    },
    "examples": {
        "type": int,
        "metavar": "N",
        "help": "check each law on so many examples (default: 100, 15, 3 or 1, by what one costs)",
    },
    "seed": {
        "type": int,
        "default": 0,
        "metavar": "N",
        "help": "draw other examples (default: 0; equal seeds draw equal ones)",
    },
    "no-shrink": {
        "action": "store_true",
        "help": "report the first example that breaks a law (default: look some seconds for a smaller one)",
    },
    "thorough": {
        "action": "store_true",
        "help": "check each law by every way in on all of its examples (default: the ways share them)",
    },
    "fresh": {
        "action": "store_true",
        "help": "compile every C++ launcher anew, and keep none (default: keep them in the user's cache)",
    },
}


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the options of the conformance suite."""
    group = parser.getgroup("trunnion", "the conformance suite of trunnion")
    for name, kind in _OPTIONS.items():
        group.addoption(f"--trunnion-{name}", **kind)


def pytest_configure(config: pytest.Config) -> None:
    """Refuse what the options ask for and nobody has once, before anything is collected.

    Raises
    ------
    pytest.UsageError
        If a backend is unknown, cannot be loaded or does not launch there, there is no such GPU, or a number is out of
        range.
    """
    asked = _asked(config)
    _options(config)
    tier = config.getoption("--trunnion-tier")
    if tier == "sim":
        return
    # Of torch's own memory: what it says once of a type that some output has is no finding.
    config.addinivalue_line("filterwarnings", "ignore:ComplexHalf support is experimental:UserWarning")
    from trunnion.errors import TrunnionError  # noqa: PLC0415 - only where the option is given
    from trunnion.testing.runner import laws_of, require_target  # noqa: PLC0415 - likewise

    try:
        laws_of(tier)
        for spec in asked:
            require_target(spec, tier)
    except TrunnionError as error:
        raise pytest.UsageError(str(error)) from error


def pytest_pycollect_makeitem(
    collector: pytest.Module | pytest.Class,
    name: str,  # noqa: ARG001 - pytest passes arguments by name
    obj: object,
) -> list[pytest.Item | pytest.Collector] | None:
    """Make one item of each law and backend; anything else is left to pytest."""
    from trunnion.testing.laws import Law  # noqa: PLC0415 - cheap, and only while something is collected

    if not isinstance(obj, Law) or obj.body.__module__ != collector.obj.__name__:
        return None
    tier = collector.config.getoption("--trunnion-tier")
    if not obj.is_of(tier):
        return []
    return [_item(collector, obj, spec, tier) for spec in _backends(collector.config)]


def _item(collector: pytest.Module | pytest.Class, law: Law, spec: BackendSpec, tier: str) -> LawItem:
    from trunnion.testing.machine import KINDS  # noqa: PLC0415 - only where the suite is collected

    verdict = "holds" if law.requires <= spec.targets.get(KINDS[tier], frozenset()) else "refused"
    item: LawItem = LawItem.from_parent(
        collector, name=f"{law.id}[{spec.name}-{verdict}]", law=law, spec=spec
    )
    return item


def _backends(config: pytest.Config) -> tuple[BackendSpec, ...]:
    """Return the backends to check.

    Raises
    ------
    pytest.UsageError
        If one that was asked for is unknown or cannot be loaded, or there is none.
    """
    from trunnion.testing.runner import backends_of  # noqa: PLC0415 - only where the suite is collected

    found = _asked(config) or backends_of(config.getoption("--trunnion-tier"))
    if not found:
        raise pytest.UsageError("no backend is installed that can be used here; see: trunnion backends")
    return found


def _asked(config: pytest.Config) -> tuple[BackendSpec, ...]:
    names = config.getoption("--trunnion-backend")
    if not names:
        return ()
    from trunnion.errors import RegistryError  # noqa: PLC0415 - only where the suite's option is given
    from trunnion.registry import default_registry  # noqa: PLC0415 - likewise

    registry = default_registry()
    try:
        registry.backends()  # every plugin is loaded, so that an error lists those that are backends
        return tuple(registry.backend(name) for name in names)
    except RegistryError as error:
        raise pytest.UsageError(str(error)) from error


_NAMES = {"tier": "sim", "examples": None, "seed": 0, "thorough": False, "fresh": False, "no-shrink": False}


def _options(config: pytest.Config) -> Options | None:
    """Return how laws are checked; None, and nothing is imported for it, if no option says anything about it.

    Raises
    ------
    pytest.UsageError
        If a number is out of range.
    """
    given = {name: config.getoption(f"--trunnion-{name}") for name in _NAMES}
    if given == _NAMES:
        return None
    from trunnion.testing.runner import Options  # noqa: PLC0415 - only where such an option is given

    given["shrink"] = not given.pop("no-shrink")
    try:
        return Options(**given)
    except ValueError as error:
        raise pytest.UsageError(str(error)) from error


class LawItem(pytest.Item):
    """One law on one backend.

    Parameters
    ----------
    law
        The law.
    spec
        The backend.
    kwargs
        What pytest passes to every item.
    """

    def __init__(self, *, law: Law, spec: BackendSpec, **kwargs: Any) -> None:
        super().__init__(**kwargs)
        self.law = law
        self.spec = spec

    def runtest(self) -> None:
        """Check the law."""
        from trunnion.testing.runner import Options, check, harness_of  # noqa: PLC0415 - only where the suite runs

        options = _options(self.config) or Options()
        verdict = check(self.law, harness_of(self.spec.name, tier=options.tier, fresh=options.fresh), options)
        self.user_properties.append(("examples", verdict.examples))
        self.user_properties.append(("digest", verdict.digest))
        self.user_properties.extend((f"calls by {way}", made) for way, made in sorted(verdict.made.items()))

    def reportinfo(self) -> tuple[Any, int | None, str]:
        """Return where the law stands, and its sentence."""
        code = self.law.body.__code__
        return self.path, code.co_firstlineno - 1, f"{self.name}: {self.law.sentence}"

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        """Return a violation as its report, and anything else as pytest does."""
        from trunnion.testing.laws import LawViolation  # noqa: PLC0415 - only where the suite runs

        if style is None and isinstance(excinfo.value, LawViolation):
            return excinfo.value.report
        return super().repr_failure(excinfo, style)
