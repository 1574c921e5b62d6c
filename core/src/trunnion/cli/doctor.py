"""``trunnion doctor``: what was looked for, where, what was found, and what does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

import trunnion
from trunnion.cli.document import plain
from trunnion.cli.presentation import (
    Report,
    print_line,
    print_mapping,
    print_source,
    print_table,
    usable_text,
)
from trunnion.cli.surroundings import (
    caches,
    call_helper,
    environment,
    environment_findings,
    missing_parts,
    simulator,
    tensor_library,
    versions,
)
from trunnion.contract.diagnosis import Diagnosis, Finding, Severity
from trunnion.registry import Failure, attempt, probe
from trunnion.wording import type_name, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from trunnion.contract.spec import BackendSpec, CompilerSpec
    from trunnion.registry import PluginInfo

__all__ = ["diagnose", "doctor"]

_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}


def doctor() -> Report:
    """Say what is installed, where it was looked for, and what does not fit. Touches no device."""
    document = _examine()
    return Report(document, lambda: _show(document), 0 if document["usable"] else 1)


def diagnose(spec: BackendSpec | CompilerSpec) -> Diagnosis:
    """Return a spec's diagnosis; without one of its own, and if that fails, what its probe says.

    Parameters
    ----------
    spec
        A plugin's announcement.
    """
    found: object = attempt(spec.diagnose) if spec.diagnose is not None else Diagnosis()
    if not isinstance(found, Diagnosis):
        what = found.reason if isinstance(found, Failure) else f"it returned {type_name(found)}"
        failed = Finding(Severity.WARNING, "diagnosis-failed", f"the diagnosis of {spec.name} failed: {what}")
        found = Diagnosis((), (failed,))
    available = probe(spec)
    if found.healthy and not available.usable:
        return Diagnosis(
            found.components, (*found.findings, Finding(Severity.ERROR, "unusable", available.detail))
        )
    return found


def _examine() -> dict[str, Any]:
    from trunnion.toolchain.driver import installed_driver

    plugins = trunnion.default_registry().plugins()
    roles = [row for plugin in plugins for row in _roles(plugin)]
    driver = installed_driver()
    torch, about_torch = tensor_library(driver)
    built_with, about_simulator = simulator()
    folders, about_caches = caches()
    helper, about_helper = call_helper()
    installed = versions()
    general = [*_about_plugins(plugins), *driver.findings, *missing_parts(installed), *environment_findings()]
    general += [*about_torch, *about_helper, *about_simulator, *about_caches]
    findings = _merged([("", general), *((row["name"], row["found"].findings) for row in roles)])
    healthy = not any(finding.severity is Severity.ERROR for finding in general)
    return {
        "usable": healthy and any(row["role"] == "backend" and row["usable"] for row in roles),
        "findings": findings,
        "plugins": [{key: value for key, value in row.items() if key != "found"} for row in roles],
        "components": _distinct([driver.component, *(c for row in roles for c in row["found"].components)]),
        "unavailable": [
            {key: value for key, value in plain(plugin.failure).items() if key != "type"}
            for plugin in plugins
            if plugin.failure is not None
        ],
        "versions": installed,
        "environment": environment(),
        "torch": torch,
        "call_helper": helper,
        "simulator": built_with,
        "caches": folders,
    }


def _roles(plugin: PluginInfo) -> Iterator[dict[str, Any]]:
    """Yield what a plugin does, whether it can do it here, and its diagnosis."""
    roles = (
        ("backend", plugin.backend, plugin.backend_availability),
        ("device compiler", plugin.compiler, plugin.compiler_availability),
    )
    for role, spec, availability in roles:
        if spec is not None and availability is not None:
            found = diagnose(spec)
            yield {
                "name": plugin.name,
                "role": role,
                "distribution": f"{plugin.distribution} {plugin.version}".strip(),
                "usable": availability.usable and found.healthy,
                "targets": sorted(spec.targets),
                "unusable": dict(availability.unusable),
                "detail": availability.detail,
                "found": found,
            }


def _about_plugins(plugins: tuple[PluginInfo, ...]) -> Iterator[Finding]:
    if not any(plugin.backend is not None for plugin in plugins):
        advice = "pip install 'trunnion[all]'"
        yield Finding(Severity.ERROR, "no-backend", "no backend is installed that can be loaded", advice)
    for plugin in plugins:
        if plugin.failure is not None:
            summary = (
                f"plugin {plugin.name} ({plugin.distribution}) cannot be loaded: {plugin.failure.reason}"
            )
            yield Finding(Severity.WARNING, "plugin-unavailable", summary, "mend, update or uninstall it")


def _merged(sources: Iterable[tuple[str, Iterable[Finding]]]) -> list[dict[str, Any]]:
    """Return every finding once, the worst first, with the plugin that said it."""
    seen: dict[tuple[str, str], dict[str, Any]] = {}
    for plugin, findings in sources:
        for finding in findings:
            seen.setdefault((finding.code, finding.summary), _finding(finding, plugin))
    order = [severity.value for severity in (Severity.ERROR, Severity.WARNING, Severity.INFO)]
    return sorted(seen.values(), key=lambda row: order.index(row["severity"]))


def _finding(finding: Finding, plugin: str) -> dict[str, Any]:
    return {
        "severity": finding.severity.value,
        "code": finding.code,
        "summary": finding.summary,
        "advice": finding.advice,
        "plugin": plugin,
    }


def _distinct(components: Iterable[object]) -> list[dict[str, Any]]:
    """Return each component once; two roles of a plugin often share some."""
    rows = [_untyped(plain(component)) for component in components]
    return [row for index, row in enumerate(rows) if row not in rows[:index]]


def _untyped(row: dict[str, Any]) -> dict[str, Any]:
    """Return a component without the names of classes: the document's own keys say what everything is."""
    candidates = [{key: value for key, value in one.items() if key != "type"} for one in row["candidates"]]
    return {key: value for key, value in row.items() if key != "type"} | {"candidates": candidates}


