"""``trunnion build``: programs, compiled for several targets into one bundle."""

from __future__ import annotations

import json
import os
from concurrent.futures import ProcessPoolExecutor
from contextlib import nullcontext
from multiprocessing import get_context
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.program_file import signature_difference
from trunnion.building import BuildJob, build_many
from trunnion.built_program import target_of
from trunnion.bundles.bundle import Bundle
from trunnion.bundles.provenance import UNNAMED_BUILDER, Builder, write_provenance
from trunnion.bundles.writing import bundle_path, write_bundle
from trunnion.cli.bundle_variants import print_variants, variants_in
from trunnion.cli.document import plain
from trunnion.cli.presentation import Report, error_report, print_line, print_step, progress
from trunnion.cli.subject import find_subject
from trunnion.contract.spec import Target
from trunnion.errors import ArgumentValueError, CompileError, ProgramError, TrunnionError, shorten
from trunnion.registry import default_registry

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trunnion.bundles.index import Index
    from trunnion.model.program import KernelProgram

__all__ = ["build"]

_TIME = "SOURCE_DATE_EPOCH"
_MOST_DIGITS = 18


def build(  # noqa: PLR0913 - a command's options are its parameters
    files: Annotated[list[str], typer.Argument(help="Programs as JSON, artifacts' folders or examples.")],
    *,
    out: Annotated[Path, typer.Option("--out", "-o", help="The bundle's index: a name in .trn.")],
    target: Annotated[
        list[str] | None, typer.Option(help="What for, such as sm_90a; may be repeated.")
    ] = None,
    backend: Annotated[
        list[str] | None, typer.Option(help="Which backend launches it; may be repeated.")
    ] = None,
    jobs: Annotated[
        int, typer.Option(min=0, help="How many processes build; 0: one for each processor.")
    ] = 0,
    trust: Annotated[
        bool, typer.Option("--trust", help="Run device code that is a program, where it is one.")
    ] = False,
    provenance: Annotated[
        bool,
        typer.Option("--provenance", help="Write beside it what it was built from, as an in-toto statement."),
    ] = False,
    builder: Annotated[str, typer.Option(help="Who builds, for the provenance: a URI.")] = UNNAMED_BUILDER,
) -> Report:
    """Compile programs for several targets, and write all of them into one bundle.

    An artifact's folder is taken as it is. A program goes by its own name; two of one name are refused, unless they are
    for different kinds of device and take the same parameters. A provenance says no time unless SOURCE_DATE_EPOCH is
    set.
    """
    bundle_path(out)  # before anything is built
    if builder != UNNAMED_BUILDER and not provenance:
        raise ArgumentValueError(
            "--builder", "it without --provenance", "--provenance too: nothing else says it"
        )
    stated = Builder(builder, _seconds(os.environ.get(_TIME))) if provenance else None
    wanted = _wanted(
        files, list(dict.fromkeys(target or [""])), list(dict.fromkeys(backend or ["auto"])), trust=trust
    )
    every = [job for several in wanted.values() for job in several if isinstance(job, BuildJob)]
    try:
        made = dict(zip(every, _built(every, jobs or os.cpu_count() or 1), strict=True))
    except ExceptionGroup as group:
        return _failed(group.exceptions)
    bundled = {
        name: [made[one] if isinstance(one, BuildJob) else one for one in several]
        for name, several in wanted.items()
    }
    index = write_bundle(out, bundled)
    return _written(out, index, stated, [one for several in bundled.values() for one in several])


def _written(out: Path, index: Index, builder: Builder | None, built: Sequence[Artifact]) -> Report:
    """Report a bundle that was written, after writing its provenance if somebody is named who built it."""
    rows = variants_in(index)
    document: dict[str, Any] = {"index": str(out), "digest": index.digest, "variants": rows}
    if builder is not None:
        document["provenance"] = str(write_provenance(Bundle.open(out, digest=index.digest), builder, built))

    def show() -> None:
        print_variants(rows)
        print_line(f"{out}: digest {document['digest']}", "green")
        if builder is not None:
            print_line(f"{document['provenance']}: its provenance", "green")

    return Report(document, show)


def _seconds(given: str | None) -> int | None:
    """Return the time that the environment has for what is built; None if it has none.

    Raises
    ------
    ArgumentValueError
        If that is no number.
    """
    if not given:
        return None
    if not given.isascii() or not given.isdigit() or len(given) > _MOST_DIGITS:
        raise ArgumentValueError(_TIME, shorten(given), "seconds since 1970")
    return int(given)


