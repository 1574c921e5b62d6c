"""``trunnion cache``: what is kept of what was compiled, whether it is whole, and how to be rid of it."""

from __future__ import annotations

from dataclasses import asdict, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.filesize import decimal

from trunnion.artifacts.eviction import Removed
from trunnion.artifacts.explanation import program_name
from trunnion.artifacts.location import is_kept_by_default
from trunnion.artifacts.store import ArtifactStore
from trunnion.cli.cache_explain import explain
from trunnion.cli.cache_store import store_at, store_root
from trunnion.cli.presentation import Report, print_line, print_mapping, print_table

if TYPE_CHECKING:
    from trunnion.artifacts.entries import Entry

__all__ = ["cache_commands"]

_DAY_SECONDS = 86400.0
_COLUMNS = ("key", "program", "backend", "target", "size", "used", "problem")
_SHOWN_KEY = 12

Folder = Annotated[str, typer.Option(help="The folder of a store; without it, this user's own.")]


def cache_commands(epilog: str) -> typer.Typer:
    """Return the commands below ``trunnion cache``.

    Parameters
    ----------
    epilog
        What stands below each one's help.
    """
    commands = typer.Typer(no_args_is_help=True, rich_markup_mode=None, add_completion=False)
    commands.command("info", epilog=epilog)(info)
    commands.command("list", epilog=epilog)(listing)
    commands.command("verify", epilog=epilog)(verify)
    commands.command("prune", epilog=epilog)(prune)
    commands.command("clear", epilog=epilog)(clear)
    commands.command("explain", epilog=epilog)(explain)
    return commands


def info(*, folder: Folder = "") -> Report:
    """Say where what was compiled is kept, how much there is, and when it was used."""
    root = store_root(folder)
    store = store_at(folder)
    found = None if store is None else store.statistics()
    nbytes = 0 if found is None else found.nbytes
    document = {
        "folder": str(root),
        "used_by_default": not folder and is_kept_by_default(),
        "entries": 0 if found is None else found.entries,
        "nbytes": nbytes,
        "corrupt": 0 if found is None else found.corrupt,
        "oldest_use": None if found is None else _date(found.oldest_use),
        "newest_use": None if found is None else _date(found.newest_use),
    }
    shown = document | {"nbytes": decimal(nbytes)}
    return Report(document, lambda: print_mapping("cache", shown))


def listing(*, folder: Folder = "") -> Report:
    """List what is kept, what was used last first. Only manifests are read: see verify."""
    store = store_at(folder)
    rows = [] if store is None else [_row(store, one) for one in reversed(store.entries())]
    return Report(rows, lambda: _show_rows("kept artifacts", rows))


def verify(*, folder: Folder = "") -> Report:
    """Read every byte of what is kept, and list what cannot be used; it is built again when it is asked for."""
    store = store_at(folder)
    entries = [] if store is None else store.entries()
    problems = {} if store is None else {one.key: store.problem(one.key) for one in entries}
    rows = [
        _row(store, one) | {"problem": problems[one.key]}
        for one in entries
        if store is not None and problems[one.key]
    ]
    document = {"entries": len(entries), "good": not rows, "broken": rows}

    def show() -> None:
        if rows:
            _show_rows("artifacts that cannot be used", rows)
        print_line(
            f"{len(entries) - len(rows)} of {len(entries)} artifacts are whole", "red" if rows else "green"
        )

    return Report(document, show, 1 if rows else 0)


def prune(
    *,
    folder: Folder = "",
    max_bytes: Annotated[int | None, typer.Option(min=0, help="How many bytes may stay.")] = None,
    max_days: Annotated[
        float | None, typer.Option(min=0, help="For how many days what nobody uses may stay.")
    ] = None,
) -> Report:
    """Remove what nobody used for longest, as far as it is too much or too old."""
    store = store_at(folder)
    if store is None:
        return _removal(None)
    limits = store.limits
    limits = limits if max_bytes is None else replace(limits, nbytes=max_bytes)
    limits = limits if max_days is None else replace(limits, age_seconds=max_days * _DAY_SECONDS)
    limited = ArtifactStore(store.root, max_bytes=limits.nbytes, max_age_seconds=limits.age_seconds)
    return _removal(limited.prune())


def clear(*, folder: Folder = "") -> Report:
    """Remove everything that is kept."""
    store = store_at(folder)
    return _removal(None if store is None else ArtifactStore(store.root).clear())


def _removal(removed: Removed | None) -> Report:
    done = Removed(0, 0) if removed is None else removed

    def show() -> None:
        print_line(f"removed {done.entries} artifacts, {decimal(done.nbytes)}")
        if done.stuck:
            print_line(f"{done.stuck} cannot be removed: look who may write to the store's folders", "red")

    return Report(asdict(done), show, 1 if done.stuck else 0)


def _row(store: ArtifactStore, entry: Entry) -> dict[str, Any]:
    found = store.manifest(entry.key)
    return {
        "key": entry.key,
        "program": "" if found is None else program_name(found.key_inputs),
        "backend": "" if found is None else found.backend,
        "target": "" if found is None else found.target,
        "nbytes": entry.nbytes,
        "used": _date(entry.used),
        "problem": "its manifest cannot be used" if found is None else "",
    }


def _show_rows(title: str, rows: list[dict[str, Any]]) -> None:
    if not rows:
        print_line("nothing is kept", "yellow")
        return
    cells = [row | {"key": row["key"][:_SHOWN_KEY], "size": decimal(row["nbytes"])} for row in rows]
    columns = [name for name in _COLUMNS if any(row[name] for row in cells)]
    print_table(title, columns, [[row[name] for name in columns] for row in cells])


def _date(seconds: float | None) -> str | None:
    """Return a time in UTC, to a second, or in words where no calendar has it; None stays None."""
    if seconds is None:
        return None
    try:
        moment = datetime.fromtimestamp(seconds, UTC)
    except (ValueError, OverflowError, OSError):  # of a clock that was wrong, or whatever somebody set
        return "after the year 9999" if seconds > 0 else "before the year 1"
    return f"{moment.replace(tzinfo=None).isoformat(timespec='seconds')}Z"
