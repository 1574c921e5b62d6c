"""Laws of building: what an image must fit, and what an artifact keeps."""

from __future__ import annotations

import os
import tempfile
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import assume
from hypothesis import strategies as st

from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.manifest import MAX_MANIFEST_BYTES
from trunnion.artifacts.program_file import PROGRAM_FILE
from trunnion.artifacts.store import CorruptArtifactWarning
from trunnion.contract.compiler import DeviceImage, ImageKernel, ImageParameter
from trunnion.contract.spec import Capability, Target
from trunnion.errors import (
    ArgumentValueError,
    ArtifactError,
    CorruptArtifactError,
    DeviceRequirementError,
    DriverError,
    ParameterMismatchError,
    ProgramError,
    TrunnionError,
    UntrustedArtifactError,
)
from trunnion.image import SyntheticKernel, synthetic_cubin
from trunnion.image.match import match_launches
from trunnion.messages import shorten
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const, Symbol
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import ScalarParam, Signature, StructParam, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.testing.comparison import check_call, check_expected
from trunnion.testing.driverless import built_without_a_driver, files_of, versions_of
from trunnion.testing.expected import Refused
from trunnion.testing.faults import asked
from trunnion.testing.laws import ONE_WAY, law
from trunnion.testing.machine import synthetic_image
from trunnion.testing.observed import observe
from trunnion.testing.reference import expect
from trunnion.testing.strategies import CallSpec, Scenario, TensorSpec, programs, scenarios
from trunnion.testing.strategies.programs import CODE, taking
from trunnion.testing.suite.test_faults import unloading_all
from trunnion.testing.ways import compiled_program, kept, taken_up

if TYPE_CHECKING:
    from collections.abc import Iterator

    from trunnion.contract.adapter import LoadedProgram
    from trunnion.model.plan import LaunchPlan, PlannedLaunch
    from trunnion.testing.harness import Harness

__all__: list[str] = []


_BEYOND = 300 << 10
"""Bytes of shared memory that no device allows a block."""


def _check_beyond_every_device(harness: Harness) -> None:
    """Require that core refuses, before a backend builds, what no device can do, unless calls decide on it."""
    one, flag = (Const(1),) * 3, Symbol("flag", max=1)
    scalar = ScalarParam("flag", dtype("int32"), flag)
    conditional = Capability.CONDITIONAL_LAUNCH in harness.capabilities
    for when in (
        (None, flag) if conditional and Capability.DYNAMIC_SHAPES in harness.capabilities else (None,)
    ):
        launch = KernelLaunch("k", (), one, one, dynamic_smem_bytes=Const(_BEYOND), when=when)
        program = KernelProgram("p", Signature((scalar,) if when is not None else ()), (CODE,), (launch,))
        try:
            match_launches(program.plan(), synthetic_image(program))
        except DeviceRequirementError:
            harness.require(when is None, "what only some calls ask for was refused at the build")
        else:
            harness.require(when is not None, f"{_BEYOND} bytes of shared memory were accepted at the build")


def _with_parameters(image: DeviceImage, index: int, parameters: tuple[ImageParameter, ...]) -> DeviceImage:
    kernels = list(image.kernels)
    kernels[index] = ImageKernel(kernels[index].name, kernels[index].symbol, parameters)
    return _bounded(replace(image, kernels=tuple(kernels)), index)


def _bounded(image: DeviceImage, index: int, **bounds: Any) -> DeviceImage:
    """Return an image that describes its kernels as its table does, one of them with bounds."""
    described = [
        SyntheticKernel(
            name=kernel.symbol, parameters=kernel.parameters, **(bounds if place == index else {})
        )
        for place, kernel in enumerate(image.kernels)
    ]
    return replace(image, data=synthetic_cubin(described, image.target.arch))


