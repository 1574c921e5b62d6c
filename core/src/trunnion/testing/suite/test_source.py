"""Laws of the launcher's source."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING

from trunnion.errors import UnsupportedFeatureError
from trunnion.messages import shorten
from trunnion.model.capability import Capability
from trunnion.model.dtypes import dtype
from trunnion.model.params import ScalarParam
from trunnion.model.program import KernelProgram
from trunnion.testing.laws import law
from trunnion.testing.reference_needs import needs_of
from trunnion.testing.renaming import LANGUAGES, blank_literals, renamed
from trunnion.testing.strategies import PROGRAM_CAPABILITIES, programs
from trunnion.testing.strategies.programs import taking

if TYPE_CHECKING:
    from hypothesis.strategies import SearchStrategy

    from trunnion.model.plan import LaunchPlan
    from trunnion.testing.harness import Harness

__all__: list[str] = []

_PRINT_SOURCE = """
import sys
from trunnion.model.capability import Capability
from trunnion.model.program import KernelProgram
from trunnion.registry import default_registry
spec = default_registry().backend(sys.argv[1])
program = KernelProgram.from_json(sys.stdin.read())
sys.stdout.write(spec.load_wrapper()(spec).wrap(program.plan(), sys.argv[2]).text)
"""


def _declared(harness: Harness) -> SearchStrategy[KernelProgram]:
    return programs(harness.capabilities)


@law("S1", given=_declared, tier="any", cost="pure")
def equal_plans(harness: Harness, program: KernelProgram) -> None:
    """Equal plans give byte-identical source, and a program that went through JSON gives an equal plan.

    So they do where another thread writes the source of another plan at the same time.
    """
    harness.once(_check_at_once, each_way=False)
    again = KernelProgram.from_json(program.to_json())
    harness.require(again == program, "the program that came back from JSON differs")
    harness.require(again.plan().hash == program.plan().hash, "its plan has another hash")
    first, second = harness.source(program), harness.source(again)
    harness.require(first.text == second.text, "two sources of equal plans differ")
    harness.require(first.text.endswith("\n"), "the source does not end in a newline")


_SECONDS = 0.2
"""How long each of two threads writes its source: Python goes from one to the other hundreds of times in it."""


def _check_at_once(harness: Harness) -> None:
    """Require that two threads which write unlike sources at once write what each writes alone."""
    numbers = [ScalarParam(name, dtype("int32")) for name in "abc"]
    given = [taking(*numbers).plan(), taking(*numbers[1:]).plan()]
    wrapper = harness.sabotage.wrapper(harness.wrapper)
    alone = [wrapper.wrap(plan, harness.machine.kind).text for plan in given]
    start = threading.Barrier(len(given))

    def written(plan: LaunchPlan) -> set[str]:
        texts = set()
        start.wait()
        end = time.monotonic() + _SECONDS
        try:
            while time.monotonic() < end:
                texts.add(wrapper.wrap(plan, harness.machine.kind).text)
        except Exception as error:  # noqa: BLE001 - one thread may find what the other one has taken away
            texts.add(f"{type(error).__name__}: {error}")
        return texts

    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    try:
        with ThreadPoolExecutor(len(given)) as threads:
            found = list(threads.map(written, given))
    finally:
        sys.setswitchinterval(before)
    for text, texts in zip(alone, found, strict=True):
        others = sorted(texts - {text})
        told = (
            f"while another thread writes another source, {shorten(others[0])} is written" if others else ""
        )
        harness.require(not others, f"{told}, expected {shorten(text)}, as alone")


@law("S2", given=_declared, tier="any", cost="toolchain")
def same_in_any_process(harness: Harness, program: KernelProgram) -> None:
    """The source depends neither on the hash seed, the working folder, the environment, nor on the time."""
    here = harness.source(program).text
    for seed in ("0", "4242"):
        with tempfile.TemporaryDirectory(prefix="trunnion-suite-") as folder:
            environment = {
                **os.environ,
                "PYTHONHASHSEED": seed,
                "TZ": "UTC+11",
                "PYTHONPATH": os.pathsep.join(sys.path),
            }
            done = subprocess.run(
                [sys.executable, "-c", _PRINT_SOURCE, harness.name, harness.machine.kind],
                input=program.to_json(),
                capture_output=True,
                text=True,
                check=False,
                cwd=folder,
                env=environment,
            )
        harness.require(done.returncode == 0, f"a process of its own fails: {done.stderr[-2000:]}")
        harness.require(done.stdout == here, f"another process, with hash seed {seed}, writes another source")


@law("S3", given=_declared, tier="any", cost="launcher")
def names_are_literals(harness: Harness, program: KernelProgram) -> None:
    """A user's name appears only inside string literals: other names change nothing else."""
    source = harness.source(program)
    known = f"a source in {shorten(source.language)}, expected one of {', '.join(LANGUAGES)}"
    harness.require(source.language in LANGUAGES, known)
    other = harness.source(renamed(program))
    here, there = (blank_literals(text.language, text.text) for text in (source, other))
    harness.require(here == there, "the source changes outside of string literals when names change")


@law("S4", given=lambda _: programs(PROGRAM_CAPABILITIES), tier="any", cost="pure")
def undeclared_is_refused(harness: Harness, program: KernelProgram) -> None:
    """What needs only what the backend declares is written, and anything else is refused by name.

    It is, too, where the backend declares just what is needed, as far as it does, and where it declares nothing.
    """
    needs = needs_of(program)
    for declared in (harness.capabilities, harness.capabilities & needs, frozenset[Capability]()):
        targets = {**harness.spec.targets, harness.machine.kind: declared}
        told = replace(harness, spec=replace(harness.spec, targets=targets))
        _check_refusal(told, program, needs - declared)


def _check_refusal(harness: Harness, program: KernelProgram, missing: frozenset[Capability]) -> None:
    """Require that a program is written if nothing is missing, and is refused by what is missing if anything is."""
    try:
        harness.source(program)
    except UnsupportedFeatureError as error:
        harness.require(missing, f"refused {error.features}, all of which the backend declares")
        harness.require(
            set(error.features) == {str(x) for x in missing}, f"named {error.features}, not {missing}"
        )
        harness.require(error.plugin == harness.name, f"the refusal names {error.plugin!r}")
        return
    harness.require(not missing, f"wrote a launcher that needs {sorted(missing)}")
