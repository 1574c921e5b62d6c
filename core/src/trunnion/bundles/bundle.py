"""A bundle that was opened: its programs by name, each in the variant that fits this machine."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import TYPE_CHECKING

from trunnion.arguments import expect, expect_ordinal, file_path
from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.plain_file import read_plain_file, unreadable
from trunnion.artifacts.program_file import program_of, program_of_variants
from trunnion.bundles.conditions import Machine
from trunnion.bundles.index import MAX_INDEX_BYTES, Index, Variant, check_part_name
from trunnion.bundles.parts import artifacts_in, opened_part
from trunnion.compiled import CompiledProgram
from trunnion.contract.runtime import expect_runtime
from trunnion.errors import (
    ArtifactError,
    CorruptArtifactError,
    DeviceRequirementError,
    LifecycleError,
    UnknownProgramError,
    shorten,
)
from trunnion.messages import listed, quoted, spelled, visible
from trunnion.model.plan.refusals import AFTER_FORK, NO_DRIVER
from trunnion.plain import text
from trunnion.registry import Registry, default_registry, usual_distribution
from trunnion.signing.message import ARTIFACT, BUNDLE
from trunnion.signing.vouching import Vouching
from trunnion.toolchain.device import Absence
from trunnion.turns import Turns

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from collections.abc import Set as AbstractSet
    from io import BufferedReader
    from os import PathLike
    from pathlib import Path
    from types import TracebackType
    from typing import Any, NoReturn, Self

    from trunnion.contract.runtime import Runtime
    from trunnion.signing.keys import PublicKey

__all__ = ["AbsentPart", "Bundle", "Fit", "Verified", "verified"]

_ARCHIVE = b"PK"
_NEWER = "a newer trunnion knows that condition: pip install --upgrade trunnion"
_CPU, _CUDA = "cpu", "cuda"
_WITHOUT_DEVICE = {
    Absence.DRIVER: NO_DRIVER("").hint,
    Absence.START: "trunnion doctor says what is wrong with it",
    Absence.FORKED: AFTER_FORK,
    Absence.DEVICE: "name a device that is there, by its number from 0; trunnion doctor says which there are",
}


@dataclass(frozen=True, slots=True)
class Fit:
    """A variant, and whether it can be used here."""

    variant: Variant
    """The variant."""

    lacks: tuple[str, ...]
    """What this machine lacks of its conditions, in words; nothing: it can be used."""


@dataclass(frozen=True, slots=True)
class AbsentPart:
    """A part of a bundle that does not lie beside its index: a bundle may be shipped without some."""

    file: str
    """What the file would be called."""

    part: str
    """Its name in `Index.parts`: the architecture."""

    programs: tuple[str, ...]
    """The programs that have variants in it."""

    def __str__(self) -> str:
        held = f"what it holds for {shorten(self.part)} was not verified ({listed(self.programs)})"
        return f"{self.file} is not here: {held}"


@dataclass(frozen=True, slots=True)
class Verified:
    """What lies at a path, every byte of which was verified."""

    kind: str
    """``"bundle"``, ``"artifact"``, or whatever else can be signed."""

    digest: str
    """What `Bundle.digest` or `Artifact.digest` is of it; of a file its SHA-256, in hex."""

    absent: tuple[AbsentPart, ...] = ()
    """The parts of a bundle that are not here, of which nothing was verified."""


class Bundle(Mapping[str, CompiledProgram]):
    """The programs of a bundle, by name; made by `open`, or by `trunnion.load` of a bundle's index.

    A program is read, and every byte of it verified, when it is first asked for; no compiler is asked.

    Parameters
    ----------
    file
        The index's file; the parts lie beside it.
    index
        What there is.
    registry
        The plugins to choose from.
    runtime
        The tensor library; None: `trunnion.torch_runtime.default_runtime`.
    """

    def __init__(
        self, file: Path, index: Index, *, registry: Registry, runtime: Runtime | None = None
    ) -> None:
        self.file, self.index, self.digest, self.registry = file, index, index.digest, registry
        self._runtime = runtime
        self._programs: dict[str, CompiledProgram] = {}
        self._reading = Turns("a program of the bundle is being read")
        self._closed = False

    @classmethod
    def open(
        cls,
        path: str | PathLike[str],
        *,
        digest: str | Iterable[str] | None = None,
        trusted_keys: Iterable[PublicKey | str | PathLike[str]] | None = None,
        registry: Registry | None = None,
        runtime: Runtime | None = None,
    ) -> Self:
        """Open a bundle; nothing of it is run before a program of it is called.

        Parameters
        ----------
        path
            Its index, as `trunnion.write_bundle` wrote it, or a link to it; the parts lie beside that, or are links.
        digest
            The SHA-256 of the index's bytes, in hex, as `digest` gives it, or a list of those that are allowed: an
            index of another one is refused. Without it and trusted keys the index and its folder must be root's or this
            user's, and nobody else may write to them. What the parts hold is that of which the index names the
            digests, whoever owns them.
        trusted_keys
            Public keys, or their files: an index that none of them signed (``trunnion sign``) is refused.
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
            If its digest is another, or none of the keys signed it, or somebody else could have written it, or a key.
        ArgumentTypeError, ArgumentValueError
            If the registry or the runtime is none, or the digest or a key is.
        BackendUnavailableError
            If there are trusted keys, and the library ``cryptography`` is not installed.
        """
        expect_runtime(runtime)
        plugins = default_registry() if registry is None else registry
        expect(plugins, Registry, "registry", "a Registry")
        vouching = Vouching.of(digest, trusted_keys)
        file, data = _index_bytes(file_path(path), trusting=vouching.vouches)
        vouching.check(file, BUNDLE, hashlib.sha256(data).hexdigest())
        return cls(file, Index.from_json(data, visible(file.name)), registry=plugins, runtime=runtime)

    # Programs --------------------------------------------------------------------------------------------------

    def __getitem__(self, name: str) -> CompiledProgram:
        """Return a program as `on` does of which no device is named."""
        return self.on(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self.index.programs)

    def __len__(self) -> int:
        return len(self.index.programs)

    def __contains__(self, name: object) -> bool:
        return text(name) in self.index.programs

    def on(self, name: str, device: Any) -> CompiledProgram:
        """Return a program in the first of its variants for a kind of device that this one and this machine can use.

        It is the same object each time, for each device that uses this variant, and is closed with the bundle.

        Parameters
        ----------
        name
            The program's name in the bundle.
        device
            A CUDA device: its ordinal, or one such as ``"cuda:1"``, or ``"cuda"`` for the thread's current one;
            ``"cpu"``. None: device 0 if the program has variants for CUDA and there is such a device, and then it is
            one of these or none; else what can be used here.

        Raises
        ------
        UnknownProgramError
            If there is no program of that name.
        ArgumentError
            If the device is none of these.
        DeviceRequirementError
            If no variant of it can be used here: what each of them lacks is said.
        ArtifactError
            If the part that it lies in is not here, or cannot be read.
        CorruptArtifactError
            If it is not whole.
        LifecycleError
            If the bundle was closed.
        """
        variant = self._chosen(name, device)
        found = self._programs.get(variant.digest)
        if found is not None and not self._closed:
            return found
        with self._reading.turn():
            self._check_open()
            found = self._programs.get(variant.digest)
            if found is None:
                found = CompiledProgram.from_artifact(
                    self.artifact(variant), registry=self.registry, runtime=self._runtime
                )
                if self._closed:  # by a handler that came between, which could not wait
                    found.close()
                self._check_open()
                self._programs[variant.digest] = found
            return found

    def fits(self, name: str, device: Any = None) -> tuple[Fit, ...]:
        """Return each variant of a program, those that are to be preferred first, with what is lacking here.

        Parameters
        ----------
        name
            The program's name in the bundle.
        device
            As `on` takes it.

        Raises
        ------
        UnknownProgramError
            If there is no program of that name.
        ArgumentError
            If the device is no device.
        """
        return self._fits(name, self._machine(device))[1]

    def artifact(self, variant: Variant) -> Artifact:
        """Read a variant, and verify every byte of it.

        Raises
        ------
        ArtifactError, CorruptArtifactError
            As `on` does.
        """
        expect(variant, Variant, "variant", "a Variant of the bundle's index")
        (artifact,) = self._artifacts(variant.part, (variant,))
        return artifact

    def artifacts(self) -> Iterator[tuple[str, Variant, Artifact]]:
        """Yield each variant with its program's name and what `artifact` reads of it, in the index's order.

        A part is opened once, and stays open until the last of it is yielded: to open it reads all of its directory.

        Raises
        ------
        ArtifactError, CorruptArtifactError
            As `on` does.
        """
        every = [(name, one) for name, variants in self.index.programs.items() for one in variants]
        parts = {
            place: self._artifacts(place, variants)
            for place, variants in _by_part(one for _, one in every).items()
        }
        for name, variant in every:
            yield name, variant, next(parts[variant.part])

    def _artifacts(self, place: str, variants: Iterable[Variant]) -> Iterator[Artifact]:
        """Yield what lies in a part, each verified; errors are those of `artifact`."""
        with self._opened(place) as data:
            yield from artifacts_in(data, self.index.parts[place], variants)

    def _artifacts_of_whole(self, place: str, variants: Iterable[Variant]) -> Iterator[Artifact]:
        """Yield the same, after every byte of the part is verified, those between its artifacts too."""
        part = self.index.parts[place]
        with self._opened(place) as data:
            check_part_name(part.file, hashlib.file_digest(data, "sha256").hexdigest())
            data.seek(0)
            yield from artifacts_in(data, part, variants)

    @contextmanager
    def _opened(self, place: str) -> Iterator[BufferedReader]:
        part = self.index.parts[place]
        file = self.file.with_name(part.file)
        try:
            with opened_part(file, part) as data:
                yield data
        except FileNotFoundError as error:
            raise ArtifactError(
                f"{shorten(str(file))} is not here, which holds what is for {shorten(place)}: "
                "put it beside the index"
            ) from error
        except OSError as error:
            raise unreadable(file, error) from error

    def verify(self) -> None:
        """Verify every byte of the bundle, and that variants of one program are called alike.

        Raises
        ------
        ArtifactError, CorruptArtifactError
            As `on` does.
        ProgramError
            If variants of a program take different parameters.
        """
        self._verify(self._artifacts_of_whole)

    def verify_present(self) -> tuple[AbsentPart, ...]:
        """Verify as `verify` does what lies in the parts that are here, of which there is one at least.

        Returns
        -------
        tuple of AbsentPart
            The parts that are not here: none of their files can be loaded, and nothing is known of them.

        Raises
        ------
        ArtifactError, CorruptArtifactError, ProgramError
            As `verify` does; `ArtifactError` too if no part is here.
        """
        absent = self.absent_parts()
        if len(absent) == len(self.index.parts):
            self.verify()  # which names the first of them
            return ()
        self._verify(self._artifacts_of_whole, {one.part for one in absent})
        return absent

    def absent_parts(self) -> tuple[AbsentPart, ...]:
        """Return the parts that do not lie beside the index; nothing is read.

        Raises
        ------
        ArtifactError
            If the system does not say whether one does.
        """
        return tuple(filter(None, map(self._absent, self.index.parts)))

    def _absent(self, place: str) -> AbsentPart | None:
        """Return a part if there is nothing of its name; a link that leads nowhere is no part left at home."""
        part = self.index.parts[place]
        file = self.file.with_name(part.file)
        try:
            os.lstat(file)
        except FileNotFoundError:
            programs = self.index.programs.items()
            return AbsentPart(
                part.file,
                place,
                tuple(name for name, several in programs if any(one.part == place for one in several)),
            )
        except OSError as error:
            raise unreadable(file, error) from error
        return None

    def files(self) -> dict[str, bytes]:
        """Return the bytes of the bundle's files, by name, after every artifact in these very bytes is verified.

        Raises
        ------
        ArtifactError, CorruptArtifactError, ProgramError
            As `verify` does.
        """
        parts = {}
        for place, part in self.index.parts.items():
            with self._opened(place) as data:
                parts[part.file] = data.read(part.size)
            check_part_name(part.file, hashlib.sha256(parts[part.file]).hexdigest())

        def artifacts(place: str, variants: Iterable[Variant]) -> Iterator[Artifact]:
            part = self.index.parts[place]
            return artifacts_in(BytesIO(parts[part.file]), part, variants)

        self._verify(artifacts)
        return {**parts, self.file.name: self.index.to_json()}  # whatever a part calls itself

    def _verify(
        self,
        artifacts: Callable[[str, Iterable[Variant]], Iterator[Artifact]],
        absent: AbstractSet[str] = frozenset(),
    ) -> None:
        """Verify the artifacts that something yields of a part's variants, without those of parts that are absent."""
        present = (one for one in self.index.variants if one.part not in absent)
        programs = {
            (place, variant.digest): program_of(artifact)
            for place, variants in _by_part(present).items()
            for variant, artifact in zip(variants, artifacts(place, variants), strict=True)
        }
        for name, several in self.index.programs.items():
            here = [programs[one.part, one.digest] for one in several if one.part not in absent]
            if here:
                program_of_variants(name, here)

    def _machine(self, device: Any) -> tuple[str, Machine]:
        """Return the kind of device that a caller asks for, empty if it is left open, and the machine with it."""
        if device is None:
            return "", Machine(0, self.registry)
        kind = _CPU if (spelled(device, "torch.device") or "").partition(":")[0] == _CPU else _CUDA
        return kind, Machine(expect_ordinal(device, kind, "an ordinal, 'cpu'"), self.registry)

    def _fits(self, name: str, asked: tuple[str, Machine]) -> tuple[str, tuple[Fit, ...]]:
        """Return the kind of device that counts, empty for any, and how each variant of a program fits."""
        wanted = text(name)
        variants = None if wanted is None else self.index.programs.get(wanted)
        if variants is None:
            raise UnknownProgramError(name, self.index.programs)
        kind, machine = asked
        # Whoever has a GPU calls with its tensors: no program for the CPU, which refuses them, stands in for CUDA's.
        if not kind and any(one.kind == _CUDA for one in variants):
            kind = _CUDA if machine.arch or machine.capability is Absence.FORKED else ""
        return kind, tuple(Fit(one, _lacks(one, kind, machine)) for one in variants)

    def _chosen(self, name: str, device: Any) -> Variant:
        asked = self._machine(device)
        kind, fits = self._fits(name, asked)
        for fit in fits:
            if not fit.lacks:
                return fit.variant
        told = "; ".join(
            f"{shorten(fit.variant.target)} by {shorten(fit.variant.backend)}: {', '.join(fit.lacks)}"
            for fit in fits
        )
        raise DeviceRequirementError(
            f"a variant of {shorten(name)} that this machine can use",
            told or "none at all",
            _remedy(name, kind, [fit.variant for fit in fits], asked[1]),
        )

    def __repr__(self) -> str:
        return f"<Bundle of {len(self)} programs at {shorten(str(self.file))}>"

    # Life ------------------------------------------------------------------------------------------------------

    def _check_open(self) -> None:
        if self._closed:
            raise LifecycleError("the bundle was closed; open it again")

    def close(self) -> None:
        """Close each program that was asked for, as `CompiledProgram.close` does; again does nothing."""
        self._closed = True
        if self._reading.is_mine():  # whoever reads, further up, finds it closed
            return
        with self._reading.turn():
            programs = tuple(self._programs.values())
        with ExitStack() as closing:
            for program in programs:
                closing.callback(program.close)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    # It is one thing of the process, as an open file: whoever has a copy has it.

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, _: object) -> Self:
        return self

    def __reduce__(self) -> NoReturn:
        raise LifecycleError(
            f"{shorten(self.file.name)} is open here, and cannot be pickled; pass its path, and trunnion.load it in "
            "the other process"
        )

    def __hash__(self) -> int:
        return id(self)

    def __eq__(self, other: object) -> bool:
        return self is other


