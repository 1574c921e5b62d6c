"""For each law, a saboteur that no other law catches (``make unique``), or the reason why there is none.

Only saboteurs of which one law alone is said to catch them are tried: those that two are said to catch, two do
(``test_saboteurs``). Many are planted at once. A law that notices none of several mistakes notices none of them, as
long as none hides another: so in the end each must be caught by its own law among those that it was planted with, and
is tried alone if it is not. A law that notices something is asked about fewer of them, until it is known which.

What is known is kept beside this file, and is not asked again: each answer with what the law's module has for it and
the modules of its saboteurs, as they were. It is asked anew when one of them changes, not when what all laws share
does, nor the backend: that would be hours each time. Without that file everything is asked.
"""

from __future__ import annotations

import argparse
import ast
import functools
import hashlib
import io
import json
import multiprocessing
import os
import platform
import sys
import time
import tokenize
from dataclasses import dataclass, field, fields
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mutation_trials.scope import ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Mapping, Sequence

KNOWN: Final = Path(__file__).with_name("unique.jsonl")
"""What laws said."""

REASONS: Final = Path(__file__).with_name("not_unique.json")
"""Why laws have no such saboteur, by law; theirs are tried only if they are named."""

BACKEND: Final = "nvrtc"
UNREACHED: Final = ("Z4",)
"""Laws that are checked in processes of their own, where nothing is planted."""

READERS: Final = ("B2",)
"""Laws that compare a saved launcher's text with what is written anew, where no saboteur stands. So they notice each
saboteur of the plan or the emitter, and no emitter that errs: they are not asked about those."""

FIRST: Final = ("Y2", "L8", "Y1", "O1", "L2", "N1", "C5", "A1", "F1")
"""The laws that notice the most: they are asked first."""

TOGETHER: Final = 25
"""Saboteurs that are planted at once."""

MOST_SECONDS: Final = 900.0
"""A law that takes longer under a mistake has noticed it."""

_SHOWN: Final = 80
"""How many characters are kept of what a law says."""

_FORKED: Final = multiprocessing.get_context("fork")
_TESTING: Final = ROOT / "core/src/trunnion/testing"


# One law, under some mistakes ---------------------------------------------------------------------------------------


def prepare() -> None:
    """Import what every process needs that is forked from this one.

    The simulated driver comes first: where there is a GPU, its own would be loaded, and a law whose process ends for
    that seems to have noticed something.
    """
    from trunnion.testing.machine import start_simulator

    start_simulator()
    import torch  # noqa: F401 - the library of the simulator's tensors

    import trunnion.sim.runtime
    import trunnion.testing.harness
    import trunnion.testing.saboteurs
    import trunnion.testing.strategies  # noqa: F401 - likewise
    from trunnion.registry import default_registry
    from trunnion.testing.laws import catalogue

    catalogue()
    spec = default_registry().backend(BACKEND)
    spec.load_wrapper()
    spec.load_adapter()


def noticed(law_id: str, planted: Sequence[str]) -> str:
    """Return what a law says under mistakes, in this process; empty: that it holds."""
    from trunnion.testing.harness import Sabotage
    from trunnion.testing.laws import LawViolation, catalogue
    from trunnion.testing.runner import harness_of
    from trunnion.testing.saboteur import Saboteur
    from trunnion.testing.saboteurs import SABOTEURS

    def all_of(name: str) -> Callable[[Any], Any]:
        changes = [getattr(SABOTEURS[one].sabotage, name) for one in planted]
        return lambda true: functools.reduce(lambda value, change: change(value), changes, true)

    together = Sabotage(**{one.name: all_of(one.name) for one in fields(Sabotage)})
    bad = Saboteur(id="", sentence="", caught_by=(), stage="", sabotage=together)
    try:
        catalogue()[law_id].check(bad.apply(harness_of(BACKEND)), shrink=False)
    except LawViolation as violation:
        return str(violation)[:_SHOWN]
    return ""


def asked(law_id: str, planted: Sequence[str]) -> str:
    """Return what a law says under mistakes, in a process that ends with them."""
    hears, tells = _FORKED.Pipe(duplex=False)
    process = _FORKED.Process(target=_tell, args=(tells, law_id, planted))
    process.start()
    tells.close()
    try:
        said: str = hears.recv() if hears.poll(MOST_SECONDS) else f"nothing within {MOST_SECONDS:.0f} s"
    except EOFError:
        said = "its process died"
    process.kill()
    process.join()
    return said


