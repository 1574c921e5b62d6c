"""A process that checks laws for another one, which hears of each step by a pipe: whatever ends it, ends nothing else.

Each line of the pipe is a JSON object: ``{"law": id}`` when a law begins, ``{}`` after each example, and each step of a
long one, ``{"verdict": …}`` with the fields of a `LawReport` when a law is done, and ``{"error": text}`` if none can be
checked.
"""

from __future__ import annotations

import dataclasses
import faulthandler
import json
import os
import signal
import sys
import time
from collections import Counter
from typing import TYPE_CHECKING, Any

from trunnion.errors import TrunnionError
from trunnion.testing.laws import LawViolation, Verdict, catalogue
from trunnion.testing.report import LawReport
from trunnion.testing.runner import Options, check, harness_of

if TYPE_CHECKING:
    from trunnion.testing.harness import Harness
    from trunnion.testing.laws import Law

__all__ = ["STACK_SIGNAL", "law_report", "main"]

STACK_SIGNAL: signal.Signals | None = getattr(signal, "SIGUSR1", None)
"""Has a process that checks laws write the stacks of all its threads to the standard error; None: no signal can."""


def main(backend: str, laws: str, options: str, pipe: str) -> int:
    """Check laws, and tell of each step.

    Parameters
    ----------
    backend
        The backend's name.
    laws
        The laws' ids, with spaces between them.
    options
        The fields of `Options`, as JSON.
    pipe
        The number of the file that is written to.
    """
    faulthandler.enable()  # where it crashed is written to the standard error
    if STACK_SIGNAL is not None:  # and where it hangs, to whoever asks
        faulthandler.register(STACK_SIGNAL, 2, all_threads=True)
    os.set_inheritable(int(pipe), False)
    chosen = Options(**json.loads(options))

    def tell(message: dict[str, Any]) -> None:
        os.write(int(pipe), json.dumps(message).encode() + b"\n")

    try:
        harness = harness_of(backend, tier=chosen.tier, fresh=chosen.fresh)
    except TrunnionError as error:
        tell({"error": f"{type(error).__name__}: {error}"})
        return 1
    for law_id in laws.split():
        tell({"law": law_id})
        report = law_report(catalogue()[law_id], harness, chosen, lambda: tell({}))
        tell({"verdict": dataclasses.asdict(report)})
    return 0


def law_report(law: Law, harness: Harness, options: Options, told: Any = lambda: None) -> LawReport:
    """Check a law, and return what became of it.

    Parameters
    ----------
    law
        The law.
    harness
        The backend.
    options
        How.
    told
        Called after each example, and each step of a long one.
    """
    start, text = time.monotonic(), ""
    status = "held" if law.applies_to(harness) else "refused"
    try:
        verdict = check(law, harness, options, told)
    except LawViolation as violation:
        status, text = "failed", violation.report
        verdict = violation.verdict or Verdict(0, Counter())
    return LawReport(
        id=law.id,
        status=status,
        sentence=law.sentence,
        requires=tuple(sorted(law.requires)),
        examples=verdict.examples,
        calls=dict(sorted(verdict.made.items())),
        digest=verdict.digest,
        seconds=round(time.monotonic() - start, 2),
        text=text,
    )


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
