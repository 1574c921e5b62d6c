"""Laws of module variables: what they hold when a kernel is launched, where they lie, and what an image has."""

from __future__ import annotations

import random
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from hypothesis import assume
from hypothesis import strategies as st

from trunnion.contract.spec import Capability
from trunnion.errors import ArgumentError, DriverError, ProgramError, TrunnionError, VariableMismatchError
from trunnion.image import SyntheticKernel, SyntheticVariable, synthetic_cubin
from trunnion.model.dtypes import dtype
from trunnion.model.expr import Const
from trunnion.model.launch import KernelLaunch
from trunnion.model.module_variable import CopyToVariable, ModuleVariable
from trunnion.model.params import Signature, TensorParam
from trunnion.model.program import KernelProgram
from trunnion.testing.comparison import check_call
from trunnion.testing.expected import Refused
from trunnion.testing.laws import EVERY_WAY, ONE_WAY, law
from trunnion.testing.machine import USED, synthetic_image
from trunnion.testing.reference import expect
from trunnion.testing.reference_variables import variable_bytes
from trunnion.testing.strategies import CallSpec, Scenario, TensorSpec, scenarios
from trunnion.testing.strategies.programs import CODE
from trunnion.testing.suite.test_launches import delivers, needing
from trunnion.testing.symbols import variable_symbol
from trunnion.testing.variable_contents import first_contents, noting_contents
from trunnion.testing.variables import check_written_before

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from trunnion.contract.compiler import DeviceImage, ImageVariable
    from trunnion.sim.objects import Context
    from trunnion.sim.trace import Launched
    from trunnion.testing.expected import CallSignature
    from trunnion.testing.harness import Harness
    from trunnion.testing.observed import Observed

__all__: list[str] = []

_VARIABLES = frozenset({Capability.MODULE_VARIABLES})
_KEPT = b"\x6b"
"""What stands in every byte of a variable that somebody wrote to, between two calls."""


@law("M1", given=needing(Capability.MODULE_VARIABLES), requires=_VARIABLES)
def addresses_and_copies(harness: Harness, scenario: Scenario) -> None:
    """A variable arrives as its address, and is copied to just before the launches that follow, on their stream."""
    delivers(harness, scenario)
    if Capability.MULTI_LAUNCH in harness.capabilities:
        harness.once(_check_copied_between)


def _check_copied_between(harness: Harness) -> None:
    """Require that launches which are alike go before a copy, and behind it."""
    variable, tensor = (
        ModuleVariable("v", dtype("float32"), (4,)),
        TensorParam("a", dtype("float32"), (Const(4),)),
    )
    launch = KernelLaunch("k", (tensor,), (Const(1),) * 3, (Const(1),) * 3)
    program = KernelProgram(
        "p", Signature((tensor,)), (CODE,), (launch,) * 4, variables=(variable,),
        copies=(CopyToVariable(variable, tensor, 2),),
    )  # fmt: skip
    delivers(
        harness, Scenario(program, CallSpec(args=(TensorSpec(dtype="float32", shape=(4,), strides=(1,)),)))
    )


def _on(call: CallSpec, device: int) -> CallSpec:
    """Return a call with all that it is given on one device."""

    def moved(given: object) -> object:
        return replace(given, device=device) if isinstance(given, TensorSpec) else given

    out = None if call.out is None else tuple(map(moved, call.out))
    named = None if call.device is None else device
    return replace(call, args=tuple(map(moved, call.args)), out=out, device=named)


_ONCE = tuple(way for way in EVERY_WAY if way != "bind-again")
"""The ways in which a call is made once, so that all that is launched is of that call."""


