"""A bundle that was opened: its programs by name, each in the variant that fits this machine."""

from __future__ import annotations

import hashlib
import os
import stat
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from trunnion.arguments import expect, expect_text, file_path
from trunnion.artifacts.artifact import check_digest, check_owner, trusted_owner
from trunnion.bundles.conditions import Machine
from trunnion.bundles.index import MAX_INDEX_BYTES, Index
from trunnion.bundles.parts import read_part
from trunnion.compiled import CompiledProgram
from trunnion.errors import (
    ArtifactError,
    CorruptArtifactError,
    DeviceRequirementError,
    LifecycleError,
    UnknownProgramError,
    shorten,
)
from trunnion.registry import Registry, default_registry
from trunnion.storage.descriptors import opened
from trunnion.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Iterator
    from os import PathLike
    from pathlib import Path
    from types import TracebackType
    from typing import Self

    from trunnion.artifacts.artifact import Artifact
    from trunnion.bundles.index import Variant
    from trunnion.contract.runtime import Runtime

__all__ = ["Bundle", "Fit", "index_digest"]

_READ_FLAGS = os.O_RDONLY | os.O_NONBLOCK  # a pipe there must not hang the reader


@dataclass(frozen=True, slots=True)
class Fit:
    """A variant, and whether it can be used here."""

    variant: Variant
    """The variant."""

    lacks: tuple[str, ...]
    """What this machine lacks of its conditions, in words; nothing: it can be used."""


