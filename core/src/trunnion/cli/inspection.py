"""What can be said of a program, an artifact or an image without running anything of it, as documents."""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING, Any

import trunnion
from trunnion.artifacts.program_file import PROGRAM_FILE, check_plan
from trunnion.cli.document import bytes_told, plain, told
from trunnion.contract.source import SourceWrapper
from trunnion.contract.spec import Target
from trunnion.image.cubin import read_cubin
from trunnion.image.host_object import read_host_object
from trunnion.image.mangled import parameter_kinds
from trunnion.image.ptx import read_ptx
from trunnion.selection import choose_backend, launch_kind, make_part, named_target

if TYPE_CHECKING:
    from collections.abc import Iterable

    from trunnion.artifacts.artifact import Artifact
    from trunnion.artifacts.manifest import Manifest
    from trunnion.image import CubinInfo, PtxInfo
    from trunnion.model.code import DeviceCode
    from trunnion.model.plan import LaunchPlan
    from trunnion.model.program import KernelProgram

__all__ = [
    "artifact_document",
    "device_sources",
    "image_document",
    "image_documents",
    "launcher_of",
    "launchers_in",
    "program_document",
    "tell_what_is_passed",
]

_LANGUAGES = {".py": "python", ".cpp": "c++", ".cc": "c++", ".cu": "cuda", ".hpp": "c++", ".h": "c++"}


def program_document(program: KernelProgram) -> dict[str, Any]:
    """Return a program as its JSON says it, with sizes and hashes instead of sources."""
    document: dict[str, Any] = json.loads(program.to_json())
    for said, part in zip(document["code"], program.code, strict=True):
        for name in ("source", "base64"):
            said.pop(name, None)
        data = _bytes(part)
        said["nbytes"], said["sha256"] = len(data), hashlib.sha256(data).hexdigest()
        said["includes"] = [f"{name} ({len(text.encode())} bytes)" for name, text in part.includes]
    for said, variable in zip(document.get("variables", ()), program.variables, strict=True):
        said["init"] = bytes_told(variable.init)
    return document


def device_sources(program: KernelProgram) -> list[dict[str, Any]]:
    """Return the text of each part of the device code and of its headers; of a binary part, nothing but its name."""
    sources = []
    for part in program.code:
        text = part.source if isinstance(part.source, str) else None
        sources.append({"name": part.name, "language": part.language, "text": text})
        for name, header in part.includes:
            sources.append({"name": name, "language": part.language, "text": header})
    return sources


def launcher_of(program: KernelProgram, backend: str, target: str) -> dict[str, Any]:
    """Return the launcher that a backend writes for a program; it is text, and is not run.

    Parameters
    ----------
    program
        The program.
    backend
        The backend's name, or ``"auto"``.
    target
        What for; empty: what the device code names, else a kind of device that its compiler makes code for.

    Raises
    ------
    RegistryError
        If there is no such backend.
    UnsupportedFeatureError
        If it does not declare what the program needs.
    """
    plan = program.plan()
    registry = trunnion.default_registry()
    named = Target.parse(target) if target else named_target(program)
    spec = choose_backend(program, backend, plan, registry, None if named is None else named.kind)
    kind = launch_kind(program, spec, named, registry.compilers)
    source = make_part(spec, spec.load_wrapper, SourceWrapper, spec).wrap(plan, kind)
    return {"name": source.filename, "language": source.language, "text": source.text}


def launchers_in(artifact: Artifact) -> list[dict[str, Any]]:
    """Return the source files of an artifact's host side, as they lie in it; they are not run."""
    found = []
    for name, data in artifact.files.items():
        language = next((word for suffix, word in _LANGUAGES.items() if name.endswith(suffix)), "")
        if language and name != PROGRAM_FILE:
            found.append(
                {"name": name, "language": language, "text": data.decode("utf-8", "backslashreplace")}
            )
    return found


def artifact_document(artifact: Artifact) -> dict[str, Any]:
    """Return an artifact's manifest and its digest; of long inputs of its key, what is shorter."""
    manifest = json.loads(artifact.manifest.to_json())
    inputs = {name: told(value) for name, value in artifact.manifest.key_inputs.items()}
    return {"digest": artifact.digest, **manifest, "key_inputs": inputs}


def image_documents(artifact: Artifact) -> list[dict[str, Any]]:
    """Return what each device image of an artifact says of itself."""
    return [image_document(data, kind) for kind, data in artifact.images.items()]


def image_document(data: bytes, kind: str) -> dict[str, Any]:
    """Return what a device image says of itself: kernels, parameters, resources.

    Parameters
    ----------
    data
        The image.
    kind
        What it is: ``"cubin"``, ``"ptx"`` or ``"host-object"``; any other kind gives no more than size and hash.

    Raises
    ------
    CorruptArtifactError
        If it is damaged, or not of that kind.
    """
    document = {"kind": kind, "nbytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}
    if kind == "ptx":
        return {**document, **_described(read_ptx(data))}
    if kind == "host-object":
        host = read_host_object(data)
        return {**document, "definitions": list(host.definitions), "references": list(host.references)}
    if kind != "cubin":
        return document
    return {**document, **_described(read_cubin(data))}


def _described(info: PtxInfo | CubinInfo) -> dict[str, Any]:
    said: dict[str, Any] = _untyped(plain(info))
    for row, variable in zip(said["variables"], info.variables, strict=True):
        row["init"] = bytes_told(variable.init)
    return said


def tell_what_is_passed(images: Iterable[dict[str, Any]], manifest: Manifest, plan: LaunchPlan) -> None:
    """Put beside each parameter of a program's kernels what the program passes there, as ``passed``.

    Of a struct that the launcher builds its fields too, as ``passed_fields``. Where the mangled name tells of which
    kind a parameter is, that too, as ``kind``. An image that was exchanged may take more than the program passes.

    Parameters
    ----------
    images
        What `image_documents` returned.
    manifest
        Of the artifact that they are of.
    plan
        That of the artifact's program.

    Raises
    ------
    CorruptArtifactError
        If it is not the one that the launcher was built from.
    """
    check_plan(manifest, plan)
    pairs = zip(manifest.kernels, plan.kernels, strict=True)
    passed = {kept.symbol: kernel.parameters for kept, kernel in pairs}
    for image in images:
        for kernel in image.get("kernels", ()):
            kinds = parameter_kinds(kernel["name"])
            for parameter in kernel.get("parameters", ()) if kernel["name"] in passed else ():
                place = slice(parameter["ordinal"], parameter["ordinal"] + 1)
                for kind in kinds[place]:
                    parameter["kind"] = kind.text
                for wanted in passed[kernel["name"]][place]:
                    parameter["passed"] = wanted.description
                    if wanted.fields:
                        parameter["passed_fields"] = _untyped(plain(wanted.fields))


def _bytes(part: DeviceCode) -> bytes:
    return part.source if isinstance(part.source, bytes) else part.source.encode()


def _untyped(value: Any) -> Any:
    """Return a document without the names of classes: those of an image say nothing that its keys do not."""
    if isinstance(value, dict):
        return {name: _untyped(one) for name, one in value.items() if name != "type"}
    return [_untyped(one) for one in value] if isinstance(value, list) else value
