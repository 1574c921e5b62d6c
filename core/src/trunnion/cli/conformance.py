"""``trunnion conformance``: every law on one backend, each verdict in a report."""

from __future__ import annotations

import os
import platform
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.text import Text

import trunnion
from trunnion.cli.presentation import Report, print_line, print_source, print_step, print_table, progress
from trunnion.errors import shorten
from trunnion.messages import one_of
from trunnion.storage.refusals import refusals
from trunnion.storage.scratch import replacing

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from trunnion.contract.spec import BackendSpec
    from trunnion.testing.laws import Law
    from trunnion.testing.report import Report as Conformance
    from trunnion.testing.runner import Options

__all__ = ["conformance"]

_LIBRARIES = ("hypothesis", "torch", "trunnion")


def conformance(  # noqa: PLR0913 - one for each option
    name: Annotated[str, typer.Argument(metavar="NAME", help="The backend.")],
    *,
    tier: Annotated[
        str, typer.Option(help="On the simulated driver (sim), on a GPU (gpu), or on the CPU (cpu).")
    ] = "sim",
    json: Annotated[
        Path | None, typer.Option(metavar="FILE.json", help="Write the report there, for programs.")
    ] = None,
    html: Annotated[Path | None, typer.Option(help="Write the report there, as a page.")] = None,
    badge: Annotated[
        Path | None,
        typer.Option(help="Write a badge there: an image, or for .json an endpoint of shields.io."),
    ] = None,
    law: Annotated[
        list[str] | None, typer.Option("--law", "-k", metavar="ID", help="Only this law; may be repeated.")
    ] = None,
    seed: Annotated[int, typer.Option(min=0, max=2**32 - 1, help="Draw other examples.")] = 0,
    examples: Annotated[
        int | None, typer.Option(min=1, help="Check each law on so many (default: by what one costs).")
    ] = None,
    thorough: Annotated[
        bool, typer.Option("--thorough", help="Check all examples of each law by every way in.")
    ] = False,
    no_shrink: Annotated[
        bool, typer.Option("--no-shrink", help="Look for no smaller example once one breaks a law.")
    ] = False,
    patience: Annotated[
        float, typer.Option(min=1.0, help="Seconds without a finished example until a law counts as hung.")
    ] = 300.0,
    jobs: Annotated[
        int | None,
        typer.Option(min=1, help="Laws that are checked at once (default: one for each processor)."),
    ] = None,
) -> Report:
    """Hold a backend to the laws, each in a process that may crash or hang, and report what became of each.

    The exit status is 0 if every law held, or was refused as declared.
    """
    from trunnion.testing.runner import Options

    options = Options(tier=_tier(tier), examples=examples, seed=seed, shrink=not no_shrink, thorough=thorough)
    _check_places(json, html, badge)
    spec, laws = _spec(name, tier), _laws(tier, law or ())
    report = _checked(spec, laws, options, patience=patience, jobs=jobs or len(os.sched_getaffinity(0)))
    _write(report, json, html, badge)
    return Report(report.document(), lambda: _show(report), 0 if report.good else 1)


def _tier(tier: str) -> str:
    from trunnion.testing.runner import TIERS

    if tier not in TIERS:
        raise typer.BadParameter(f"got --tier {shorten(tier)}, {one_of(tier, TIERS)}")
    return tier


def _spec(name: str, tier: str) -> BackendSpec:
    """Return a backend.

    Raises
    ------
    UnknownBackendError
        If nothing of that name is installed, or it brings no backend.
    UnsupportedFeatureError
        If it does not launch there.
    BackendUnavailableError
        If it cannot be used here.
    """
    from trunnion.testing.runner import require_target

    registry = trunnion.default_registry()
    registry.backends()  # every plugin is loaded, so that an error lists those that are backends
    spec = registry.backend(name)
    require_target(spec, tier)
    return spec


