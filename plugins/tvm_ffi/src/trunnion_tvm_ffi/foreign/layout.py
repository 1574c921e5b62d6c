"""Where a function wants its outputs: the places of parameters in its own list of arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING

from trunnion.errors import ProgramError
from trunnion.messages import describe
from trunnion.model.fields import members

if TYPE_CHECKING:
    from collections.abc import Sequence

    from trunnion.model.params import Signature

__all__ = ["argument_places", "result_places"]


def result_places(signature: Signature, result_idx: object) -> tuple[int, ...]:
    """Return the place of each output among all parameters of a function, counted from 0.

    Parameters
    ----------
    signature
        What the function takes and gives back.
    result_idx
        One place, or one for each output in the signature's order; negative ones count from the end. None: the outputs
        come last.

    Raises
    ------
    ProgramError
        If there is not one for each output, or one is no integer, out of range or there twice.
    """
    outputs, count = len(signature.outputs), len(signature.params) + len(signature.outputs)
    if result_idx is None:
        return tuple(range(count - outputs, count))
    given = (result_idx,) if type(result_idx) is int else members(result_idx, "result_idx", "integers")
    places = []
    for place in given:
        if type(place) is not int:
            raise _error(f"got {describe(place)}, expected an integer, or one for each output")
        if not -count <= place < count:
            raise _error(
                f"got {place}, expected {-count} to {count - 1} for {count} parameters, outputs included"
            )
        places.append(place % count)
    if len(places) != outputs:
        raise _error(f"got {len(places)} places, expected {outputs}: one for each output")
    if len(set(places)) != len(places):
        raise _error(f"got {list(given)}, which names a place twice")
    return tuple(places)


def argument_places(signature: Signature, results: Sequence[int]) -> tuple[int, ...]:
    """Return what stands where in a function's list of parameters, as an index into inputs and then outputs.

    Parameters
    ----------
    signature
        What the function takes and gives back.
    results
        The place of each output; empty if the function returns its outputs.
    """
    inputs = len(signature.params)
    at = {place: inputs + index for index, place in enumerate(results)}
    rest = iter(range(inputs))
    return tuple(at[place] if place in at else next(rest) for place in range(inputs + len(results)))


def _error(message: str) -> ProgramError:
    return ProgramError(message, field="result_idx")
