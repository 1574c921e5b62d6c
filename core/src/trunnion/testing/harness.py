"""The harness: one backend, driven from a program to what its machine tells of a launch."""

from __future__ import annotations

import contextlib
import ctypes
import tempfile
from collections import Counter
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn, TypeVar

from trunnion.arguments import spanned_bytes
from trunnion.artifacts.program_file import PROGRAM_FILE
from trunnion.contract.spec import called
from trunnion.errors import LifecycleError, TrunnionError
from trunnion.plain import is_a
from trunnion.sim.abi import DeviceAttribute
from trunnion.sim.trace import Launched
from trunnion.testing.expected import CallSignature, TensorFacts
from trunnion.testing.kept_launchers import kept_launchers
from trunnion.testing.laws import LawViolation
from trunnion.testing.machine import ALIKE, USED, SimulatedMachine
from trunnion.testing.observed import observe
from trunnion.testing.reference_facts import FACT_NUMBERS
from trunnion.testing.strategies.numbers import Raiser, RaiserSpec
from trunnion.testing.ways import WAYS, Arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from trunnion.artifacts.artifact import Artifact
    from trunnion.contract.adapter import KernelAdapter, LoadedProgram
    from trunnion.contract.compiler import DeviceImage
    from trunnion.contract.runtime import Runtime
    from trunnion.contract.source import GeneratedSource, SourceWrapper
    from trunnion.contract.spec import BackendSpec, Capability
    from trunnion.model.plan import LaunchPlan
    from trunnion.model.program import KernelProgram
    from trunnion.sim.simulator import Simulator
    from trunnion.testing.expected import Expected
    from trunnion.testing.machine import Machine, Told
    from trunnion.testing.observed import Observed, Seen
    from trunnion.testing.strategies.calls import CallSpec
    from trunnion.testing.ways import Way

__all__ = ["Harness", "Sabotage", "call_facts", "facts_of"]

_T = TypeVar("_T")


def _same(value: _T) -> _T:
    return value


