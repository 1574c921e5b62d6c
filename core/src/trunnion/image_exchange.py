"""Another device image in an artifact, for the same launcher: `exchange_image`."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trunnion.arguments import expect
from trunnion.artifacts.artifact import IMAGE_PREFIX, Artifact
from trunnion.artifacts.manifest import FileRecord
from trunnion.artifacts.program_file import check_plan, program_of
from trunnion.built_program import LOG_FILE, target_of
from trunnion.contract.compiler import CompileRequest
from trunnion.errors import ArgumentValueError, UnknownKernelError, shorten
from trunnion.image.match import match_launches, match_parameters, match_variables
from trunnion.image.prebuilt import PrebuiltCompiler, PrebuiltImage

if TYPE_CHECKING:
    from trunnion.contract.compiler import DeviceImage

__all__ = ["exchange_image"]


def exchange_image(artifact: Artifact, image: PrebuiltImage) -> Artifact:
    """Return an artifact with the same launcher and another device image; nothing is compiled, and nothing run.

    Kernels are found by the exact names that they had, or by those that the image has for the program's names. The
    program stays as it is, its source too, which says no more what the image was made from. What no longer holds goes:
    the compiler's log, and the key, under which a store would keep it. The digest is another, and a signature for the
    first one is none for this.

    Parameters
    ----------
    artifact
        What was built, by a backend that keeps the image as a file of its own.
    image
        The other image, a cubin. Its names are kernels of the program.

    Raises
    ------
    ParameterMismatchError
        If a kernel of the image takes other parameters: the first one that differs is named.
    ProgramError
        If the image lacks a kernel, does not run on the artifact's target, or was compiled for other blocks than the
        program launches.
    UnknownKernelError
        If the image names a kernel that the program does not have.
    ArgumentValueError
        If the artifact has no image of its own for a GPU, or its launcher holds the image too.
    ArgumentTypeError
        If the one is no artifact, or the other no image.
    CorruptArtifactError
        If the artifact's program is not the one that its launcher was built from.
    """
    expect(artifact, Artifact, "artifact", "an Artifact")
    expect(image, PrebuiltImage, "image", "a PrebuiltImage")
    _check_apart(artifact)
    made = _fitting(artifact, image)
    gone = {*(IMAGE_PREFIX + kind for kind in artifact.images), LOG_FILE}
    files = {name: data for name, data in artifact.files.items() if name not in gone}
    files[IMAGE_PREFIX + made.kind] = made.data
    manifest = replace(
        artifact.manifest,
        kernels=made.kernels,
        variables=made.variables,
        files={name: FileRecord.of(data) for name, data in files.items()},
        toolchain={**artifact.manifest.toolchain, **made.toolchain},
        key_inputs={},
        key="",
    )
    return Artifact(manifest, files)


def _check_apart(artifact: Artifact) -> None:
    """Refuse an artifact whose launcher would go on with the image that it has."""
    if not artifact.images.keys() & {"cubin", "ptx"}:
        kept = ", ".join(artifact.images) or "none"
        raise ArgumentValueError("artifact", f"no image of a GPU (kept: {kept})", "one with a cubin or PTX")
    for name, data in artifact.files.items():
        if not name.startswith(IMAGE_PREFIX) and any(one in data for one in artifact.images.values()):
            raise ArgumentValueError(
                "artifact",
                f"one whose image is no file alone: {shorten(name)} holds it too",
                "one whose image is a file alone, as another backend may build it; or build it again from the program",
            )


def _fitting(artifact: Artifact, image: PrebuiltImage) -> DeviceImage:
    """Return the image with the program's names for its kernels, if the program's launches fit it."""
    plan, kept, target = program_of(artifact).plan(), artifact.manifest.kernels, target_of(artifact)
    check_plan(artifact.manifest, plan)
    _check_names(image, [kernel.name for kernel in plan.kernels])
    wanted = tuple(
        replace(kernel, name=image.names.get(kernel.name, before.symbol))
        for kernel, before in zip(plan.kernels, kept, strict=True)
    )
    variables = tuple(
        replace(slot, name=before.symbol, part=0)
        for slot, before in zip(plan.variables, artifact.manifest.variables, strict=True)
    )
    request = CompileRequest(code=(image.code,), kernels=wanted, variables=variables, target=target)
    found = PrebuiltCompiler().compile(request)
    pairs = zip(found.kernels, plan.kernels, strict=True)
    others = zip(found.variables, plan.variables, strict=True)
    made = replace(
        found,
        kernels=tuple(replace(one, name=kernel.name) for one, kernel in pairs),
        variables=tuple(replace(one, name=slot.name) for one, slot in others),
    )
    match_parameters(plan.kernels, made)
    match_variables(plan.variables, made)
    match_launches(plan, made)
    return made


def _check_names(image: PrebuiltImage, kernels: list[str]) -> None:
    """Refuse a name that would find nothing: the kernel that was meant would be looked for by its old name."""
    for name in image.names:
        if name not in kernels:
            raise UnknownKernelError(name, kernels)
