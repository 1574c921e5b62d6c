"""Laws: what every backend must do, as checked sentences, and the object that knows all of them."""

from __future__ import annotations

import functools
import gc
import importlib
import pkgutil
import zlib
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from trunnion.errors import UnsupportedFeatureError
from trunnion.model.capability import BACKEND_CAPABILITIES
from trunnion.testing.dealing import due
from trunnion.testing.search import Search, SearchEndedError, assuming
from trunnion.testing.ways import NEEDS, WAYS

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from hypothesis.strategies import SearchStrategy

    from trunnion.model.capability import Capability
    from trunnion.testing.dealing import Deal
    from trunnion.testing.draws import Drawn
    from trunnion.testing.harness import Harness
    from trunnion.testing.search import Counterexample

__all__ = [
    "EVERY_WAY", "EXAMPLES", "ONE_WAY", "Catalogue", "Law", "LawViolation", "Verdict", "catalogue", "law",
    "passing_over_what_is_there",
]  # fmt: skip

EXAMPLES: Mapping[str, int] = MappingProxyType({"pure": 100, "launcher": 15, "toolchain": 3, "process": 1})
"""How many examples a law of each cost class is checked on."""

EVERY_WAY: tuple[str, ...] = tuple(WAYS)
"""The ways in which a law about calls is checked, unless it says otherwise."""

ONE_WAY = EVERY_WAY[:1]
"""The way of a law that makes no calls."""

_EACH_WAY = 2
"""How many calls each way must have made when a law was checked."""
_MOST_ROUNDS = 4
"""How often a way gets so many examples more, at the most, until it made that many: it may not say every call."""


class LawViolation(AssertionError):  # noqa: N818 - the word of the design: it is the backend that errs
    """A backend broke a law.

    Parameters
    ----------
    law_id
        The law.
    message
        What was seen, and what must be.
    """

    report = ""
    """The whole of it for people, with a program that shows it again; empty until the search for examples is over."""

    verdict: Verdict | None = None
    """What was checked until then; None until the search for examples is over."""

    def __init__(self, law_id: str, message: str) -> None:
        super().__init__(law_id, message)
        self.law_id = law_id
        self.message = message

    def __str__(self) -> str:
        return f"{self.law_id}: {self.message}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Law:
    """One law."""

    id: str
    """A letter and a number; it never changes its meaning."""

    sentence: str
    """What must hold, in one sentence."""

    body: Callable[[Harness, Any], None]
    """Checks one example; raises `LawViolation`."""

    given: Callable[[Harness], SearchStrategy[Any]]
    """Returns the strategy of the examples, which may depend on what the backend declares."""

    requires: frozenset[Capability]
    """What a backend must declare for the law to apply; where it does not, it must refuse."""

    tier: str
    """What it asks of a machine, a key of `NEEDS`: it is checked in the tiers whose machines answer."""

    cost: str
    """The cost class: a key of `EXAMPLES`."""

    ways: tuple[str, ...] = EVERY_WAY
    """The ways in which its calls are made, by their ids; each example is checked in one of them."""

    undeclared: Callable[[Harness, Any], None] | None = None
    """What must hold instead where a capability of the backend itself is not declared, which no program requires.

    None: a program that requires what is missing must be refused.
    """

    parts: Callable[[Any], Iterable[Any]] | None = None
    """Returns examples with less in them, the least first, for a law whose examples hold much that is asked apart.

    The first that breaks the law too is reported in place of the whole. None: there are none.
    """

    deal: Deal | None = None
    """What is dealt round to the examples, so that each run meets all of it; None: they are as `given` draws them."""

    def seed(self, other: str | int | None = None) -> int:
        """Return what chooses the law's examples: a number of its own, or another one that follows from ``other``."""
        return zlib.crc32((self.id if other is None else f"{self.id} {other}").encode())

    def is_of(self, tier: str) -> bool:
        """Whether the law is checked in a tier: ``"sim"``, where every law is, ``"gpu"`` or ``"cpu"``."""
        return tier in NEEDS[self.tier]

    def applies_to(self, harness: Harness) -> bool:
        """Whether the backend declares all that the law requires."""
        return self.requires <= harness.capabilities

    def check(
        self,
        harness: Harness,
        *,
        seed: int | None = None,
        examples: int | None = None,
        shrink: bool = True,
        thorough: bool = False,
        told: Callable[[], None] = lambda: None,
    ) -> Verdict:
        """Check the law on a backend: that it holds, or that what it requires is refused.

        Equal seeds draw equal examples, in every process. Each example is checked in a way that is drawn with it, or
        dealt to it where the law's capabilities are; then each way that made too few calls gets examples of its own.

        Parameters
        ----------
        harness
            The backend.
        seed
            Chooses the examples; None: `seed`.
        examples
            How many; None: what the cost class says.
        shrink
            Whether to look for a smaller example once one breaks the law, which takes some seconds.
        thorough
            Whether every way gets that many examples.
        told
            Called after each example, and each step of a long one.

        Raises
        ------
        LawViolation
            If an example breaks the law, or raises anything else.
        """
        there = tuple(way for way in self.ways if harness.machine.tier in NEEDS[WAYS[way].needs])
        ways = there if self.applies_to(harness) else ONE_WAY
        wanted = EXAMPLES[self.cost] if examples is None else examples
        run = _Run(self, replace(harness, thorough=thorough), shrink=shrink, told=told)
        first = self.seed() if seed is None else seed
        run.again = f"seed={first}, examples={wanted}, thorough={thorough}, shrink=False"
        draw = run.draw if self.deal is None or not self.applies_to(harness) else run.deal
        if not thorough or len(ways) == 1:
            draw(ways, wanted, first)
        for way in ways if len(ways) > 1 else ():
            if thorough:
                draw((way,), wanted, zlib.crc32(way.encode(), first))
            else:
                run.draw_more(way, first)
        return run.verdict()

    def replay(self, harness: Harness, example: Any, *, way: str = "call") -> None:
        """Check the law on one example.

        Parameters
        ----------
        harness
            The backend.
        example
            As the law's strategy draws it.
        way
            The way in.

        Raises
        ------
        LawViolation
            If it breaks the law.
        """
        with assuming():
            _Run(self, harness).body(harness.under(self.id, way), example)