# For people ---------------------------------------------------------------------------------------------------------


def _show(document: dict[str, Any]) -> None:
    known = {name: version or "not installed" for name, version in document["versions"].items()}
    print_mapping("versions", known)
    variables = {
        name: "not set" if value is None else repr(value) for name, value in document["environment"].items()
    }
    print_mapping("environment", variables)
    print_mapping("simulator", document["simulator"])
    print_mapping(
        "caches", {what: f"{one['path']} ({one['state']})" for what, one in document["caches"].items()}
    )
    print_mapping("torch", document["torch"])
    print_mapping("call helper", document["call_helper"])
    for component in document["components"]:
        _show_component(component)
    for plugin in document["unavailable"]:
        print_line(
            f"{plugin['name']} ({plugin['distribution']}) cannot be loaded: {plugin['reason']}", "bold red"
        )
        print_source("traceback", plugin["traceback"], "pytb")
    columns = ("name", "role", "distribution", "usable", "detail")
    print_table("plugins", columns, [_plugin_cells(row, columns) for row in document["plugins"]])
    for finding in document["findings"]:
        print_line(f"{finding['severity']}: {finding['summary']}", _STYLES[finding["severity"]])
        if finding["advice"]:
            print_line(f"  {finding['advice']}")
    if document["usable"]:
        print_line("something here is usable", "green")
    else:
        print_line("no backend can be used here", "bold red")


def _show_component(component: dict[str, Any]) -> None:
    # A distribution may have no folder of its own: then its version says that it is there.
    there = component["chosen"] or (component["kind"] == "distribution" and component["version"])
    where = component["chosen"] or ("" if there else "not found")
    head = [f"{component['name']} ({component['kind']}):", component["version"], where]
    print_line(" ".join(word for word in head if word), "bold" if there else "bold yellow")
    if component["detail"]:
        print_line(f"  {component['detail']}")
    for candidate in component["candidates"]:
        mark = "->" if candidate["chosen"] else "  "
        place = f"{candidate['origin']}: {candidate['path']}" if candidate["path"] else candidate["origin"]
        print_line(f"  {mark} {place}: {candidate['reason']}", "green" if candidate["chosen"] else "dim")


def _plugin_cells(row: dict[str, Any], columns: tuple[str, ...]) -> list[str | Text]:
    usable = usable_text(row)
    return [usable if name == "usable" else Text(visible(row[name])) for name in columns]
