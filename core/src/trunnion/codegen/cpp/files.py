"""What an artifact holds of a C++ launcher, written by the one function and read by the other."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.codegen.cpp.build import LAUNCHER
from trunnion.codegen.cpp.call_signature import SIGNATURE_FILE, CallSignature
from trunnion.errors import CorruptArtifactError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from trunnion.contract.compiler import DeviceImage
    from trunnion.contract.source import GeneratedSource

__all__ = ["kept_launcher", "launcher_files"]


def launcher_files(source: GeneratedSource, image: DeviceImage, library: bytes) -> dict[str, bytes]:
    """Return the files of an artifact, by name: text, image, library, and what Python must know of its calls.

    Parameters
    ----------
    source
        The launcher's text, with its plan.
    image
        The device image.
    library
        What `build_launcher` made of both.
    """
    return {
        source.filename: source.text.encode(),
        f"image.{image.kind}": image.data,
        LAUNCHER: library,
        SIGNATURE_FILE: CallSignature.of(source.plan).to_json().encode(),
    }


def kept_launcher(files: Mapping[str, bytes]) -> tuple[bytes, CallSignature]:
    """Return the library and the facts of its calls.

    Parameters
    ----------
    files
        The files of an artifact, by name.

    Raises
    ------
    CorruptArtifactError
        If one of them is missing, or the facts are none.
    """
    missing = sorted({LAUNCHER, SIGNATURE_FILE} - set(files))
    if missing:
        raise CorruptArtifactError("artifact", f"must hold {' and '.join(missing)}")
    return files[LAUNCHER], CallSignature.from_json(files[SIGNATURE_FILE])
