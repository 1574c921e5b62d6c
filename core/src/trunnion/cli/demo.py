"""``trunnion demo``: every example, through every usable backend, against its reference."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

import trunnion
from trunnion.attempts import probe
from trunnion.cli.exhibits import brought_by, known_examples, load_example
from trunnion.cli.place import choose_place, host_place
from trunnion.cli.presentation import Report, error_report, print_line, print_table, progress
from trunnion.cli.run_result import COLUMNS, SPARE, Compiled, failure, run_example, timed
from trunnion.errors import ArtifactError, BackendUnavailableError, TrunnionError, UnsupportedFeatureError

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.cli.place import Place
    from trunnion.cli.run_result import Outcome

__all__ = ["demo"]


@dataclass(frozen=True, slots=True)
class _Subject:
    """One example on one backend."""

    example: str
    """The example's name."""

    backend: str
    """The backend's name."""

    make: Callable[[], Compiled]
    """Compiles the example, or loads its artifact."""


def demo(
    *,
    backend: Annotated[str, typer.Option(help="Only this backend.")] = "",
    save: Annotated[Path | None, typer.Option(help="Write the artifacts into this folder.")] = None,
    artifacts: Annotated[
        Path | None, typer.Option(help="Run the artifacts that --save wrote there; compile nothing.")
    ] = None,
    simulate: Annotated[
        bool, typer.Option("--simulate", help="Run on the simulated driver, even if there is a GPU.")
    ] = False,
) -> Report:
    """Compile the examples with every usable backend; run them on a GPU if there is one, else simulated.

    Those for the CPU run there, on every machine.
    """
    with choose_place(simulate=simulate or None) as place:
        subjects = _compilations(backend) if artifacts is None else _saved(artifacts, backend)
        outcomes = [
            _attempt(subject, _place(subject, place), save)
            for subject in progress("running the examples", subjects)
        ]
    # A backend that is asked for by name must run everything; of the others, each may refuse what it does not declare.
    accepted = [outcome.ok or (outcome.refused and not backend) for outcome in outcomes]
    good = all(accepted) and any(outcome.ok for outcome in outcomes)
    facts = [outcome.facts() for outcome in outcomes]
    return Report(facts, lambda: _show(place, outcomes), 0 if good else 1)


def _compilations(backend: str) -> list[_Subject]:
    """Return every example on every usable backend, or on the one that is named.

    Raises
    ------
    RegistryError
        If there is no such backend, or no usable one at all.
    """
    from trunnion import examples

    registry = trunnion.default_registry()
    chosen = (registry.backend(backend),) if backend else registry.backends()
    usable = [spec for spec in chosen if backend or probe(spec).usable]
    if not usable:
        passed_over = [f"{spec.name}: {probe(spec).detail}" for spec in chosen]
        passed_over += [f"{plugin.name}: {plugin.reason}" for plugin in registry.unavailable()]
        reason = "; ".join(passed_over) or "none is installed; try: pip install 'trunnion[all]'"
        raise BackendUnavailableError("every backend", "", reason)
    brought = [name for spec in registry.compilers() if probe(spec).usable for name in brought_by(spec)]
    kinds = {"cuda": list(examples.EXAMPLES), "cpu": list(examples.CPU_EXAMPLES)}
    for name in brought:
        kinds[load_example(name).kind].append(name)
    return [
        _Subject(name, spec.name, partial(_compile, name, spec.name))
        for spec in usable
        for kind, names in kinds.items()
        for name in names
        if kind in spec.targets and (backend or kind not in probe(spec).unusable)
    ]


def _compile(example: str, backend: str) -> Compiled:

    program = load_example(example).program
    # An example came with an installed package: its text is trusted as that is. What is shown is that compiling works
    # here, and which digest comes of it: so nothing is taken from a cache.
    return timed(partial(trunnion.compile, program, backend=backend, trust=True, cache=False))


def _saved(folder: Path, backend: str) -> list[_Subject]:
    """Return the artifacts below ``folder``, which lie there as ``<backend>/<example>``.

    Raises
    ------
    ArtifactError
        If there is none.
    """
    found = sorted(path for path in folder.glob("*/*/") if backend in {"", path.parent.name})
    subjects = [_Subject(path.name, path.parent.name, partial(_load, path)) for path in found]
    names = known_examples()
    strangers = [subject.example for subject in subjects if subject.example not in names]
    if strangers or not subjects:
        what = f"artifacts of {', '.join(strangers)}" if strangers else "no artifact"
        known = ", ".join(names)
        raise ArtifactError(f"got {what} in {folder}, expected folders <backend>/<example>, of {known}")
    return subjects


def _load(path: Path) -> Compiled:
    return Compiled(trunnion.load(path), None)


def _place(subject: _Subject, device: Place) -> Place:
    """Return where a subject runs."""
    return host_place() if load_example(subject.example).kind == "cpu" else device


def _attempt(subject: _Subject, place: Place, save: Path | None) -> Outcome:
    """Return what becomes of one subject; an error is an outcome, so that the others have their turn."""
    try:
        compiled = subject.make()
        if save is not None:
            compiled.program.artifact.save(save / subject.backend / subject.example)
        outcome, _ = run_example(load_example(subject.example), compiled, place)
        compiled.program.close()
    except UnsupportedFeatureError as error:
        return replace(failure(subject.example, subject.backend, place, error), refused=True)
    except TrunnionError as error:
        return failure(subject.example, subject.backend, place, error)
    return outcome


def _show(place: Place, outcomes: list[Outcome]) -> None:
    for outcome in outcomes:
        if outcome.sha256:
            print_line(outcome.digest_line())
    # Long before short: the table, and last the verdict, are what remains to be seen on a terminal.
    print_table(f"trunnion demo, {place.label}", COLUMNS, [one.cells() for one in outcomes], spare=SPARE)
    for outcome in outcomes:
        if outcome.problem is not None:
            print_line(f"{outcome.name} on {outcome.backend}:", "red")
            error_report(outcome.problem, traceback=False).show()
    good, refused = (sum(getattr(outcome, what) for outcome in outcomes) for what in ("ok", "refused"))
    tail = f", {refused} refused" if refused else ""
    colour = "green" if good and good + refused == len(outcomes) else "bold red"
    print_line(f"{good} of {len(outcomes)} as the reference says{tail}", colour)