@law("M2", given=needing(Capability.MODULE_VARIABLES), requires=_VARIABLES, ways=_ONCE)
def contents(harness: Harness, scenario: Scenario) -> None:
    """A variable holds, at each launch, what the image says or the program; then what was copied to it last.

    On each device it does so from its first call on, whatever was called on another; and what a call copied is there
    in the next one. So is what kernels wrote, or anybody, though the device is preloaded in between.
    """
    program = scenario.program
    with harness.loaded(program) as loaded, noting_contents(harness, program) as seen:
        for device in (0, 1):
            held = dict(first_contents(program))
            for _ in range(2):
                seen.clear()
                facts, observed = harness.call(loaded, _on(scenario.call, device))
                expected = expect(program, facts)
                assume(not isinstance(expected, Refused))
                if isinstance(expected, Refused):
                    return
                harness.require(observed.error is None, f"a good call was refused: {observed.error!r}")
                check_written_before(harness, observed.events)
                wanted = list(_at_launches(program, facts, held, len(expected.launches)))
                harness.require(
                    seen == wanted, f"on device {device} variables held {seen}, expected {wanted}"
                )
                held |= _overwritten(harness, program, observed.launches)
                loaded.preload(device)
    harness.once(_check_long)
    if harness.way.id != "capture":  # on a stream, whose context is the device's own
        harness.once(_check_other_contexts)


def _check_long(harness: Harness) -> None:
    """Require that a variable of many bytes holds each of those that the program says."""
    text = random.Random(0).randbytes(_LONG)  # noqa: S311 - bytes that are unlike each other
    variable = ModuleVariable("v", dtype("uint8"), (_LONG,), text)
    launch = KernelLaunch("k", (), (Const(1),) * 3, (Const(1),) * 3)
    program = KernelProgram("p", Signature(()), (CODE,), (launch,), variables=(variable,))
    with harness.loaded(program) as loaded, noting_contents(harness, program) as seen:
        _, observed = harness.call(loaded, CallSpec(args=(), device=0))
        harness.require(observed.error is None, f"a good call was refused: {observed.error!r}")
        same = seen == [dict(first_contents(program))]
        harness.require(same, f"a variable of {_LONG} bytes does not hold what the program says")


_LONG = (1 << 17) + 5


def _check_other_contexts(harness: Harness) -> None:
    """Require that a program is launched in a green context, and refused where its variables are others.

    So it is where that context is current and where a stream is of it, by the program's first call too, and though the
    driver gives it the handle that a green one had.
    """
    variable = ModuleVariable("v", dtype("int32"), (2,), bytes(8))
    launch = KernelLaunch("k", (variable,), (Const(1),) * 3, (Const(1),) * 3)
    program = KernelProgram("p", Signature(()), (CODE,), (launch,), variables=(variable,))
    call, state = CallSpec(args=(), device=0), harness.simulator.state
    with harness.simulator.reusing_handles():
        for green in (True, False):
            made = state.make_context(state.contexts[0].device, state.contexts[0] if green else None)
            stream, seen = state.new_stream(made), {}
            with harness.loaded(program) as loaded:
                harness.call(loaded, call)
                seen["on a stream of it"] = harness.call(loaded, call, stream=stream.handle)[1]
                with _current(harness, made):
                    seen["where it is current"] = harness.call(loaded, call)[1]
            with harness.loaded(program) as loaded:
                with _current(harness, made):
                    seen["by the first call"] = harness.call(loaded, call)[1]
                check_call(harness, Scenario(program, call), loaded, first=False)
            state.remove(stream)
            state.destroy(made)
            for where, observed in seen.items():
                _check_in_another(harness, observed, green=green, where=where)


@contextmanager
def _current(harness: Harness, context: Context) -> Iterator[None]:
    """Make a context the thread's current one."""
    stack = harness.simulator.state.stack()
    stack.append(context)
    try:
        yield
    finally:
        stack.remove(context)


def _check_in_another(harness: Harness, observed: Observed, *, green: bool, where: str) -> None:
    """Require that a call launched in a green context, and that it was refused in any other one."""
    error = observed.error
    if green:
        good = error is None and len(observed.launches) == 1
        harness.require(
            good, f"in a green context, {where}, it launched {len(observed.launches)} times: {error!r}"
        )
        return
    refused = isinstance(error, ArgumentError) and error.argument == "stream" and not observed.launches
    harness.require(
        refused,
        f"in a context that has variables of its own, which nobody has written, {where}, it launched "
        f"{len(observed.launches)} times, and the error is {error!r}, expected an ArgumentError of stream",
    )