def _nothing() -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Sabotage:
    """Where a saboteur can reach in; by default nothing is changed."""

    plan: Callable[[LaunchPlan], LaunchPlan] = _same
    """Changes the plan that everything after it sees."""

    emitted: Callable[[LaunchPlan], LaunchPlan] = _same
    """Changes the plan that is rendered, while the source still names the true one."""

    wrapper: Callable[[SourceWrapper], SourceWrapper] = _same
    """Changes who writes the source."""

    adapter: Callable[[KernelAdapter], KernelAdapter] = _same
    """Changes who builds the artifact, and loads it."""

    runtime: Callable[[Runtime], Runtime] = _same
    """Changes what the launcher asks the tensor library."""

    loaded: Callable[[LoadedProgram], LoadedProgram] = _same
    """Changes the loaded program."""

    trace: Callable[[tuple[Told, ...]], tuple[Told, ...]] = _same
    """Changes what the machine tells."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Harness:
    """One backend under test."""

    spec: BackendSpec
    """The backend."""

    machine: Machine
    """What it launches on."""

    sabotage: Sabotage = field(default_factory=Sabotage)
    """Nothing, but in tests of the laws themselves."""

    law_id: str = ""
    """The law that is being checked."""

    way: Way = WAYS["call"]
    """How programs become callable, and how calls of them are made."""

    made: Counter[str] = field(default_factory=Counter)
    """How many programs were made callable in each way, or calls made in it."""

    seen: list[Seen] = field(default_factory=list)
    """The last call, for the report of a violation."""

    taken: list[KernelProgram] = field(default_factory=list)
    """The program that was made callable last, if it is known."""

    opened: list[tuple[Artifact, Artifact]] = field(default_factory=list)
    """The last artifact that was saved to be opened, and what it was opened as."""

    asked: set[tuple[str, str]] = field(default_factory=set)
    """What was asked beside the examples, by way in: see `once`."""

    thorough: bool = False
    """Whether everything is tried of which otherwise some is drawn."""

    enough: Callable[[], None] = _nothing
    """Called before each build and call: ends the search once a law is red and its time is over."""

    step: Callable[[], None] = _nothing
    """Called after each step of an example that may take minutes: says that the process is alive.

    A law calls it itself, in a loop over a list that was whole before: whatever hangs within a step is still silent.
    """

    kept: Path | None = None
    """Where the objects of C++ launchers are kept that laws only use; None: nowhere. See `kept_launchers`."""

    @property
    def name(self) -> str:
        """The backend's name."""
        return self.spec.name

    @property
    def capabilities(self) -> frozenset[Capability]:
        """What the backend declares for such devices."""
        return self.spec.targets.get(self.machine.kind, frozenset())

    @property
    def simulator(self) -> Simulator:
        """The simulated driver: what only laws of the simulated tier may ask for.

        Raises
        ------
        LifecycleError
            If the machine is none.
        """
        if not isinstance(self.machine, SimulatedMachine):
            raise LifecycleError(
                f"law {self.law_id} needs the simulated driver, in the tier {self.machine.tier}"
            )
        return self.machine.simulator

    def alone(self) -> Harness:
        """Return the harness on one simulated device, of which launchers are told that it is the only one.

        Raises
        ------
        LifecycleError
            If the machine is not the simulated one.
        """
        return replace(self, machine=SimulatedMachine(self.simulator, alone=True))

    def most_window_bytes(self, device: int = 0) -> int:
        """Return the longest access-policy window that a device allows."""
        return self.machine.attribute(device, DeviceAttribute.MAX_ACCESS_POLICY_WINDOW_SIZE)

    def attributes(self, device: int = 0) -> dict[int, int]:
        """Return what a device answers of all that is a fact, by ``CUdevice_attribute``."""
        return {number: self.machine.attribute(device, number) for number in FACT_NUMBERS.values()}

    @property
    def wrapper(self) -> SourceWrapper:
        """A new wrapper."""
        return called(self.spec.load_wrapper)()(self.spec)

    @property
    def adapter(self) -> KernelAdapter:
        """A new adapter."""
        return called(self.spec.load_adapter)()(self.spec)

    def under(self, law_id: str, way: str = "call") -> Harness:
        """Return the harness with the law that its violations name, and the way in which its calls are made."""
        return replace(self, law_id=law_id, way=WAYS[way])

    def once(self, check: Callable[[Harness], None], *, each_way: bool = True) -> None:
        """Ask what is the same for each example, once for each way in; where it fails, each time.

        Parameters
        ----------
        check
            What is asked.
        each_way
            Whether it is asked by each way in; else by the first alone that comes.

        Raises
        ------
        LawViolation
            If it does not hold.
        """
        place = self.way.id if each_way else "", check.__qualname__
        if place not in self.asked:
            check(self)
            self.asked.add(place)

    def violation(self, message: str) -> NoReturn:
        """Raise the violation of the current law.

        Raises
        ------
        LawViolation
            Always.
        """
        raise LawViolation(self.law_id, message)

    def require(self, condition: object, message: str) -> None:
        """Raise the violation of the current law unless a condition holds.

        Raises
        ------
        LawViolation
            If it does not hold.
        """
        if not condition:
            self.violation(message)

    # From a program to something that launches ------------------------------------------------------------------

    def source(self, program: KernelProgram) -> GeneratedSource:
        """Return the launcher's source.

        Raises
        ------
        UnsupportedFeatureError
            If the backend refuses the program.
        """
        plan = self.sabotage.plan(program.plan())
        wrapper = self.sabotage.wrapper(self.wrapper)
        return replace(wrapper.wrap(self.sabotage.emitted(plan), self.machine.kind), plan=plan)

    def build(self, program: KernelProgram, image: DeviceImage | None = None) -> Artifact:
        """Return the artifact of a program and of an image; None: a synthetic one that fits.

        Raises
        ------
        TrunnionError
            Whatever the backend refuses with.
        """
        self.enough()
        with tempfile.TemporaryDirectory(prefix="trunnion-suite-") as staging:
            adapter = self.sabotage.adapter(self.adapter)
            built = adapter.build(self.source(program), image or self.machine.image(program), Path(staging))
        return built.including(PROGRAM_FILE, program.to_json().encode())

    def load(self, artifact: Artifact) -> LoadedProgram:
        """Return a loaded program; whoever calls this closes it.

        Raises
        ------
        TrunnionError
            Whatever the backend refuses with.
        """
        self.taken.clear()
        adapter = self.sabotage.adapter(self.adapter)
        return self.sabotage.loaded(adapter.load(artifact, self.sabotage.runtime(self.machine.runtime)))

    def open(self, program: KernelProgram, image: DeviceImage | None = None) -> LoadedProgram:
        """Build a program, and make it callable in the harness's way; whoever calls this closes it.

        Its text may have been compiled before. Without an image it has one for the devices that are alike.

        Raises
        ------
        LawViolation
            If the backend refuses the program.
        """
        return self.reopen(program, self.built(program, image))

    def built(self, program: KernelProgram, image: DeviceImage | None = None) -> Artifact:
        """Build a good program; its text may have been compiled before.

        Raises
        ------
        LawViolation
            If the backend refuses the program.
        """
        with self._accepting(), kept_launchers(self.kept):
            return self.build(program, image)

    def reopen(self, program: KernelProgram, artifact: Artifact) -> LoadedProgram:
        """Make what was built callable in the harness's way, once more; whoever calls this closes it.

        Raises
        ------
        LawViolation
            If the backend refuses it.
        """
        with self._accepting():
            return self.take(program, artifact)

    def take(self, program: KernelProgram, artifact: Artifact) -> LoadedProgram:
        """Make what was built callable in the harness's way, as `reopen` does, where the driver may fail.

        Raises
        ------
        TrunnionError
            Whatever the backend, or the driver, refuses with.
        """
        loaded = self.way.load(self, artifact, program)
        self.taken[:] = [program]
        self.made[self.way.id] += self.way.loads
        return loaded

    @contextlib.contextmanager
    def _accepting(self) -> Iterator[None]:
        try:
            yield
        except TrunnionError as error:
            raise LawViolation(
                self.law_id, f"a good program was refused: {type(error).__name__}: {error}"
            ) from error

    @contextlib.contextmanager
    def loaded(self, program: KernelProgram, image: DeviceImage | None = None) -> Iterator[LoadedProgram]:
        """Open a program, and close it at the end of the block; for the image see `open`.

        Raises
        ------
        LawViolation
            If the backend refuses the program.
        """
        with contextlib.closing(self.open(program, image)) as loaded:
            yield loaded

    # A call -------------------------------------------------------------------------------------------------------

    def arguments(self, given: Sequence[object]) -> list[Any]:
        """Return drawn arguments with every described tensor and struct made."""
        from trunnion.testing.strategies.calls import TensorSpec, arguments_of  # noqa: PLC0415 - needs hypothesis

        made = arguments_of(given, self.storage)
        for spec, tensor in zip(given, made, strict=True):
            if is_a(spec, TensorSpec) and spec.short:
                self.machine.shorten(tensor)
        return made

    def storage(self, nbytes: int, device: int | None) -> Any:
        """Return so many bytes in the memory of a device, or with None of the host, each of them ``USED``."""
        from trunnion.testing.strategies.calls import BASE_ALIGNMENT  # noqa: PLC0415 - needs hypothesis

        room = nbytes + BASE_ALIGNMENT
        flat = _host_bytes(room) if device is None else self.machine.empty(room, self.there(device))
        start = -flat.data_ptr() % BASE_ALIGNMENT
        return flat[start : start + nbytes]

    def there(self, device: int) -> int:
        """Return which of the machine's alike devices stands for the one that was drawn: it may have fewer."""
        alike = self.machine.alike
        return device if device not in ALIKE or device in alike else alike[device % len(alike)]

    def contents(self, tensor: Any) -> bytes:
        """Return the bytes of a tensor's elements in row-major order."""
        import torch  # noqa: PLC0415 - tensors are torch's, in the simulator too

        if not tensor.numel():
            return b""
        if tensor.dtype is torch.complex32 and not tensor.is_conj():
            tensor = tensor.view(torch.int32)  # torch warns of every complex32 that it makes itself
        # A copy, since one element with any stride counts as contiguous, and cannot be seen as bytes.
        dense = tensor.clone(memory_format=torch.contiguous_format)
        return bytes(dense.view(-1).view(torch.uint8).cpu().tolist())

    def facts(
        self, args: Sequence[Any], *, out: Sequence[Any] | None = None, device: int | None = None
    ) -> CallSignature:
        """Return a call on this harness's devices as the oracle reads it; see `call_facts`."""
        facts = call_facts(self.facts_of, args, out=out, device=device)
        return replace(
            facts,
            most_window_bytes=self.most_window_bytes(_device_of(facts)),
            only_device=self.machine.runtime.only_device,
            attributes=self.attributes(_device_of(facts)),
        )

    def facts_of(self, value: Any) -> object:
        """Return the facts of a tensor on this harness's devices; see `facts_of`."""
        facts = facts_of(value, self.machine.kind)
        if not isinstance(facts, TensorFacts) or facts.device is None or facts.is_empty:
            return facts
        return replace(facts, short=self.machine.runtime.room(value) < spanned_bytes(value))

    def call(
        self, loaded: LoadedProgram, call: CallSpec, *, stream: int | None = None
    ) -> tuple[CallSignature, Observed]:
        """Make a call on new tensors, and return its facts and what came of it.

        Parameters
        ----------
        loaded
            The program.
        call
            The call.
        stream
            The ``stream=`` of the call.
        """
        return self.call_with(loaded, self.given(call, stream=stream))

    def given(self, call: CallSpec, *, stream: int | None = None) -> Arguments:
        """Return what a call is made with, on new tensors; parameters are those of `call`."""
        out = None if call.out is None else self.arguments(call.out)
        device = None if call.device is None else self.there(call.device)
        return Arguments(args=self.arguments(call.args), out=out, stream=stream, device=device)

    def call_with(self, loaded: LoadedProgram, given: Arguments) -> tuple[CallSignature, Observed]:
        """Make a call on tensors that are there, and return its facts and what came of it.

        Parameters
        ----------
        loaded
            The program.
        given
            What it is called with; which device that is for is found out here.
        """
        facts = self.facts(given.args, out=given.out, device=given.device)
        given.on = _device_of(facts)
        observed = self.way.make(self, loaded, given)
        if observed is None:
            observed = observe(self, lambda: given.launch(loaded), given_out=given.out)
        else:
            self.made[self.way.id] += not self.way.loads
        self.seen[:] = [replace(observed.seen(facts), program=next(iter(self.taken), None))]
        return facts, observed

    def with_destinations(self, call: CallSpec, expected: Expected) -> CallSpec:
        """Return a call with a destination for each output that the oracle expects."""
        from trunnion.testing.strategies.calls import TensorSpec, row_major  # noqa: PLC0415 - needs hypothesis

        out = tuple(
            TensorSpec(dtype=x.dtype, shape=x.shape, strides=row_major(x.shape), device=expected.device)
            for x in expected.outputs
        )
        return replace(call, out=out)

    def current_stream(self, device: int) -> int:
        """Return the handle of the calling thread's current stream of a device."""
        return self.machine.runtime.current_stream(device)

    def observed_launches(self) -> tuple[Launched, ...]:
        """Return the launches since the trace was cleared."""
        return tuple(event for event in self.machine.trace if isinstance(event, Launched))


