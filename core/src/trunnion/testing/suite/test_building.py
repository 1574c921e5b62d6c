"""Laws of building: what an image must fit, and what an artifact keeps."""

from __future__ import annotations

import tempfile
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hypothesis import assume
from hypothesis import strategies as st

from trunnion.artifacts.artifact import Artifact
from trunnion.artifacts.program_file import PROGRAM_FILE
from trunnion.artifacts.store import CorruptArtifactWarning
from trunnion.contract.compiler import DeviceImage, ImageKernel, ImageParameter
from trunnion.contract.spec import Capability
from trunnion.errors import (
    ArtifactError,
    CorruptArtifactError,
    DeviceRequirementError,
    DriverError,
    ParameterMismatchError,
    ProgramError,
    TrunnionError,
)
from trunnion.image import SyntheticKernel, synthetic_cubin
from trunnion.image.match import match_launches
from trunnion.messages import shorten
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const, Symbol
from trunnion.model.launch import KernelLaunch
from trunnion.model.params import ScalarParam, Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.testing.comparison import check_call, check_expected
from trunnion.testing.driverless import built_without_a_driver, files_of
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
    """
    harness.once(_check_beyond_every_device)
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

    One that another version built is an ArtifactError.
    """
    artifact = harness.build(scenario.program)
    other = harness.build(scenario.program)
    harness.require(other.digest == artifact.digest, f"two builds differ: {_difference(other, artifact)}")
    with tempfile.TemporaryDirectory(prefix="trunnion-suite-") as folder:
        place = Path(folder) / "artifact"
        for _ in range(2):  # the same once more is no other
            artifact.save(place)
        opened = Artifact.open(place)
        loaded = taken_up(harness, place)
    try:
        harness.require(
            opened == artifact and opened.digest == artifact.digest, "the opened artifact differs"
        )
        check_call(harness, scenario, loaded)
    finally:
        loaded.close()
    newer = replace(opened, manifest=replace(opened.manifest, emitter="another/0"))
    try:
        taken_up(harness, newer)
    except ArtifactError:
        return
    harness.violation("took up an artifact that another version built")


def _difference(other: Artifact, artifact: Artifact) -> str:
    """Return in which files two artifacts differ; if in none, it is their manifests."""
    names = sorted(other.files.keys() | artifact.files.keys())
    return (
        ", ".join(name for name in names if other.files.get(name) != artifact.files.get(name)) or "manifest"
    )


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
    launcher that is not what this version writes for the program beside it; if a cache kept it, it is built again.
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
            return
    harness.violation("took a launcher for that of a program for which another one is written")


def _check_kept(harness: Harness, scenario: Scenario, other: Artifact, true: Artifact) -> None:
    """Require that of an artifact with another launcher, which a cache kept, the true one is made, with a warning.

    One that was not kept under a key is refused.
    """
    told: list[object] = []

    def tell(_: str, kind: type[Warning]) -> None:
        told.append(kind)

    def found(artifact: Artifact) -> LoadedProgram:
        return kept(harness, artifact, scenario.program, lambda _: true, tell)

    with closing(found(other.unkeyed())) as loaded:
        error = observe(harness, lambda: loaded.preload(0)).error
        harness.require(
            isinstance(error, CorruptArtifactError),
            f"the launcher is another, and preloading raised {error!r}",
        )
    harness.require(not told, "what no cache kept was built again")
    with closing(found(other.keyed({"suite": "0" * 64}))) as loaded:
        check_call(harness, scenario, loaded)
    harness.require(
        told == [CorruptArtifactWarning], f"a launcher that was kept is another, and told was {told}"
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

    So it does in another working folder, with other folders for temporary files and for caches.
    """
    with asked(harness) as calls:
        here = files_of(harness.build(program))
    harness.require(not calls, f"the build asked the driver: {', '.join(calls)}")
    there = built_without_a_driver(harness.name, program)
    if isinstance(there, str):
        harness.violation(f"where no driver can be loaded nothing was built: {there}")
    unlike = sorted(name for name in here.keys() | there.keys() if here.get(name) != there.get(name))
    harness.require(
        not unlike, f"in another folder, where no driver can be loaded, other bytes were built: {unlike}"
    )
