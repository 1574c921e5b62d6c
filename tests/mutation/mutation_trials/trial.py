"""What a forked child does with the tree as it is, mutated or not: vector add, then laws, until one is red.

Each line that it writes is a JSON object: ``{"launched": true}`` or ``{"left out": why}`` after vector add; ``{"law":
id, "short": …}`` when a law begins, ``{}`` after each example, ``{"green": id, "seconds": …}`` or ``{"red": id,
"text": …}`` when it is done; ``{"done": true}`` at the end. Nothing of trunnion is imported before the fork.
"""

from __future__ import annotations

import contextlib
import faulthandler
import os
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from mutation_trials.scope import INTERPRETED, ROOT

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.testing.harness import Harness

_SHORT = 3  # examples of each law in the first round
_TEXT = 600
_LENGTH = 1003
UNMUTATED: Final = "launchers of unmutated headers"


@dataclass(frozen=True, slots=True, kw_only=True)
class Trial:
    """What a child is to do."""

    backend: str
    """By whose laws."""

    folder: str
    """The tree's: trunnion has to come from there."""

    vector_add: bool = True
    """Whether vector add comes first."""

    short: tuple[str, ...] = ()
    """The laws of the first round, which checks few examples of each."""

    laws: tuple[str, ...] = ()
    """The laws of the second, which checks them as the suite does by default."""

    kept: str | None = None
    """Where objects of C++ launchers are kept; None: beside the trial's other caches."""

    same_headers: bool = False
    """Whether the launchers' headers are those of the repository, so that `kept` has what every mutant can use."""


def run(trial: Trial, tell: Callable[[dict[str, Any]], None]) -> None:
    """Do it, and tell of each step."""
    faulthandler.enable()
    import trunnion

    if not Path(trunnion.__file__).is_relative_to(trial.folder):
        raise RuntimeError(f"trunnion comes from {trunnion.__file__}, expected {trial.folder}")
    if trial.same_headers:
        _share_launchers()
    try:
        harness = _harness(trial)
        why = _vector_add(harness) if trial.vector_add else ""
    except Exception as error:  # noqa: BLE001 - a mutant may raise anything
        why = f"{type(error).__name__}: {error}"
    tell({"left out": why[:_TEXT]} if why else {"launched": True})
    if why:
        return
    from trunnion.testing.laws import ONE_WAY, catalogue

    known = catalogue().laws
    for law_id in trial.short:
        if not _check(replace(known[law_id], ways=ONE_WAY), harness, tell, examples=_SHORT):
            return
    for law_id in trial.laws:
        if not _check(known[law_id], harness, tell, examples=None):
            return
    tell({"done": True})


def prepared(trial: Trial) -> tuple[Harness, dict[str, Any]]:
    """Return what laws are checked with, and the laws by their ids."""
    from trunnion.testing.laws import catalogue

    return _harness(trial), dict(catalogue().laws)


def holds(law: Any, harness: Harness) -> bool:
    """Whether a law holds, checked as the suite does by default."""
    return _check(law, harness, lambda _: None, examples=None)


def law_ids() -> tuple[str, ...]:
    """Return the laws of the simulated tier, in the suite's order."""
    from trunnion.testing.runner import laws_of

    return tuple(law.id for law in laws_of("sim"))


def _harness(trial: Trial) -> Harness:
    from trunnion.testing.kept_launchers import launcher_folder
    from trunnion.testing.runner import harness_of

    kept = launcher_folder() if trial.kept is None else Path(trial.kept)
    if trial.backend != INTERPRETED:
        return replace(harness_of(trial.backend), kept=kept)
    sys.path.append(os.fspath(ROOT / "tests/differential"))
    from twins.interpreted import interpreted_backend

    return replace(harness_of("nvrtc"), spec=interpreted_backend(), kept=kept)


def _share_launchers() -> None:
    """Know kept objects of launchers by what they are made of but the runtime's sources, which a mutant changed."""
    from trunnion.testing import kept_launchers

    key = kept_launchers.object_key
    kept_launchers.object_key = lambda compiler, wanted, _: key(compiler, wanted, UNMUTATED)


def _vector_add(harness: Harness) -> str:
    """Return what is wrong with vector add, compiled and called as people do it; empty if nothing is."""
    import torch

    from trunnion.examples.vector_add import EXAMPLE
    from trunnion.testing.machine import synthetic_image

    simulator = harness.simulator
    kernels = synthetic_image(EXAMPLE.program).kernels
    simulator.state.bodies.update({kernel.symbol: EXAMPLE.bodies[kernel.name] for kernel in kernels})
    try:
        with contextlib.closing(harness.under("", "compiled").open(EXAMPLE.program)) as program:
            host = [torch.arange(_LENGTH, dtype=torch.float32) * scale for scale in (1.5, -7.0)]
            given = [simulator.tensor(one.clone(), 0) for one in host]
            found = program.call(given)
            same = torch.equal(found.cpu(), EXAMPLE.reference(*host))
            launches = len(harness.observed_launches())
    finally:
        simulator.state.bodies.clear()
        simulator.clear_trace()
    if launches != 1:
        return f"vector add made {launches} launches"
    return "" if same else "vector add gave something else"


def _check(
    law: Any, harness: Harness, tell: Callable[[dict[str, Any]], None], *, examples: int | None
) -> bool:
    """Check a law, and return whether it held."""
    from trunnion.testing.runner import Options, check

    tell({"law": law.id, "short": examples is not None})
    start = time.monotonic()
    try:
        check(law, harness, Options(shrink=False, examples=examples), lambda: tell({}))
    except Exception as error:  # noqa: BLE001 - as above
        tell({"red": law.id, "text": f"{type(error).__name__}: {error}"[:_TEXT]})
        return False
    tell({"green": law.id, "seconds": round(time.monotonic() - start, 2)})
    return True


def become(folder: Path, words: int) -> None:
    """Make a forked child ready: caches and temporary files of its own, and what it says goes to a file."""
    for name in ("cache", "tmp", "home"):
        (folder / name).mkdir(parents=True, exist_ok=True)
    own = {"XDG_CACHE_HOME": "cache", "TMPDIR": "tmp", "HOME": "home"}
    os.environ.update({name: os.fspath(folder / value) for name, value in own.items()})
    # What a distribution of its own does faster hides what the launchers do.
    os.environ["TRUNNION_CALL_HELPER"] = "none"
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    sys.dont_write_bytecode = True
    tempfile.tempdir = None
    os.dup2(words, 1)
    os.dup2(words, 2)
    os.chdir(folder)
