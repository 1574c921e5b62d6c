"""``trunnion run``: one program, from a file, an artifact or the examples, launched once."""

from __future__ import annotations

import dataclasses
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import trunnion
from trunnion.cli.arrays import write_arrays
from trunnion.cli.bodies import load_bodies
from trunnion.cli.cli_arguments import given_arguments, given_sizes
from trunnion.cli.inputs import Making, check_room, parse_sizes, random_inputs, symbol_values
from trunnion.cli.launch_text import print_launches
from trunnion.cli.launched import Reading
from trunnion.cli.place import choose_place, host_place
from trunnion.cli.presentation import Report, print_line, print_mapping, print_records, print_table
from trunnion.cli.run_result import COLUMNS, SPARE, Compiled, as_tuple, run_example, timed
from trunnion.cli.subject import find_subject
from trunnion.cli.traced import launches_in, trace_document
from trunnion.contract.spec import Target
from trunnion.errors import ArgumentValueError, ProgramError, shorten
from trunnion.selection import choose_backend, launch_kind, named_target

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.cli.place import Place
    from trunnion.cli.subject import Subject
    from trunnion.compiled import CompiledProgram
    from trunnion.contract.spec import CompilerSpec
    from trunnion.examples import Example
    from trunnion.sim import KernelBody

__all__ = ["run_program"]


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class _Wishes:
    """What was asked for beside the program."""

    sizes: Mapping[str, int]
    """The symbols' values, as far as they are given."""

    arguments: tuple[str, ...]
    """Arguments as they were typed."""

    inputs: str
    """A file of arrays; empty: none."""

    outputs: Path | None
    """Where the outputs are kept."""

    seed: int
    """What random contents come from."""

    def refuse(self) -> None:
        """Refuse what an example, which brings its own inputs, has no use for.

        Raises
        ------
        ArgumentValueError
            If anything of it was given.
        """
        for option, typed in (("--size", self.sizes), ("--arg", self.arguments), ("--inputs", self.inputs)):
            if typed:
                shown = typed if isinstance(typed, str) else ", ".join(typed)
                raise ArgumentValueError(option, ascii(shown), "none: an example brings its own inputs")


@dataclass(frozen=True, slots=True)
class _Chosen:
    """Who compiles and launches a program, and what for; no other plugin is loaded where all are named."""

    backend: str = "auto"
    compiler: str = ""
    target: str = ""