@dataclass(frozen=True, slots=True)
class Verdict:
    """A law that was checked, and held."""

    examples: int
    """On how many examples: fewer than asked for where there are no more. One that says nothing about the law, such as
    a call that is refused where the law is about launches, does not count."""

    made: Counter[str]
    """How many programs were made callable in each way, or calls made in it."""

    digest: str = ""
    """A digest of what was drawn: equal digests, equal draws."""

    met: Counter[Capability] = field(default_factory=Counter)
    """How many of the examples needed each capability, of a law that deals them."""


class _Run:
    """A law that is being checked on a backend."""

    def __init__(
        self, checked: Law, harness: Harness, *, shrink: bool = True, told: Callable[[], None] = lambda: None
    ) -> None:
        from trunnion.testing.strategies import PROGRAM_CAPABILITIES, programs  # noqa: PLC0415 - needs hypothesis

        self.count = 0
        self._met: Counter[Capability] = Counter()  # of a law that deals capabilities
        self.made: Counter[str] = Counter()
        self.again = ""  # what `Law.check` is told to draw the same again
        self._until = Verdict(0, Counter())
        self._law, self._shrink = checked, shrink
        self._search = Search(told, lambda: tuple(self._harness.seen))
        self._harness = replace(
            harness,
            made=self.made,
            seen=[],
            taken=[],
            opened=[],
            asked=set(),
            enough=self._search.enough,
            step=self._search.step,
        )
        applies = checked.applies_to(harness)
        # What only the backend lacks no program requires, so no program can be refused for it.
        lacking = checked.requires - harness.capabilities
        otherwise = checked.undeclared if lacking <= BACKEND_CAPABILITIES else None
        self.body = checked.body if applies else otherwise or _refuses
        self._given = checked.given(harness)
        if not applies and otherwise is None:
            self._given = programs(PROGRAM_CAPABILITIES, checked.requires)

    def draw_more(self, way: str, seed: int) -> None:
        """Check the law on as many examples more as one way needs to have made enough calls."""
        for more in range(_MOST_ROUNDS):
            if self.made[way] >= _EACH_WAY:
                return
            self.draw((way,), 1 + _EACH_WAY, zlib.crc32(f"{way} {more}".encode(), seed), simplest=False)

    def deal(self, ways: tuple[str, ...], examples: int, seed: int) -> None:
        """Check the law on the simplest example, and on others to which ways and what the law deals are dealt round.

        Each is drawn by itself, since Hypothesis draws many of several as changes of the one before. Which way meets
        what follows from the seed; an example that says nothing about the law is drawn anew.
        """
        dealt = self._law.deal
        if dealt is None:
            return
        before, known = self.count, self._met.copy()
        order = sorted(dealt.capabilities(self._harness))
        start = seed % (len(order) or 1)
        order = [*order[start:], *order[:start]]
        self.draw(ways[:1], 1, seed)
        for turn in range(examples * _MOST_ROUNDS):
            left = examples - (self.count - before)
            if left <= 0:
                return
            given = dealt.needing(self._harness, due(order, (self._met - known).keys(), left))
            way = ways[(seed + turn) % len(ways)]
            self.draw((way,), 2, zlib.crc32(str(turn).encode(), seed), simplest=False, given=given)

    def draw(
        self,
        ways: tuple[str, ...],
        examples: int,
        seed: int,
        *,
        simplest: bool = True,
        given: SearchStrategy[Any] | None = None,
    ) -> None:
        """Check the law on drawn examples, each in one of the ways; the first, always the simplest, may be left out."""
        drawn = 0
        import hypothesis  # noqa: PLC0415 - only a run of the suite needs it
        from hypothesis import strategies as st  # noqa: PLC0415 - likewise

        from trunnion.testing.draws import drawn_by_seed_alone, drawn_from  # noqa: PLC0415 - likewise

        def check_one(way: str, example: Drawn) -> None:
            nonlocal drawn
            drawn += 1
            if drawn == 1 and not simplest:
                return
            self._search.check(way, example.value, functools.partial(self._check, way, example.value))

        checks = hypothesis.HealthCheck
        settings = hypothesis.settings(
            max_examples=examples,
            deadline=None,
            database=None,
            suppress_health_check=(checks.too_slow, checks.data_too_large, checks.large_base_example),
            phases=(hypothesis.Phase.generate, *((hypothesis.Phase.shrink,) if self._shrink else ())),
            report_multiple_bugs=False,
        )
        test = hypothesis.given(st.sampled_from(ways), drawn_from(self._given if given is None else given))(
            check_one
        )
        try:
            with drawn_by_seed_alone():
                hypothesis.seed(seed)(settings(test))()
        except (Exception, SearchEndedError):
            if self._search.found is None:
                raise
            violation = self._violation(self._alone(self._search.found))
            raise violation from violation.__cause__

    def _alone(self, found: Counterexample) -> Counterexample:
        """Return what breaks the law by itself: a part of what was found, if there is one."""
        parts = (
            ()
            if self._law.parts is None or self.body is not self._law.body
            else self._law.parts(found.example)
        )
        anew = replace(self._harness, asked=set(), thorough=False)  # as `Law.replay` has it
        part = functools.partial(self._run, self._harness, found.way)
        return self._search.alone(found, parts, part, lambda: self._run(anew, found.way, found.example))

    def _run(self, harness: Harness, way: str, example: Any) -> None:
        self._harness.seen.clear()
        with passing_over_what_is_there():
            self.body(harness.under(self._law.id, way), example)

    def _check(self, way: str, example: Any) -> None:
        try:
            self._run(self._harness, way, example)
        except Exception:
            if self._search.found is None:
                self._until = self.verdict()
            raise
        self.count += 1  # an assumption of the body that does not hold ends it before
        if self._law.deal is not None and self.body is self._law.body:
            self._met.update(self._law.deal.met(example))

    def verdict(self) -> Verdict:
        """Return what was checked so far."""
        return Verdict(self.count, self.made.copy(), self._search.digest, self._met.copy())

    def _violation(self, found: Counterexample) -> LawViolation:
        """Return the violation that an example showed, with its report."""
        from trunnion.testing.violation_report import violation_report  # noqa: PLC0415 - it reads this module

        broken = found.error
        if isinstance(broken, LawViolation):
            violation = LawViolation(broken.law_id, broken.message)
        else:
            violation = LawViolation(self._law.id, f"raised {type(broken).__name__}: {broken}")
            violation.__cause__ = broken
        violation.report = violation_report(
            self._law, self._harness.name, violation, found, self.again, self._harness.machine.tier
        )
        violation.verdict = self._until
        return violation


