"""What a bundle holds, variant for variant: what was written, or what lies there and what it lacks here."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.filesize import decimal

from trunnion.cli.presentation import print_table

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from trunnion.bundles.bundle import Bundle
    from trunnion.bundles.index import Index, Variant

__all__ = ["print_variants", "variants_here", "variants_in"]


def variants_in(index: Index) -> list[dict[str, Any]]:
    """Return a row for each variant of each program, those that are to be preferred first."""
    return [_row(index, name, one) for name, variants in index.programs.items() for one in variants]


def variants_here(bundle: Bundle) -> list[dict[str, Any]]:
    """Return these rows with what each lacks on device 0 and this machine, its part too; nothing of it is read."""
    absent = {part.part: [f"{part.file}, which is not here"] for part in bundle.absent_parts()}
    return [
        {**_row(bundle.index, name, fit.variant), "lacks": [*fit.lacks, *absent.get(fit.variant.part, ())]}
        for name in bundle
        for fit in bundle.fits(name)
    ]


def _row(index: Index, name: str, one: Variant) -> dict[str, Any]:
    return {
        "program": name,
        "target": one.target,
        "backend": one.backend,
        "nbytes": one.nbytes,
        "part": index.parts[one.part].file,
    }


def print_variants(rows: Iterable[Mapping[str, Any]]) -> None:
    """Show rows as a table."""
    cells = [{**row, "nbytes": decimal(row["nbytes"])} for row in rows]
    if any("lacks" in row for row in cells):
        cells = [{**row, "lacks": "; ".join(row["lacks"]) or "nothing"} for row in cells]
    columns = ["size" if name == "nbytes" else name for name in (cells or [{}])[0]]
    print_table("variants", columns, [[str(cell) for cell in row.values()] for row in cells])