def _tell(told: Any, law_id: str, planted: Sequence[str]) -> None:
    with Path(os.devnull).open("w", encoding="utf-8") as sys.stdout:
        told.send(noticed(law_id, planted))
    told.close()
    os._exit(0)  # what a mistake left behind may wait for ever


# What is known ------------------------------------------------------------------------------------------------------


@functools.cache
def version(saboteur: str) -> str:
    """Return a saboteur's id with a digest of the modules that name it; where none does, of all.

    What is said in comments makes no difference.
    """
    naming = [code for code in _modules() if f'"{saboteur}"' in code]
    return f"{saboteur}@{_digest(*(naming or _modules()))[:8]}"


@functools.cache
def law_version(law_id: str) -> str:
    """Return a law's id with a digest of what its module has for it, likewise without comments."""
    from trunnion.testing.laws import catalogue

    body = catalogue()[law_id].body
    return f"{law_id}@{_digest(*reached(body.__module__, body.__name__))[:8]}"


@functools.cache
def _modules() -> list[str]:
    """Return the code of each module of saboteurs."""
    return [uncommented(path.read_text("utf-8")) for path in sorted(_TESTING.glob("*saboteurs.py"))]


@functools.cache
def _definitions(module: str) -> dict[str, tuple[str, frozenset[str]]]:
    """Return what a module defines, by name: its code, and the names in it."""
    text = uncommented(Path(str(sys.modules[module].__file__)).read_text("utf-8"))
    lines, found = text.splitlines(), dict[str, tuple[str, frozenset[str]]]()
    for one in ast.parse(text).body:
        if isinstance(one, ast.FunctionDef | ast.ClassDef):
            start, names = min([one.lineno, *(each.lineno for each in one.decorator_list)]), [one.name]
        else:
            targets = one.targets if isinstance(one, ast.Assign) else [getattr(one, "target", None)]
            start, names = one.lineno, [target.id for target in targets if isinstance(target, ast.Name)]
        named = frozenset(each.id for each in ast.walk(one) if isinstance(each, ast.Name))
        found |= dict.fromkeys(names, ("\n".join(lines[start - 1 : one.end_lineno]), named))
    return found


def reached(module: str, first: str) -> list[str]:
    """Return the code of a definition and of all that it names, and that those name, in the order of names."""
    definitions, reached, left = _definitions(module), set[str](), {first}
    while left:
        reached |= left
        left = {name for one in left for name in definitions[one][1] if name in definitions} - reached
    return [definitions[name][0] for name in sorted(reached)]


def uncommented(text: str) -> str:
    """Return a module's text without its comments: the same whatever Python reads it, as a dump of its tree is not."""
    lines = text.splitlines()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type == tokenize.COMMENT:
            row, column = token.start
            lines[row - 1] = lines[row - 1][:column]
    return "\n".join(line.rstrip() for line in lines)


def _digest(*texts: str) -> str:
    return hashlib.sha256("\0".join(texts).encode()).hexdigest()[:16]


