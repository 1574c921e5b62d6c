"""``trunnion backends``: what is installed, what it can do, and what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

import trunnion
from trunnion.cli.examination import SECONDS, Silence, examine
from trunnion.cli.presentation import Report, print_line, print_table, usable_text
from trunnion.registry import PluginInfo, Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.text import Text

    from trunnion.contract.spec import Availability, BackendSpec, CompilerSpec
    from trunnion.registry import Registry

__all__ = ["backends"]

_COLUMNS = ("name", "role", "distribution", "targets", "capabilities", "usable", "detail")


def backends(
    *, limit: Annotated[float, typer.Option(min=0.1, help="How many seconds a plugin may take.")] = SECONDS
) -> Report:
    """List the installed backends and device compilers. Touches no device, and waits for no plugin that hangs."""
    rows: list[dict[str, Any]] = []
    for name, answer in examine(_questions(trunnion.default_registry()), limit):
        rows += [_silent(name, answer)] if isinstance(answer, Silence) else answer
    return Report(rows, lambda: _show(rows))


def _questions(registry: Registry) -> dict[str, Callable[[], Any]]:
    return {name: lambda name=name: list(_rows(registry.plugin(name))) for name in registry.names()}  # type: ignore[misc]  # a default is no argument


def _silent(name: str, silence: Silence) -> dict[str, Any]:
    """Return the row of a plugin that hangs, or that ended its process."""
    owner, version = trunnion.default_registry().owner(name)
    failure = Unavailable(name, owner, version, silence.reason, silence.traceback)
    (row,) = _rows(PluginInfo(name=name, distribution=owner, version=version, failure=failure))
    return row


def _show(rows: list[dict[str, Any]]) -> None:
    if not rows:
        print_line("no plugin is installed; try: pip install 'trunnion[all]'", "yellow")
        return
    print_table("installed plugins", _COLUMNS, [_cells(row) for row in rows])


def _rows(plugin: PluginInfo) -> Iterator[dict[str, Any]]:
    """Yield one row for each role that a plugin plays, or one that says why it plays none."""
    head = {"name": plugin.name, "distribution": f"{plugin.distribution} {plugin.version}".strip()}
    if plugin.failure is not None:
        nothing: dict[str, Any] = {
            "role": "",
            "targets": [],
            "capabilities": [],
            "usable": False,
            "unusable": {},
        }
        yield head | nothing | {"detail": plugin.failure.reason, "traceback": plugin.failure.traceback}
    if plugin.backend is not None and plugin.backend_availability is not None:
        yield head | _backend(plugin.backend) | _availability(plugin.backend_availability)
    if plugin.compiler is not None and plugin.compiler_availability is not None:
        yield head | _compiler(plugin.compiler) | _availability(plugin.compiler_availability)


def _backend(spec: BackendSpec) -> dict[str, Any]:
    capabilities = sorted({capability.value for found in spec.targets.values() for capability in found})
    return {"role": "backend", "targets": sorted(spec.targets), "capabilities": capabilities}


def _compiler(spec: CompilerSpec) -> dict[str, Any]:
    made = [f"{language} to {', '.join(spec.produces)}" for language in spec.languages]
    return {"role": "device compiler", "targets": sorted(spec.targets), "capabilities": made}


def _availability(found: Availability) -> dict[str, Any]:
    unusable = dict(found.unusable)
    return {"usable": found.usable, "unusable": unusable, "detail": found.detail, "traceback": ""}


def _cells(row: dict[str, Any]) -> list[str | Text]:
    usable = usable_text(row)
    joined = [", ".join(row[column]) for column in ("targets", "capabilities")]
    return [row["name"], row["role"], row["distribution"], *joined, usable, row["detail"]]