def verified(path: str | PathLike[str], *, partly: bool = False) -> Verified:
    """Return what a bundle or an artifact is, after every byte of it is verified.

    Whoever owns it: this says what it is, and not that anybody trusts it.

    Parameters
    ----------
    path
        A bundle's index, or an artifact's folder.
    partly
        Whether parts of a bundle may be absent, as `Bundle.verify_present` takes it.

    Raises
    ------
    ArtifactError
        If there is nothing, or it cannot be read.
    CorruptArtifactError
        If it is not whole.
    """
    given = file_path(path)
    if os.path.isdir(given):  # noqa: PTH112 - False for a name that is too long, where Path.is_dir raises
        return Verified(ARTIFACT, Artifact.open(given).digest)
    file, data = _index_bytes(given, trusting=True)
    bundle = Bundle(file, Index.from_json(data, visible(file.name)), registry=default_registry())
    if partly:
        return Verified(BUNDLE, bundle.digest, bundle.verify_present())
    bundle.verify()
    return Verified(BUNDLE, bundle.digest)


def _index_bytes(given: Path, *, trusting: bool) -> tuple[Path, bytes]:
    """Return where an index is, and its bytes.

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
        file = given.absolute()
        return file, _read_index(file, trusting=trusting)
    except OSError as error:
        raise unreadable(given, error) from error


def _read_index(file: Path, *, trusting: bool) -> bytes:
    data = read_plain_file(file, MAX_INDEX_BYTES, trusting=trusting)
    if data.startswith(_ARCHIVE):
        raise CorruptArtifactError(
            shorten(file.name), "is a part of a bundle, or another archive; open its index"
        )
    return data


def _by_part(variants: Iterable[Variant]) -> dict[str, list[Variant]]:
    found: dict[str, list[Variant]] = {}
    for variant in variants:
        found.setdefault(variant.part, []).append(variant)
    return found


def _lacks(variant: Variant, kind: str, machine: Machine) -> tuple[str, ...]:
    """Return what a machine lacks of a variant's conditions, where a kind of device counts, or any."""
    if kind and variant.kind != kind:
        asked = "the CPU" if kind == _CPU else f"CUDA device {machine.device}"
        return (f"it is for {shorten(variant.kind)}, not for {asked}",)
    return tuple(filter(None, (condition.lack(machine) for condition in variant.conditions)))