def run_program(  # noqa: PLR0913 - a command's options are its parameters
    program: Annotated[
        str, typer.Argument(help="A program as JSON, an artifact's folder, or the name of an example.")
    ],
    *,
    backend: Annotated[str, typer.Option(help="Which backend launches it.")] = "auto",
    compiler: Annotated[str, typer.Option(help="Which device compiler compiles it.")] = "",
    target: Annotated[str, typer.Option(help="What to compile for, such as sm_90a.")] = "",
    simulate: Annotated[bool, typer.Option("--simulate", help="Run on the simulated driver.")] = False,
    bodies: Annotated[
        str,
        typer.Option(
            help="A module, or a .py file, whose BODIES maps kernels to Python functions, for --simulate. It is "
            "imported, so it runs."
        ),
    ] = "",
    size: Annotated[
        list[str] | None, typer.Option(help="A symbol's value, such as m=128; repeatable.")
    ] = None,
    arg: Annotated[
        list[str] | None,
        typer.Option(
            help="An argument, repeatable: a tensor as a .npy file, a scalar as a number, a pointer as an address, "
            "a struct as hex: and its bytes, and none for what may be left out."
        ),
    ] = None,
    inputs: Annotated[str, typer.Option(help="A .npz file with arguments by their names.")] = "",
    outputs: Annotated[Path | None, typer.Option(help="Write the outputs to this .npz file.")] = None,
    trust: Annotated[
        bool, typer.Option("--trust", help="Allow device code that runs here while it is compiled.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, max=2**63 - 1, help="What random contents come from.")] = 0,
) -> Report:
    """Compile and launch one program once, with random arguments where none are given.

    A program and an artifact are code, and run as you, and so is what --bodies names: use only what you trust.
    """
    wishes = _Wishes(
        sizes=parse_sizes(size or ()), arguments=tuple(arg or ()), inputs=inputs, outputs=outputs, seed=seed
    )
    subject = find_subject(program)
    chosen = _Chosen(backend, compiler, target)
    on_cpu = _launch_kind(subject, chosen) == "cpu"
    if on_cpu and (simulate or bodies):
        given = "--simulate" if simulate else "--bodies"
        raise ArgumentValueError(given, "a program for the CPU", "none: its kernels truly run")
    if bodies and not simulate:
        raise ArgumentValueError(
            "--bodies", "it without --simulate", "--simulate too: on a GPU kernels truly run"
        )
    with nullcontext(host_place()) if on_cpu else choose_place(simulate=simulate) as place:
        replaced = load_bodies(bodies)
        compiled = _compile(subject, chosen, trust=trust)
        place.check(compiled.program.target)
        if subject.example is None:
            place.register(compiled.program, replaced)
            return _run_once(compiled, wishes, place, replaced)
        wishes.refuse()
        example = dataclasses.replace(subject.example, bodies={**subject.example.bodies, **replaced})
        return _run_example(example, compiled, place, wishes)


def _launch_kind(subject: Subject, chosen: _Chosen) -> str:
    """Return the kind of device that a subject runs on: it must be known before any driver is loaded."""
    if subject.artifact is not None:
        return subject.artifact.manifest.target.partition(":")[0]
    if subject.program is None:
        return ""
    registry = trunnion.default_registry()
    named = Target.parse(chosen.target) if chosen.target else named_target(subject.program)
    kind = None if named is None else named.kind
    spec = choose_backend(subject.program, chosen.backend, subject.program.plan(), registry, kind)

    def compilers() -> tuple[CompilerSpec, ...]:
        return (registry.compiler(chosen.compiler),) if chosen.compiler else registry.compilers()

    return launch_kind(subject.program, spec, named, compilers)


def _compile(subject: Subject, chosen: _Chosen, *, trust: bool) -> Compiled:
    """Compile what is a program, load what is built.

    Raises
    ------
    ProgramError
        If it is no program, or a backend, a compiler or a target is named for an artifact.
    """
    if subject.artifact is not None:
        if chosen != _Chosen():
            raise ProgramError(
                "an artifact has its backend and its target; give neither --backend nor --compiler nor --target"
            )
        return Compiled(trunnion.load(subject.artifact), None)
    if subject.program is None:
        raise ProgramError(
            f"{shorten(subject.name)} is a device image: what a call takes is not in it; see trunnion inspect"
        )
    trusted = trust or subject.example is not None
    options: dict[str, Any] = {"target": chosen.target or None, "compiler": chosen.compiler or None}
    return timed(partial(trunnion.compile, subject.program, backend=chosen.backend, trust=trusted, **options))


def _run_example(example: Example, compiled: Compiled, place: Place, wishes: _Wishes) -> Report:
    before = len(place.events() or ())
    outcome, results = run_example(example, compiled, place, wishes.seed)
    events = place.events()
    document = outcome.facts()
    document["trace"] = (
        None if events is None else trace_document(events[before:], Reading.of(compiled.program))
    )
    document["unused_bodies"] = place.unused_bodies()
    document["saved"] = _save(compiled, results, wishes.outputs)

    def show() -> None:
        print_table(f"trunnion run, {outcome.device}", COLUMNS, [outcome.cells()], spare=SPARE)
        print_line(outcome.digest_line())
        if document["trace"] is not None:
            print_launches(launches_in(document["trace"]))
        _show_end(document)

    return Report(document, show, 0 if outcome.ok else 1)


def _run_once(compiled: Compiled, wishes: _Wishes, place: Place, named: Mapping[str, KernelBody]) -> Report:
    """Launch a program, and return what can be said of it."""
    program = compiled.program
    signature = program.plan.signature
    given = given_arguments(wishes.arguments, wishes.inputs, signature)
    sizes = given_sizes(signature, given) | dict(wishes.sizes)
    values = symbol_values(signature, sizes)
    making = Making(
        values=values,
        device=place.device,
        simulated=place.simulator is not None,
        given=given,
        asked=frozenset(sizes),
        seed=wishes.seed,
    )
    check_room(signature, making)
    arguments = random_inputs(signature, making)
    before = len(place.events() or ())
    somewhere = any(getattr(argument, "is_cuda", False) for argument in arguments)
    results = as_tuple(program(*arguments, device=None if somewhere else 0))
    events = place.events()
    trace = None if events is None else trace_document(events[before:], Reading.of(program))
    document = {
        "name": program.program.name,
        "backend": str(program.backend),
        "target": str(program.target),
        "device": place.label,
        "sizes": {symbol.name: value for symbol, value in values.items()},
        "given": sorted(given),
        "compile_seconds": compiled.seconds,
        "launches": None if trace is None else _launches(trace, program, named),
        "trace": trace,
        "unused_bodies": place.unused_bodies(),
        "outputs": [
            {"name": param.name, "dtype": str(param.dtype), "shape": list(tensor.shape)}
            for param, tensor in zip(signature.outputs, results, strict=True)
        ],
        "saved": _save(compiled, results, wishes.outputs),
        "sha256": program.artifact.digest,
    }
    return Report(document, lambda: _show(document))


def _launches(
    trace: dict[str, Any], program: CompiledProgram, named: Mapping[str, KernelBody]
) -> list[dict[str, Any]]:
    """Return every launch of a trace, and whether its kernel had a body that could compute something."""
    kernels = program.artifact.manifest.kernels
    bodies = {kernel.symbol for kernel in kernels if kernel.name in named or kernel.symbol in named}
    return [row | {"ran": row["kernel"] in bodies} for row in launches_in(trace)]


def _save(compiled: Compiled, results: tuple[Any, ...], path: Path | None) -> dict[str, Any] | None:
    """Write the outputs if that was asked for; return where, and under which names."""
    if path is None:
        return None
    names = [output.name for output in compiled.program.plan.signature.outputs]
    tensors = {name: tensor.cpu() for name, tensor in zip(names, results, strict=True)}
    return {"path": str(path), "names": write_arrays(path, tensors)}


def _show(document: Mapping[str, Any]) -> None:
    tables = ("launches", "outputs", "trace", "saved", "unused_bodies")
    print_mapping("run", {name: value for name, value in document.items() if name not in tables})
    print_launches(document["launches"] or ())
    if document["outputs"]:
        print_records("outputs", document["outputs"])
    for row in document["launches"] or ():
        if not row["ran"]:
            print_line(f"{row['kernel']} has no body, so it computed nothing", "yellow")
    _show_end(document)


def _show_end(document: Mapping[str, Any]) -> None:
    for symbol in document["unused_bodies"] or ():
        print_line(
            f"the body of {shorten(symbol)} did not run: no kernel of that symbol was launched", "yellow"
        )
    if document["trace"] is not None:
        _show_trace(document["trace"])
    if document["saved"] is not None:
        print_line(f"outputs are in {document['saved']['path']}")


def _show_trace(trace: Mapping[str, Any]) -> None:
    """Show what arrived, but for the refusals that every good run begins with: the document has them, ``answered``."""
    refused = [row for row in trace["refused"] if not row["answered"]]
    counts = trace["counts"] | {"CallRefused": len(refused) or None}
    print_mapping("trace", dict(sorted(counts.items())))
    for row in _distinct(refused):
        print_line(f"  {row['call']} was refused: {row['status']}: {row['reason']}", "dim")


def _distinct(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return [row for index, row in enumerate(rows) if row not in rows[:index]]