@law(
    "B1",
    given=lambda harness: st.tuples(scenarios(harness.capabilities), st.integers(0, 63), st.integers(-1, 62)),
    ways=ONE_WAY,
)
def mismatches(harness: Harness, example: tuple[Scenario, int, int]) -> None:
    """A kernel that takes other parameters than the program passes is refused at the build, by kernel and ordinal.

    One that was compiled for another block, for fewer threads or for another cluster is refused by the launch's field,
    and so is what every call would ask of a device of its target, and none has.
    One whose tensor maps lie at multiples of 128 bytes, as CUDA 13 aligns them, takes what the program passes.
    Where parameters lie differs by architecture: an image that has them where its own compiler puts them is built of.
    """
    harness.once(_check_beyond_every_device)
    if Capability.STRUCT_PARAMS in harness.capabilities:
        harness.once(_check_places)
    program = example[0].program
    image = synthetic_image(program)
    wide = synthetic_image(program, map_alignment=128)
    if wide != image:
        with closing(harness.load(harness.build(program, wide))) as loaded:
            check_call(harness, example[0], loaded)
    index = example[1] % len(image.kernels)
    _check_bounds(harness, program.plan(), image, index)
    _check_moved(harness, program, image, index)
    kernel = image.kernels[index]
    ordinal = (example[2] + 1) % (len(kernel.parameters) + 1) - 1
    if ordinal < 0:
        end = sum(parameter.size for parameter in kernel.parameters) + 256
        changed = (*kernel.parameters, ImageParameter(len(kernel.parameters), end, 4))
    else:
        chosen = kernel.parameters[ordinal]
        smaller = ImageParameter(ordinal, chosen.offset, chosen.size // 2 or 2)
        changed = (*kernel.parameters[:ordinal], smaller, *kernel.parameters[ordinal + 1 :])
        assume(smaller.size < chosen.size or ordinal == len(kernel.parameters) - 1)
    try:
        harness.build(program, _with_parameters(image, index, changed))
    except ParameterMismatchError as error:
        told = (error.kernel, error.ordinal)
        harness.require(told == (kernel.name, ordinal), f"named {told}, expected {(kernel.name, ordinal)}")
        return
    harness.violation(f"kernel {kernel.name!a} takes {_laid(changed)}, and the build went through")


def _laid(parameters: tuple[ImageParameter, ...]) -> str:
    """Return where a kernel's parameters lie, for people."""
    return ", ".join(f"{one.size} bytes at {one.offset}" for one in parameters) or "nothing"


def _check_moved(harness: Harness, program: KernelProgram, image: DeviceImage, index: int) -> None:
    """Require that a parameter of the right size in another place is refused, as one that is aligned otherwise."""
    kernel = image.kernels[index]
    if not kernel.parameters:
        return
    *before, last = kernel.parameters
    changed = (*before, replace(last, offset=last.offset + 128))
    try:
        harness.build(program, _with_parameters(image, index, changed))
    except ParameterMismatchError as error:
        told, due = (error.kernel, error.ordinal), (kernel.name, last.ordinal)
        harness.require(told == due, f"named {told}, expected {due}")
        return
    harness.violation(f"kernel {kernel.name!a} takes {_laid(changed)}, and the build went through")


_ALIGNED: tuple[tuple[tuple[int, int], ...], dict[str, tuple[int, ...]]] = (
    ((64, 64), (4, 4), (64, 64), (4, 4)),
    {"sm_80": (32, 96, 160, 224), "sm_90a": (48, 112, 176, 240), "sm_100a": (0, 64, 128, 192)},
)
_MANY: tuple[tuple[tuple[int, int], ...], dict[str, tuple[int, ...]]] = (
    ((4, 4), (64, 64), (4352, 1)),
    {"sm_80": (0, 64, 128), "sm_90a": (0, 48, 112), "sm_100a": (0, 64, 128)},
)
"""Sizes and alignments of parameters, and where ptxas of CUDA 12.8 and 13.0 puts each, in bytes from the first place.

They are aligned in the constant bank, in which parameters begin at another byte on each architecture. It is written
down, since what lays out the laws' own images is what is compared with it.
"""


def _check_places(harness: Harness) -> None:
    """Require that a kernel's parameters are taken where its architecture's compiler puts them, and nowhere else."""
    for layouts, places in (_ALIGNED, _MANY):
        program = taking(*(_sized(f"p{at}", *layout) for at, layout in enumerate(layouts)))
        for arch, offsets in places.items():
            image = synthetic_image(program, Target("cuda", arch))
            harness.built(program, _placed(image, layouts, offsets))
            for other in set(places.values()) - {offsets}:
                _check_refused_place(harness, program, _placed(image, layouts, other), offsets)
    # What the program does not say to be aligned so is no tensor map, however large it is.
    layouts = ((4, 4), (256, 16))
    program = taking(*(_sized(f"p{at}", *layout) for at, layout in enumerate(layouts)))
    image = _placed(synthetic_image(program, Target("cuda", "sm_90a")), layouts, (0, 112))
    _check_refused_place(harness, program, image, (0, 16))


def _sized(name: str, nbytes: int, alignment: int) -> ScalarParam | StructParam:
    """Return what a caller passes in so many bytes."""
    number = dtype("int32")
    return ScalarParam(name, number) if nbytes == number.itemsize else StructParam(name, nbytes, alignment)


def _placed(
    image: DeviceImage, layouts: tuple[tuple[int, int], ...], offsets: tuple[int, ...]
) -> DeviceImage:
    """Return an image whose one kernel has its parameters at these places."""
    sizes = zip(offsets, layouts, strict=True)
    table = (ImageParameter(ordinal, offset, size) for ordinal, (offset, (size, _)) in enumerate(sizes))
    return _with_parameters(image, 0, tuple(table))


def _check_refused_place(
    harness: Harness, program: KernelProgram, image: DeviceImage, offsets: tuple[int, ...]
) -> None:
    """Require that the first parameter that lies elsewhere is refused by its ordinal."""
    (kernel,) = image.kernels
    due = next(one.ordinal for one in kernel.parameters if one.offset != offsets[one.ordinal])
    try:
        harness.build(program, image)
    except ParameterMismatchError as error:
        told = (error.kernel, error.ordinal)
        harness.require(told == (kernel.name, due), f"named {told}, expected {(kernel.name, due)}")
        return
    where = ", ".join(str(one.offset) for one in kernel.parameters)
    harness.violation(
        f"parameters of {image.target} at {where}, expected at {offsets}, and the build went through"
    )


def _check_bounds(harness: Harness, plan: LaunchPlan, image: DeviceImage, index: int) -> None:
    """Require that a kernel with bounds of its own is launched within them alone."""
    launch = next(one for one in plan.launches if one.kernel == index)
    match_launches(plan, image)
    for field, bounds in _unfitting(launch):
        try:
            match_launches(plan, _bounded(image, index, **bounds))
        except ProgramError as error:
            place = f"launches[{launch.index}].{field}"
            harness.require(error.field == place, f"named {error.field}, expected {place}")
            continue
        harness.violation(f"launch {launch.index} went through, where its kernel has {bounds}")


def _unfitting(launch: PlannedLaunch) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield bounds of a kernel that a launch does not keep to, each with the field that has to be named."""
    x, y, z = (one.value if isinstance(one, Const) else 0 for one in launch.block)
    for axis, block in enumerate(((1025, y, z), (x, 1025, z), (x, y, 65))):
        if 0 not in (x, y, z)[: axis + 1]:  # of what a call decides, the driver says whether it fits
            yield f"block[{axis}]", {"required_threads": (block[0], block[1] or 1, block[2] or 1)}
    if x * y * z > 1:
        yield "block", {"max_threads": (x * y * z - 1, 1, 1)}
    cluster = launch.attribute("cluster")
    if cluster:
        yield "cluster", {"cluster": (cluster[0] + 1, *cluster[1:])}


@law("B2", given=lambda harness: scenarios(harness.capabilities), ways=ONE_WAY)
def artifacts_travel(harness: Harness, scenario: Scenario) -> None:
    """An artifact that was saved and opened is equal, and launches the same; building twice gives equal artifacts.

    Nobody can change one. Whoever takes it up is told the program, the plan and the launcher's text that it was built
    of, and it is taken up under its digest, and under no other. So it is with one that has a cache's key, however long
    what that was made of is, and where files are made that everybody may write to.
    One that another version built is an ArtifactError.
    """
    harness.once(_check_keyed)
    harness.once(_check_open_to_all)
    artifact = harness.build(scenario.program)
    _check_unchangeable(harness, artifact)
    harness.once(_check_versions)
    other = harness.build(scenario.program)
    harness.require(other.digest == artifact.digest, f"two builds differ: {_difference(other, artifact)}")
    with tempfile.TemporaryDirectory(prefix="trunnion-suite-") as folder:
        place = Path(folder) / "artifact"
        for _ in range(2):  # the same once more is no other
            artifact.save(place)
        opened = Artifact.open(place)
        loaded = taken_up(harness, place)
        _check_digests(harness, place, artifact.digest)
    try:
        harness.require(
            opened == artifact and opened.digest == artifact.digest, "the opened artifact differs"
        )
        check_call(harness, scenario, loaded)
        _check_told(harness, scenario.program, artifact, loaded)
    finally:
        loaded.close()
    newer = replace(opened, manifest=replace(opened.manifest, emitter="another/0"))
    try:
        taken_up(harness, newer)
    except ArtifactError:
        return
    harness.violation("took up an artifact that another version built")


def _check_versions(harness: Harness) -> None:
    """Require that what goes into a cache's keys is the same of each wrapper and adapter of a backend."""
    wrappers, adapters = (
        (harness.wrapper, harness.wrapper),
        (harness.adapter, harness.adapter),
    )  # all at once
    told, again = map(versions_of, wrappers, adapters)
    for what, one in told.items():
        harness.require(
            again[what] == one, f"{what} is {shorten(one)}, and of a second one {shorten(again[what])}"
        )


def _difference(other: Artifact, artifact: Artifact) -> str:
    """Return in which files two artifacts differ; if in none, it is their manifests."""
    names = sorted(other.files.keys() | artifact.files.keys())
    return (
        ", ".join(name for name in names if other.files.get(name) != artifact.files.get(name)) or "manifest"
    )


def _check_unchangeable(harness: Harness, artifact: Artifact) -> None:
    """Require that what an artifact holds is what it was verified with, for as long as it is there."""
    manifest = artifact.manifest
    tables: dict[str, Any] = {
        "files": artifact.files,
        "manifest.files": manifest.files,
        "manifest.toolchain": manifest.toolchain,
        "manifest.key_inputs": manifest.key_inputs,
    }
    for name, table in tables.items():
        try:
            table["another"] = None
        except TypeError:
            continue
        harness.violation(f"{name} of an artifact can be changed")


def _check_digests(harness: Harness, place: Path, digest: str) -> None:
    """Require that an artifact is taken up under the digest of what was built, and refused under any other."""
    another = "0" * len(digest)
    for right in (digest, [another, digest]):
        taken_up(harness, place, right)
    wrong: tuple[tuple[Any, type[TrunnionError]], ...] = (
        (another, UntrustedArtifactError),
        ([another], UntrustedArtifactError),
        ([], ArgumentValueError),
        (digest[1:], ArgumentValueError),
    )
    for given, due in wrong:
        try:
            taken_up(harness, place, given)
        except due:
            continue
        harness.violation(f"an artifact was taken up under the digest {given}")


def _check_told(harness: Harness, program: KernelProgram, artifact: Artifact, loaded: LoadedProgram) -> None:
    """Require that what was taken up tells what it was built of, once it is loaded too."""
    compiled = compiled_program(loaded)
    if compiled is None:
        return
    told: dict[str, tuple[object, object]] = {
        "artifact": (compiled.artifact, artifact),
        "backend": (compiled.backend, harness.name),
        "target": (str(compiled.target), artifact.manifest.target),
        "program": (compiled.program, program),
        "plan": (compiled.plan, program.plan()),
        "host_source": (compiled.host_source, harness.source(program).text),
    }
    for name, (found, expected) in told.items():
        harness.require(found == expected, f"what was taken up tells another {name} than it was built of")


def _a_call() -> Scenario:
    """Return a plain program, and a call of it."""
    program = taking(ScalarParam("n", dtype("int32")))
    return Scenario(program, CallSpec(args=(7,), device=0))


def _check_keyed(harness: Harness) -> None:
    """Require the same of an artifact with the key that a cache finds it by, of as much as a manifest can hold."""
    scenario = _a_call()
    artifact = harness.build(scenario.program)
    short = artifact.keyed({"headers": ""})
    bare = short.unkeyed()
    harness.require(short.digest != artifact.digest, "a key changes nothing of an artifact's digest")
    harness.require(
        bare == artifact and bare.digest == artifact.digest, "without its key it is another artifact"
    )
    long = artifact.keyed({"headers": "x" * (MAX_MANIFEST_BYTES - len(short.manifest.to_json()))})
    with tempfile.TemporaryDirectory(prefix="trunnion-suite-") as folder:
        for keyed, place in ((short, Path(folder) / "short"), (long, Path(folder) / "long")):
            keyed.save(place)
            for _ in range(1 if keyed is long else 2):
                with closing(taken_up(harness, place)) as loaded:
                    check_call(harness, scenario, loaded)


def _check_open_to_all(harness: Harness) -> None:
    """Require the same where whatever a process makes may be written by everybody, unless it says otherwise."""
    scenario = _a_call()
    with tempfile.TemporaryDirectory(prefix="trunnion-suite-") as folder, _umask(0):
        place = Path(folder) / "artifact"
        harness.build(scenario.program).save(place)
        with closing(taken_up(harness, place)) as loaded:
            check_call(harness, scenario, loaded)


@contextmanager
def _umask(mask: int) -> Iterator[None]:
    before = os.umask(mask)
    try:
        yield
    finally:
        os.umask(before)


@law("B3", given=lambda harness: scenarios(harness.capabilities), ways=ONE_WAY)
def unknown_kernels(harness: Harness, scenario: Scenario) -> None:
    """A kernel is looked up by its exact name: an image without it is refused by the driver, never searched.

    One that a device compiler does not say to be there is refused at the build. Whatever the order in which it says
    them, a launch is of its own kernel, or the build is refused.
    """
    image = synthetic_image(scenario.program)
    _check_said(harness, scenario, image)
    kernels = tuple(replace(kernel, symbol=kernel.symbol[:-1]) for kernel in image.kernels)
    artifact = harness.build(scenario.program, replace(image, kernels=kernels))
    try:
        loaded = harness.load(artifact)
    except DriverError as error:
        harness.require(error.code_name == "CUDA_ERROR_NOT_FOUND", f"the error says {error}")
        harness.require(error.call and error.code, f"the error lacks its call or code: {error}")
        return
    loaded.close()
    harness.violation("loaded an image that has no kernel of that name")


def _check_said(harness: Harness, scenario: Scenario, image: DeviceImage) -> None:
    """Build of images whose compilers say one kernel too few, and say them the other way round."""
    *others, last = image.kernels
    try:
        harness.build(scenario.program, replace(image, kernels=tuple(others)))
    except ProgramError as error:
        named = shorten(last.name) in str(error)
        harness.require(named, f"the error names another kernel than {last.name!a}: {error}")
    else:
        harness.violation(f"built of an image without kernel {last.name!a}")
    try:
        artifact = harness.build(scenario.program, replace(image, kernels=(last, *others)))
    except ProgramError:
        return
    with closing(harness.load(artifact)) as loaded:
        check_call(harness, scenario, loaded)


@law(
    "B5", given=lambda harness: st.tuples(scenarios(harness.capabilities), st.integers(0, 255)), ways=ONE_WAY
)
def damaged_artifacts(harness: Harness, example: tuple[Scenario, int]) -> None:
    """What was saved and is not whole, or has more in it, is a CorruptArtifactError, and nothing of it is loaded.

    A file with other bytes that the manifest names is a typed error, unless a call is right without it. So is a
    launcher that is not what this version writes for the program beside it: where its text runs, before anything is
    loaded, else once the plan is asked for. If a cache kept it, it is built again. Whatever was refused, the good one
    is taken up after it.
    """
    harness.once(_check_other_launchers)
    scenario, place = example
    assume(not isinstance(expect(scenario.program, scenario.call.imagined()), Refused))
    artifact = harness.build(scenario.program)
    for damage in (_shortened, _flipped, _missing, _added):
        with tempfile.TemporaryDirectory(prefix="trunnion-suite-") as folder:
            saved = Path(folder) / "artifact"
            artifact.save(saved)
            damage(saved, sorted(one.name for one in saved.iterdir()), place)
            _check_damaged(harness, saved)
    for name in artifact.files:
        _check_strange(harness, scenario, artifact.including(name, b"none of its kind"))
    with closing(harness.load(artifact)) as loaded:
        check_call(harness, scenario, loaded)


def _check_other_launchers(harness: Harness) -> None:
    """Require that no launcher runs as that of another program, or with another text than its program's.

    Hashes and texts come before the true ones and after them: whoever compares may do it by halves.
    """
    tensor = TensorParam("a", dtype("float32"), (Const(3),))
    program = taking(tensor)
    artifact, true = harness.build(program), program.plan().hash
    others = [replace(program, name=f"p{number}") for number in range(64)]
    for is_less in (True, False):
        other = next(one for one in others if (one.plan().hash < true) is is_less)
        _check_other(harness, artifact.including(PROGRAM_FILE, other.to_json().encode()))
        named = replace(artifact.manifest, plan_hash=other.plan().hash)
        _check_other(harness, replace(artifact, manifest=named))
    kernels = tuple(replace(kernel, name="another") for kernel in artifact.manifest.kernels)
    _check_other(harness, replace(artifact, manifest=replace(artifact.manifest, kernels=kernels)))
    source = harness.source(program)
    call = CallSpec(args=(TensorSpec(dtype="float32", shape=(3,), strides=(1,)),))
    for text in (source.text.removesuffix("\n"), f"{source.text}\n"):
        other_text = artifact.including(source.filename, text.encode())
        _check_other(harness, other_text)
        _check_kept(harness, Scenario(program, call), other_text, artifact)


def _check_other(harness: Harness, artifact: Artifact) -> None:
    """Require that parts which do not belong together are refused; where a text is compiled, once it is asked for."""
    try:
        loaded = taken_up(harness, artifact)
    except CorruptArtifactError:
        return
    with closing(loaded):
        compiled = compiled_program(loaded)
        try:
            _ = None if compiled is None else compiled.host_source
        except CorruptArtifactError:
            if not harness.wrapper.text_runs:
                return
    harness.violation("took a launcher for that of a program for which another one is written")


def _check_kept(harness: Harness, scenario: Scenario, other: Artifact, true: Artifact) -> None:
    """Require that of an artifact with another launcher, which a cache kept, the true one is made, with a warning.

    One that was not kept under a key is refused, and so is one that nobody builds again, or that is as bad then.
    """
    told: list[object] = []

    def tell(_: str, kind: type[Warning]) -> None:
        told.append(kind)

    def found(artifact: Artifact, again: Artifact | None, *, lazy: bool = False) -> LoadedProgram:
        build = None if again is None else lambda _: again
        return kept(harness, artifact, scenario.program, build, tell, lazy=lazy)

    bad = other.keyed({"suite": "0" * 64})
    for artifact, again in ((other.unkeyed(), true), (bad, None), (bad, bad)):
        with closing(found(artifact, again)) as loaded:
            _check_never_runs(harness, scenario, loaded)
    with closing(found(bad, None, lazy=True)) as loaded:
        compiled = compiled_program(loaded)
        if compiled is not None:
            known, due = (compiled.kind, compiled.plan), (harness.machine.kind, scenario.program.plan())
            harness.require(
                known == due, "a program tells another plan than its own, or another kind of device"
            )
        _check_never_runs(harness, scenario, loaded)
    harness.require(not told, f"told was {told} of what was not built again")
    with closing(found(bad, true)) as loaded:
        check_call(harness, scenario, loaded)
    harness.require(
        told == [CorruptArtifactWarning], f"a launcher that was kept is another, and told was {told}"
    )


def _check_never_runs(harness: Harness, scenario: Scenario, loaded: LoadedProgram) -> None:
    """Require that a program whose launcher is another is neither preloaded nor called."""
    error = observe(harness, lambda: loaded.preload(0)).error
    harness.require(
        isinstance(error, CorruptArtifactError), f"the launcher is another, and preloading raised {error!r}"
    )
    _, observed = harness.call(loaded, scenario.call)
    harness.require(
        isinstance(observed.error, CorruptArtifactError) and not observed.launches,
        f"the launcher is another, and a call raised {observed.error!r} after {len(observed.launches)} launches",
    )


def _check_strange(harness: Harness, scenario: Scenario, artifact: Artifact) -> None:
    """Require that an artifact of which a file is none of its kind is refused, or right, and leaves nothing loaded."""
    with unloading_all(harness):
        try:
            loaded = harness.load(artifact)
        except TrunnionError:
            return
        with closing(loaded):
            facts, observed = harness.call(loaded, scenario.call)
            expected = expect(scenario.program, facts)
            if observed.error is None and not isinstance(expected, Refused):
                check_expected(harness, scenario.program, facts, (expected, observed))


def _check_damaged(harness: Harness, saved: Path) -> None:
    """Require that what is not whole is not taken up."""
    harness.simulator.clear_trace()
    try:
        taken_up(harness, saved).close()
    except CorruptArtifactError:
        harness.require(not harness.simulator.trace, f"the driver was asked for {harness.simulator.trace}")
        return
    harness.violation("took up an artifact that is not whole")


def _shortened(saved: Path, names: list[str], place: int) -> None:
    """Take the last byte of a file."""
    file = saved / names[place % len(names)]
    file.write_bytes(file.read_bytes()[:-1])


def _flipped(saved: Path, names: list[str], place: int) -> None:
    """Change a bit of a file."""
    file = saved / names[place % len(names)]
    data = bytearray(file.read_bytes())
    data[place * 997 % len(data)] ^= 1 << place % 8
    file.write_bytes(data)


def _missing(saved: Path, names: list[str], place: int) -> None:
    """Remove a file."""
    (saved / names[place % len(names)]).unlink()


def _added(saved: Path, names: list[str], place: int) -> None:
    """Put something beside the files."""
    (saved / f"{names[place % len(names)]}.more").write_bytes(b"more")


@law("B4", given=lambda harness: programs(harness.capabilities), cost="toolchain", ways=ONE_WAY)
def built_without_driver(harness: Harness, program: KernelProgram) -> None:
    """Building asks no driver anything, and where none can be loaded it makes the very same bytes.

    So it does in another working folder, with other folders for temporary files and for caches, on another day, for
    another user, on a machine of another name with more processors: what goes into a cache's keys is the same there.
    Being imported changes nothing for the whole process, and nothing imports torch before the adapter is asked for.
    `probe` raises nothing, and asks no driver anything.
    """
    with asked(harness) as calls:
        here = files_of(harness.build(program))
    harness.require(not calls, f"the build asked the driver: {', '.join(calls)}")
    with asked(harness) as calls:
        harness.spec.probe()
    harness.require(not calls, f"probe() asked the driver: {', '.join(calls)}")
    here |= versions_of(harness.wrapper, harness.adapter)
    there = built_without_a_driver(harness.name, program)
    if isinstance(there, str):
        harness.violation(there)
    unlike = sorted(name for name in here.keys() | there.keys() if here.get(name) != there.get(name))
    harness.require(
        not unlike,
        f"on another day, for another user, in another folder of another machine, other bytes were built: {unlike}",
    )