@functools.cache
def _passing() -> list[None]:
    """Return something for each block of `passing_over_what_is_there` that is not over."""
    return []


@contextmanager
def passing_over_what_is_there() -> Iterator[None]:
    """Let the garbage collector look only at what the block makes: all that torch made takes it 0.1 s and more.

    One block may stand in another: with the outer one, what both passed over is looked at again.
    """
    # Of what somebody else passes over, which thawing would take away; asked last, since all of it is walked for that.
    if not _passing() and gc.get_freeze_count():
        yield
        return
    if _passing():
        gc.collect()  # what is garbage by now would be passed over too, GBs of it after some examples
    gc.freeze()
    _passing().append(None)
    try:
        yield
    finally:
        _passing().pop()
        if not _passing():
            gc.collect()  # what was thawed is old, and garbage among what is old is seldom looked for
            gc.unfreeze()


def law(  # noqa: PLR0913 - one for each field that a law may have
    law_id: str,
    *,
    given: Callable[[Harness], SearchStrategy[Any]],
    requires: frozenset[Capability] = frozenset(),
    tier: str = "sim",
    cost: str = "launcher",
    ways: tuple[str, ...] | None = None,
    undeclared: Callable[[Harness, Any], None] | None = None,
    parts: Callable[[Any], Iterable[Any]] | None = None,
    deal: Deal | None = None,
) -> Callable[[Callable[[Harness, Any], None]], Law]:
    """Return a decorator that makes a law of a function; the first paragraph of its docstring is the sentence.

    Parameters
    ----------
    law_id
        `Law.id`.
    given
        `Law.given`.
    requires
        `Law.requires`.
    tier
        `Law.tier`.
    cost
        `Law.cost`.
    ways
        `Law.ways`; None: every way, and for a law that uses no driver the first one, since it makes no calls.
    undeclared
        `Law.undeclared`.
    parts
        `Law.parts`.
    deal
        `Law.deal`.

    Raises
    ------
    ValueError
        If the tier or the cost class is unknown, or there is no sentence.
    """
    if tier not in NEEDS or cost not in EXAMPLES:
        raise ValueError(f"law {law_id}: got tier {tier!r} and cost {cost!r}")

    def decorate(body: Callable[[Harness, Any], None]) -> Law:
        sentence = " ".join((body.__doc__ or "").split("\n\n")[0].split())
        if not sentence.endswith("."):
            raise ValueError(f"law {law_id} has no sentence")
        return Law(
            id=law_id,
            sentence=sentence,
            body=body,
            given=given,
            requires=requires,
            tier=tier,
            cost=cost,
            ways=(EVERY_WAY if tier != "any" else ONE_WAY) if ways is None else ways,
            undeclared=undeclared,
            parts=parts,
            deal=deal,
        )

    return decorate


