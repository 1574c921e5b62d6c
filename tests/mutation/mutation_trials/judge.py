"""A verdict on a mutant: forked children try it, and whatever ends one of them ends nothing else.

The first round checks few examples of each law, in one way: most mutants that any law kills, it finds in seconds. What
it finds is no verdict: a law that is red there is checked again as the suite checks it, in a process of its own, and so
is one that is red in the second round. A law kills a mutant if it is red in such a process, by itself.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import resource
import select
import shutil
import signal
import time
import traceback
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Final

from mutation_trials import trial as trials
from mutation_trials.reach import watched

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from mutation_trials.mutant import Mutant
    from mutation_trials.tree import Tree

_TICK = 0.5
# Of what a child maps, tensors of X9 among it that nobody touches: a mutant that takes all memory ends alone.
_MOST_BYTES: Final = 128 << 30
_WORDS = 1500
_PR_SET_PDEATHSIG = 1
_OVER = frozenset({"red", "left out", "green"})
_SHIM = "cache/trunnion/sim"


@dataclass(frozen=True, slots=True, kw_only=True)
class Limits:
    """How long a child may take; each far more than the unmutated tree does."""

    silence: float
    """Seconds without a finished example."""

    whole: float
    """Seconds for both rounds."""


@dataclass(slots=True)
class Outcome:
    """What came of one child."""

    status: str = "ended"
    """``"left out"``, ``"red"``, ``"crashed"``, ``"hung"`` or ``"green"``; ``"ended"``: before it said anything."""

    law: str = ""
    """Where."""

    short: bool = False
    """Whether in the first round."""

    text: str = ""
    """What was said."""

    seconds: dict[str, float] = field(default_factory=dict)
    """How long each law of the second round took."""

    silence: float = 0.0
    """The longest time without a word."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """What became of a mutant."""

    id: str
    """The mutant's."""

    status: str
    """``"killed"``, ``"survived"`` or ``"left out"``."""

    law: str = ""
    """Which law killed it."""

    how: str = ""
    """``"red"``, ``"crashed"`` or ``"hung"``."""

    text: str = ""
    """What was wrong, or why it does not count."""

    unconfirmed: tuple[str, ...] = ()
    """The laws that were red in the first round, or after others, and not by themselves."""

    seconds: float = 0.0
    """Wall time."""

    cpu: float = 0.0
    """Processor time of all children."""


class Judge:
    """Tries mutants, one after another, in one copy of the sources.

    Parameters
    ----------
    tree
        The copy.
    folder
        For what trials write; each has a folder of its own there, which goes with it.
    """

    def __init__(self, tree: Tree, folder: Path) -> None:
        self._tree, self._folder = tree, folder
        self._kept = folder / "kept"
        self._shim = folder / "shim"
        self._parent = os.getppid()

    def baseline(self, backend: str, laws: tuple[str, ...], limits: Limits) -> tuple[Outcome, list[str]]:
        """Try the sources as they are; return what came of it, and the laws that few examples break already.

        Those are of no use in a first round.

        Parameters
        ----------
        backend
            By whose laws.
        laws
            Which.
        limits
            Of each child.
        """
        useless: list[str] = []
        left = laws
        with self._scratch() as scratch:
            trial = self._trial(None, backend)
            while True:
                found = self._child(replace(trial, short=left), scratch, limits)
                if found.status != "red":
                    break
                useless.append(found.law)
                left = left[left.index(found.law) + 1 :]  # those before it held
            if found.status == "green":
                found = self._child(replace(trial, laws=laws), scratch, limits)
            with contextlib.suppress(OSError):
                shutil.copytree(scratch / _SHIM, self._shim, dirs_exist_ok=True)
        return found, useless

    def reach(self, backend: str, laws: tuple[str, ...]) -> dict[str, Any]:
        """Return which lines of the sources as they are run at import, and which each law runs."""
        with self._scratch() as scratch:
            return watched(replace(self._trial(None, backend), laws=laws), scratch)

    def verdict(
        self, mutant: Mutant, backend: str, short: tuple[str, ...], laws: tuple[str, ...], limits: Limits
    ) -> Verdict:
        """Try a mutant.

        Parameters
        ----------
        mutant
            The mutant.
        backend
            By whose laws.
        short
            The laws of the first round, in their order.
        laws
            Those of the second.
        limits
            Of each child.
        """
        start, before = time.monotonic(), _cpu()
        with self._tree.mutated(mutant), self._scratch() as scratch:
            trial = replace(self._trial(mutant, backend), short=short, laws=laws)
            found = self._decided(trial, scratch, limits)
        spent = round(time.monotonic() - start, 1), round(_cpu() - before, 1)
        return replace(found, id=mutant.id, seconds=spent[0], cpu=spent[1])

    def _decided(self, trial: trials.Trial, scratch: Path, limits: Limits) -> Verdict:
        unconfirmed: list[str] = []
        while True:
            found = self._child(trial, scratch, limits)
            if found.status in ("left out", "ended") or not (found.law or found.status == "green"):
                return Verdict(id="", status="left out", text=f"{found.status}: {found.text}")
            if found.status == "green":
                return Verdict(id="", status="survived", unconfirmed=tuple(unconfirmed))
            alone = replace(trial, vector_add=False, short=(), laws=(found.law,))
            again = self._child(alone, scratch, limits)
            if again.status != "green":
                return Verdict(
                    id="", status="killed", law=found.law, how=again.status, text=again.text,
                    unconfirmed=tuple(unconfirmed),
                )  # fmt: skip
            unconfirmed.append(found.law)
            trial = _rest(trial, found)

    def _trial(self, mutant: Mutant | None, backend: str) -> trials.Trial:
        same = mutant is None or not mutant.path.endswith(".hpp")
        kept = os.fspath(self._kept) if same else None
        return trials.Trial(
            backend=backend, folder=os.fspath(self._tree.folder), kept=kept, same_headers=same
        )

    @contextlib.contextmanager
    def _scratch(self) -> Iterator[Path]:
        """Yield an empty folder, but for what the simulated driver is loaded from: nobody mutates that."""
        folder = self._folder / "trial"
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True, mode=0o700)
        if self._shim.exists():
            shutil.copytree(self._shim, folder / _SHIM)
        yield folder
        shutil.rmtree(folder, ignore_errors=True)

    def _child(self, trial: trials.Trial, scratch: Path, limits: Limits) -> Outcome:
        """Fork a child that does it, and return what came of that."""
        reading, writing = os.pipe()
        words = scratch / "words"
        child = os.fork()
        if not child:
            _live(trial, scratch, words, writing)
        os.close(writing)
        with contextlib.suppress(OSError):  # the child does so too: whoever comes first
            os.setpgid(child, child)
        try:
            outcome = _heard(reading, child, limits, self._parent)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child, signal.SIGKILL)
            _, status = os.waitpid(child, 0)
            os.close(reading)
        if outcome.status in ("crashed", "ended"):
            said = words.read_text("utf-8", "replace")[-_WORDS:] if words.exists() else ""
            code = os.waitstatus_to_exitcode(status)
            outcome.text = f"exit status {code}: {said}"
        return outcome