def _host_bytes(nbytes: int) -> Any:
    import torch  # noqa: PLC0415 - tensors are torch's, in the simulator too

    made = torch.empty(nbytes, dtype=torch.uint8)
    ctypes.memset(made.data_ptr(), USED, nbytes)
    return made


def _device_of(facts: CallSignature) -> int:
    """Return the device that a call is for, as far as its arguments agree."""
    named = (one.device for one in (*facts.args, *(facts.out or ())) if isinstance(one, TensorFacts))
    return next((device for device in named if device is not None), facts.device or 0)


def facts_of(value: Any, kind: str = "cuda") -> object:
    """Return a tensor's facts, what is told of a `Raiser`, and anything else as it is.

    Parameters
    ----------
    value
        An argument, or a result.
    kind
        The kind of device that has ordinals; on the CPU that is 0.
    """
    import torch  # noqa: PLC0415 - tensors are torch's, in the simulator too

    if is_a(value, Raiser):
        return RaiserSpec()
    if not isinstance(value, torch.Tensor):
        return value
    return TensorFacts(
        dtype=str(value.dtype).removeprefix("torch."),
        shape=tuple(value.shape),
        strides=tuple(value.stride()),
        address=value.data_ptr(),
        device=(value.device.index or 0) if value.device.type == kind else None,
        lazy=value.is_conj() or value.is_neg(),
    )


def call_facts(
    facts: Callable[[Any], object],
    args: Sequence[Any],
    *,
    out: Sequence[Any] | None = None,
    device: int | None = None,
) -> CallSignature:
    """Return a call as the oracle reads it.

    Parameters
    ----------
    facts
        Returns a tensor's facts, and anything else as it is.
    args
        The arguments, as they are passed.
    out
        The destinations.
    device
        The ``device=`` of the call.
    """
    given_out = None if out is None else tuple(map(facts, out))
    return CallSignature(args=tuple(map(facts, args)), out=given_out, device=device)
