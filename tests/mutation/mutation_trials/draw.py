"""Draw the mutants that are to be tried: all of a language's files, in the sample's order."""

from __future__ import annotations

import itertools
from pathlib import Path
from typing import TYPE_CHECKING

from mutation_trials import cpp_mutants
from mutation_trials.mutant import digest
from mutation_trials.sample import sampled
from mutation_trials.scope import ROOT, mutated_files

if TYPE_CHECKING:
    from mutation_trials.mutant import Mutant


_RULES = ("scope", "python_mutants", "cpp_mutants", "sample", "mutant")


def rules() -> str:
    """Return a digest of all that a sample follows from but the seed and the files that are mutated."""
    texts = ((Path(__file__).parent / f"{name}.py").read_text("utf-8") for name in _RULES)
    return digest("".join(texts))


def drawn(language: str, seed: int, most: int, root: Path = ROOT) -> list[Mutant]:
    """Return the first mutants of a language's sample.

    Parameters
    ----------
    language
        ``"python"``, which needs cosmic-ray, or ``"cpp"``.
    seed
        What is drawn follows from it.
    most
        How many there are at the most.
    root
        The repository.
    """
    places = cpp_mutants.places
    if language == "python":
        from mutation_trials import python_mutants  # a tree of which the sample is carried has no cosmic-ray

        places = python_mutants.places
    found = (
        place
        for path in mutated_files(language, root)
        for place in places(path, (root / path).read_text("utf-8"))
    )
    return list(itertools.islice(sampled(found, seed), most))
