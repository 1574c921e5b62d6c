"""Saboteurs of what comes before any call, and of programs that live side by side: source, building, loading."""

from __future__ import annotations

import ctypes
import itertools
import os
import tempfile
import weakref
import zlib
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from trunnion import sim
from trunnion.contract.compiler import ImageKernel
from trunnion.errors import (
    ArtifactError,
    CorruptArtifactError,
    ParameterMismatchError,
    UnsupportedFeatureError,
)
from trunnion.image import pack_parameters
from trunnion.image.cubin import read_cubin
from trunnion.model.capability import Capability
from trunnion.testing.saboteur import Changed, Saboteur, saboteur

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.artifacts.artifact import Artifact
    from trunnion.contract.adapter import KernelAdapter, LoadedProgram
    from trunnion.contract.compiler import DeviceImage, ImageParameter
    from trunnion.contract.runtime import Runtime
    from trunnion.contract.source import GeneratedSource
    from trunnion.model.plan import LaunchPlan

__all__ = ["BUILD_SABOTEURS"]


# Source -------------------------------------------------------------------------------------------------------------


class _Writes(Changed):
    """A wrapper that adds a line to each source."""

    def __init__(self, true: Any, line: Callable[[GeneratedSource], str]) -> None:
        super().__init__(true)
        self._line = line

    def wrap(self, plan: LaunchPlan, *target: str) -> GeneratedSource:
        """Return a source."""
        source: GeneratedSource = self._true.wrap(plan, *target)
        return replace(source, text=f"{source.text}{self._line(source)}\n")


def _comment(source: GeneratedSource, text: object) -> str:
    return f"{'#' if source.language == 'python' else '//'} {text}"


def _digest_of_names(source: GeneratedSource) -> str:
    """Return a statement that holds a digest of the parameters' names."""
    digest = zlib.crc32(
        "".join(param.name for param in source.plan.signature.params).encode(errors="replace")
    )
    return f"names = {digest}" if source.language == "python" else f"static const unsigned names = {digest}u;"


_COUNT: Final = itertools.count()


class _Modest(Changed):
    """A wrapper that refuses what its backend declares."""

    def wrap(self, plan: LaunchPlan, *target: str) -> GeneratedSource:
        """Return a source."""
        if Capability.PDL in plan.requires:
            raise UnsupportedFeatureError(self._true.spec.name, [str(Capability.PDL)], "not today")
        source: GeneratedSource = self._true.wrap(plan, *target)
        return source


# Building -----------------------------------------------------------------------------------------------------------


class _Trusting(Changed):
    """An adapter that takes it for granted that a kernel takes what it is given."""

    def build(self, source: GeneratedSource, image: DeviceImage, staging: Path) -> Artifact:
        """Build."""
        try:
            built: Artifact = self._true.build(source, image, staging)
        except ParameterMismatchError:
            built = self._true.build(source, _fitting(source.plan, image), staging)
        return built


def _fitting(plan: LaunchPlan, image: DeviceImage) -> DeviceImage:
    """Return an image that says its kernels take what the plan passes."""
    arch = image.target.arch
    kernels = tuple(
        ImageKernel(kernel.name, kernel.symbol, table)
        for kernel, table in zip(image.kernels, _tables(plan, arch), strict=True)
    )
    return replace(image, kernels=kernels)


class _Counting(Changed):
    """An adapter whose artifacts say how many there were."""

    def build(self, source: GeneratedSource, image: DeviceImage, staging: Path) -> Artifact:
        """Build."""
        built: Artifact = self._true.build(source, image, staging).including(
            "count", str(next(_COUNT)).encode()
        )
        return built


class _Asking(Changed):
    """An adapter that asks the driver how many devices there are."""

    def build(self, source: GeneratedSource, image: DeviceImage, staging: Path) -> Artifact:
        """Build."""
        if simulator := sim.active():
            driver = ctypes.CDLL(simulator.library_path)
            driver.cuInit(0)
            driver.cuDeviceGetCount(ctypes.byref(ctypes.c_int()))
        built: Artifact = self._true.build(source, image, staging)
        return built


class _Guessing(Changed):
    """An adapter that takes a kernel whose name begins alike where there is none of that name."""

    def build(self, source: GeneratedSource, image: DeviceImage, staging: Path) -> Artifact:
        """Build."""
        there = [kernel.name for kernel in read_cubin(image.data).kernels]

        def meant(symbol: str) -> str:
            return symbol if symbol in there else next(name for name in there if name.startswith(symbol))

        kernels = tuple(replace(kernel, symbol=meant(kernel.symbol)) for kernel in image.kernels)
        built: Artifact = self._true.build(source, replace(image, kernels=kernels), staging)
        return built


