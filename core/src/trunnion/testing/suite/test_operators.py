"""Laws of what is known of a call without making it."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

from hypothesis import assume

from trunnion.errors import TrunnionError
from trunnion.operators.fake import FakeCall
from trunnion.plain import is_a
from trunnion.testing.laws import law
from trunnion.testing.strategies import BytesSpec, CallSpec, Scenario, TensorSpec, scenarios

if TYPE_CHECKING:
    from trunnion.testing.harness import Harness

__all__: list[str] = []


@law("O5", tier="launch", given=lambda harness: scenarios(harness.capabilities))
def fakes(harness: Harness, scenario: Scenario) -> None:
    """An operator's fake says exactly what a call returns, and refuses no call that succeeds."""
    args = scenario.call.args
    assume(any(is_a(given, TensorSpec) for given in args))  # by a tensor's device torch finds an operator
    with harness.loaded(scenario.program) as loaded:
        _, observed = harness.call(loaded, CallSpec(args=args, device=scenario.call.device))
    if observed.error is not None:
        return  # for which a driver, an address or a limit may be the reason, of which a fake knows nothing
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch's own word on complex32
            told = FakeCall(scenario.program.plan(), (harness.machine.kind,), [*map(_fake, args)]).outputs()
    except TrunnionError as error:
        harness.violation(f"the fake refuses a call that succeeds: {error!r}")
    result = observed.result
    got = result if isinstance(result, tuple) else () if result is None else (result,)
    said, seen = [*map(_structure, told)], [*map(_structure, got)]
    harness.require(said == seen, f"the fake says {said}, and the call returned {seen}")


def _fake(given: object) -> Any:
    """Return an argument without memory."""
    import torch  # noqa: PLC0415 - tensors are torch's, in the simulator too

    if is_a(given, BytesSpec):
        return [*given.data]
    if not is_a(given, TensorSpec):
        return given
    return torch.empty_strided(given.shape, given.strides, dtype=given.kind, device="meta")


def _structure(tensor: Any) -> tuple[object, ...]:
    return tuple(tensor.shape), tuple(tensor.stride()), tensor.dtype
