"""``trunnion run``: one program, from a file, an artifact or the examples, launched once."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.util
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import trunnion
from trunnion.cli.inputs import check_room, parse_sizes, random_inputs, symbol_values
from trunnion.cli.place import choose_place
from trunnion.cli.presentation import print_json, print_line, print_table
from trunnion.cli.trial import COLUMNS, Compiled, Outcome, run_example, timed
from trunnion.errors import ArgumentValueError, ProgramError, shorten
from trunnion.model.program import KernelProgram

if TYPE_CHECKING:
    from collections.abc import Callable
    from types import ModuleType

    from trunnion.cli.place import Place
    from trunnion.examples import Example
    from trunnion.sim import KernelBody
    from trunnion.sim.trace import Launched

__all__ = ["run_program"]


@dataclass(frozen=True, slots=True)
class _Subject:
    """What is to be run."""

    make: Callable[[], Compiled]
    """Compiles it, or loads it."""

    example: Example | None = None
    """The example that it is, if it is one."""


def run_program(  # noqa: PLR0913 - a command's options are its parameters
    program: Annotated[
        str, typer.Argument(help="A program as JSON, an artifact's folder, or the name of an example.")
    ],
    *,
    backend: Annotated[str, typer.Option(help="Which backend compiles it.")] = "auto",
    target: Annotated[str, typer.Option(help="What to compile for, such as sm_90a.")] = "",
    simulate: Annotated[bool, typer.Option("--simulate", help="Run on the simulated driver.")] = False,
    bodies: Annotated[
        str,
        typer.Option(help="A module, or a .py file, whose BODIES maps kernels to Python functions."),
    ] = "",
    size: Annotated[
        list[str] | None, typer.Option(help="A symbol's value, such as m=128; repeatable.")
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON.")] = False,
) -> None:
    """Compile and launch one program, with random arguments unless it is an example.

    A program and an artifact are code, and run as you: use only what you trust.
    """
    sizes = parse_sizes(size or ())
    with choose_place(simulate=simulate) as place:
        subject = _subject(program, backend, target)
        replaced = _bodies(bodies)
        compiled = subject.make()
        if subject.example is not None:
            if sizes:
                raise ArgumentValueError("--size", ", ".join(sizes), "none: an example brings its own inputs")
            example = dataclasses.replace(subject.example, bodies={**subject.example.bodies, **replaced})
            _report_example(run_example(example, compiled, place), as_json=as_json)
            return
        place.register(compiled.program, replaced)
        report = _run_once(compiled, sizes, place, replaced)
    if as_json:
        print_json(report)
    else:
        for name, value in report.items():
            for line in value if isinstance(value, list) else [value]:
                print_line(f"{name:<10} {line}")


def _subject(text: str, backend: str, target: str) -> _Subject:
    """Find out what ``text`` names: what exists as a file or a folder comes first.

    Raises
    ------
    ProgramError
        If it names nothing, or is not a program.
    """
    from trunnion import examples

    path = Path(text)
    if text and path.is_dir():  # an empty text would be the folder that the command runs in
        if backend != "auto" or target:
            raise ProgramError(
                "an artifact has its backend and its target; give neither --backend nor --target"
            )
        return _Subject(lambda: Compiled(trunnion.load(path), None))
    build = partial(trunnion.compile, backend=backend, target=target or None)
    if path.is_file():
        try:
            source = path.read_text("utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise ProgramError(f"cannot read {shorten(text)}: {error}") from error
        return _Subject(partial(timed, partial(build, KernelProgram.from_json(source))))
    if text in examples.EXAMPLES:
        example = examples.load(text)
        return _Subject(partial(timed, partial(build, example.program)), example)
    known = ", ".join(examples.EXAMPLES)
    raise ProgramError(f"got {shorten(text)}, expected a file, an artifact's folder or an example ({known})")


def _bodies(name: str) -> Mapping[str, KernelBody]:
    """Return the ``BODIES`` of a module or of a file.

    Raises
    ------
    ProgramError
        If there is no such module, or it has no mapping of that name, or the mapping is not from names to
        functions.
    """
    if not name:
        return {}
    module = _module(name)
    bodies = getattr(module, "BODIES", None)
    if not isinstance(bodies, Mapping):
        raise ProgramError(
            f"{shorten(name)} has no mapping BODIES from kernels to functions", field="--bodies"
        )
    for kernel, body in bodies.items():
        if not isinstance(kernel, str) or not callable(body):
            got = f"{type(body).__name__} for {shorten(str(kernel))}"
            raise ProgramError(f"BODIES has {got}, expected a function for a name", field="--bodies")
    return bodies


def _module(name: str) -> ModuleType:
    path = Path(name)
    if path.suffix != ".py":
        try:
            return importlib.import_module(name)
        except ModuleNotFoundError as error:
            raise ProgramError(f"no module {error.name!r}", field="--bodies") from error
    spec = importlib.util.spec_from_file_location(path.stem, path)
    if spec is None or spec.loader is None or not path.is_file():
        raise ProgramError(f"cannot read {shorten(name)}", field="--bodies")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _report_example(outcome: Outcome, *, as_json: bool) -> None:
    if as_json:
        print_json(outcome.facts())
    else:
        print_table(f"trunnion run, {outcome.device}", COLUMNS, [outcome.cells()])
        print_line(outcome.digest_line())
    if not outcome.ok:
        raise typer.Exit(1)


def _run_once(
    compiled: Compiled, sizes: Mapping[str, int], place: Place, named: Mapping[str, KernelBody]
) -> dict[str, Any]:
    """Launch a program with random arguments, and return what can be said of it."""
    program = compiled.program
    bodies = {kernel.symbol for kernel in program.artifact.manifest.kernels if kernel.name in named}
    signature = program.plan.signature
    values = symbol_values(signature, sizes)
    check_room(signature, values, ("cpu",) if place.simulator else ("cpu", place.device))
    inputs = random_inputs(signature, values, place.device)
    result = program(*inputs, device=None if signature.tensors else 0)
    returned = () if result is None else result if isinstance(result, tuple) else (result,)
    seen = place.launches()
    return {
        "backend": str(program.backend),
        "target": str(program.target),
        "device": place.label,
        "sizes": {symbol.name: value for symbol, value in values.items()},
        "launches": [_describe(launch, ran=launch.kernel in bodies) for launch in seen]
        if seen is not None
        else len(program.plan.launches),
        "outputs": [
            f"{param.name}: {param.dtype} {list(tensor.shape)}"
            for param, tensor in zip(signature.outputs, returned, strict=True)
        ],
        "sha256": program.artifact.digest,
    }


def _describe(launch: Launched, *, ran: bool) -> str:
    """Return one launch, as the simulated driver saw it."""
    sizes = [f"grid {launch.grid}", f"block {launch.block}"]
    if launch.cluster is not None:
        sizes.append(f"cluster {launch.cluster}")
    if launch.dynamic_smem_bytes:
        sizes.append(f"{launch.dynamic_smem_bytes} bytes of dynamic shared memory")
    body = "" if ran else "; it has no body, so it computed nothing"
    return f"{launch.kernel}: {', '.join(sizes)}, {len(launch.parameters)} parameters{body}"