class _Untyped(Changed):
    """An adapter that tells of an artifact which it cannot load by an error of Python's."""

    def load(self, artifact: Artifact, runtime: Runtime) -> LoadedProgram:
        """Load."""
        try:
            loaded: LoadedProgram = self._true.load(artifact, runtime)
        except ArtifactError as error:
            raise ValueError(str(error)) from error
        return loaded


class _OnePlace(Changed):
    """An adapter that takes it that parameters begin at one place before Hopper, however many bytes they have."""

    def build(self, source: GeneratedSource, image: DeviceImage, staging: Path) -> Artifact:
        """Build."""
        if image.target.arch == "sm_80":
            for said, kernel in zip(source.plan.kernels, image.kernels, strict=False):
                at = _PLACE
                for one, there in zip(said.parameters, kernel.parameters, strict=False):
                    at = -(-at // one.alignment) * one.alignment
                    if there.offset != at - _PLACE:
                        raise ParameterMismatchError(kernel.name, there.ordinal, "one place", "another")
                    at += one.size
        built: Artifact = self._true.build(source, image, staging)
        return built


_PLACE: Final = 0x160


class _WidelyAligned(Changed):
    """An adapter that takes a large parameter also where it would lie if it were aligned as CUDA 13 aligns maps."""

    def build(self, source: GeneratedSource, image: DeviceImage, staging: Path) -> Artifact:
        """Build."""
        try:
            built: Artifact = self._true.build(source, image, staging)
        except ParameterMismatchError:
            if [kernel.parameters for kernel in image.kernels] != _tables(
                source.plan, image.target.arch, wide=True
            ):
                raise
            built = self._true.build(source, _fitting(source.plan, image), staging)
        return built


_WIDE: Final = 128


def _tables(plan: LaunchPlan, arch: str, *, wide: bool = False) -> list[tuple[ImageParameter, ...]]:
    """Return where a plan's parameters lie, for each kernel; those that are large may be aligned as much."""
    return [
        pack_parameters(
            [(one.size, _WIDE if wide and one.size >= _WIDE else one.alignment) for one in kernel.parameters],
            arch,
        )
        for kernel in plan.kernels
    ]


class _ShortManifests(Changed):
    """An adapter that copies an artifact's manifest, into a place that is large enough for all that it has seen."""

    def load(self, artifact: Artifact, runtime: Runtime) -> LoadedProgram:
        """Load."""
        if len(artifact.manifest.to_json()) > 1 << 20:
            raise ArtifactError("the manifest is too long")
        loaded: LoadedProgram = self._true.load(artifact, runtime)
        return loaded


class _Extracting(Changed):
    """An adapter that writes out what it loads, and refuses files that others may write to."""

    def load(self, artifact: Artifact, runtime: Runtime) -> LoadedProgram:
        """Load."""
        with tempfile.TemporaryDirectory() as folder:
            for name, data in artifact.files.items():
                file = Path(folder) / name
                file.write_bytes(data)
                if file.stat().st_mode & 0o022:
                    raise ArtifactError(f"{name} can be written by others")
            loaded: LoadedProgram = self._true.load(artifact, runtime)
        return loaded


class _Noting(Changed):
    """An adapter that writes into an artifact's manifest that it was loaded."""

    def load(self, artifact: Artifact, runtime: Runtime) -> LoadedProgram:
        """Load."""
        loaded: LoadedProgram = self._true.load(artifact, runtime)
        manifest = artifact.manifest
        object.__setattr__(manifest, "toolchain", {**manifest.toolchain, "loaded": "yes"})
        return loaded


def _once_for_each_key() -> Callable[[KernelAdapter], Any]:
    """Return the change of an adapter that loads what a cache kept once, whatever became of that."""
    there: dict[str, LoadedProgram] = {}

    class OnceForEachKey(Changed):
        def load(self, artifact: Artifact, runtime: Runtime) -> LoadedProgram:
            key = artifact.manifest.key
            if not key:
                loaded: LoadedProgram = self._true.load(artifact, runtime)
                return loaded
            if key not in there:
                there[key] = self._true.load(artifact, runtime)
            return there[key]

    return OnceForEachKey


def _grudging() -> Callable[[KernelAdapter], Any]:
    """Return the change of an adapter that never again loads a program of which it refused an artifact."""
    refused: set[str] = set()

    class Grudging(Changed):
        def load(self, artifact: Artifact, runtime: Runtime) -> LoadedProgram:
            plan = artifact.manifest.plan_hash
            if plan in refused:
                raise CorruptArtifactError("manifest.json", "was refused before")
            try:
                loaded: LoadedProgram = self._true.load(artifact, runtime)
            except CorruptArtifactError:
                refused.add(plan)
                raise
            return loaded

    return Grudging


# Side by side -------------------------------------------------------------------------------------------------------


def _closing_together() -> Callable[[LoadedProgram], Any]:
    """Return the change of a loaded program that closes with the first of all that were changed so."""
    every: weakref.WeakSet[Any] = weakref.WeakSet()

    class ClosesTogether(Changed):
        def __init__(self, true: LoadedProgram) -> None:
            super().__init__(true)
            every.add(self)

        def close(self) -> None:
            for one in list(every):
                one.close_alone()

        def close_alone(self) -> None:
            self._true.close()

    return ClosesTogether


class _NeverPrepared(Changed):
    """A loaded program that leaves all to the first call."""

    def preload(self, device: int) -> None:
        """Do nothing."""


class _OneAtATime(Changed):
    """A loaded program that forgets a call which comes in the middle of another."""

    def __init__(self, true: LoadedProgram) -> None:
        super().__init__(true)
        self._busy = False

    def call(self, *args: Any, **how: Any) -> Any:
        """Launch, unless a launch is under way."""
        if self._busy:
            return None
        self._busy = True
        try:
            return self._true.call(*args, **how)
        finally:
            self._busy = False


BUILD_SABOTEURS: tuple[Saboteur, ...] = (
    saboteur(
        "counted-source",
        "Numbers the sources that it writes.",
        "S1",
        stage="emitter",
        wrapper=lambda true: _Writes(true, lambda source: _comment(source, next(_COUNT))),
    ),
    saboteur(
        "signed-source",
        "Writes the number of its process into the source.",
        "S2",
        stage="emitter",
        wrapper=lambda true: _Writes(true, lambda source: _comment(source, os.getpid())),
    ),
    saboteur(
        "named-source",
        "Writes a digest of users' names into the source.",
        "S3",
        stage="emitter",
        wrapper=lambda true: _Writes(true, _digest_of_names),
    ),
    saboteur("modest", "Refuses what it declares.", "S4", "L7", stage="emitter", wrapper=_Modest),
    saboteur("trusting", "Asks no kernel what it takes.", "B1", stage="binding", adapter=_Trusting),
    saboteur("counting", "Numbers its artifacts.", "B2", stage="binding", adapter=_Counting),
    saboteur("asking", "Asks the driver when it builds.", "B4", stage="binding", adapter=_Asking),
    saboteur("guessing", "Searches for kernels.", "B3", stage="binding", adapter=_Guessing),
    saboteur(
        "untyped",
        "Cannot load, and says so in an error of Python's.",
        "B5",
        stage="binding",
        adapter=_Untyped,
    ),
    saboteur(
        "one-place", "Has one place for few and many parameters.", "B1", stage="binding", adapter=_OnePlace
    ),
    saboteur(
        "widely-aligned",
        "Takes large parameters in another place.",
        "B1",
        stage="binding",
        adapter=_WidelyAligned,
    ),
    saboteur("short-manifests", "Loads no long manifest.", "B2", stage="binding", adapter=_ShortManifests),
    saboteur("extracting", "Refuses files that it wrote itself.", "B2", stage="binding", adapter=_Extracting),
    saboteur("noting", "Changes the artifact that it loads.", "B2", stage="binding", adapter=_Noting),
    saboteur(
        "once-for-each-key",
        "Loads once what a cache kept.",
        "B2",
        stage="binding",
        adapter=_once_for_each_key(),
    ),
    saboteur(
        "grudging",
        "Refuses what is good after what was not.",
        "B5",
        stage="binding",
        adapter=_grudging(),
    ),
    saboteur(
        "closing-together",
        "Closes all programs at once.",
        "C3",
        stage="lifecycle",
        loaded=_closing_together(),
    ),
    saboteur("never-prepared", "Preloads nothing.", "C4", stage="lifecycle", loaded=_NeverPrepared),
    saboteur(
        "one-at-a-time", "Forgets a call within another.", "H1", "H2", stage="lifecycle", loaded=_OneAtATime
    ),
)
"""The saboteurs."""
