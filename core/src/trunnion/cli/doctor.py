"""``trunnion doctor``: what was looked for, where, what was found, and what does not fit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.text import Text

import trunnion
from trunnion.attempts import Failure, attempt, probe
from trunnion.cli.document import plain
from trunnion.cli.environment import (
    caches,
    call_helper,
    environment,
    environment_findings,
    missing_parts,
    simulator,
    tensor_library,
    versions,
)
from trunnion.cli.examination import SECONDS, Silence, examine
from trunnion.cli.presentation import (
    Report,
    print_line,
    print_mapping,
    print_source,
    print_table,
    usable_text,
)
from trunnion.contract.diagnosis import Diagnosis, Finding, Severity
from trunnion.contract.spec import CompilerSpec, called
from trunnion.messages import type_name, visible
from trunnion.registry import Unavailable

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from trunnion.contract.diagnosis import Component
    from trunnion.contract.spec import BackendSpec
    from trunnion.registry import PluginInfo

__all__ = ["diagnose", "doctor"]

_HELPER: Final = "the call helper"  # which no plugin can be called
_SAID = ("compiles", "findings", "components")
_STYLES = {"error": "bold red", "warning": "yellow", "info": "cyan"}


def doctor(
    *, limit: Annotated[float, typer.Option(min=0.1, help="How many seconds a plugin may take.")] = SECONDS
) -> Report:
    """Say what is installed, where it was looked for, and what does not fit. Touches no device.

    It waits for no plugin that hangs: it says where that one does.
    """
    document = _examine(limit)
    return Report(document, lambda: _show(document), 0 if document["usable"] else 1)


def diagnose(spec: BackendSpec | CompilerSpec) -> Diagnosis:
    """Return a spec's diagnosis; without one of its own, and if that fails, what its probe says.

    Parameters
    ----------
    spec
        A plugin's announcement.
    """
    found: object = attempt(called(spec.diagnose)) if spec.diagnose is not None else Diagnosis()
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


def _examine(limit: float) -> dict[str, Any]:
    from trunnion.toolchain.driver import installed_driver

    roles, unavailable, (helper, about_helper) = _ask_plugins(limit)
    driver = installed_driver()
    torch, about_torch = tensor_library(driver)
    built_with, about_simulator = simulator()
    folders, about_caches = caches()
    installed = versions()
    said = [*_about_plugins(roles, unavailable), *driver.findings, *missing_parts(installed)]
    said += [*environment_findings(), *about_torch, *about_simulator, *about_caches]
    general = [*(_finding(finding, "") for finding in said), *about_helper]
    healthy = not any(finding["severity"] == Severity.ERROR.value for finding in general)
    return {
        "usable": healthy and any(row["role"] == "backend" and row["usable"] for row in roles),
        "findings": _merged([*general, *(finding for row in roles for finding in row["findings"])]),
        "plugins": [{key: value for key, value in row.items() if key not in _SAID} for row in roles],
        "components": _distinct(
            [_component(driver.component), *(c for row in roles for c in row["components"])]
        ),
        "unavailable": unavailable,
        "versions": installed,
        "environment": environment(),
        "torch": torch,
        "call_helper": helper,
        "simulator": built_with,
        "caches": folders,
    }


def _ask_plugins(limit: float) -> tuple[list[dict[str, Any]], list[dict[str, Any]], tuple[Any, Any]]:
    """Return the plugins' roles, those that cannot be loaded, and the call helper with what is to be said of it."""
    registry = trunnion.default_registry()
    questions: dict[str, Callable[[], Any]] = {
        name: lambda name=name: _asked(registry.plugin(name))  # type: ignore[misc]  # a default is no argument
        for name in registry.names()
    }
    questions[_HELPER] = _asked_helper
    roles: list[dict[str, Any]] = []
    unavailable: list[dict[str, Any]] = []
    helper: tuple[Any, Any] = ({}, [])
    for name, answer in examine(questions, limit):
        if name == _HELPER:
            helper = _silent_helper(answer) if isinstance(answer, Silence) else answer
        elif isinstance(answer, Silence):
            failure = Unavailable(name, *registry.owner(name), answer.reason, answer.traceback)
            unavailable.append(_untyped(plain(failure)))
        else:
            roles += answer["roles"]
            unavailable += answer["unavailable"]
    return roles, unavailable, helper


