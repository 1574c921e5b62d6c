"""``trunnion lock``: write down which bundles and artifacts a project loads, or check that they are still these."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from trunnion.cli.presentation import Report, print_line, print_table
from trunnion.errors import ArtifactError
from trunnion.lock import LOCK_FILE, Lock

if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["lock"]


def lock(
    paths: Annotated[
        list[str] | None,
        typer.Argument(
            help="Bundles' indices and artifacts' folders; without any, those that are locked already."
        ),
    ] = None,
    *,
    file: Annotated[Path, typer.Option(help="The lock file.")] = Path(LOCK_FILE),
    check: Annotated[
        bool, typer.Option("--check", help="Write nothing: say which are not what is locked.")
    ] = False,
) -> Report:
    """Write the digest of each into a lock file, after every byte is verified; or check that they are still these.

    With paths the file is written anew, with these alone: what was locked beside them is told.
    """
    if check:
        return _checked(Lock.open(file), paths or ())
    found = Lock.of(paths or [file.parent / path for path in Lock.open(file).digests], file)
    dropped = sorted(_locked_before(file) - found.digests.keys())
    found.save()
    rows = [(path, digest) for path, digest in found.digests.items()]

    def show() -> None:
        print_table("locked", ("path", "digest"), rows)
        for path in dropped:
            print_line(f"{path}: no longer locked; to lock it, too, name it beside the others", "yellow")

    return Report({"file": str(file), "digests": dict(rows), "dropped": dropped}, show)


def _locked_before(file: Path) -> set[str]:
    """Return the paths in a lock file that is to be replaced; of one that cannot be read nobody loaded anything."""
    try:
        return set(Lock.open(file).digests)
    except ArtifactError:
        return set()


def _checked(locked: Lock, paths: Sequence[str]) -> Report:
    if paths:
        raise typer.BadParameter(f"got {paths[0]} with --check, which checks all that is locked")
    found = [*locked.checked()]
    problems = [{"path": one.path, "problem": one.problem} for one in found if one.problem]
    absent = [(one.path, part) for one in found for part in one.absent]
    document = {
        "file": str(locked.file),
        "locked": len(locked.digests),
        "problems": problems,
        "absent": [{"path": path, **asdict(part)} for path, part in absent],
    }
    bad = bool(problems) or not locked.digests  # nothing holds of nothing

    def show() -> None:
        for row in problems:
            print_line(f"{row['path']}: {row['problem']}", "red")
        for path, part in absent:
            print_line(f"{path}: {part}", "yellow")
        good = len(locked.digests) - len(problems)
        print_line(f"{good} of {len(locked.digests)} are what is locked", "red" if bad else "green")

    return Report(document, show, 1 if bad else 0)