def _refuses(harness: Harness, program: Any) -> None:
    """Require that a backend refuses what it does not declare, before it writes anything."""
    missing = program.plan().requires - harness.capabilities
    try:
        harness.source(program)
    except UnsupportedFeatureError as error:
        if error.plugin != harness.name or set(error.features) != {str(feature) for feature in missing}:
            harness.violation(f"refused as {error.plugin!r} for {error.features}, expected {sorted(missing)}")
        return
    harness.violation(f"wrote a launcher that needs {sorted(missing)}, which the backend does not declare")


@dataclass(frozen=True, slots=True)
class Catalogue:
    """Every law, by its id."""

    laws: Mapping[str, Law]
    """In the order of the suite's modules and of the text in each."""

    def __getitem__(self, law_id: str) -> Law:
        return self.laws[law_id]


def _twice(law_id: str) -> NoReturn:
    raise ValueError(f"two laws are called {law_id}")


@functools.cache
def catalogue() -> Catalogue:
    """Return all laws of `trunnion.testing.suite`.

    Raises
    ------
    ValueError
        If two laws have one id.
    """
    from trunnion.testing import suite  # noqa: PLC0415 - the suite's modules import this one

    found: dict[str, Law] = {}
    for module in sorted(info.name for info in pkgutil.iter_modules(suite.__path__)):
        if not module.startswith("test_"):
            continue
        loaded = importlib.import_module(f"{suite.__name__}.{module}")
        for value in vars(loaded).values():
            if isinstance(value, Law) and found.setdefault(value.id, value) is not value:
                _twice(value.id)
    return Catalogue(MappingProxyType(found))