def _asked(plugin: PluginInfo) -> dict[str, Any]:
    """Return all that is said of one plugin, as JSON can say it."""
    failed = [] if plugin.failure is None else [_untyped(plain(plugin.failure))]
    return {"roles": list(_roles(plugin)), "unavailable": failed}


def _asked_helper() -> tuple[dict[str, str], list[dict[str, Any]]]:
    facts, findings = call_helper()
    return facts, [_finding(finding, "") for finding in findings]


def _silent_helper(silence: Silence) -> tuple[dict[str, str], list[dict[str, Any]]]:
    """Return what is said of a call helper that hangs, or that ended its process."""
    summary = f"the call helper cannot be used: {silence.reason}"
    finding = Finding(
        Severity.ERROR, "call-helper-hangs", summary, "unset or uninstall it; TRUNNION_CALL_HELPER=none"
    )
    return {"used": "none", "distribution": "", "reason": silence.reason}, [_finding(finding, "")]


def _roles(plugin: PluginInfo) -> Iterator[dict[str, Any]]:
    """Yield what a plugin does, whether it can do it here, and its diagnosis."""
    roles = (
        ("backend", plugin.backend, plugin.backend_availability),
        ("device compiler", plugin.compiler, plugin.compiler_availability),
    )
    for role, spec, availability in roles:
        if spec is not None and availability is not None:
            found = diagnose(spec)
            texts = isinstance(spec, CompilerSpec) and not all(map(spec.is_binary, spec.languages))
            yield {
                "name": plugin.name,
                "role": role,
                "distribution": f"{plugin.distribution} {plugin.version}".strip(),
                "usable": availability.usable and found.healthy,
                "compiles": texts,  # and does not only take what was compiled
                "targets": sorted(spec.targets),
                "unusable": dict(availability.unusable),
                "detail": availability.detail,
                "findings": [_finding(finding, plugin.name) for finding in found.findings],
                "components": [_component(component) for component in found.components],
            }


def _about_plugins(roles: list[dict[str, Any]], unavailable: list[dict[str, Any]]) -> Iterator[Finding]:
    if not any(row["role"] == "backend" for row in roles):
        advice = "pip install 'trunnion[all]'"
        yield Finding(Severity.ERROR, "no-backend", "no backend is installed that can be loaded", advice)
    compilers = [row["usable"] for row in roles if row["compiles"]]
    if compilers and not any(compilers):
        summary = "nothing can be compiled here; what was built elsewhere loads and launches all the same"
        yield Finding(
            Severity.INFO, "loads-only", summary, "trunnion.load it, or install what a compiler lacks"
        )
    for one in unavailable:
        summary = f"plugin {one['name']} ({one['distribution']}) cannot be loaded: {one['reason']}"
        yield Finding(Severity.WARNING, "plugin-unavailable", summary, "mend, update or uninstall it")


def _merged(findings: Iterable[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return every finding once, the worst first, with the plugin that said it."""
    seen: dict[tuple[str, str], dict[str, Any]] = {}
    for finding in findings:
        seen.setdefault((finding["code"], finding["summary"]), finding)
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


def _distinct(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Return each component once; two roles of a plugin often share some."""
    return [row for index, row in enumerate(rows) if row not in rows[:index]]


def _component(component: Component) -> dict[str, Any]:
    row = _untyped(plain(component))
    return row | {"candidates": [_untyped(one) for one in row["candidates"]]}


def _untyped(row: dict[str, Any]) -> dict[str, Any]:
    """Return a row without the name of its class: the document's own keys say what everything is."""
    return {key: value for key, value in row.items() if key != "type"}


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