def _remedy(name: str, kind: str, variants: Sequence[Variant], machine: Machine) -> str:
    """Return what to do where no variant fits a kind of device, or any."""
    meant = [one for one in variants if one.kind == kind or not kind]
    lacking = [(one, [condition for condition in one.conditions if condition.lack(machine)]) for one in meant]
    if any(not any(condition.known for condition in several) for _, several in lacking):
        return _NEWER
    alone = [
        one.backend for one, several in lacking if {condition.fact for condition in several} == {"backend"}
    ]
    if alone:
        return _installation(alone, machine)
    strange = any(not condition.known for _, several in lacking for condition in several)
    return _device_remedy(name, kind, variants, machine) + (f"; {_NEWER}" if strange else "")


def _device_remedy(name: str, kind: str, variants: Sequence[Variant], machine: Machine) -> str:
    """Return what to do where no variant is for the device, or there is none."""
    others = {one.kind for one in variants} - {kind}
    gone = None if kind == _CPU else machine.capability
    if isinstance(gone, Absence):
        cpu = f"; the variant for the CPU is .on({shorten(name)}, 'cpu')" if kind and _CPU in others else ""
        return _WITHOUT_DEVICE[gone] + cpu
    arch = _CPU if kind == _CPU else machine.arch
    other = "'cpu'" if others == {_CPU} else "device"
    ask = f".on({shorten(name)}, {other})"
    return f"build one for it (target={quoted(arch)}), or ask for another device's, which is {ask}"


def _installation(backends: Iterable[str], machine: Machine) -> str:
    """Return what to install where backends are all that is lacking: who only loads needs none of their compilers."""
    absent = [one for one in backends if one not in {spec.name for spec in machine.registry.backends()}]
    if not absent:
        return "install the versions that built it, or build it with those that are here"
    names = dict.fromkeys(shorten(usual_distribution(one)) for one in absent)
    return f"install who launches it: pip install {' or '.join(names)}"
