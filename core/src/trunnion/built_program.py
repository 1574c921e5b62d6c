"""`BuiltProgram`: a program and what was built of it, each read, checked or built when it is first needed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from trunnion.artifacts.manifest import built_by
from trunnion.artifacts.program_file import PROGRAM_FILE, check_plan, program_of
from trunnion.callers import warn
from trunnion.contract.source import SourceWrapper
from trunnion.contract.spec import CONTRACT_VERSION, Target
from trunnion.errors import ArtifactError, CorruptArtifactError, ProgramError
from trunnion.selection import make_part
from trunnion.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable

    from trunnion.artifacts.artifact import Artifact
    from trunnion.artifacts.manifest import Manifest
    from trunnion.contract.source import GeneratedSource
    from trunnion.contract.spec import BackendSpec
    from trunnion.model.program import KernelProgram

__all__ = [
    "BUNDLE_SUFFIX",
    "LOG_FILE",
    "BuiltProgram",
    "KnownProgram",
    "PendingArtifact",
    "target_of",
]


BUNDLE_SUFFIX = ".trn"
"""What the names of a bundle's files end in."""

LOG_FILE = "compile.log"
"""The file of an artifact that holds what the device compiler said; there is none if it said nothing."""


@dataclass(frozen=True, slots=True)
class KnownProgram:
    """What whoever built, or found, an artifact has made of its program already."""

    program: KernelProgram
    """The program."""

    text: str
    """The program as JSON: if the artifact's file says something else, the file counts."""

    write: Callable[[], GeneratedSource]
    """Returns the launcher, each time the same."""


@dataclass(frozen=True, slots=True)
class PendingArtifact:
    """What is still to be built, for a program that is already known."""

    kind: str
    """The kind of device that it is for."""

    build: Callable[[], Artifact]
    """Build it, or find it in a store."""

    known: KnownProgram
    """The program."""


class BuiltProgram:
    """An artifact, the program that it was built from, and its launcher's text.

    Parameters
    ----------
    artifact
        What was built, or is to be built when it is first needed.
    spec
        The backend that builds it.
    known
        What is known of its program already; None: it is read from the artifact.
    again
        Builds it once more in the place of one that was kept and cannot be loaded; None: nothing is kept.
    tell
        Says that it did, as `warn` does.

    Raises
    ------
    ArtifactError
        If another version built it.
    CorruptArtifactError
        If the launcher's text is what runs, and is not what the artifact's program makes of it.
    """

    def __init__(
        self,
        artifact: Artifact | PendingArtifact,
        spec: BackendSpec,
        known: KnownProgram | None = None,
        again: Callable[[Artifact], Artifact] | None = None,
        tell: Callable[[str, type[Warning]], None] = warn,
    ) -> None:
        self.spec = spec
        self._building = Turns("the program is being built")
        self._held = artifact
        self._again = again
        self.tell = tell
        if isinstance(artifact, PendingArtifact):
            known, self.kind = artifact.known, artifact.kind
        else:
            self.kind = target_of(artifact).kind
            known = known if known and artifact.files.get(PROGRAM_FILE) == known.text.encode() else None
        self._known = known
        self._program = None if known is None else known.program
        self._source: GeneratedSource | None = None
        if not isinstance(artifact, PendingArtifact):
            self._check(artifact)

    @property
    def is_built(self) -> bool:
        """Whether there is an artifact yet."""
        return not isinstance(self._held, PendingArtifact)

    @property
    def artifact(self) -> Artifact:
        """What was built; if nothing was built yet, it is built now, once for all threads that ask."""
        held = self._held
        if not isinstance(held, PendingArtifact):
            return held
        with self._building.turn():
            return self._made()

    def _made(self) -> Artifact:
        """Return what was built, after building it if that is still to be done; in one's turn."""
        held = self._held
        if isinstance(held, PendingArtifact):
            held = held.build()
            self._check(held)
            self._held = held
        return held

    def rebuilt(self, broken: Artifact) -> Artifact | None:
        """Return what is built in the place of an artifact that cannot be loaded; None if it was not kept."""
        if self._again is None or not broken.manifest.key:
            return None
        with self._building.turn():
            if self._held is broken:
                made = self._again(broken)
                self._check(made)
                self._held = made
            return self._made()

    @property
    def target(self) -> Target:
        """What it was built for."""
        return target_of(self.artifact)

    @property
    def program(self) -> KernelProgram:
        """The program that it was built from, or is to be."""
        if self._program is None:
            self._program = program_of(self.artifact)
        return self._program

    @property
    def source(self) -> GeneratedSource:
        """The launcher's text, with its plan: what this version writes; if something was built, it was of this."""
        if self._source is None:
            held = self._held
            self._source = self._written(None if isinstance(held, PendingArtifact) else held)
        return self._source

    def confirm(self) -> None:
        """Refuse a launcher that this version would write otherwise, before it runs, or is handed to anybody.

        What was found by its program and its emitter's version was not written anew for that. What was compiled from a
        text and came without its program is known by its bytes alone.

        Raises
        ------
        CorruptArtifactError
            If the artifact was built from another text.
        """
        if self._known is not None:
            _ = self.source

    def _check(self, artifact: Artifact) -> None:
        """Refuse an artifact that another version built, or whose parts do not belong together.

        A text that was compiled runs no more, and what runs is what the manifest's hashes are of; whether it was made
        from the program that lies beside it is asked when somebody wants that program.
        """
        wrapper = make_part(self.spec, self.spec.load_wrapper, SourceWrapper, self.spec)
        _check_version(artifact.manifest, wrapper.version)
        if self._source is not None:
            _check_source(artifact, self._source)
        elif self._known is None and wrapper.text_runs:
            self._source = self._written(artifact)

    def _written(self, artifact: Artifact | None) -> GeneratedSource:
        """Return what this version writes for the program; it is what the artifact holds, if there is one."""
        if self._known is None:
            wrapper = make_part(self.spec, self.spec.load_wrapper, SourceWrapper, self.spec)
            source = wrapper.wrap(self.program.plan(), self.kind)
        else:
            source = self._known.write()
        if artifact is not None:
            _check_source(artifact, source)
        return source


def _check_version(manifest: Manifest, emitter: str) -> None:
    """Refuse an artifact that another version built."""
    built = built_by(manifest.emitter, manifest.contract_version)
    here = built_by(emitter, CONTRACT_VERSION)
    if built != here:
        raise ArtifactError(f"it was built by {built}; this is {here}: build it again from the program")


def _check_source(artifact: Artifact, source: GeneratedSource) -> None:
    """Refuse an artifact that was not built from this text."""
    check_plan(artifact.manifest, source.plan)
    if artifact.files.get(source.filename) != source.text.encode():
        raise CorruptArtifactError(source.filename, "is not what this version writes for the program")


def target_of(artifact: Artifact) -> Target:
    """Return what an artifact was built for.

    Raises
    ------
    CorruptArtifactError
        If it names no target.
    """
    try:
        return Target.parse(artifact.manifest.target)
    except ProgramError as error:
        raise CorruptArtifactError("manifest.json", f"names no target: {error}") from error
