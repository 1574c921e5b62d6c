"""Write the manual's page of known backends, from the reports in ``results/conformance``.

``trunnion conformance NAME --json docs/results/conformance/NAME.json`` makes one, with ``--tier gpu`` one for the
folder ``gpu`` there; then run this script.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from trunnion.contract.spec import Capability
from trunnion.testing.laws import catalogue
from trunnion.testing.report import Report

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

__all__ = ["REPORTS", "page", "read", "unchecked"]

REPORTS = Path(__file__).parent / "results" / "conformance"
"""Where the reports are; of other tiers than the simulated driver, in folders of their names."""

_INTRODUCTION = """\
# Known backends

What became of [the laws](laws.md) on each backend, as `trunnion conformance` found it on the simulated driver. This
page is made from the reports in `docs/results/conformance`. To add yours, or to bring one up to date:

```sh
trunnion conformance acme --json docs/results/conformance/acme.json
python docs/known_backends.py
```

*Held*: on every example. *Refused*: the backend does not declare what the law needs, and such programs are refused.
"""


_ON_A_GPU = """\

## On a GPU

What became of the laws that can be checked [on a GPU](laws.md#on-a-gpu) (`--tier gpu`). A report is of the suite that
is named beside it; laws that came later are named below as not checked there.
"""


def page(reports: Sequence[Report], on_a_gpu: Sequence[Report]) -> str:
    """Return the page.

    Parameters
    ----------
    reports
        One for each backend, of the simulated driver.
    on_a_gpu
        Those of GPUs.
    """
    sections = (line for one in reports for line in _section(one))
    measured = ("", *(f"`{one.backend}`: {_counted(one)}.{_later(one)}" for one in on_a_gpu))
    lines = (_INTRODUCTION, *_table(reports), *sections, _ON_A_GPU, *_table(on_a_gpu), *measured)
    return "\n".join(lines) + "\n"


def unchecked(report: Report) -> list[str]:
    """Return the laws of a report's tier that it says nothing of: they are younger."""
    known = {law.id for law in report.laws}
    return [law.id for law in catalogue().laws.values() if law.is_of(report.tier) and law.id not in known]


def _later(report: Report) -> str:
    laws = unchecked(report)
    return f" Not checked, because they came later: {_words(laws)}." if laws else ""


def _table(reports: Sequence[Report]) -> Iterator[str]:
    yield "| backend | of | held | refused | broken | day | suite | draws |"
    yield "|---|---|---|---|---|---|---|---|"
    yield from (_row(report) for report in reports)


def _counted(report: Report) -> str:
    """Return on how much it was checked, in which time and with what."""
    versions = ", ".join(f"{name} {version}" for name, version in sorted(report.versions.items()))
    examples = sum(law.examples for law in report.laws)
    seconds = sum(law.seconds for law in report.laws)
    return f"{report.summary()}; {examples} examples in {seconds:.0f} s, seed {report.seed}; {versions}"


def _row(report: Report) -> str:
    held, refused = (report.count(status) for status in ("held", "refused"))
    broken = len(report.laws) - held - refused
    facts = f"{report.date} | `{report.suite}` | `{report.digest}`"
    return f"| `{report.backend}` | {report.distribution} | {held} | {refused} | {broken} | {facts} |"


def _section(report: Report) -> Iterator[str]:
    """Yield what else there is to say of a backend."""
    yield from ("", f"## {report.backend}", "")
    yield f"{_counted(report)}."
    lacking = sorted(set(map(str, Capability)) - set(report.capabilities))
    yield f"It declares {f'all but {_words(lacking)}' if lacking else 'every capability'}."
    for status in ("refused", "failed", "crashed", "hung"):
        laws = [law.id for law in report.laws if law.status == status]
        if laws:
            yield f"{status.capitalize()}: {_words(laws)}."


def _words(names: Sequence[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)


def read(tier: str = "") -> list[Report]:
    """Return every report of a tier other than the simulated driver, or of that, by the names of their files."""
    return [Report.from_json(path.read_text("utf-8")) for path in sorted((REPORTS / tier).glob("*.json"))]


if __name__ == "__main__":
    (Path(__file__).parent / "known-backends.md").write_text(page(read(), read("gpu")), "utf-8")
