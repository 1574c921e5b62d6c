"""What ``trunnion doctor`` is told of CuTeDSL: its distributions, whether it is importable, what has no effect."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Final

from trunnion.contract.diagnosis import Component, Diagnosis, Finding, Severity
from trunnion.toolchain.inquiry import inquire
from trunnion_cutedsl.release import PACKAGE, components, installed_release, probe_compiler

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["diagnose_compiler"]

_ADVICE: Final = "pip install --force-reinstall 'trunnion-cutedsl[compiler]'"
_IMPORT: Final = """
import importlib, json
package = importlib.import_module("cutlass")
importlib.import_module("cutlass.cute")
print(json.dumps({"file": package.__file__}))
"""
_VARIABLES: Final = "CUTE_DSL_"


def diagnose_compiler() -> Diagnosis:
    """Return what compiling needs. CuTeDSL is imported in a process of its own, not in this one."""
    release = installed_release()
    answer = {} if release is None else inquire(_IMPORT)
    own = Component(
        name=PACKAGE,
        kind="distribution",
        version=release or "",
        chosen=str(answer.get("file", "")),
        detail=probe_compiler().detail,
    )
    parts = [
        Component(name=name, kind="distribution", version=version)
        for name, version in components().items()
        if name not in (PACKAGE, "python")
    ]
    return Diagnosis((own, *parts), tuple(_findings(release, answer)))


def _findings(release: str | None, answer: dict[str, Any]) -> Iterator[Finding]:
    found = probe_compiler()
    if release is None:
        yield Finding(Severity.ERROR, "cutedsl-missing", f"{PACKAGE} is not installed", _ADVICE)
        return
    if not found.usable:
        yield Finding(Severity.ERROR, "cutedsl-release", found.detail, _ADVICE)
    if "failure" in answer:
        summary = f"{PACKAGE} {release} cannot be imported: {answer['failure']}"
        yield Finding(Severity.ERROR, "cutedsl-broken", summary, _ADVICE)
    ignored = sorted(name for name in os.environ if name.startswith(_VARIABLES))
    if ignored:
        yield Finding(
            Severity.INFO,
            "cutedsl-variables",
            f"{', '.join(ignored)}: set, and not listened to where trunnion compiles",
            "say it in the options of the program or of trunnion.compile",
        )
