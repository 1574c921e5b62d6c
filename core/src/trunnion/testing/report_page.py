"""What a report looks like: one page of HTML that needs nothing else, and a badge."""

from __future__ import annotations

import json
import re
from html import escape
from typing import TYPE_CHECKING

from trunnion.testing.report import GOOD, STATUSES

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from trunnion.testing.report import LawReport, Report

__all__ = ["badge_endpoint", "badge_svg", "html_page"]

_GREEN, _RED = "#2da44e", "#cf222e"
_CODE = re.compile("``(.+?)``")  # as docstrings mark it, from which laws have their sentences
_LETTER = 7  # pixels, on average, in the badge's font
_STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 75rem; padding: 0 1rem; color: #1f2328; }
table { border-collapse: collapse; margin: 1rem 0; width: 100%; }
th, td { text-align: left; vertical-align: top; padding: .3rem .6rem; border-bottom: 1px solid #d1d9e0; }
td.number { text-align: right; white-space: nowrap; }
pre { overflow-x: auto; background: #f6f8fa; padding: .8rem; }
code { font-size: 90%; }
.held, .refused { color: #1a7f37; } .failed, .crashed, .hung { color: #cf222e; font-weight: bold; }
"""


def html_page(report: Report) -> str:
    """Return a page of HTML, whole in itself and without scripts; all that comes from the report is escaped."""
    title = escape(f"{report.backend}: {report.summary()}")
    facts = _table((), ([escape(name), escape(value)] for name, value in _facts(report)))
    laws = _table(
        ("law", "verdict", "examples", "seconds", "what it says", "calls by each way", "draws"),
        (_law_cells(law) for law in report.laws),
    )
    broken = "".join(
        f'<h2 id="{escape(law.id)}">{escape(law.id)}: {escape(law.status)}</h2>\n<pre>{escape(law.text)}</pre>\n'
        for law in report.laws
        if law.status not in GOOD
    )
    meanings = "; ".join(f"{status}: {meaning}" for status, meaning in STATUSES.items())
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n<title>{title}</title>\n'
        f"<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n{facts}{broken}"
        f"<h2>The laws</h2>\n<p>{escape(meanings)}.</p>\n{laws}</body>\n</html>\n"
    )


def _facts(report: Report) -> Iterator[tuple[str, str]]:
    asked = "as many as each law costs" if report.examples is None else str(report.examples)
    yield "backend", f"{report.backend}, of {report.distribution}"
    yield "day", report.date
    yield "tier", report.tier
    yield "examples", f"{asked}, by every way" if report.thorough else asked
    yield "seed", str(report.seed)
    yield "digest of the draws", report.digest
    yield "revision of the suite", report.suite
    yield "versions", ", ".join(f"{name} {version}" for name, version in sorted(report.versions.items()))
    yield "capabilities", ", ".join(report.capabilities) or "none"


def _law_cells(law: LawReport) -> list[str]:
    name, status = escape(law.id), escape(law.status)
    verdict = f'<span class="{status}">{status}</span>'
    ways = ", ".join(f"{way} {count}" for way, count in law.calls.items())
    return [
        f"<code>{name}</code>",
        verdict if law.status in GOOD else f'<a href="#{name}">{verdict}</a>',
        str(law.examples),
        f"{law.seconds:.1f}",
        _CODE.sub(r"<code>\1</code>", escape(law.sentence)),
        escape(ways),
        f"<code>{escape(law.digest)}</code>",
    ]


def _table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; the cells are HTML."""
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>\n" for row in rows)
    return f"<table>\n<tr>{head}</tr>\n{body}</table>\n" if head else f"<table>\n{body}</table>\n"


def _badge(report: Report) -> tuple[str, str]:
    """Return what a badge says, and its colour."""
    held, whole = report.count("held"), len(report.laws)
    if report.good:
        return f"{held} laws held", _GREEN
    return f"{whole - sum(report.count(status) for status in GOOD)} of {whole} laws broken", _RED


def badge_svg(report: Report) -> str:
    """Return a badge as an image: how many laws held, or how many did not."""
    (said, colour), label = _badge(report), "trunnion"
    widths = [_LETTER * len(text) + 12 for text in (label, said)]
    text = escape(f"{label}: {said}")
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{sum(widths)}" height="20" role="img" aria-label="{text}">'
        f"<title>{text}</title>"
        f'<rect width="{sum(widths)}" height="20" rx="3" fill="#555"/>'
        f'<rect x="{widths[0]}" width="{widths[1]}" height="20" rx="3" fill="{colour}"/>'
        '<g fill="#fff" text-anchor="middle" font-family="Verdana,sans-serif" font-size="11">'
        f'<text x="{widths[0] / 2:g}" y="14">{escape(label)}</text>'
        f'<text x="{widths[0] + widths[1] / 2:g}" y="14">{escape(said)}</text></g></svg>\n'
    )


def badge_endpoint(report: Report) -> str:
    """Return a badge as `shields.io's endpoint <https://shields.io/badges/endpoint-badge>`_ reads it."""
    said, colour = _badge(report)
    return json.dumps({"schemaVersion": 1, "label": "trunnion", "message": said, "color": colour}) + "\n"
