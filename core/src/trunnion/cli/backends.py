"""``trunnion backends``: what is installed, what it can do, and what is missing."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trunnion
from trunnion.cli.presentation import Report, print_line, print_table, usable_text

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text

    from trunnion.contract.spec import Availability, BackendSpec, CompilerSpec
    from trunnion.registry import PluginInfo

__all__ = ["backends"]

_COLUMNS = ("name", "role", "distribution", "targets", "capabilities", "usable", "detail")


def backends() -> Report:
    """List the installed backends and device compilers. Touches no device."""
    plugins = trunnion.default_registry().plugins()
    rows = [row for plugin in plugins for row in _rows(plugin)]
    return Report(rows, lambda: _show(rows))


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