@dataclass(slots=True)
class Known:
    """What laws said of saboteurs so far, each of them by its version."""

    file: Path
    own: Mapping[str, str]
    """The law that each saboteur is said to be caught by."""
    laws: Collection[str]
    """All laws."""
    asked: dict[tuple[str, ...], str] = field(default_factory=dict)
    """What a law, which comes first, said of some; empty: nothing."""
    silent: set[tuple[str, str]] = field(default_factory=set)
    """Each law, and a saboteur among those of which it said nothing."""
    hidden: set[str] = field(default_factory=set)
    """Those of which their own law said nothing where they were among others: what laws said there does not count."""

    def __post_init__(self) -> None:
        if self.file.exists():
            for line in self.file.read_text("utf-8").splitlines():
                row = json.loads(line)
                law_id = row["law"].partition("@")[0]
                if law_id in self.laws and row["law"] == law_version(law_id):
                    self._take(law_id, row["planted"], row["said"])

    def _take(self, law_id: str, versions: Sequence[str], said: str) -> None:
        self.asked[law_id, *versions] = said
        if not said:
            self.silent.update((law_id, one) for one in versions)
            self.hidden.update(one for one in versions if self.own.get(one.partition("@")[0]) == law_id)

    def ask(self, law_id: str, planted: Sequence[str]) -> str:
        """Return what a law says of mistakes, and keep it."""
        versions = [*map(version, planted)]
        if (law_id, *versions) not in self.asked:
            start = time.monotonic()
            said = asked(law_id, planted)
            took = round(time.monotonic() - start, 1)
            row = {"law": law_version(law_id), "planted": versions, "said": said, "s": took}
            with self.file.open("a", encoding="utf-8") as file:
                file.write(json.dumps(row) + "\n")
            self._take(law_id, versions, said)
        return self.asked[law_id, *versions]

    def said(self, law_id: str, saboteur: str) -> str | None:
        """Return what a law says of a mistake; None: that is not known."""
        one = version(saboteur)
        among_others = "" if (law_id, one) in self.silent and one not in self.hidden else None
        return self.asked.get((law_id, one), among_others)

    def caught(self, law_id: str, planted: Sequence[str]) -> list[str]:
        """Return those of several mistakes that a law notices."""
        self._look(law_id, [one for one in planted if self.said(law_id, one) is None])
        return [one for one in planted if self.said(law_id, one)]

    def _look(self, law_id: str, planted: Sequence[str]) -> None:
        """Ask a law about mistakes until it is known which of them it notices, by halves."""
        if planted and self.ask(law_id, planted) and len(planted) > 1:
            middle = len(planted) // 2
            self._look(law_id, planted[:middle])
            self._look(law_id, planted[middle:])

    def others(self, saboteur: str, laws: Sequence[str]) -> tuple[str, int]:
        """Return the first other law that notices a mistake, if there is one, and how many are known not to."""
        told = [(law_id, self.said(law_id, saboteur)) for law_id in laws if self.counts(law_id, saboteur)]
        return next((law_id for law_id, said in told if said), ""), sum(said == "" for _, said in told)

    def is_unique(self, saboteur: str, laws: Sequence[str]) -> bool:
        """Whether all of some laws, but a saboteur's own, are known not to notice it."""
        return self.others(saboteur, laws)[1] == sum(self.counts(law_id, saboteur) for law_id in laws)

    def counts(self, law_id: str, saboteur: str) -> bool:
        """Whether a saboteur is shown to a law."""
        return law_id != self.own[saboteur] and not (law_id in READERS and is_written(saboteur))


# All of them --------------------------------------------------------------------------------------------------------


def candidates() -> dict[str, list[str]]:
    """Return for each law the saboteurs that it alone is said to catch, the newest first."""
    from trunnion.testing.laws import catalogue
    from trunnion.testing.saboteurs import SABOTEURS

    found: dict[str, list[str]] = {law_id: [] for law_id in catalogue().laws}
    for one in reversed(SABOTEURS.values()):
        if len(one.caught_by) == 1:
            found[one.caught_by[0]].append(one.id)
    return found


def is_written(saboteur: str) -> bool:
    """Whether a saboteur stands in the plan or the emitter, and so changes the text of launchers."""
    from trunnion.testing.harness import Sabotage
    from trunnion.testing.saboteurs import SABOTEURS

    sabotage, as_given = SABOTEURS[saboteur].sabotage, Sabotage()
    changed = (
        name
        for name in ("plan", "emitted", "wrapper")
        if getattr(sabotage, name) is not getattr(as_given, name)
    )
    return any(changed)


def order(laws: Mapping[str, Any]) -> list[str]:
    """Return the laws that saboteurs are shown to, the most watchful first."""
    return [*FIRST, *(one for one in laws if one not in (*FIRST, *UNREACHED))]


def prove(
    look: Callable[[], Known], every: Mapping[str, Sequence[str]], wanted: Sequence[str], shards: int
) -> None:
    """Try the saboteurs of laws until each has a unique one, or none is left."""
    laws = order(every)
    while True:
        known, now = look(), list[str]()
        for law_id in wanted:
            left = [one for one in every[law_id] if not known.others(one, laws)[0]]
            if not any(known.is_unique(one, laws) for one in left):
                now += left[:1]
        if not now:
            return
        for group in _groups(known, now):
            for work in (_sift, _confirm):
                _share(shards, work, look, group, laws)


