"""``trunnion inspect``: everything that can be known of a program, an artifact or an image without running it."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

import trunnion
from trunnion.built_program import BUNDLE_SUFFIX
from trunnion.bundles.bundle import Bundle
from trunnion.cli.bundle_variants import print_variants, variants_here
from trunnion.cli.document import plan_document
from trunnion.cli.inspection import (
    artifact_document,
    device_sources,
    image_document,
    image_documents,
    launcher_of,
    launchers_in,
    program_document,
    tell_what_is_passed,
)
from trunnion.cli.presentation import Report, print_line, print_mapping, print_source
from trunnion.cli.subject import Subject, find_subject
from trunnion.cli.words import plan_in_words, program_in_words
from trunnion.errors import ArgumentValueError, ProgramError
from trunnion.messages import shorten

if TYPE_CHECKING:
    from trunnion.artifacts.artifact import Artifact

__all__ = ["inspect"]

_SECTIONS = ("program", "plan", "manifest")
_KEYS = (*_SECTIONS, "images", "host_source", "device_source", "digest", "variants")
_IN_WORDS = {"program": program_in_words, "plan": plan_in_words}


def inspect(  # noqa: PLR0913 - a command's options are its parameters
    what: Annotated[
        str,
        typer.Argument(
            help="A program as JSON, an artifact's folder, a bundle's index, a cubin or PTX file, or the name of "
            "an example."
        ),
    ],
    *,
    host_source: Annotated[
        bool, typer.Option("--host-source", help="Show the launcher's text; it is not run.")
    ] = False,
    device_source: Annotated[
        bool, typer.Option("--device-source", help="Show the device code and its headers.")
    ] = False,
    build: Annotated[
        bool, typer.Option("--compile", help="Compile a program, and show the image and the manifest too.")
    ] = False,
    backend: Annotated[
        str, typer.Option(help="Which backend writes the launcher, or compiles under --compile.")
    ] = "auto",
    target: Annotated[str, typer.Option(help="What for, such as sm_90a.")] = "",
    trust: Annotated[
        bool, typer.Option("--trust", help="Allow device code that runs here while it is compiled.")
    ] = False,
) -> Report:
    """Show what something is made of. Nothing of it is run, and nothing compiled unless asked for."""
    if what.endswith(BUNDLE_SUFFIX) and not Path(what).is_dir():
        options = (build, host_source, device_source, target, trust, backend != "auto")
        return _bundle(what, built=any(options))
    subject = find_subject(what)
    if (backend != "auto" or target) and not (build or host_source) and subject.artifact is None:
        raise ArgumentValueError(
            "--backend, --target",
            "neither --compile nor --host-source",
            "one of them: nothing else needs a backend",
        )
    if trust and not build and subject.program is not None and subject.artifact is None:
        raise ArgumentValueError("--trust", "no --compile", "it too: nothing else runs device code")
    trusted = trust or subject.example is not None
    artifact = _artifact(subject, backend, target, trust=trusted if build or trust else None)
    document: dict[str, Any] = dict.fromkeys(_KEYS)
    document |= {"kind": subject.kind, "name": subject.name}
    if subject.program is not None:
        document["program"] = program_document(subject.program)
        document["plan"] = plan_document(subject.program.plan())
    if subject.image is not None:
        document["images"] = [image_document(subject.image, subject.image_kind)]
    if artifact is not None:
        document["manifest"] = artifact_document(artifact)
        document["images"] = image_documents(artifact)
        if subject.program is not None:
            tell_what_is_passed(document["images"], artifact.manifest, subject.program.plan())
    if subject.program is not None and device_source:
        document["device_source"] = device_sources(subject.program)
    if subject.program is not None and host_source:
        launcher = launchers_in(artifact) if artifact is not None else None
        document["host_source"] = launcher or [launcher_of(subject.program, backend, target)]
    return Report(document, lambda: _show(document))


def _bundle(what: str, *, built: bool) -> Report:
    """Report what lies in a bundle, and what fits here.

    Raises
    ------
    ProgramError
        If something is asked for that a bundle has already, or has many of.
    """
    if built:
        raise ProgramError(f"bundle {shorten(what)} is built already, and of many: give no options")
    bundle = Bundle.open(what)
    rows = variants_here(bundle)
    document = dict.fromkeys(_KEYS) | {"kind": "bundle", "name": what}

    def show() -> None:
        print_line(f"bundle {what}: digest {bundle.digest}", "bold")
        print_variants(rows)

    return Report({**document, "digest": bundle.digest, "variants": rows}, show)


def _artifact(subject: Subject, backend: str, target: str, *, trust: bool | None) -> Artifact | None:
    """Return the artifact that is looked at, or that is compiled because it was asked for (`trust` is not None).

    Raises
    ------
    ProgramError
        If something is asked for that the subject has already, or cannot have.
    """
    if subject.program is None or subject.artifact is not None:
        if trust is not None or backend != "auto" or target:
            raise ProgramError(
                f"{subject.kind} {shorten(subject.name)} is built already: give no --compile, --backend, --target or "
                "--trust"
            )
        return subject.artifact
    if trust is None:
        return None
    return trunnion.compile(subject.program, backend, target=target or None, trust=trust).artifact


def _show(document: dict[str, Any]) -> None:
    print_line(f"{document['kind']} {document['name']}", "bold")
    for section in _SECTIONS:
        if document[section] is not None:
            print_mapping(section, _IN_WORDS.get(section, dict)(document[section]))
        if (
            section == "program"
        ):  # a plan is long: what the kernels take stands beside what the program passes
            for image in document["images"] or ():
                print_mapping("image", image)
    for section in ("host_source", "device_source"):
        for source in document[section] or ():
            text = "(binary)" if source["text"] is None else source["text"]
            print_source(f"{section}: {source['name']}", text, source["language"])
