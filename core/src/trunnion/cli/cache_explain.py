"""``trunnion cache explain``: whether a program would be found, and if not, what its key has that no other's has."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Annotated, Any

import typer

from trunnion.artifacts.explanation import Difference, explain_key, program_name
from trunnion.artifacts.location import VARIABLE, is_kept_by_default
from trunnion.artifacts.manifest import artifact_key
from trunnion.cli.cache_store import store_at, store_root
from trunnion.cli.cli_arguments import given_options
from trunnion.cli.document import told_apart
from trunnion.cli.presentation import Report, print_line, print_table
from trunnion.cli.subject import find_subject
from trunnion.compilation import key_inputs
from trunnion.errors import ProgramError, shorten
from trunnion.storage.remembered import writing_nothing

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.artifacts.explanation import Explanation

__all__ = ["explain"]


def explain(
    program: Annotated[str, typer.Argument(help="A program as JSON, an artifact's folder or an example.")],
    *,
    target: Annotated[str, typer.Option(help="What for, such as sm_90a.")] = "",
    backend: Annotated[str, typer.Option(help="Which backend launches it.")] = "auto",
    compiler: Annotated[str, typer.Option(help="Which device compiler compiles it.")] = "",
    option: Annotated[
        list[str] | None,
        typer.Option(help="A plugin's option, PLUGIN.OPTION=VALUE; may be repeated."),
    ] = None,
    folder: Annotated[str, typer.Option(help="The folder of a store; without it, this user's own.")] = "",
) -> Report:
    """Say whether compiling a program would find it kept, and which input of its key differs from the nearest one."""
    subject = find_subject(program)
    if subject.program is None:
        raise ProgramError(f"{shorten(program)} is a device image: no program is in it")
    options = given_options(option or ())
    store = store_at(folder)
    asked = partial(key_inputs, subject.program, backend, target=target or None, compiler=compiler or None)
    with writing_nothing():
        inputs, again = asked(options=options), asked(options=options)
    changing = sorted(name for name in inputs.keys() | again.keys() if inputs.get(name) != again.get(name))
    found = None if store is None else explain_key(store, inputs)
    off = not folder and not is_kept_by_default()
    document = {
        "folder": str(store_root(folder)),
        "used_by_default": not folder and not off,
        "key": artifact_key(inputs),
        "changing": changing,
        **_document(found),
        **({"hit": False, "problem": f"the cache is switched off: {VARIABLE} is 0"} if off else {}),
    }
    return Report(document, lambda: _show(document, off=off))


def _document(found: Explanation | None) -> dict[str, Any]:
    nearest = None if found is None else found.nearest
    return {
        "hit": found is not None and found.hit,
        "problem": "" if found is None else found.problem,
        "nearest": None
        if nearest is None
        else {"key": nearest.key, "program": program_name(nearest.key_inputs), "target": nearest.target},
        "differences": [] if found is None else [_row(one) for one in found.differences],
    }


def _row(difference: Difference) -> dict[str, Any]:
    here, kept = told_apart(difference.here, difference.kept)
    return {"name": difference.name, "here": here, "kept": kept, "places": [*difference.places]}


def _show(document: Mapping[str, Any], *, off: bool) -> None:
    print_line(
        f"{'hit' if document['hit'] else 'miss'}: {document['key']}", "green" if document["hit"] else "yellow"
    )
    if off:
        print_line(f"nothing is looked up, and nothing kept: {document['problem']}")
        return
    if not document["used_by_default"]:
        folder = shorten(document["folder"])
        print_line(f"a compilation looks there only if it is told to: cache={folder}")
    if document["changing"]:
        names = ", ".join(document["changing"])
        print_line(f"it is never kept: nobody knows what it depends on ({names})")
    if document["problem"]:
        print_line(f"what is kept cannot be used, and is built again: {document['problem']}")
    if document["nearest"] is None:
        if not document["hit"]:
            print_line(f"nothing else is kept at {document['folder']}")
        return
    nearest = document["nearest"]
    print_line(f"nearest: {nearest['key']} ({nearest['program']}, {nearest['target']})")
    columns = ("name", "here", "kept", "places")
    rows = [[_cell(row[name]) for name in columns] for row in document["differences"]]
    print_table("what differs", columns, rows)


def _cell(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else "-" if value is None else str(value)
