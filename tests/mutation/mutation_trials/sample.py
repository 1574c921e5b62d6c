"""A sample of mutants: an order of which every beginning is stratified by file and family."""

from __future__ import annotations

import random
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from mutation_trials.mutant import Mutant


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """A place in a file where operators of one family can do something: of all that they can do, one is drawn."""

    path: str
    """The file."""

    family: str
    """The family."""

    where: tuple[int, int]
    """Line and column."""

    make: Callable[[random.Random], Mutant | None]
    """Draws a mutant; None: what was drawn changes nothing."""


def sampled(places: Iterable[Place], seed: int) -> Iterator[Mutant]:
    """Yield mutants in an order that follows from the seed, one for each place.

    The places of each file and family are shuffled, and spread evenly over the whole. So of the first mutants, however
    many, each stratum has its share, to less than one.

    Parameters
    ----------
    places
        The places.
    seed
        What is drawn follows from it.
    """
    strata: dict[tuple[str, str], list[Place]] = {}
    for place in places:
        strata.setdefault((place.path, place.family), []).append(place)
    order: list[tuple[float, Place]] = []
    for key in sorted(strata):
        generator = random.Random(f"{seed} {key}")  # noqa: S311 - a sample, no secret
        stratum = sorted(strata[key], key=lambda place: place.where)
        generator.shuffle(stratum)
        first = generator.random()
        order += [((index + first) / len(stratum), place) for index, place in enumerate(stratum)]
    for _, place in sorted(order, key=lambda one: one[0]):
        generator = random.Random(f"{seed} {place.path} {place.family} {place.where}")  # noqa: S311 - as above
        mutant = place.make(generator)
        if mutant is not None:
            yield mutant