def _rest(trial: trials.Trial, found: Outcome) -> trials.Trial:
    """Return what is left of a trial after a law that was red there, and is green by itself."""
    laws = tuple(law for law in trial.laws if law != found.law)
    if found.short:
        behind = trial.short[trial.short.index(found.law) + 1 :]
        return replace(trial, vector_add=False, short=behind, laws=laws)
    return replace(trial, vector_add=False, short=(), laws=trial.laws[trial.laws.index(found.law) + 1 :])


def _live(trial: trials.Trial, scratch: Path, words: Path, writing: int) -> None:
    """Be the child, which never returns."""
    status = 1
    try:
        with contextlib.suppress(OSError):
            os.setpgid(0, 0)
        ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)  # whatever ends the server ends its trial
        resource.setrlimit(resource.RLIMIT_DATA, (_MOST_BYTES, _MOST_BYTES))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        trials.become(scratch, os.open(words, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600))
        trials.run(trial, lambda message: _tell(writing, message))
        status = 0
    except BaseException:  # noqa: BLE001 - said, and a forked child must not go on as its parent
        traceback.print_exc()
    finally:
        os._exit(status)


def _tell(pipe: int, message: dict[str, Any]) -> None:
    os.write(pipe, json.dumps(message).encode() + b"\n")


def _heard(reading: int, child: int, limits: Limits, parent: int) -> Outcome:
    """Return what a child says, until it ends, or says nothing for too long."""
    outcome, rest = Outcome(), b""
    start = last = time.monotonic()
    while True:
        now = time.monotonic()
        outcome.silence = max(outcome.silence, now - last)
        if os.getppid() != parent:
            os.killpg(child, signal.SIGKILL)
            os._exit(1)  # nobody is left to hear of it
        if now - last > limits.silence or now - start > limits.whole:
            outcome.status, outcome.text = (
                "hung",
                f"no word for {now - last:.0f} s, {now - start:.0f} s in all",
            )
            return outcome
        if not select.select([reading], [], [], _TICK)[0]:
            continue
        data = os.read(reading, 1 << 16)
        if not data:
            if outcome.status == "running":
                outcome.status = "crashed"
            return outcome
        last = time.monotonic()
        *lines, rest = (rest + data).split(b"\n")
        for line in lines:
            _take(outcome, json.loads(line))
        if outcome.status in _OVER:  # what it forked may keep the pipe open
            return outcome


def _take(outcome: Outcome, message: dict[str, Any]) -> None:
    """Note what a child said."""
    match message:
        case {"left out": why}:
            outcome.status, outcome.text = "left out", why
        case {"launched": _}:
            outcome.status = "running"
        case {"law": law, "short": short}:
            outcome.law, outcome.short = law, short
        case {"green": law, "seconds": seconds}:
            outcome.seconds[law] = seconds
        case {"red": law, "text": text}:
            outcome.status, outcome.law, outcome.text = "red", law, text
        case {"done": _}:
            outcome.status = "green"
        case _:
            pass


def _cpu() -> float:
    spent = resource.getrusage(resource.RUSAGE_CHILDREN)
    return spent.ru_utime + spent.ru_stime