def _wanted(
    files: Sequence[str], targets: Sequence[str], backends: Sequence[str], *, trust: bool
) -> dict[str, list[BuildJob | Artifact]]:
    """Return what is to be built, and what is built, by the name of its program.

    Raises
    ------
    ProgramError
        If something is a device image, two programs have one name that cannot share it, or nothing is for a target.
    """
    found: dict[str, list[BuildJob | Artifact]] = {}
    programs: dict[str, list[tuple[KernelProgram, set[str]]]] = {}
    for file in files:
        subject = find_subject(file)
        program = subject.program
        if program is None:
            raise ProgramError(f"{shorten(file)} is a device image: no program is in it")
        kinds = {target_of(subject.artifact).kind} if subject.artifact else _kinds_of(program)
        namesakes = programs.setdefault(program.name, [])
        for other, its_kinds in namesakes:
            unlike = _unlike(program, kinds, other, its_kinds)
            if unlike:
                raise ProgramError(
                    f"{shorten(file)} is another program that is called {shorten(program.name)}, too, and {unlike}: "
                    "give it a name or a bundle of its own"
                )
        namesakes.append((program, kinds))
        several = found.setdefault(program.name, [])
        if subject.artifact is not None:  # what is bundled is trusted as the bundle is
            several.append(Artifact.open(file, trusted=True))
            continue
        trusted = trust or subject.example is not None
        several += (
            BuildJob(program=program, target=target or None, backend=backend, trust=trusted)
            for target, backend in _pairs_of(program, targets, backends)
        )
    _check_targets(targets, [one for several in found.values() for one in several])
    return found


def _check_targets(targets: Sequence[str], made: Sequence[BuildJob | Artifact]) -> None:
    """Refuse a target that was named and that nothing would be for: it would be missing where it is loaded."""
    served = {str(one.target if isinstance(one, BuildJob) else target_of(one)) for one in made}
    idle = [target for target in targets if target and str(Target.parse(target)) not in served]
    if idle:
        raise ProgramError(
            f"no program is in a language that is compiled for {shorten(idle[0])}; name the file of one that is, or "
            "leave that target out",
            field="target",
        )


def _unlike(program: KernelProgram, kinds: set[str], other: KernelProgram, its_kinds: set[str]) -> str:
    """Return why two programs cannot go by one name; empty if they are one, or for other devices and called alike."""
    if program == other:
        return ""
    if kinds & its_kinds:
        return f"both are for {' and '.join(sorted(kinds & its_kinds))}"
    if program.signature == other.signature:
        return ""
    return f"takes other parameters: {signature_difference(program.signature, other.signature)}"


def _kinds_of(program: KernelProgram) -> set[str]:
    """Return the kinds of device for which some compiler reads a program's languages."""
    languages = {part.language for part in program.code}
    serving = (spec for spec in default_registry().compilers() if languages <= set(spec.languages))
    return {kind for spec in serving for kind in spec.targets}


def _pairs_of(
    program: KernelProgram, targets: Sequence[str], backends: Sequence[str]
) -> Sequence[tuple[str, str]]:
    """Return for which targets, and for each by which backends, to build a program: those that its languages can have.

    So that a program for the CPU beside one for a GPU is built for its own kind, by who launches there. Where there is
    none, the build of each says why.
    """
    kinds = _kinds_of(program)
    launching = {spec.name: kinds & spec.targets.keys() for spec in default_registry().backends()}
    wanted = {target: {Target.parse(target).kind} if target else kinds for target in targets}
    served = [target for target in targets if not target or wanted[target] & kinds] or targets
    pairs = [(target, backend) for target in served for backend in backends]
    return [
        (target, by) for target, by in pairs if wanted[target] & launching.get(by, wanted[target])
    ] or pairs


def _built(jobs: Sequence[BuildJob], processes: int) -> list[Artifact]:
    """Build by so many processes at the most, and show how far it is."""
    bar: Iterator[BuildJob] = iter(progress("building", jobs))
    next(bar, None)

    def told(job: BuildJob, made: Artifact | TrunnionError) -> None:
        print_step(f"{job}: {'failed' if isinstance(made, TrunnionError) else 'built'}")
        next(bar, None)

    count = min(processes, len(jobs))
    pool = ProcessPoolExecutor(count, mp_context=get_context("spawn")) if count > 1 else nullcontext()
    with pool as executor:
        return build_many(jobs, executor, told=told)


def _failed(errors: Sequence[Exception]) -> Report:
    """Report why nothing was written. What several builds say alike is shown once, with the notes that name each."""
    reports = [error_report(error, traceback=False) for error in errors]
    alike: dict[tuple[type[Exception], str], Exception] = {}
    for error in errors:
        first = alike.setdefault((type(error), _said(error)), error)
        if first is not error:
            _add_notes(first, error)

    def show() -> None:
        for error in alike.values():
            error_report(error, traceback=False).show()

    return Report({"errors": [report.document["error"] for report in reports]}, show, 1)


def _said(error: Exception) -> str:
    """Return what tells an error from those that are shown with it: of a compiler's all but for what it compiled."""
    if not isinstance(error, CompileError):
        return str(error)
    besides = {"arch", "options", "__notes__"}
    facts = {name: value for name, value in vars(error).items() if name not in besides}
    return _without_arch(error, json.dumps(plain(facts)))


def _without_arch(error: CompileError, said: str) -> str:
    return said.replace(error.arch, "...") if error.arch else said


def _add_notes(first: Exception, error: Exception) -> None:
    """Add the notes of an error to the one that is shown for it: which build it was, and with what other options."""
    there = getattr(first, "__notes__", [])
    for note in getattr(error, "__notes__", ()):
        if note not in there:  # a hint stands below both
            first.add_note(note)
    if isinstance(first, CompileError) and isinstance(error, CompileError):
        words, others = (_without_arch(one, " ".join(one.options)) for one in (first, error))
        if words != others:
            first.add_note(f"with the options: {' '.join(error.options) or '(none)'}")