class Bundle(Mapping[str, CompiledProgram]):
    """The programs of a bundle, by name; made by `open`, or by `trunnion.load` of a bundle's index.

    A program is read, and every byte of it verified, when it is first asked for; no compiler is asked.

    Parameters
    ----------
    folder
        Where the parts lie.
    index
        What there is.
    digest
        The SHA-256 of the index's bytes, in hex.
    owner
        If given, the user who must own each part, while nobody else may write to it; None: a digest vouches for all.
    registry
        The plugins to choose from.
    runtime
        The tensor library; None: `trunnion.torch_runtime.default_runtime`.
    """

    def __init__(
        self,
        folder: Path,
        index: Index,
        *,
        digest: str,
        owner: int | None,
        registry: Registry,
        runtime: Runtime | None = None,
    ) -> None:
        self.index, self.digest = index, digest
        self._folder, self._owner, self._registry, self._runtime = folder, owner, registry, runtime
        self._machines: dict[int, Machine] = {}
        self._programs: dict[tuple[str, int], CompiledProgram] = {}
        self._reading = Turns("a program of the bundle is being read")
        self._closed = False

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        digest: str | None = None,
        registry: Registry | None = None,
        runtime: Runtime | None = None,
    ) -> Self:
        """Open a bundle; nothing of it is run before a program of it is called.

        Parameters
        ----------
        path
            Its index, as `trunnion.write_bundle` wrote it; the parts lie beside it.
        digest
            The SHA-256 of the index's bytes, in hex, as `digest` gives it: an index of another one is refused. Without
            it the index, its folder and the parts must be root's or this user's, and nobody else may write to them.
        registry
            The plugins to choose from; None: those that are installed.
        runtime
            The tensor library; None: `trunnion.torch_runtime.default_runtime`.

        Raises
        ------
        ArtifactError
            If there is no such file, or it cannot be read.
        CorruptArtifactError
            If it is no whole index, or is of another schema.
        UntrustedArtifactError
            If its digest is another, or somebody else could have written it.
        """
        file = file_path(path).absolute()
        plugins = (
            default_registry() if registry is None else expect(registry, Registry, "registry", "a Registry")
        )
        data, owner = _index_bytes(file, trusting=digest is not None)
        found = hashlib.sha256(data).hexdigest()
        if digest is not None:
            check_digest(found, digest, shorten(str(file)))
        index = Index.from_json(data, file.name)
        return cls(file.parent, index, digest=found, owner=owner, registry=plugins, runtime=runtime)

    # Programs --------------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> CompiledProgram:
        """Return a program, in the first of its variants that device 0 and this machine can use; see `on`."""
        return self.on(0, name)

    def __iter__(self) -> Iterator[str]:
        return iter(self.index.programs)

    def __len__(self) -> int:
        return len(self.index.programs)

    def __contains__(self, name: object) -> bool:
        return name in self.index.programs

    def on(self, device: int, name: str) -> CompiledProgram:
        """Return a program in the first of its variants that a device and this machine can use.

        It is the same object each time, and closed with the bundle.

        Parameters
        ----------
        device
            The device's ordinal.
        name
            The program's name in the bundle.

        Raises
        ------
        UnknownProgramError
            If there is no program of that name.
        DeviceRequirementError
            If no variant of it can be used here: what each of them lacks is said.
        ArtifactError
            If the part that it lies in is not here, or cannot be read.
        CorruptArtifactError
            If it is not whole.
        UntrustedArtifactError
            If somebody else could have written the part.
        LifecycleError
            If the bundle was closed.
        """
        found = self._programs.get((name, device))
        if found is not None and not self._closed:
            return found
        with self._reading.turn():
            if self._closed:
                raise LifecycleError("the bundle was closed; open it again")
            found = self._programs.get((name, device))
            if found is None:
                artifact = self.artifact(self._chosen(name, device))
                found = CompiledProgram.from_artifact(
                    artifact, registry=self._registry, runtime=self._runtime
                )
                self._programs[name, device] = found
            return found

    def fits(self, name: str, device: int = 0) -> tuple[Fit, ...]:
        """Return each variant of a program, those that are to be preferred first, with what is lacking here.

        Parameters
        ----------
        name
            The program's name in the bundle.
        device
            The device's ordinal.

        Raises
        ------
        UnknownProgramError
            If there is no program of that name.
        """
        variants = self.index.programs.get(expect_text(name, "program", "the name of a program"))
        if variants is None:
            raise UnknownProgramError(name, self.index.programs)
        machine = self._machines.setdefault(device, Machine(device, self._registry))
        lacks = ((one, (condition.lack(machine) for condition in one.conditions)) for one in variants)
        return tuple(Fit(one, tuple(filter(None, told))) for one, told in lacks)

    def artifact(self, variant: Variant) -> Artifact:
        """Read a variant, and verify every byte of it.

        Raises
        ------
        ArtifactError, CorruptArtifactError, UntrustedArtifactError
            As `on` does.
        """
        file = self._folder / self.index.parts[variant.part]
        try:
            return read_part(file, variant.digest, self._owner)
        except FileNotFoundError as error:
            raise ArtifactError(
                f"{shorten(str(file))} is not here, which holds what is for {shorten(variant.part)}: "
                "put it beside the index"
            ) from error
        except OSError as error:
            raise ArtifactError(f"cannot read {shorten(str(file))}: {error.strerror}") from error

    def _chosen(self, name: str, device: int) -> Variant:
        fits = self.fits(name, device)
        for fit in fits:
            if not fit.lacks:
                return fit.variant
        told = "; ".join(
            f"{fit.variant.target} by {fit.variant.backend}: {', '.join(fit.lacks)}" for fit in fits
        )
        raise DeviceRequirementError(
            f"a variant of {shorten(name)} for this machine",
            told or "none at all",
            "build it for this one too",
        )

    def __repr__(self) -> str:
        return f"<Bundle of {len(self)} programs at {shorten(str(self._folder))}>"

    # Life ------------------------------------------------------------------------------------------------------

    def close(self) -> None:
        """Close each program that was asked for, as `CompiledProgram.close` does; again does nothing."""
        self._closed = True
        with ExitStack() as closing:
            for program in self._programs.values():
                closing.callback(program.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


def index_digest(path: str | PathLike[str]) -> str:
    """Return the digest of a bundle's index, as it lies there: what `Bundle.open` can be told to expect.

    Raises
    ------
    ArtifactError
        If there is no such file, or it cannot be read.
    CorruptArtifactError
        If it is not a plain file, or too large.
    """
    data, _ = _index_bytes(file_path(path).absolute(), trusting=True)
    return hashlib.sha256(data).hexdigest()


def _index_bytes(file: Path, *, trusting: bool) -> tuple[bytes, int | None]:
    """Return an index's bytes, and who must own its parts; None if a digest vouches for them.

    Raises
    ------
    ArtifactError
        If it cannot be read.
    CorruptArtifactError
        If it is not a plain file, or too large.
    UntrustedArtifactError
        If somebody else than root or this user could have written it, and no digest vouches for it.
    """
    try:
        return _read_index(file, trusting=trusting)
    except OSError as error:
        raise ArtifactError(f"cannot open {shorten(str(file))}: {error.strerror}") from error


def _read_index(file: Path, *, trusting: bool) -> tuple[bytes, int | None]:
    with opened(file, _READ_FLAGS) as descriptor:
        status: Any = os.fstat(descriptor)
        if not stat.S_ISREG(status.st_mode):
            raise CorruptArtifactError(shorten(file.name), "is not a plain file")
        if status.st_size > MAX_INDEX_BYTES:
            raise CorruptArtifactError(
                shorten(file.name), f"has {status.st_size} bytes, expected at most {MAX_INDEX_BYTES}"
            )
        owner = None if trusting else trusted_owner(status)
        if owner is not None:
            check_owner(status, owner, str(file))
            folder = file.parent.stat()
            check_owner(folder, trusted_owner(folder), str(file.parent))
        with os.fdopen(descriptor, "rb", closefd=False) as data:
            return data.read(MAX_INDEX_BYTES + 1), owner