def _overwritten(harness: Harness, program: KernelProgram, launches: Sequence[Launched]) -> dict[str, bytes]:
    """Write to the variables of a library that launched, and return what they hold then."""
    written = {}
    for launch in launches[:1]:
        memory = harness.simulator.memory.on(launch.device)
        for index, one in enumerate(program.variables):
            symbol = variable_symbol(index)
            written[symbol] = _KEPT * variable_bytes(one)
            memory.write(harness.machine.variable(launch, symbol), written[symbol])
    return written


def _at_launches(
    program: KernelProgram, facts: CallSignature, held: dict[str, bytes], count: int
) -> Iterator[dict[str, bytes]]:
    """Yield what variables hold at each launch of a call, and leave in ``held`` what they hold in the end.

    The tensors of a call are alike in every byte, so what is copied is told by its number of bytes.
    """
    places = {one: index for index, one in enumerate(program.variables)}
    expected = expect(program, facts)
    copies = [] if isinstance(expected, Refused) else list(zip(program.copies, expected.copies, strict=True))
    for launched in range(count + 1):
        for copy, told in copies:
            if told.launched == launched:
                held[variable_symbol(places[copy.variable])] = bytes((USED,)) * told.nbytes
        if launched < count:
            yield dict(held)


@law(
    "M3",
    given=lambda h: st.tuples(scenarios(h.capabilities, _VARIABLES), st.integers(0, 2)),
    requires=_VARIABLES,
    ways=ONE_WAY,
)
def unlike_images(harness: Harness, example: tuple[Scenario, int]) -> None:
    """A variable that has another size in the image than in the program is refused by its name, at the build.

    Where the image does not say its size, or names it wrongly, it is refused when a device is prepared. An image in
    which it is not looked for at all is refused.
    """
    program = example[0].program
    image, index = synthetic_image(program), example[1] % len(program.variables)
    variable = image.variables[index]
    larger = _with_variable(image, index, (variable.nbytes or 0) + 1)
    error = _refusal(harness, program, larger, prepares=False)
    _check_size(harness, error, variable.name)
    error = _refusal(harness, program, replace(image, variables=image.variables[:-1]))
    harness.require(type(error) is ProgramError, f"an image without a variable ended with {error!r}")
    unsaid = replace(larger.variables[index], nbytes=None)
    error = _refusal(harness, program, _replaced(larger, index, unsaid))
    _check_size(harness, error, variable.name)
    error = _refusal(harness, program, _replaced(image, index, replace(variable, symbol="nobody")))
    harness.require(
        isinstance(error, DriverError)
        and error.code_name == "CUDA_ERROR_NOT_FOUND"
        and "nobody" in str(error),
        f"an image that has no variable of that name ended with {error!r}",
    )


def _with_variable(image: DeviceImage, index: int, nbytes: int) -> DeviceImage:
    """Return an image in which a variable has another size."""
    variables = list(image.variables)
    variables[index] = replace(variables[index], nbytes=nbytes)
    data = synthetic_cubin(
        [SyntheticKernel(name=one.symbol, parameters=one.parameters) for one in image.kernels],
        image.target.arch,
        [SyntheticVariable(name=one.symbol, nbytes=one.nbytes or 0) for one in variables],
    )
    return replace(image, data=data, variables=tuple(variables))


def _replaced(image: DeviceImage, index: int, variable: ImageVariable) -> DeviceImage:
    variables = list(image.variables)
    variables[index] = variable
    return replace(image, variables=tuple(variables))


def _refusal(
    harness: Harness, program: KernelProgram, image: DeviceImage, *, prepares: bool = True
) -> TrunnionError | None:
    """Return what is raised where a program is built with an image, and a device is prepared for it."""
    try:
        artifact = harness.build(program, image)
        if not prepares:
            return None
        loaded = harness.load(artifact)
    except TrunnionError as error:
        return error
    try:
        loaded.preload(0)
    except TrunnionError as error:
        return error
    finally:
        loaded.close()
    return None


def _check_size(harness: Harness, error: TrunnionError | None, name: str) -> None:
    told = error.variable if isinstance(error, VariableMismatchError) else repr(error)
    harness.require(
        told == name, f"a variable of another size ended with {told}, expected {name!a} to be named"
    )