def _laws(tier: str, ids: Sequence[str]) -> tuple[Law, ...]:
    """Return the laws that are wanted.

    Raises
    ------
    typer.BadParameter
        If there is no such law.
    DeviceRequirementError
        If there is no GPU for the tier.
    """
    from trunnion.testing.runner import laws_of

    laws = {law.id: law for law in laws_of(tier)}
    unknown = [law_id for law_id in ids if law_id not in laws]
    if unknown:
        raise typer.BadParameter(f"got the law {shorten(unknown[0])}, {one_of(unknown[0], _in_order(laws))}")
    return tuple(law for law in laws.values() if not ids or law.id in ids)


def _in_order(ids: Iterable[str]) -> list[str]:
    """Return laws by their letters, then by their numbers."""
    return sorted(ids, key=lambda law: (law.rstrip("0123456789"), len(law), law))


def _checked(
    spec: BackendSpec, laws: Sequence[Law], options: Options, *, patience: float, jobs: int
) -> Conformance:
    from trunnion.testing.machine import KINDS
    from trunnion.testing.report import Report as Conformance
    from trunnion.testing.report import suite_revision
    from trunnion.testing.supervisor import supervised

    title = f"holding {spec.name} to the laws"
    found = supervised(spec.name, laws, options, patience=patience, jobs=jobs)
    # One verdict for each step: a law is over when its verdict is there.
    verdicts = {}
    for _ in progress(title, laws):
        verdict = next(found)
        verdicts[verdict.id] = verdict
        print_step(f"{verdict.id}: {verdict.status}, {verdict.seconds:.1f} s")
    versions = {library: metadata.version(library) for library in _LIBRARIES}
    return Conformance(
        backend=spec.name,
        distribution=_distribution(spec.name),
        capabilities=tuple(sorted(spec.targets[KINDS[options.tier]])),
        tier=options.tier,
        seed=options.seed,
        examples=options.examples,
        thorough=options.thorough,
        suite=suite_revision(),
        versions={**versions, "python": platform.python_version()},
        date=datetime.now(UTC).date().isoformat(),
        laws=tuple(verdicts[law.id] for law in laws),
    )


def _distribution(name: str) -> str:
    """Return the distribution that brings a backend, and its version."""
    found = (plugin for plugin in trunnion.default_registry().plugins() if plugin.name == name)
    return next((f"{plugin.distribution} {plugin.version}".strip() for plugin in found), "")


def _write(report: Conformance, json: Path | None, html: Path | None, badge: Path | None) -> None:
    from trunnion.testing.report_page import badge_endpoint, badge_svg, html_page

    image = badge_endpoint if badge is not None and badge.suffix == ".json" else badge_svg
    made: list[tuple[Path | None, Callable[[Conformance], str]]] = [
        (json, lambda one: one.to_json()),
        (html, html_page),
        (badge, image),
    ]
    for path, text in made:
        if path is not None:
            with refusals(f"the report {path}"), replacing(path) as file:
                file.write_text(text(report), "utf-8")


def _check_places(*files: Path | None) -> None:
    """Refuse a place where no report can be written, before all is checked."""
    for file in files:
        if file is not None and not file.absolute().parent.is_dir():
            raise typer.BadParameter(f"got {file}, whose folder does not exist; make it before")


def _show(report: Conformance) -> None:
    from trunnion.testing.report import GOOD

    rows: list[list[str | Text]] = [
        [
            law.id,
            Text(law.status, style="green" if law.status in GOOD else "bold red"),
            str(law.examples),
            f"{law.seconds:.1f}",
            law.sentence,
        ]
        for law in report.laws
    ]
    print_table(
        f"{report.backend}, of {report.distribution}",
        ["law", "verdict", "examples", "seconds", "what it says"],
        rows,
        spare=["seconds", "examples"],
    )
    for law in report.laws:
        if law.status not in GOOD:
            print_source(f"{law.id}: {law.status}", law.text, "text")
    drawn = f"seed {report.seed}, draws {report.digest}, suite {report.suite}"
    print_line(f"{report.summary()}; {drawn}", "green" if report.good else "bold red")