def _groups(known: Known, saboteurs: Sequence[str]) -> Iterator[list[str]]:
    """Put saboteurs together, those of one module apart; those that others hid are alone."""
    hidden = [one for one in saboteurs if version(one) in known.hidden]
    mixed = sorted((one for one in saboteurs if one not in hidden), key=_digest)
    yield from ([one] for one in hidden)
    yield from (mixed[start : start + TOGETHER] for start in range(0, len(mixed), TOGETHER))


def _share(shards: int, work: Callable[..., None], look: Callable[[], Known], *words: Any) -> None:
    """Have some processes do a share each of a work; what they find out they keep."""
    shares = [slice(place, None, shards) for place in range(shards)]
    processes = [_FORKED.Process(target=work, args=(look(), *words, share)) for share in shares]
    for one in processes:
        one.start()
    for one in processes:
        one.join()
    if any(one.exitcode for one in processes):
        raise SystemExit("a process failed: what is known is kept, and this can be run again")


def _sift(known: Known, group: Sequence[str], laws: Sequence[str], share: slice) -> None:
    """Show saboteurs to laws, each until one notices it that is not its own."""
    for law_id in laws[share]:
        caught = known.caught(law_id, [one for one in group if known.counts(law_id, one)])
        for one in caught:
            _say(f"{known.own[one]}: {one} is caught by {law_id} too")
        group = [one for one in group if one not in caught]


def _confirm(known: Known, group: Sequence[str], laws: Sequence[str], share: slice) -> None:
    """Have those that no other law noticed be caught by their own among each other."""
    left = [one for one in group if not known.others(one, laws)[0]]
    for one in left[share]:
        said = known.ask(known.own[one], left)
        _say(f"{known.own[one]}: {one} is {'caught by no other law' if said else 'hidden by others'}")


# The page -----------------------------------------------------------------------------------------------------------


def page(known: Known, every: Mapping[str, Sequence[str]], reasons: Mapping[str, str], about: str) -> str:
    """Return a table of what is known."""
    laws = order(every)
    lines = ["# Mistakes that one law alone catches", "", about, ""]
    lines += ["| law | it alone catches | or else |", "|---|---|---|"]
    for law_id, saboteurs in every.items():
        unique = next((one for one in saboteurs if known.is_unique(one, laws)), None)
        told = []
        for one in saboteurs:
            other, silent = known.others(one, laws)
            count = sum(known.counts(other_law, one) for other_law in laws)
            shown = f"`{one}` was shown to {silent} of {count} other laws"
            told.append(f"`{other}` catches `{one}` too" if other else shown)
        otherwise = reasons.get(law_id) or "; ".join(["not tried to the end", *told])
        lines.append(f"| `{law_id}` | `{unique}` | |" if unique else f"| `{law_id}` | | {otherwise} |")
    return "\n".join(lines) + "\n"


def main() -> int:
    """Ask what is not known, and write the page."""
    options = _options()
    prepare()
    every = candidates()
    own = {one: law_id for law_id, saboteurs in every.items() for one in saboteurs}
    look = functools.partial(Known, options.known, own, every)
    reasons = json.loads(REASONS.read_text("utf-8"))
    wanted = options.laws or [law_id for law_id in every if law_id not in reasons]
    if options.shards:
        prove(look, every, wanted, options.shards)
    if options.results:
        about = (
            f"date {time.strftime('%Y-%m-%d', time.gmtime())}, backend {BACKEND}, "
            f"python {platform.python_version()}, torch {metadata.version('torch').partition('+')[0]}, "
            f"hypothesis {metadata.version('hypothesis')}."
        )
        options.results.write_text(page(look(), every, reasons, about), "utf-8")
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument(
        "--laws", nargs="+", metavar="ID", default=[], help="those of these; else of all without a reason"
    )
    parser.add_argument("--shards", type=int, default=os.cpu_count() or 1, help="0: only write what is known")
    parser.add_argument("--known", type=Path, default=KNOWN, help="what laws said, a line for each answer")
    parser.add_argument("--results", type=Path, help="the page that is written")
    return parser.parse_args()


def _say(text: str) -> None:
    print(text, flush=True)  # noqa: T201 - it says how far it is


if __name__ == "__main__":
    sys.exit(main())
