"""How long the text of a launcher is: it grows with what launches, and what parameters cost is paid once."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from trunnion.codegen.cpp import emitter as cpp_emitter
from trunnion.codegen.python import emitter as python_emitter
from trunnion.model.builder import ProgramBuilder
from trunnion.model.code import DeviceCode
from trunnion.model.expr import Symbol, ceildiv

if TYPE_CHECKING:
    from trunnion.model.plan import LaunchPlan

MANY = 50
MOST_TIMES = 3  # the text of many launches, in texts of one
MAPS = 4
MOST_OF_A_MAP = 750  # characters
EMITTERS = {"C++": cpp_emitter.emit_launcher, "Python": python_emitter.emit_launcher}


def large_plan(launches: int, maps: int = 0, *, own: bool = False) -> LaunchPlan:
    """Return the plan of a program with 64 parameters, all of which each launch is given, some by a tensor map.

    Parameters
    ----------
    launches
        How many there are.
    maps
        How many maps each is given.
    own
        Whether no launch has a map of another's.
    """
    p = ProgramBuilder("large", DeviceCode("cuda", "//"))
    n, m = (Symbol(name, max=2**31 - 1) for name in "nm")
    arrays = [p.input(f"t{index}", "float32", (n, m) if maps else (n,)) for index in range(56)]
    numbers = [p.scalar(f"s{index}", "int32") for index in range(8)]
    for index in range(launches):
        tiles = [array.tiled((index + 1 if own else 8, 8)) for array in arrays[:maps]]
        p.launch(f"k{index}", (*tiles, *arrays[maps:], *numbers), ceildiv(n, 256), 256)
    return p.build().plan()


@pytest.mark.parametrize(("language", "kilobytes"), [("C++", 80), ("Python", 200)])
def test_fifty_launches_are_three_times_the_text_of_one_at_most(language: str, kilobytes: int) -> None:
    emit = EMITTERS[language]
    one, many = (len(emit(large_plan(launches))) for launches in (1, MANY))
    assert many <= MOST_TIMES * one
    assert many <= kilobytes << 10


@pytest.mark.parametrize("language", EMITTERS)
def test_so_they_are_with_maps_that_all_of_them_read(language: str) -> None:
    emit = EMITTERS[language]
    one, many = (len(emit(large_plan(launches, MAPS))) for launches in (1, MANY))
    assert many <= MOST_TIMES * one


@pytest.mark.parametrize("language", EMITTERS)
def test_a_map_of_a_launch_s_own_costs_what_a_map_costs(language: str) -> None:
    """However many there are: of 200 maps, none costs more than the first ones did."""
    emit = EMITTERS[language]
    few, many = (
        (len(emit(large_plan(launches, MAPS, own=True))) - len(emit(large_plan(launches, MAPS))))
        / (launches - 1)
        for launches in (3, MANY)
    )
    assert many / MAPS <= MOST_OF_A_MAP, f"{many / MAPS:.0f} characters for each"
    assert few / MAPS <= MOST_OF_A_MAP, f"{few / MAPS:.0f} characters for each"
